"""How schema-0002.db.gz to schema-0004.db.gz were made, by the code of their time:

    git archive 040b4ae src | tar x -C /tmp/then      # the last commit of schema 0002
    git archive 177ebda src | tar x -C /tmp/then      # the last commit of schema 0003
    git archive fe519ae src | tar x -C /tmp/then      # of schema 0004
    PYTHONPATH=/tmp/then/src python tests/store/data/make_old_store.py schema-0003.db.gz

Two tenants, spaces of an agent, of a user and of a project, and from 0003 on an encrypted one:
something in every table that the schema had and the code filled.
"""

from __future__ import annotations

import gzip
import inspect
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

KEY = "Y29maXJlIHRlc3RzOiBhIGtleSBvZiAzMiBieXRlcyE="
"""The master key of the encrypted space; protects nothing but this test data."""
TURNS = [
    ("Mara", "monday", "2026-03-02T09:00Z", "The ferry to Juist leaves at nine."),
    ("Ilse", "monday", "2026-03-02T09:01Z", "My sister Tilda lives in Emden."),
    ("Mara", "monday", "2026-03-02T09:02Z", "Where is the boathouse key?"),
    ("Ilse", "monday", "2026-03-02T09:03Z", "The boathouse key hangs behind the clock."),
    ("Mara", "friday", "2026-03-06T18:00Z", "I live in Norden now."),
    ("Mara", "friday", "2026-03-06T18:01Z", "I moved to Leer last week. I live in Leer now."),
]


def write(path: Path) -> None:
    """Everything that the store of this version can hold, in a new file."""
    from cofire import Memory

    sleeps = hasattr(Memory, "consolidate")
    for tenant in ("default", "harbour"):
        with Memory.open(path, "agent", projects="pier", tenant=tenant) as memory:
            _use(memory, tenant)
            if sleeps:
                _sleep(memory)
    with Memory.open(path, "agent", "mara") as memory:
        memory.remember("Mara prefers tea.", time="2026-03-03T10:00Z")
    if "encrypt" in inspect.signature(Memory.open).parameters:
        with Memory.open(path, "sealed", encrypt=True) as memory:
            _use(memory, "sealed")
            _sleep(memory)


def _use(memory: Any, tenant: str) -> None:
    turns = [
        {"speaker": who, "session": session, "time": time, "content": text}
        for who, session, time, text in TURNS
    ]
    ids = memory.remember(turns, tags=(tenant,), metadata={"from": "test"}).ids
    memory.remember("word " * 700, key="long", title="Long", time="2026-03-04T10:00Z")
    if memory.stats().spaces[1:]:
        memory.remember("The pier is closed.", project="pier", time="2026-03-05T10:00Z")
    memory.update(ids[0], content="The ferry to Juist leaves at ten.", now="2026-03-07T10:00Z")
    memory.link(ids[0], ids[2], "related", strength=0.4)
    recall = memory.recall("Where is the boathouse key?", now="2026-03-07T11:00Z")
    memory.feedback(recall, used=[ids[2], ids[3]], rejected=[ids[0]], by="mara",
                    now="2026-03-07T11:01Z")  # fmt: skip
    memory.strengthen(ids[1], ids[4], by="ilse", now="2026-03-07T11:02Z")
    recall = memory.recall("ferry", now="2026-03-07T12:00Z")
    memory.feedback(recall, used=[ids[0]], by="mara", now="2026-03-07T12:01Z")
    gone = memory.remember("A secret about ostriches.", time="2026-03-07T13:00Z").id
    memory.forget(gone)


def _sleep(memory: Any) -> None:
    memory.checkpoint("Talked about the ferry.", goals="Find the key", threads="The ferry",
                      session="friday", now="2026-03-07T14:00Z")  # fmt: skip
    memory.consolidate(now="2026-03-08T03:00Z")


def main(target: Path) -> None:
    """Write the store, leave it as one file, and pack it always the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        os.environ.update(
            COFIRE_EMBEDDER="hashing:16", COFIRE_ENCRYPTION_KEY=KEY, COFIRE_LOG_LEVEL="error"
        )
        write(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
