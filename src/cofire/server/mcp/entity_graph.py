"""Entities, observations and relations as memories: what the official memory server keeps in a
file, kept so that Cofire recalls it.

An entity is a memory titled with its name, each of its observations one of its own (so that it is
found by what it says), and a relation one that says it in words. What they are stands in their
metadata, and all have one tag. A key made of all of it keeps anything from being there twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cofire.errors import NotFoundError
from cofire.types import Item, Kind, Message

if TYPE_CHECKING:
    from cofire.memory import Memory

TAG = "knowledge-graph"
MOST = 2_000
"""Memories that one answer is made of, at most."""
PAGE = 500
FOUND = 20
"""Memories of a search."""

Entity = dict[str, Any]
Relation = dict[str, str]


def create_entities(memory: Memory, entities: Sequence[Mapping[str, Any]]) -> list[Entity]:
    """Those that were not there are made; returns them."""
    there = _names(_entity_items(memory, [one["name"] for one in entities]))
    fresh: dict[str, Entity] = {}
    for one in entities:
        if one["name"] not in there:
            fresh.setdefault(one["name"], {"observations": [], **one})
    messages: list[Message] = []
    for one in fresh.values():
        messages.append(_entity(one["name"], one["entityType"]))
        messages += [_observation(one["name"], text) for text in _said(one["observations"])]
    if messages:
        memory.remember(messages)
    return list(fresh.values())


def create_relations(memory: Memory, relations: Sequence[Relation]) -> list[Relation]:
    """Those that were not there are made; returns them."""
    if not relations:
        return []
    receipt = memory.remember([_relation(one) for one in relations])
    return [one for one, new in zip(relations, receipt.created, strict=True) if new]


def add_observations(memory: Memory, added: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """New observations of entities; returns by entity which were not there. Raises NotFoundError
    for an entity that does not exist; then nothing is added."""
    there = _names(_entity_items(memory, [one["entityName"] for one in added]))
    for one in added:
        if one["entityName"] not in there:
            raise NotFoundError(
                f"there is no entity {one['entityName']!r}; create_entities makes it"
            )
    results = []
    for one in added:
        texts = _said(one["contents"])
        created: Sequence[bool] = ()
        if texts:
            created = memory.remember(
                [_observation(one["entityName"], text) for text in texts]
            ).created
        results.append(
            {
                "entityName": one["entityName"],
                "addedObservations": [
                    text for text, new in zip(texts, created, strict=True) if new
                ],
            }
        )
    return results


def delete_entities(memory: Memory, names: Sequence[str]) -> int:
    """Entities with their observations and relations; returns how many memories went."""
    items = [item for name in dict.fromkeys(names) for item in _about(memory, name)]
    return _forget(memory, items)


def delete_observations(memory: Memory, deletions: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many there were."""
    keys = {
        _key("observation", one["entityName"], text)
        for one in deletions
        for text in one["observations"]
    }
    items = (
        item
        for name in dict.fromkeys(one["entityName"] for one in deletions)
        for item in _listed(memory, {"graph": "observation", "entity": name})
    )
    return _forget(memory, [item for item in items if item.key in keys])


def delete_relations(memory: Memory, relations: Sequence[Relation]) -> int:
    """Returns how many there were."""
    keys = {_relation(one).key for one in relations}
    items = (
        item
        for name in dict.fromkeys(one["from"] for one in relations)
        for item in _listed(memory, {"graph": "relation", "from": name})
    )
    return _forget(memory, [item for item in items if item.key in keys])


def read_graph(memory: Memory) -> tuple[list[Entity], list[Relation], bool]:
    """Everything, and whether that is more than one answer is made of."""
    items = list(_listed(memory, {}))
    return (*_graph(items), len(items) >= MOST)


def search_nodes(memory: Memory, query: str) -> tuple[list[Entity], list[Relation]]:
    """The entities that a recall leads to, best first, and the relations between them."""
    found = memory.recall(query, FOUND, tags=TAG, semantic=0)
    names: dict[str, None] = {}
    for hit in found:
        held = hit.item.metadata
        names.update(dict.fromkeys(held[key] for key in ("entity", "from", "to") if key in held))
    return open_nodes(memory, list(names))


def open_nodes(memory: Memory, names: Sequence[str]) -> tuple[list[Entity], list[Relation]]:
    """Those entities that there are, in this order, and the relations between them."""
    wanted = list(dict.fromkeys(names))
    items = [item for name in wanted for item in _listed(memory, {"entity": name})]
    items += [
        item
        for name in wanted
        for item in _listed(memory, {"graph": "relation", "from": name})
        if item.metadata["to"] in wanted
    ]
    entities, relations = _graph(items)
    place = {name: at for at, name in enumerate(wanted)}
    return sorted(entities, key=lambda one: place[one["name"]]), relations


def _graph(items: Iterable[Item]) -> tuple[list[Entity], list[Relation]]:
    entities: dict[str, Entity] = {}
    observations: list[tuple[str, str]] = []
    relations: list[Relation] = []
    for item in items:
        held = item.metadata
        if held["graph"] == "entity":
            entities[held["entity"]] = {
                "name": held["entity"], "entityType": held["entityType"], "observations": [],
            }  # fmt: skip
        elif held["graph"] == "observation":
            observations.append((held["entity"], item.content))
        else:
            relations.append({name: held[name] for name in ("from", "to", "relationType")})
    for name, text in observations:
        if name in entities:
            entities[name]["observations"].append(text)
    return list(entities.values()), relations


def _about(memory: Memory, name: str) -> Iterator[Item]:
    yield from _listed(memory, {"entity": name})
    for end in ("from", "to"):
        yield from _listed(memory, {"graph": "relation", end: name})


def _entity_items(memory: Memory, names: Iterable[str]) -> Iterator[Item]:
    for name in dict.fromkeys(names):
        yield from _listed(memory, {"graph": "entity", "entity": name})


def _names(items: Iterable[Item]) -> set[str]:
    return {item.metadata["entity"] for item in items}


def _listed(memory: Memory, metadata: Mapping[str, Any]) -> Iterator[Item]:
    """Oldest first, up to `MOST`."""
    after: str | None = None
    for _ in range(MOST // PAGE):
        page = memory.list(limit=PAGE, after=after, newest_first=False, tags=TAG, metadata=metadata)
        yield from page
        after = page.next
        if after is None:
            return


def _forget(memory: Memory, items: Sequence[Item]) -> int:
    ids = list(dict.fromkeys(item.id for item in items))
    if ids:
        memory.forget(ids)
    return len(ids)


def _said(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _entity(name: str, type: str) -> Message:
    return Message(
        content=f"{name} ({type})",
        title=name,
        kind=Kind.EPISODE,
        tags=(TAG,),
        metadata={"graph": "entity", "entity": name, "entityType": type},
        key=_key("entity", name),
    )


def _observation(name: str, text: str) -> Message:
    return Message(
        content=text,
        title=name,
        tags=(TAG,),
        metadata={"graph": "observation", "entity": name},
        key=_key("observation", name, text),
    )


def _relation(one: Relation) -> Message:
    parts = {name: one[name] for name in ("from", "to", "relationType")}
    return Message(
        content=f"{one['from']} {one['relationType']} {one['to']}",
        tags=(TAG,),
        metadata={"graph": "relation", **parts},
        key=_key("relation", *parts.values()),
    )


def _key(*parts: str) -> str:
    return f"{TAG}:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"
