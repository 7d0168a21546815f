"""No query of a hot path reads a whole space where it means a few rows."""

from __future__ import annotations

import importlib
import pkgutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import LargeBinary, String, bindparam, func, select, update

import cofire.store
from cofire.encoding.terms import facet, term_hash
from cofire.store import open_store
from cofire.store.records import KINDS, LINK_TYPES, facet_hash
from cofire.store.schema import SPACE_TABLES, items, metadata
from cofire.store.sealed_queries import MASKED, SEALED, make_plan
from cofire.store.session import Compiled, Query
from cofire.store.sqlite import SQLiteFlavour

MODULES = (
    *("spaces", "reading", "graph_changes", "writing", "updating", "forgetting", "linking"),
    *("recording", "events", "strengths", "redaction", "rules", "learning", "cues"),
    *("looking_back", "deriving", "dependants", "telling", "receipts"),
    *("keys", "audit", "requests", "jobs"),
)
WHOLE_SPACE = {
    "ALL_ROWS",
    "ALL_LINKS",
    "COUNT_KINDS",
    "COUNT_ROWS",
    "COUNT_LINKS",
    "LIST_ALL_SPACES",
    "LIST_ENCRYPTED",  # once, when a store is opened
    "EMPTY_TABLES",
    "COUNT_TOMBSTONES",
    "TOMBSTONE_AT",
    "LAST_EVENT",
    "FIRST_EVENT",
    "ALL_EVENTS",
    "COUNT_EVIDENCE",
    "ALL_LEARNED",
    "ALL_BLOCKED",
    "REPEATED",
    "ALL_TO_FOLD",
    "ALL_EVICTED",
    "ALL_DERIVED",
    "CLOSED_AFTER",
    "SAID",  # only where a question or a record shares a word with what goes
    "QUESTIONS",
    "COUNT_DERIVED",
    "COUNT_RECALLS",
    "OF_SPACE",
    "CUES",
    "ALL_TENANTS",  # where a token's tenant is unknown, or was counted
    "DUE_SPACES",  # every space's row: nothing is written where something is remembered
    "QUEUE",
    "DEAD_JOBS",
    "SHARED_DUE_SPACES",
    "SHARED_QUEUE",
    "SHARED_DEAD_JOBS",
    "CUES_USED_BEFORE",  # in the order of an index, up to the most that a rule keeps
}


def _queries() -> Iterator[tuple[str, Query]]:
    for name in MODULES:
        for label, value in vars(importlib.import_module(f"cofire.store.{name}")).items():
            for query in value if isinstance(value, tuple) else (value,):
                if isinstance(query, Query) and label not in WHOLE_SPACE:
                    yield f"{name}.{label}", query


def test_every_plan_seeks(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    open_store(path).close()
    connection = sqlite3.connect(path)
    flavour = SQLiteFlavour()
    seen = 0
    for name, query in _queries():
        compiled = Compiled(query, flavour)
        parameters = ["[]"] * len(compiled.names)
        plan = connection.execute("EXPLAIN QUERY PLAN " + compiled.sql, parameters).fetchall()
        for *_, step in plan:
            scans = step.startswith("SCAN") and "VIRTUAL TABLE" not in step
            assert not scans, (name, plan)
            one_row = step.startswith("SEARCH jobs USING PRIMARY KEY")  # of each space
            assert one_row or not step.endswith("(tenant=? AND space=?)"), (name, plan)
        seen += 1
    connection.close()
    assert seen > 50


def _flat(value: object) -> Iterator[Query]:
    if isinstance(value, Query):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _flat(part)


def test_every_statement_works_on_an_encrypted_space() -> None:
    flavour, seen = SQLiteFlavour(), 0
    for module in pkgutil.iter_modules(cofire.store.__path__):
        for value in vars(importlib.import_module(f"cofire.store.{module.name}")).values():
            for query in _flat(value):
                Compiled(query, flavour, sealed=True)
                seen += 1
    assert seen > 200


@pytest.mark.parametrize(
    "statement",
    [
        select(items.c.number).where(items.c.content == bindparam("text")),
        select(func.length(items.c.content)),
        select(items.c.number).where(items.c.speaker_hash > bindparam("hash")),
        update(items).values(title=items.c.content),
        update(items).values(title=bindparam("new")),  # of which row?
    ],
)
def test_what_cannot_work_on_sealed_values_is_refused(statement: Any) -> None:
    with pytest.raises(TypeError):
        make_plan(statement)


def test_sealed_and_masked_columns_exist() -> None:
    for columns in (SEALED, MASKED):
        for table, names in columns.items():
            assert names <= set(metadata.tables[table].columns.keys())


def test_every_column_of_words_is_sealed_or_known_to_be_plain() -> None:
    plain = {
        *("recalls.profile", "recalls.principal", "events.type", "events.credits"),
        *("events.signal", "events.principal", "links.quota", "steps.name"),
        *("consolidations.report", "claims.holder", "derived.maker", "derived.prompt", "items.uid"),
        *("recalls.uid", "recall_items.recall", "events.recall", "jobs.error"),
    }
    for table in SPACE_TABLES:
        for column in table.columns:
            if isinstance(column.type, String | LargeBinary):
                sealed = column.name in SEALED.get(table.name, ())
                assert sealed != (f"{table.name}.{column.name}" in plain), (table.name, column.name)


def test_stored_codes_never_move() -> None:
    assert [kind.value for kind in KINDS] == [
        "episode", "tool_event", "procedure", "fact", "trait", "persona", "goal", "thread",
        "concept", "cue", "shape", "gist", "word",
    ]  # fmt: skip
    assert [kind.value for kind in LINK_TYPES] == [
        "temporal", "abstraction", "association", "coactivation", "related", "supports", "causes",
        "evolves_to", "annotates", "evidence", "contradicts", "supersedes",
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["Ada", "Ünï", "", "\U0001f600"])
def test_the_stores_hashes_are_the_encoders(value: str) -> None:
    assert facet_hash("speaker", value) == term_hash(facet("speaker", value))
