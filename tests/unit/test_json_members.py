"""Putting a member into somebody's JSON with comments, and taking it out, leaves the rest alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.cli.json_members import read, with_member, without_member
from cofire.errors import FormatError

PATH = ("servers", "cofire")
ENTRY = {"command": "/bin/cofire", "args": ["mcp"]}

SETTINGS = """// Servers of ours
{
\t"inputs": [], // none
\t"servers": {
\t\t/* the first */
\t\t"files": { "command": "npx" }, // keep
\t},
}
"""


def test_comments_trailing_commas_and_tabs_stay() -> None:
    new = with_member(SETTINGS, PATH, ENTRY)
    assert new == SETTINGS.replace(
        '"npx" }, // keep\n',
        '"npx" }, // keep\n\t\t"cofire": {\n\t\t\t"command": "/bin/cofire",\n'
        '\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}\n',
    )
    former = without_member(new, PATH)
    assert "".join(former.split()) == "".join(SETTINGS.replace("}, // keep", "} // keep").split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", '{\n  "servers": {\n    "cofire": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "servers": {\n    "cofire": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "cofire": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "servers": {"cofire": 1}}'),
        (
            '{\r\n    "a": 1\r\n}',
            '{\r\n    "a": 1,\r\n    "servers": {\r\n        "cofire": 1\r\n    }\r\n}',
        ),
        ('{\n "servers": {}\n}', '{\n "servers": {\n  "cofire": 1\n }\n}'),
        ('{"servers": {"cofire": [2]}}', '{"servers": {"cofire": 1}}'),
    ],
)  # fmt: skip
def test_where_it_is_put(text: str, wanted: str) -> None:
    assert with_member(text, PATH, 1) == wanted
    assert with_member("\ufeff" + text, PATH, 1) == "\ufeff" + wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "the file is not an object"),
        ('{"servers": []}', "servers is not an object"),
        ('{"a": 1 "b": 2}', "a comma or } is missing, at line 1, column 9"),
        ("{\n  a: 1\n}", "a name in double quotes, or }, is missing, at line 2, column 3"),
        ('{"a": }', "no value begins with '}'"),
        ('{"a"', "a colon is missing"),
        ('{"a": "b', "a text in double quotes breaks off"),
        ('{"a": 01}', "is no number"),
        ('{"a": 1} x', "nothing but comments may follow"),
        ('{"servers": {}, "servers": {}}', "stands twice"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(FormatError, match=told.replace("}", r"\}")):
        with_member(text, PATH, 1)


names = st.text(min_size=1, max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
layouts = st.sampled_from([None, 2, 4, "\t"])


@given(st.dictionaries(names, values, max_size=4), layouts, st.booleans())
def test_it_goes_in_and_out_and_nothing_else_changes(
    said: dict[str, Any], indent: int | str | None, there: bool
) -> None:
    if there:
        said["servers"] = {"other": said.pop("servers", 1)}
    else:
        said.pop("servers", None)
    text = json.dumps(said, indent=indent)
    new = with_member(text, PATH, ENTRY)
    servers = {**said.get("servers", {}), "cofire": ENTRY}
    assert json.loads(new) == {**said, "servers": servers}
    assert list(json.loads(new)) == list(said) + ([] if there else ["servers"])
    assert with_member(new, PATH, ENTRY) == new
    path = PATH if there else PATH[:1]
    assert json.loads(without_member(new, path)) == said
    if said:
        assert without_member(new, path) == text


@given(values, layouts)
def test_it_reads_what_json_reads(said: Any, indent: int | str | None) -> None:
    for ascii in (True, False):
        value = read(json.dumps(said, indent=indent, ensure_ascii=ascii))
        assert value is not None
        assert value.said == said
