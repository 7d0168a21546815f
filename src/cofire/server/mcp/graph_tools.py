"""The nine tools of the official memory server, by the same names and with the same arguments, for
agents that are used to them (`cofire mcp --compat`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cofire.server.actions import Action
from cofire.server.mcp import entity_graph
from cofire.server.mcp.fields import Field
from cofire.server.mcp.tools import OBJECTS, TEXT, YES_NO, Answer, Body, Call, Tool

if TYPE_CHECKING:
    from cofire.memory import Memory

_GRAPH = {"entities": OBJECTS, "relations": OBJECTS}
_DONE = {"success": YES_NO, "message": TEXT}

ENTITY = (
    Field(name="name", required=True, about="The entity's name."),
    Field(name="entityType", required=True, about="Its type, as person or project."),
    Field(name="observations", type="array", about="What is known of it, one fact each."),
)
RELATION = (
    Field(name="from", required=True, about="Entity it starts at."),
    Field(name="to", required=True, about="Entity it ends at."),
    Field(name="relationType", required=True, about="In active voice, as works_at."),
)
OBSERVED = (
    Field(name="entityName", required=True),
    Field(name="contents", type="array", required=True, about="Facts to add."),
)
UNOBSERVED = (
    Field(name="entityName", required=True),
    Field(name="observations", type="array", required=True, about="Facts to delete."),
)

Does = Callable[["Memory", Mapping[str, Any]], Answer]


def _body(action: Action, does: Does) -> Body:
    """One verb of the graph, behind the gate as any other."""

    async def body(call: Call, given: Mapping[str, Any]) -> Answer:
        def verb(memory: Memory) -> Answer:
            return does(memory, given)

        return await call.run(action, verb, count=_size)

    return body


def _size(answer: Answer) -> int:
    return sum(len(value) for value in answer.values() if isinstance(value, list))


def _create_entities(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return {"entities": entity_graph.create_entities(memory, given["entities"])}


def _create_relations(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return {"relations": entity_graph.create_relations(memory, given["relations"])}


def _add_observations(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return {"results": entity_graph.add_observations(memory, given["observations"])}


def _delete_entities(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return _deleted(entity_graph.delete_entities(memory, given["entityNames"]))


def _delete_observations(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return _deleted(entity_graph.delete_observations(memory, given["deletions"]))


def _delete_relations(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return _deleted(entity_graph.delete_relations(memory, given["relations"]))


def _deleted(count: int) -> Answer:
    return {"success": True, "message": f"{count} deleted"}


def _read_graph(memory: Memory, given: Mapping[str, Any]) -> Answer:
    del given
    entities, relations, cut = entity_graph.read_graph(memory)
    answer: Answer = {"entities": entities, "relations": relations}
    if cut:
        answer["note"] = "There is more than fits into one answer: use search_nodes"
    return answer


def _search_nodes(memory: Memory, given: Mapping[str, Any]) -> Answer:
    entities, relations = entity_graph.search_nodes(memory, given["query"])
    return {"entities": entities, "relations": relations}


def _open_nodes(memory: Memory, given: Mapping[str, Any]) -> Answer:
    entities, relations = entity_graph.open_nodes(memory, given["names"])
    return {"entities": entities, "relations": relations}


def _tool(  # noqa: PLR0917  (a table reads better without names)
    name: str,
    about: str,
    action: Action,
    does: Does,
    fields: tuple[Field, ...],
    answer: Mapping[str, Any],
) -> Tool:
    return Tool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        about=about,
        actions=(action,),
        body=_body(action, does),
        fields=fields,
        answer=answer,
        destroys=action is Action.FORGET,
        repeatable=True,
    )


def _array(name: str, items: tuple[Field, ...] = (), about: str = "") -> tuple[Field, ...]:
    return (Field(name=name, type="array", required=True, items=items, about=about),)


GRAPH_TOOLS: tuple[Tool, ...] = (
    _tool(
        "create_entities",
        "Create entities (people, projects, things) with what is known of them. Call it when you "
        "learn of one for the first time; one that exists is left as it is. Returns those created.",
        Action.REMEMBER,
        _create_entities,
        _array("entities", ENTITY),
        {"entities": OBJECTS},
    ),
    _tool(
        "create_relations",
        "Create relations between entities, in active voice. Returns those that are new.",
        Action.REMEMBER,
        _create_relations,
        _array("relations", RELATION),
        {"relations": OBJECTS},
    ),
    _tool(
        "add_observations",
        "Add facts to entities that exist. Returns those that are new.",
        Action.REMEMBER,
        _add_observations,
        _array("observations", OBSERVED),
        {"results": OBJECTS},
    ),
    _tool(
        "delete_entities",
        "Delete entities for good, with their facts and relations.",
        Action.FORGET,
        _delete_entities,
        _array("entityNames"),
        _DONE,
    ),
    _tool(
        "delete_observations",
        "Delete certain facts of entities for good.",
        Action.FORGET,
        _delete_observations,
        _array("deletions", UNOBSERVED),
        _DONE,
    ),
    _tool(
        "delete_relations",
        "Delete relations for good.",
        Action.FORGET,
        _delete_relations,
        _array("relations", RELATION),
        _DONE,
    ),
    _tool(
        "read_graph",
        "Read the whole graph of entities and relations.",
        Action.LIST,
        _read_graph,
        (),
        _GRAPH,
    ),
    _tool(
        "search_nodes",
        "Find entities by what is known of them: ask a whole question. Call it before answering "
        "from memory. Returns entities, best first, and the relations between them.",
        Action.RECALL,
        _search_nodes,
        (Field(name="query", required=True, about="What you want to know."),),
        _GRAPH,
    ),
    _tool(
        "open_nodes",
        "Read certain entities by name, and the relations between them.",
        Action.LIST,
        _open_nodes,
        _array("names"),
        _GRAPH,
    ),
)
