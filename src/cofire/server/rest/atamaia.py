"""The contracts of Atamaia (Jeffries, section 4.3) as they stand, under /api: 64-bit ids and names
in camel case.

A link's strength is what section 3.4 says of it, S ← min(1, S + (1 - S)·0.1) at each strengthening,
which after n of them is 1 - (1 - S₀)·0.9ⁿ: a fold over the log, by Atamaia's rule, whatever rule
the space learns and recalls by. Where two memories are linked by hand and by learning, they are one
link here. Strengthening a link that does not exist is silent, creating one twice is an error, and
getting a memory counts as a use of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field

from cofire.errors import ForbiddenError, InputError, NotFoundError
from cofire.memory import Memory
from cofire.retrieval.profiles import PROFILES
from cofire.server.access import Place
from cofire.server.actions import Action
from cofire.server.problems import responses
from cofire.server.rest.asking import Asked, Asking, Key, answers
from cofire.server.rest.bodies import Body, Whole
from cofire.server.rest.numbers import identity_number, link_number
from cofire.server.rest.values import MOST, Answer
from cofire.types import Item, Kind, Link, LinkType

router = APIRouter(
    prefix="/api",
    tags=["Atamaia"],
    generate_unique_id_function=lambda route: f"atamaia_{route.name}",
)

RATE = 0.1
"""α of an explicit strengthening (section 3.4)."""
INITIAL = 0.5
"""A new link's strength (section 4.2.1)."""

Number = Annotated[int, Path(ge=1, description="A memory's 64-bit id.")]
Target = Annotated[int, Path(alias="targetId", ge=1, description="Another's.")]


class NewHebbianLink(Body):
    """A link to another memory."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"targetMemoryId": 42, "type": "Related"}]},
    )
    targetMemoryId: Whole = Field(ge=1)  # noqa: N815 - the contract's name
    type: str = Field(
        default="Related",
        description="Its kind, fixed from now on: "
        + ", ".join(kind.value.title().replace("_", "") for kind in LinkType)
        + ".",
        max_length=50,
    )


class HebbianLinkDto(Answer):
    """A link with its strength."""

    id: int
    fromMemoryId: int  # noqa: N815
    toMemoryId: int  # noqa: N815
    type: str
    strength: float = Field(ge=0, le=1)
    coActivationCount: int = Field(ge=0)  # noqa: N815
    lastCoActivatedAt: datetime | None  # noqa: N815


class Strengthened(Answer):
    """The contract's answer, whether there was a link or not."""

    message: str


class MemoryDto(Answer):
    """A memory."""

    id: int
    guid: str
    identityId: int | None  # noqa: N815
    title: str | None
    content: str
    type: str
    importance: int
    isPinned: bool  # noqa: N815
    tags: list[str]
    accessCount: int  # noqa: N815
    lastAccessedAt: datetime | None  # noqa: N815
    tokenEstimate: int  # noqa: N815
    archivedAt: datetime | None  # noqa: N815
    createdAt: datetime  # noqa: N815
    updatedAt: datetime  # noqa: N815


class MemoryDetailDto(MemoryDto):
    """A memory and its links."""

    linksFrom: list[HebbianLinkDto]  # noqa: N815
    linksTo: list[HebbianLinkDto]  # noqa: N815


class SearchHitDto(MemoryDto):
    """A memory that was found."""

    score: float


class MemorySearchResult(Answer):
    """What a search found."""

    results: list[SearchHitDto]
    totalCandidates: int = Field(ge=0)  # noqa: N815
    embeddingCoverage: float = Field(  # noqa: N815
        ge=0, le=1, description="Part of the memories that have a vector."
    )


