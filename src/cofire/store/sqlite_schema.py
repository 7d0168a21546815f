"""Is a database what a revision of the schema makes it: no table less, no trigger more?"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import Any

Parts = Mapping[tuple[str, str], Any]
"""What `sqlite_master` lists, by type and name, and what each is like."""

_OWN = re.compile(r"sqlite_(stat[1-4]|sequence)")  # tables that SQLite makes for itself


def schema_differences(connection: sqlite3.Connection, revision: str) -> list[str]:
    """What a database lacks or has too much, compared with a new one of `revision`; [] if
    nothing. Statistics do not count. A trigger, for one, might keep what is forgotten."""
    wanted = _wanted(revision)
    found = _listed(connection)
    differences = []
    for kind, name in sorted(
        wanted.keys() | found.keys(), key=lambda part: (part[0] == "index", part)
    ):
        if (kind, name) not in found:
            differences.append(f"the {kind} {name} is missing")
        elif (kind, name) not in wanted:
            differences.append(f"the {kind} {name} is not ours")
        elif _like(connection, kind, name, found[kind, name]) != wanted[kind, name]:
            differences.append(f"the {kind} {name} is not as it should be")
    return differences


@cache
def _wanted(revision: str) -> Parts:
    """What the migrations up to `revision` make of an empty database."""
    from alembic import command
    from sqlalchemy import create_engine

    from cofire.store import migrations

    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            config = migrations.configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            raw: Any = connection.connection.driver_connection
            return {
                (kind, name): _like(raw, kind, name, sql)
                for (kind, name), sql in _listed(raw).items()
            }
    finally:
        engine.dispose()


def _listed(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Everything but SQLite's own tables and the indexes that tables bring with them."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {
        (str(kind), str(name)): str(sql)
        for kind, name, sql in rows
        if sql is not None and not (kind == "table" and _OWN.fullmatch(name))
    }


def _like(connection: sqlite3.Connection, kind: str, name: str, sql: str) -> Any:
    text = " ".join(sql.upper().replace('"', "").split())
    if kind == "index":
        head, _, condition = text.partition(" WHERE ")
        return _index(connection, name), " UNIQUE " in head, head.partition(" ON ")[2], condition
    if kind != "table" or text.startswith("CREATE VIRTUAL"):
        return text
    columns = connection.execute(
        'SELECT name, upper(type), "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
        (name,),
    ).fetchall()
    uniques = [
        _index(connection, index)
        for index, unique, origin in connection.execute(
            'SELECT name, "unique", origin FROM pragma_index_list(?)', (name,)
        ).fetchall()
        if unique and origin != "c"
    ]
    foreign = connection.execute("SELECT count(*) FROM pragma_foreign_key_list(?)", (name,))
    return (
        sorted(columns, key=str),
        sorted(uniques, key=str),
        foreign.fetchall()[0][0],
        len(re.findall(r"\bCHECK\b", text)),
        text.rpartition(")")[2].strip(),  # WITHOUT ROWID
    )


def _index(connection: sqlite3.Connection, name: str) -> list[Any]:
    return connection.execute(
        'SELECT name, "desc", coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno', (name,)
    ).fetchall()
