"""How a session opens and ends, and what stays open between."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response

from cofire.errors import NotFoundError
from cofire.memory import Memory
from cofire.plain import hydration_shape
from cofire.server.actions import Action
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Into, Key, Limit, answers, paged
from cofire.types import Checkpoint, Kind, Thread, ThreadState

router = APIRouter(
    prefix="/v1", tags=["Sessions"], generate_unique_id_function=lambda route: route.name
)

Id = Annotated[
    str, Path(max_length=100, description="A goal's or thread's id.", examples=[examples.C])
]


@router.post(
    "/hydrate",
    response_model=values.HydrationAnswer,
    **answers(examples.HYDRATION, 502, description="A session's opening context."),
)
async def hydrate(body: bodies.Opening, asked: Asked) -> Response:
    """What an agent should have in mind before a session's first word, within a token budget:
    pinned memories, traits, open goals and threads, what was said last, what bears on the cue.
    Say by feedback on `id` what helped."""
    return await asked.read(
        Action.HYDRATE,
        lambda memory: memory.hydrate(**body.model_dump()),
        hydration_shape,
        count=len,
    )


@router.post(
    "/checkpoints",
    response_model=values.Checkpoint,
    **answers(examples.CHECKPOINT, 409, 502, status=201, description="It is on disk."),
)
async def checkpoint(
    body: bodies.Ending, asked: Asked, key: Key = None, into: Into = None
) -> Response:
    """Capture at a session's end what is open; `hydrate` gives it back at the next one's start."""
    return await asked.into(into).write(
        Action.CHECKPOINT,
        lambda memory: memory.checkpoint(**body.model_dump(), project=into),
        key=key,
        keep=lambda answer: answer["id"],
        again=_checkpoint,
        count=lambda _: 1 + len(body.goals) + len(body.threads),
        status=201,
    )


def _checkpoint(memory: Memory, id: str) -> Checkpoint:
    """One that was captured before, with what is open now."""
    item = memory.get(id)
    return Checkpoint(
        id=id, time=item.time, session=item.session, summary=item.content, open=memory.threads()
    )


@router.get(
    "/threads",
    response_model=values.ThreadPage,
    **answers(examples.one_page(examples.THREAD), description="Goals and threads."),
)
async def threads(
    asked: Asked,
    state: Annotated[
        list[ThreadState],
        Query(
            default_factory=list, max_length=len(ThreadState), description="Default: what is open."
        ),
    ],
    kinds: Annotated[
        list[Literal[Kind.GOAL, Kind.THREAD]],
        Query(default_factory=list, max_length=2, description="Default: both."),
    ],
    limit: Limit = 100,
    after: After = None,
) -> Response:
    """Goals and threads, the last one touched first. `POST /v1/memories` with the kind goal or
    thread opens one."""

    def verb(memory: Memory) -> tuple[Thread, ...]:
        return memory.threads(state, kinds=kinds) if state else memory.threads(kinds=kinds)

    return await asked.read(Action.THREADS, verb, paged(limit, after), count=len)


@router.post(
    "/threads/{id}/advance",
    response_model=values.Thread,
    **answers(examples.THREAD, 404, 409, 502, description="The goal or thread."),
)
async def advance(id: Id, body: bodies.Note, asked: Asked, key: Key = None) -> Response:
    """Note how far a goal or thread has come. One that was closed or stale is open again."""
    return await asked.write(
        Action.ADVANCE, lambda memory: memory.advance(id, body.note),
        key=key, keep=_id_of, again=_thread, count=lambda _: 1,
    )  # fmt: skip


@router.post(
    "/threads/{id}/conclude",
    response_model=values.Thread,
    **answers(examples.THREAD, 404, 409, 502, description="The goal or thread."),
)
async def conclude(id: Id, body: bodies.Outcome, asked: Asked, key: Key = None) -> Response:
    """Close a goal or thread, with what came of it. It is still recalled, but no session opens with
    it."""
    return await asked.write(
        Action.CONCLUDE, lambda memory: memory.conclude(id, body.outcome),
        key=key, keep=_id_of, again=_thread, count=lambda _: 1,
    )  # fmt: skip


def _id_of(answer: Any) -> Any:
    return answer["id"]


def _thread(memory: Memory, id: str) -> Thread:
    """One that was changed before, as it is now."""
    for thread in memory.threads(list(ThreadState)):
        if thread.id == id:
            return thread
    raise NotFoundError(f"there is no goal or thread {id} here; `threads` lists them")
