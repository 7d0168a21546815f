"""Recalling, and learning from how it went."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from cofire.memory import Memory
from cofire.plain import recall_shape
from cofire.retrieval.features import TERMS
from cofire.server.actions import Action
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import Asked, Key, answers
from cofire.types import Learned, Recall

router = APIRouter(
    prefix="/v1", tags=["Recall"], generate_unique_id_function=lambda route: route.name
)

RecallId = Annotated[
    str,
    Path(
        max_length=100,
        description="The `id` of a recall, or of a session's opening context.",
        examples=[examples.B],
    ),
]


@router.post(
    "/recall",
    response_model=values.RecallAnswer,
    **answers(examples.RECALL, 502, description="What the question brought back, best first."),
)
async def recall(body: bodies.Question, asked: Asked) -> Response:
    """The memories that bear on a question, best first.

    `text` is the whole for a prompt. `confidence` says how likely the memory holds an answer at
    all, `abstain` that it is too unlikely. Say by feedback on `id` what was used.
    """
    question = body.model_dump(exclude={"query", "k"})
    return await asked.read(
        Action.RECALL, lambda memory: memory.recall(body.query, body.k, **question), _told,
        count=len,
    )  # fmt: skip


def _told(found: Recall) -> dict[str, Any]:
    return recall_shape(found) | {"text": found.text}


@router.post(
    "/recalls/{id}/feedback",
    response_model=values.Learned,
    **answers(examples.LEARNED, 404, 409, 502, description="What was learned."),
)
async def feedback(id: RecallId, body: bodies.Feedback, asked: Asked, key: Key = None) -> Response:
    """Say which memories of a recall were used, which were rejected, and how it went: this is what
    Cofire learns from. Who says so is the key's name. The same about the same question counts
    once."""

    def verb(memory: Memory) -> Learned:
        return memory.feedback(
            id, body.used, body.rejected,
            outcome=body.outcome, interaction=body.interaction, by=asked.caller.name,
        )  # fmt: skip

    return await asked.write(
        Action.FEEDBACK, verb, key=key, count=lambda _: len(body.used) + len(body.rejected)
    )


@router.post(
    "/recalls/{id}/opened",
    response_model=values.Learned,
    **answers(examples.LEARNED, 404, 409, 502, description="What was learned."),
)
async def opened(id: RecallId, body: bodies.Opened, asked: Asked, key: Key = None) -> Response:
    """Say that an agent looked at these results of a recall: a weaker signal than feedback."""
    return await asked.write(
        Action.OPENED,
        lambda memory: memory.opened(id, body.ids, by=asked.caller.name),
        key=key,
        count=lambda _: len(body.ids),
    )


@router.post(
    "/recalls/{id}/cited",
    response_model=values.Learned,
    **answers(examples.LEARNED, 404, 409, 502, description="What was learned."),
)
async def cited(id: RecallId, body: bodies.Cited, asked: Asked, key: Key = None) -> Response:
    """Learn from a generated answer what it cites of a recall: `[1]` or `[2, 3]` by place, or ids.
    An answer that cites nothing teaches nothing."""
    return await asked.write(
        Action.CITED,
        lambda memory: memory.cited(id, body.answer, by=asked.caller.name),
        key=key,
        count=lambda learned: int(learned.counted),
    )


@router.post(
    "/candidates",
    response_model=values.Candidates,
    **answers(examples.CANDIDATES, 502, description="Candidates and their terms."),
)
async def candidates(body: bodies.CandidatesQuestion, asked: Asked) -> Response:
    """The candidates of a recall, best first, with the terms of their scores: what a profile's
    weights are fitted on."""

    def shape(found: Any) -> dict[str, Any]:
        ids, terms = found
        return {
            "ids": list(ids[: body.k]),
            "terms": list(TERMS),
            "values": terms[: body.k].tolist(),
        }

    return await asked.read(
        Action.RECALL,
        lambda memory: memory.candidates(body.query, profile=body.profile, now=body.now),
        shape,
        count=lambda found: min(body.k, len(found[0])),
    )


@router.post(
    "/similarity",
    response_model=values.Similarity,
    **answers({"similarity": 0.47}, 502, description="A cosine."),
)
async def similarity(body: bodies.Texts, asked: Asked) -> Response:
    """Cosine of a question to the most similar of some texts."""
    return await asked.read(
        Action.RECALL,
        lambda memory: memory.similarity(body.query, body.texts),
        lambda cosine: {"similarity": cosine},
    )


@router.post(
    "/tokens",
    response_model=values.Tokens,
    **answers({"tokens": 9}, 502, description="Wordpieces."),
)
async def count_tokens(body: bodies.Counted, asked: Asked) -> Response:
    """Wordpieces of a text by this server's model: the unit of token budgets."""
    return await asked.read(
        Action.COUNT_TOKENS,
        lambda memory: memory.count_tokens(body.text),
        lambda tokens: {"tokens": tokens},
    )
