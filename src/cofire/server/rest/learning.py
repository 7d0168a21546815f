"""Links, made by hand and learned, and why they are as they are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from cofire.memory import Memory
from cofire.server.actions import Action
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Into, Key, Limit, answers, paged

router = APIRouter(
    prefix="/v1", tags=["Links and learning"], generate_unique_id_function=lambda route: route.name
)

One = Annotated[str, Path(max_length=100, description="A memory's id.", examples=[examples.A])]
Other = Annotated[str, Path(max_length=100, description="Another's.", examples=[examples.B])]


@router.post(
    "/links",
    response_model=values.Link,
    **answers(examples.LINK, 404, 409, status=201, description="The link."),
)
async def link(body: bodies.NewLink, asked: Asked, key: Key = None) -> Response:
    """Link two memories of one space. A second link from one to the other is a conflict (409)."""
    return await asked.write(
        Action.LINK,
        lambda memory: memory.link(body.source, body.target, body.type, strength=body.strength),
        key=key,
        count=lambda _: 2,
        status=201,
    )


@router.delete(
    "/links/{source}/{target}",
    response_model=values.Unlinked,
    **answers({"unlinked": 1}, 404, 409, description="It is gone."),
)
async def unlink(source: One, target: Other, asked: Asked, key: Key = None) -> Response:
    """Remove the link from one memory to another, made by hand or learned."""

    def verb(memory: Memory) -> int:
        memory.unlink(source, target)
        return 1

    return await asked.write(
        Action.UNLINK, verb, lambda gone: {"unlinked": gone}, key=key, count=lambda _: 2
    )


@router.post(
    "/links/{a}/{b}/strengthen",
    response_model=values.Learned,
    **answers(examples.LEARNED, 404, 409, description="What was learned."),
)
async def strengthen(a: One, b: Other, asked: Asked, key: Key = None) -> Response:
    """Say that two memories belong together. Each call counts, within 0.2 a day for a key whose
    name the server does not trust."""
    return await asked.write(
        Action.STRENGTHEN,
        lambda memory: memory.strengthen(a, b, by=asked.caller.name),
        key=key,
        count=lambda _: 2,
    )


@router.get(
    "/links/{a}/{b}/why",
    response_model=values.EvidencePage,
    **answers(examples.one_page(examples.EVIDENCE), 404, description="Events, oldest first."),
)
async def why(a: One, b: Other, asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """The events behind the learned link of two memories, oldest first."""
    return await asked.read(
        Action.WHY, lambda memory: memory.why(a, b), paged(limit, after), count=len
    )


@router.get(
    "/strengths",
    response_model=values.StrengthPage,
    **answers(examples.one_page(examples.STRENGTH), description="Learned links."),
)
async def strengths(
    asked: Asked,
    limit: Limit = 100,
    after: After = None,
    as_of: Annotated[str | None, Query(description="As they were at this moment.")] = None,
) -> Response:
    """Every learned link, strongest first, recomputed from the log."""
    return await asked.read(
        Action.STRENGTHS,
        lambda memory: memory.strengths(as_of=as_of),
        paged(limit, after),
        count=len,
    )


@router.get(
    "/proposals",
    response_model=values.ProposalPage,
    **answers(examples.one_page(examples.PROPOSAL), description="Pairs."),
)
async def proposals(
    asked: Asked,
    least: Annotated[int, Query(ge=1, le=bodies.LARGEST, description="Rejections at least.")] = 3,
    limit: Limit = 100,
    after: After = None,
) -> Response:
    """Pairs that may contradict each other: one was rejected where the other was used."""
    return await asked.read(
        Action.PROPOSALS, lambda memory: memory.proposals(least), paged(limit, after), count=len
    )


@router.post(
    "/replay",
    response_model=values.Mended,
    **answers({"mended": 0}, 409, description="The log was replayed."),
)
async def replay(asked: Asked, key: Key = None) -> Response:
    """Recompute every strength of these memories from the log, and mend what differs."""
    return await asked.write(
        Action.REPLAY, lambda memory: memory.replay(), lambda mended: {"mended": mended},
        key=key, count=_itself,
    )  # fmt: skip


@router.put(
    "/rule",
    response_model=values.LinksChanged,
    **answers({"changed": 12}, 409, description="The rule holds from now on."),
)
async def learn_by(body: bodies.Rule, asked: Asked, key: Key = None, into: Into = None) -> Response:
    """From now on learn by another rule, and make what was learned what the log says by it. The
    log stays: going back brings back what had been learned."""
    return await asked.into(into).write(
        Action.LEARN_BY,
        lambda memory: memory.learn_by(body.rule, project=into),
        lambda changed: {"changed": changed},
        key=key,
        count=_itself,
    )


def _itself(count: Any) -> int:
    return int(count)
