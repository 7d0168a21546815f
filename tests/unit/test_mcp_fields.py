"""Tools as clients and models read them, and what becomes of arguments that do not fit (i-05)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.errors import InputError
from cofire.server.actions import NEEDS
from cofire.server.mcp.catalogue import TOOLS
from cofire.server.mcp.fields import Field, checked, object_schema
from cofire.server.mcp.graph_tools import GRAPH_TOOLS
from cofire.server.mcp.tools import Tool

EVERY = (*TOOLS, *GRAPH_TOOLS)
UNION = {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "$schema", "const", "format"}
PIECES = re.compile(r"[^\r\n\w]?[A-Za-z]+|\d{1,3}| ?[^\s\w]+[\r\n]*|\s+|_")
"""What a byte-pair tokenizer splits a text into first; most words are one token each."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all within it."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas(inner)
    if "items" in schema:
        yield from schemas(schema["items"])


def test_there_are_thirteen_and_nine() -> None:
    assert [tool.name for tool in TOOLS] == [
        "remember", "recall", "answer", "feedback", "get_memory", "list_memories", "update_memory",
        "forget", "link_memories", "strengthen_link", "hydrate", "explain_recall", "memory_stats",
    ]  # fmt: skip
    assert [tool.name for tool in GRAPH_TOOLS] == [
        "create_entities", "create_relations", "add_observations", "delete_entities",
        "delete_observations", "delete_relations", "read_graph", "search_nodes", "open_nodes",
    ]  # fmt: skip


@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: tool.name)
def test_schemas_are_what_strict_clients_accept(tool: Tool) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)
    assert set(tool.actions) <= NEEDS.keys()
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["type"] == "object"
        assert isinstance(schema["properties"], dict)
        for one in schemas(schema):
            assert not UNION & one.keys()
            assert one["type"] in {"object", "array", "string", "integer", "number", "boolean"}
            assert (one["type"] == "array") == ("items" in one)
            assert set(one.get("required", ())) <= one.get("properties", {}).keys()


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_tool_says_when_to_call_it_and_gives_an_example(tool: Tool) -> None:
    text, _, example = tool.about.partition("\nExample: ")
    assert len(text) > 80
    checked(tool.fields, json.loads(example))


def test_all_tools_together_cost_a_model_less_than_3000_tokens() -> None:
    told = [
        {"name": tool.name, "description": tool.about, "input_schema": tool.input_schema}
        for tool in TOOLS
    ]
    pieces = PIECES.findall(json.dumps(told, separators=(",", ":")))
    tokens = sum(1 if len(piece) <= 10 else 2 for piece in pieces)
    assert 1_500 < tokens < 2_700  # some words are two tokens more


def test_read_only_tools_are_those_that_change_nothing() -> None:
    assert {tool.name for tool in TOOLS if tool.reads_only} == {
        "recall", "get_memory", "list_memories", "hydrate", "explain_recall", "memory_stats",
    }  # fmt: skip
    assert {tool.name for tool in TOOLS if tool.destroys} == {"forget", "update_memory"}


FIELDS = (
    Field(name="text", required=True),
    Field(name="count", type="integer", least=1, most=9),
    Field(name="share", type="number", least=0, most=1),
    Field(name="sure", type="boolean"),
    Field(name="tags", type="array"),
    Field(name="kind", choices=("a", "b")),
    Field(name="title", clears=True),
    Field(name="parts", type="array", items=(Field(name="name", required=True),)),
)


def test_what_fits_is_taken_and_what_says_nothing_left_out() -> None:
    assert checked(FIELDS, {"text": "x", "count": 5.0, "share": 1, "tags": [], "kind": "b"}) == {
        "text": "x", "count": 5, "share": 1, "tags": [], "kind": "b",
    }  # fmt: skip
    assert checked(FIELDS, {"text": "", "count": None, "kind": "", "title": ""}) == {
        "text": "", "title": "",
    }  # fmt: skip
    assert checked(FIELDS, {"text": "x", "tags": '["a", "b"]'})["tags"] == ["a", "b"]
    assert checked(FIELDS, {"text": "x", "parts": [{"name": "n"}]})["parts"] == [{"name": "n"}]


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({}, "`text` is missing: it is a text"),
        ({"text": None}, "`text` is missing"),
        ({"text": 5}, "`text` must be a text, not 5"),
        (
            {"text": "x", "count": "5"},
            "`count` must be a whole number from 1 to 9, not the text '5'",
        ),
        ({"text": "x", "count": 5.5}, "`count` must be"),
        ({"text": "x", "count": True}, "`count` must be a whole number from 1 to 9, not true"),
        ({"text": "x", "count": 10}, "`count` must be"),
        ({"text": "x", "share": 1.5}, "`share` must be a number from 0 to 1, not 1.5"),
        ({"text": "x", "sure": "yes"}, "`sure` must be true or false"),
        ({"text": "x", "tags": "a"}, "`tags` must be a list of texts, not the text 'a'"),
        ({"text": "x", "tags": [1]}, "`tags[0]` must be a text, not 1"),
        ({"text": "x", "kind": "c"}, "`kind` must be one of a, b"),
        ({"text": "x", "parts": ["n"]}, "`parts[0]` must be an object"),
        ({"text": "x", "parts": [{}]}, "`parts[0].name` is missing"),
        ({"text": "x", "parts": [{"name": "n", "x": 1}]}, "no argument `parts[0].x`"),
        ({"text": "x", "budget": 5}, "there is no argument `budget`; there are count, kind,"),
    ],
)
def test_what_does_not_fit_is_named(given_: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        checked(FIELDS, given_)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        checked(FIELDS, {"count": 0, "tags": 3, "more": 1})
    assert str(caught.value).count("`") >= 6


@given(st.dictionaries(st.sampled_from([field.name for field in FIELDS]) | st.text(), json_values))
def test_any_arguments_are_taken_or_refused_in_words(arguments: dict[str, Any]) -> None:
    import jsonschema  # type: ignore[import-untyped]

    try:
        values = checked(FIELDS, arguments)
    except InputError as error:
        assert len(str(error)) < 5_000
    else:
        jsonschema.validate(values, object_schema(FIELDS))