_LINK = {
    "id": 7_305_134_892_170_531_001, "fromMemoryId": 41, "toMemoryId": 42, "type": "Related",
    "strength": 0.5, "coActivationCount": 0, "lastCoActivatedAt": None,
}  # fmt: skip
_MEMORY = {
    "id": 41, "guid": "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001", "identityId": 5577006791947779410,
    "title": None, "content": "The ferry leaves at 9:15.", "type": "Episode", "importance": 5,
    "isPinned": False, "tags": ["travel"], "accessCount": 1,
    "lastAccessedAt": "2026-05-09T06:00:00Z", "tokenEstimate": 9, "archivedAt": None,
    "createdAt": "2026-05-08T17:30:00Z", "updatedAt": "2026-05-08T17:30:00Z",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two memories' link as the contracts have it: `made` by hand or by Cofire, and what was
    `learned` of the two. One of them may be missing."""

    source: str
    target: str
    made: Link | None
    learned: Link | None

    def dto(self, numbers: Mapping[str, int]) -> dict[str, Any]:
        """As it is answered. `numbers` are 64-bit ids by id."""
        learned, made = self.learned, self.made
        times = 0 if learned is None else learned.coactivations
        if made is not None:
            kind, strength = made.type, 1.0 - (1.0 - made.strength) * (1.0 - RATE) ** times
        else:
            kind, strength = LinkType.COACTIVATION, 0.0 if learned is None else learned.strength
        return {
            "id": link_number(self.source, self.target),
            "fromMemoryId": numbers[self.source],
            "toMemoryId": numbers[self.target],
            "type": _pascal(kind),
            "strength": strength,
            "coActivationCount": times,
            "lastCoActivatedAt": None if learned is None else learned.last_coactivated,
        }


def _is_learned(link: Link) -> bool:
    return link.type is LinkType.COACTIVATION and link.last_coactivated is not None


def _pairs(memory: Memory, id: str) -> list[_Pair]:
    """A memory's links. Questions, which learning links as well, are no memories here."""
    found = [one for one in memory.links(id) if one.type is not LinkType.ASSOCIATION]
    learned = {frozenset((one.source, one.target)): one for one in found if _is_learned(one)}
    made = [one for one in found if not _is_learned(one)]
    pairs = [
        _Pair(
            source=one.source, target=one.target, made=one,
            learned=learned.get(frozenset((one.source, one.target))),
        )
        for one in made
    ]  # fmt: skip
    joined = {frozenset((one.source, one.target)) for one in made}
    pairs += [
        _Pair(source=one.source, target=one.target, made=None, learned=one)
        for ends, one in learned.items()
        if ends not in joined
    ]
    return pairs


def _pascal(kind: LinkType | Kind) -> str:
    return "".join(word.capitalize() for word in kind.value.split("_"))


def _kind(name: str) -> LinkType:
    """A kind of link in any spelling: Related, related, evolves_to, EvolvesTo. Raises
    InputError."""
    wanted = name.replace("_", "").replace("-", "").lower()
    for kind in LinkType:
        if kind.value.replace("_", "") == wanted:
            return kind
    raise InputError(
        f"there is no link type {name!r}; use one of {', '.join(map(_pascal, LinkType))}"
    )


def _memory(item: Item) -> dict[str, Any]:
    ref = item.space
    return {
        "id": item.number,
        "guid": item.id,
        "identityId": None
        if ref.identity is None
        else identity_number(
            Place(tenant=ref.tenant, identity=ref.identity, user=ref.user, projects=())
        ),
        "title": item.title,
        "content": item.content,
        "type": _pascal(item.kind),
        "importance": item.importance,
        "isPinned": item.pinned,
        "tags": item.tags,
        "accessCount": item.access_count,
        "lastAccessedAt": item.last_accessed,
        "tokenEstimate": item.tokens,
        "archivedAt": item.archived,
        "createdAt": item.recorded,
        "updatedAt": item.updated,
    }


@router.post(
    "/memories/{id}/links",
    response_model=HebbianLinkDto,
    **answers(_LINK, 404, 409, status=201, description="The link, of strength 0.5."),
)
async def create_link(id: Number, body: NewHebbianLink, asked: Asked, key: Key = None) -> Response:
    """Link a memory to another, with an initial strength of 0.5. A link that exists is an error
    (409)."""
    kind = _kind(body.type)

    def verb(memory: Memory) -> dict[str, Any]:
        one, other = memory.get(id), memory.get(body.targetMemoryId)
        memory.link(one.id, other.id, kind, strength=INITIAL)
        numbers = {one.id: one.number, other.id: other.number}
        ends = (one.id, other.id)
        made = next(pair for pair in _pairs(memory, one.id) if (pair.source, pair.target) == ends)
        return made.dto(numbers)

    return await asked.write(Action.LINK, verb, key=key, count=lambda _: 2, status=201)


@router.delete(
    "/memories/{id}/links/{targetId}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "It is gone."}, **responses(404)},
)
async def remove_link(id: Number, target: Target, asked: Asked) -> Response:
    """Remove the link from one memory to another, and what was learned of the two."""

    def verb(memory: Memory) -> None:
        one, other = memory.get(id), memory.get(target)
        ends = (one.id, other.id)
        pairs = _pairs(memory, one.id)
        found = next((pair for pair in pairs if (pair.source, pair.target) == ends), None)
        if found is None:
            raise NotFoundError(f"there is no link from {id} to {target} here")
        back = any((pair.target, pair.source) == ends for pair in pairs)
        for link in (found.made, None if back else found.learned):
            if link is not None:
                _unlink(memory, link)

    await asked.ask(Action.UNLINK, verb, count=lambda _: 2)
    return Response(status_code=204)


def _unlink(memory: Memory, link: Link) -> None:
    """Removes a link; one that was learned may meanwhile have moved to where there is room now."""
    try:
        memory.unlink(link.source, link.target)
    except NotFoundError:
        if not _is_learned(link):
            raise
        with suppress(NotFoundError):
            memory.unlink(link.target, link.source)


@router.post(
    "/memories/{id}/links/{targetId}/strengthen",
    response_model=Strengthened,
    **answers({"message": "Link strengthened"}, 409, description="Whether there is one or not."),
)
async def strengthen_link(id: Number, target: Target, asked: Asked, key: Key = None) -> Response:
    """Strengthen the link of two memories, whichever way it leads. Where there is none, nothing
    happens, and the answer is the same."""

    def verb(memory: Memory) -> int:
        try:
            one, other = memory.get(id), memory.get(target)
        except NotFoundError:
            return 0
        if not any(other.id in (pair.source, pair.target) for pair in _pairs(memory, one.id)):
            return 0
        if one.id == other.id:
            return 0
        memory.strengthen(one.id, other.id, by=asked.caller.name)
        return 2

    return await asked.write(
        Action.STRENGTHEN, verb, lambda _: {"message": "Link strengthened"},
        key=key, count=lambda touched: touched,
    )  # fmt: skip


@router.get(
    "/memories/{id}",
    response_model=MemoryDetailDto,
    **answers(
        _MEMORY | {"linksFrom": [_LINK], "linksTo": []}, 404, description="It, with its links."
    ),
)
async def get_memory(id: Number, asked: Asked) -> Response:
    """A memory with the links from and to it. This counts as a use of it."""

    def verb(memory: Memory) -> dict[str, Any]:
        item = memory.get(id, accessed=True)
        pairs = _pairs(memory, item.id)
        numbers = {item.id: item.number}
        for end in {end for pair in pairs for end in (pair.source, pair.target)} - {item.id}:
            with suppress(NotFoundError):  # it was deleted just now
                numbers[end] = memory.get(end).number
        shown = [pair for pair in pairs if {pair.source, pair.target} <= numbers.keys()]
        return _memory(item) | {
            "linksFrom": [pair.dto(numbers) for pair in shown if pair.source == item.id],
            "linksTo": [pair.dto(numbers) for pair in shown if pair.target == item.id],
        }

    return await asked.read(Action.GET, verb, count=lambda _: 1)


@router.get(
    "/identities/{identityId}/memories/search",
    response_model=MemorySearchResult,
    **answers(
        {
            "results": [_MEMORY | {"score": 0.82}], "totalCandidates": 1, "embeddingCoverage": 1.0,
        },
        404, 502, description="Best first.",
    ),
)  # fmt: skip
async def search(
    identity: Annotated[
        int,
        Path(
            alias="identityId", ge=1,
            description="The 64-bit id of an identity: `identity_number` of `GET /v1/me`.",
        ),
    ],
    asked: Asked,
    q: Annotated[str, Query(description="What is looked for.")],
    top: Annotated[int, Query(alias="topK", ge=1, le=MOST, description="At most so many.")] = 20,
    profile: Annotated[
        str,
        Query(
            description="How to rank, and with it how much links count.",
            json_schema_extra={"enum": sorted(PROFILES)},
        ),
    ] = "atamaia",
) -> Response:  # fmt: skip
    """Search an identity's memories by words and by meaning, with what strong links add."""
    there = await _of_identity(asked, identity)

    def verb(memory: Memory) -> dict[str, Any]:
        found = memory.recall(q, top, profile=profile)
        ids, _ = memory.candidates(q, profile=profile)
        spaces = memory.stats().spaces
        items = sum(space.items for space in spaces)
        pending = sum(space.pending for space in spaces)
        return {
            "results": [_memory(hit.item) | {"score": hit.score} for hit in found],
            "totalCandidates": len(ids),
            "embeddingCoverage": 1.0 if not items else max(0.0, 1.0 - pending / items),
        }

    return await there.read(Action.RECALL, verb, count=lambda found: len(found["results"]))


async def _of_identity(asked: Asking, number: int) -> Asking:
    """The same request, about the identity of this number, if the caller may name it. Raises
    NotFoundError."""
    caller, where = asked.caller, asked.where
    names: Iterable[str | None] = (where.identity,)
    if where.identity is None:
        names = caller.identities or await asked.service.identities(caller)
    for name in names:
        there = replace(where, identity=name)
        try:
            place = caller.place(there)
        except ForbiddenError:  # the gate says so, and enters it
            return replace(asked, where=there)
        if identity_number(place) == number:
            return replace(asked, where=there)
    raise NotFoundError(f"there is no identity {number} here; `GET /v1/me` tells yours")
