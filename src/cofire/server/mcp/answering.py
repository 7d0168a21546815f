"""The tool that answers a question from memory: `answer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cofire.answers import Answer as Made
from cofire.answers import AnswerOptions, Citation
from cofire.server.actions import Action
from cofire.server.mcp.fields import Field
from cofire.server.mcp.notes import model_notes
from cofire.server.mcp.recalling import (
    BUDGET,
    KINDS,
    NOTHING,
    RECALL_TOKENS,
    SINCE,
    TAGS,
    TRUSTED,
    UNTIL,
)
from cofire.server.mcp.rendering import (
    FRAME_TOKENS,
    ID_TOKENS,
    LIST_CHARACTERS,
    Count,
    guarded,
    shortened,
)
from cofire.server.mcp.tools import NUMBER, OBJECTS, TEXT, TEXTS, YES_NO, Answer, Call, Tool, said

if TYPE_CHECKING:
    from cofire.memory import Memory

OWN_WORDS = "No language model wrote this: it is the memory's own sentence that fits best"
LEFT_OUT = "{left} more sources did not fit; raise token_budget"
FILTERS = ("kinds", "tags", "since", "until", "trusted_only")


async def answer(call: Call, given: Mapping[str, Any]) -> Answer:
    """An answer with its sources, within a budget."""
    # Not before: `initialize` is answered without the library, which takes a second to import.
    from cofire.server import answering
    from cofire.server.parts import Parts

    budget = given.get("token_budget", RECALL_TOKENS)
    most = call.service.memories.settings.answer_max_tokens
    options: AnswerOptions = {"max_tokens": min(most, budget // 2)}
    for name in FILTERS:
        if name in given:
            # `FILTERS` are names of options, and the schema has checked what they are given.
            options[name] = given[name]  # type: ignore[literal-required]
    parts = await Parts.begin(
        call.service, call.caller, Action.ANSWER, call.where, surface="mcp", request=call.request
    )

    def shape(memory: Memory, made: Made) -> Answer:
        return _told(made, budget - FRAME_TOKENS, memory.count_tokens)

    asking = answering.Asking(question=given["question"], options=options)
    return await answering.answer(parts, asking, shape)


def _told(made: Made, budget: int, count: Count) -> Answer:
    text = shortened(made.text if made.abstained else made.marked, 4 * budget)[0]
    text = guarded(text, untrusted=_from_outside(made))
    sources = list(_sources(made.citations, budget - count(text), count))
    notes = list(model_notes(made.warnings))
    if made.abstained:
        notes.append(NOTHING)
    if made.extractive and not made.abstained:
        notes.append(OWN_WORDS)
    if left := len(made.citations) - len(sources):
        notes.append(LEFT_OUT.format(left=left))
    told = {
        "answer": text,
        "sources": sources,
        "confidence": None if made.confidence is None else round(made.confidence, 2),
        "extractive": made.extractive or None,
        "recall": made.recall.id,
        "notes": notes,
    }
    return said(told) | {"abstained": made.abstained}


def _from_outside(made: Made) -> bool:
    """Whether what a model wrote may say what a page made it say: it cites what comes from
    outside, or was given some and does not say what it rests on."""
    if made.citations:
        return any(one.untrusted for one in made.citations)
    return not made.abstained and any(entry.untrusted for entry in made.context.entries)


def _sources(citations: tuple[Citation, ...], room: int, count: Count) -> Iterator[Answer]:
    """What it rests on, by the numbers of its marks, as far as there is room."""
    for number, one in enumerate(citations, start=1):
        text = guarded(shortened(one.text, LIST_CHARACTERS)[0], untrusted=one.untrusted)
        room -= count(text) + ID_TOKENS
        if room < 0 and number > 1:
            return
        yield said(
            {
                "number": number,
                "id": one.id,
                "text": text,
                "time": one.time.isoformat().replace("+00:00", "Z"),
                "speaker": None if one.untrusted else one.speaker,
                "untrusted": one.untrusted or None,
            }
        )


ANSWER = Tool(
    name="answer",
    title="Answer from memory",
    about=(
        "Get a finished answer to one question from memory, with numbered sources, or `abstained` "
        "when memory does not hold it: then say so. Use it for a plain fact; `recall` when you "
        "want to weigh the memories yourself. May ask the server's language model and take "
        "seconds; what it cites is learned from.\n"
        'Example: {"question": "Where does Ada keep the shed key?"}'
    ),
    actions=(Action.ANSWER,),
    body=answer,
    fields=(
        Field(name="question", required=True, about="A whole question."),
        BUDGET,
        KINDS,
        TAGS,
        SINCE,
        UNTIL,
        TRUSTED,
    ),
    answer={
        "answer": TEXT,
        "sources": OBJECTS,
        "abstained": YES_NO,
        "confidence": NUMBER,
        "extractive": YES_NO,
        "recall": TEXT,
        "notes": TEXTS,
    },
    teaches=True,
)
