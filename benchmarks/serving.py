"""A PostgreSQL server of a benchmark's own, with its data on a disk and safe as PostgreSQL is by
default (the server that the tests use, without the settings that give up safety), and what it and
its clients spend."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import BEGINNING, ConstantTimeEmbedder
from cofire.encoding.encoder import Encoder
from cofire.store import Store
from cofire.store.records import NewItem, SpaceInfo
from cofire.types import Message, SpaceRef

if TYPE_CHECKING:
    from postgres_server import Database, PostgresServer

PARTITIONS = 16
"""As many parts as the tables of a store get by default."""
TESTS = Path(__file__).resolve().parent.parent / "tests"


@contextmanager
def serving(folder: Path | None = None, **settings: str) -> Iterator[PostgresServer]:
    """A server that waits for the disk at every COMMIT; gone afterwards.

    Its data lie in a new folder under `folder` (default: that for temporary files, which has to be
    on a disk for the figures to mean anything). root's servers run as nobody, who must be able to
    get there.
    """
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    from postgres_server import DURABLE, private_server

    place = folder or Path(tempfile.gettempdir())
    with private_server(place, tcp=False, **{**DURABLE, **settings}) as server:
        yield server


@contextmanager
def database(server: PostgresServer) -> Iterator[Database]:
    """A new database with an empty store in as many parts as by default; dropped afterwards."""
    from postgres_fixtures import make_store
    from postgres_server import fresh_database

    with fresh_database(server.address) as made:
        make_store(made, partitions=PARTITIONS)
        yield made


def server_seconds(server: PostgresServer) -> float:
    """Seconds of processor time that the server and all its children have taken so far, those that
    have ended included. Linux only; to 0.01 s."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        own, parent = int(stat.parent.name), int(fields[1])
        if own == server.pid:
            total += sum(map(int, fields[11:15]))  # its own, and of children it has waited for
        elif parent == server.pid:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Spent:
    """Seconds by the clock, of this process and of the server."""

    clock: float = 0.0
    here: float = 0.0
    server: float = 0.0


@contextmanager
def spending(server: PostgresServer) -> Iterator[Spent]:
    """What a block takes; known when it is over."""
    spent = Spent()
    server_before = server_seconds(server)
    here_before, began = time.process_time(), time.perf_counter()
    yield spent
    spent.clock = time.perf_counter() - began
    spent.here = time.process_time() - here_before
    spent.server = server_seconds(server) - server_before


def encoded(
    texts: Sequence[Message], embedder: ConstantTimeEmbedder, batch: int = 1_000
) -> Iterator[list[NewItem]]:
    """Memories ready for `Store.append`, as `Memory.remember` makes them."""
    encoder = Encoder(embedder)
    for start in range(0, len(texts), batch):
        part = texts[start : start + batch]
        yield list(encoder.encode(part, now=BEGINNING, counter=embedder).items)


def own_space(store: Store, ref: SpaceRef) -> SpaceInfo:
    """A space that has its model."""
    space = store.space(ref, create=True)
    assert space is not None
    return store.set_model(space, ConstantTimeEmbedder.name, ConstantTimeEmbedder.dimension)
