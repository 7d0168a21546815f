"""Remembering, and looking after what is remembered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from cofire.errors import ChangedError, InputError
from cofire.memory import Memory
from cofire.plain import fields_of
from cofire.server.actions import Action
from cofire.server.answers import Json, json_bytes
from cofire.server.once import message_key
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Asking, Into, Key, Limit, answers, given, paged
from cofire.types import Item, Kind, Page, Receipt, to_micros

router = APIRouter(
    prefix="/v1",
    tags=["Memories"],
    generate_unique_id_function=lambda route: route.name,
)

Id = Annotated[str, Path(max_length=100, description="A memory's id.", examples=[examples.A])]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=500,
        description="The `ETag` of the memory as you read it: if it was changed since, nothing is "
        "done (412).",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=500,
        description="An `ETag`: if the memory is still the same, the answer is 304 and empty.",
    ),
]
Names = Annotated[list[str], Query(default_factory=list, max_length=values.MOST)]
Time = Annotated[str | None, Query(description="ISO 8601, or epoch seconds or milliseconds.")]
_ETAG = {
    "ETag": {
        "description": "Which state of the memory this is; its counts of use apart.",
        "schema": {"type": "string"},
        "example": '"1-1778261400000000"',
    }
}


def etag(item: Item) -> str:
    """Which state of a memory this is. How often it was recalled does not matter to it."""
    archived = "" if item.archived is None else f"-{to_micros(item.archived)}"
    return f'"{item.version}-{to_micros(item.updated)}{archived}"'


def matches(header: str, item: Item) -> bool:
    """Whether an If-Match or If-None-Match names this state of a memory."""
    named = {one.strip().removeprefix("W/") for one in header.split(",")}
    return "*" in named or etag(item) in named


def require_match(header: str | None, item: Item) -> None:
    """Raises ChangedError."""
    if header is not None and not matches(header, item):
        raise ChangedError(f"memory {item.id} is not as If-Match says; get it again")


def _kept(answer: Any) -> Any:
    """Of a receipt: warnings may quote."""
    return {**answer, "warnings": []}


def _created(answer: Any) -> dict[str, str]:
    return {"Location": f"/v1/memories/{answer['ids'][0]}"} if len(answer["ids"]) == 1 else {}


@router.post(
    "/memories",
    response_model=values.Receipt,
    **answers(examples.RECEIPT, 409, 502, status=201, description="It is on disk."),
)
async def remember(
    body: bodies.Message, asked: Asked, key: Key = None, into: Into = None
) -> Response:
    """Remember one thing. When this answers, it is on disk."""

    def verb(memory: Memory) -> Receipt:
        return memory.remember(_keyed(asked, key, [body])[0], project=into)

    return await asked.into(into).write(
        Action.REMEMBER, verb, key=key, keep=_kept, count=_received, status=201, headers=_created
    )


@router.post(
    "/memories:batch",
    response_model=values.Receipt,
    **answers(examples.RECEIPT, 409, 502, status=201, description="They are on disk."),
)
async def remember_batch(
    body: bodies.Batch, asked: Asked, key: Key = None, into: Into = None
) -> Response:
    """Remember up to 1,000 things in one transaction: all of them, or none. More go by
    `POST /v1/import`."""

    def verb(memory: Memory) -> Receipt:
        return memory.remember(_keyed(asked, key, body.messages), project=into)

    return await asked.into(into).write(
        Action.REMEMBER, verb, key=key, keep=_kept, count=_received, status=201
    )


def _keyed(
    asked: Asking, key: str | None, messages: Sequence[bodies.Message]
) -> list[dict[str, Any]]:
    """The messages, each with a key if the request has one (`once.message_key`)."""
    told = [given(**message.model_dump()) for message in messages]
    if key is not None:
        for place, message in enumerate(told):
            message.setdefault("key", message_key(asked.caller, key, place))
    return told


def _received(receipt: Receipt) -> int:
    return len(receipt.ids)


@router.get(
    "/memories",
    response_model=values.ItemPage,
    **answers(examples.one_page(examples.ITEM), description="A page of memories."),
)
async def list_memories(
    *,
    asked: Asked,
    limit: Limit = 50,
    after: After = None,
    newest_first: bool = True,
    kinds: Annotated[list[Kind], Query(default_factory=list, max_length=len(Kind))],
    speakers: Names,
    sessions: Names,
    tags: Names,
    metadata: Annotated[
        str | None, Query(description='A JSON object that must be matched, {"trip": 7}.')
    ] = None,
    since: Time = None,
    until: Time = None,
    trusted_only: bool = False,
    archived: Annotated[bool, Query(description="What is archived, in place of the rest.")] = False,
) -> Response:
    """A page of memories by time. Every given condition must hold; what Cofire makes itself is
    listed only where `kinds` names it."""

    def verb(memory: Memory) -> Page:
        return memory.list(
            limit=limit, after=after, newest_first=newest_first,
            kinds=kinds, speakers=speakers, sessions=sessions, tags=tags,
            metadata=_object(metadata), since=since, until=until,
            trusted_only=trusted_only, archived=archived,
        )  # fmt: skip

    return await asked.read(Action.LIST, verb, count=len)


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError('metadata must be a JSON object, such as {"trip": 7}')
    return value


@router.get(
    "/memories/{id}",
    response_model=values.Item,
    **answers(
        examples.ITEM, 404, description="The whole memory.", headers=_ETAG,
        also={304: {"description": "It is still the same.", "headers": _ETAG}},
    ),
)  # fmt: skip
async def get_memory(id: Id, asked: Asked, if_none_match: IfNoneMatch = None) -> Response:
    """The whole memory. This does not count as a use of it."""
    item = await asked.ask(Action.GET, lambda memory: memory.get(id), count=lambda _: 1)
    headers = {"ETag": etag(item)}
    if if_none_match is not None and matches(if_none_match, item):
        return Response(status_code=304, headers=headers)
    return Json(json_bytes(item), headers=headers)


@router.patch(
    "/memories/{id}",
    response_model=values.Item,
    **answers(
        examples.ITEM, 404, 409, 412, 502, description="The memory as it is now.", headers=_ETAG
    ),
)
async def update_memory(
    id: Id, body: bodies.Changes, asked: Asked, key: Key = None, if_match: IfMatch = None
) -> Response:
    """Change a memory and keep its former text in its history. Null clears what can be empty;
    what is left out stays."""
    changes = body.model_dump(exclude_unset=True)
    for name in ("content", "kind", "time", "importance", "pinned", "untrusted"):
        if name in changes and changes[name] is None:
            raise InputError(f"{name} cannot be null; leave it out")

    def verb(memory: Memory) -> Item:
        seen = memory.get(id) if if_match is not None else None
        if seen is not None:
            require_match(if_match, seen)
        if not changes:
            return memory.get(id)
        return memory.update(id, seen=seen, **changes)

    return await asked.write(
        Action.UPDATE, verb, fields_of,
        key=key, keep=lambda answer: answer["id"],
        again=lambda memory, kept: memory.get(kept),
        count=lambda _: 1, headers=_etag_header,
    )  # fmt: skip


def _etag_header(answer: Any) -> dict[str, str]:
    if isinstance(answer, Item):
        return {"ETag": etag(answer)}
    moments = [answer["updated"], answer["archived"]]
    micros = [to_micros(datetime.fromisoformat(one)) for one in moments if one is not None]
    return {"ETag": '"' + "-".join(str(part) for part in (answer["version"], *micros)) + '"'}


@router.delete(
    "/memories/{id}",
    response_model=values.Deletion,
    **answers(examples.DELETION, 404, 412, description="A receipt, without content."),
)
async def forget_memory(
    id: Id, asked: Asked, key: Key = None, if_match: IfMatch = None
) -> Response:
    """Delete a memory for good, with everything that is derived from it or repeats it."""

    def verb(memory: Memory) -> Any:
        if if_match is not None:
            require_match(if_match, memory.get(id))
        return memory.forget([id])

    return await asked.write(Action.FORGET, verb, key=key, count=lambda gone: gone.memories)


@router.get(
    "/memories/{id}/history",
    response_model=values.VersionPage,
    **answers(examples.one_page(examples.VERSION), 404, description="Former texts."),
)
async def history(id: Id, asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """A memory's former texts, oldest first; of a record that consolidation made also those that it
    took the place of."""
    return await asked.read(
        Action.HISTORY, lambda memory: memory.history(id), paged(limit, after), count=len
    )


@router.get(
    "/memories/{id}/links",
    response_model=values.LinkPage,
    **answers(examples.one_page(examples.LINK), 404, description="Its links."),
)
async def links(id: Id, asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """The links from and to a memory, made by hand and learned."""
    return await asked.read(
        Action.LINKS, lambda memory: memory.links(id), paged(limit, after), count=len
    )
