"""What a PostgreSQL store and its clients need, from what was measured.

    python -m benchmarks.capacity --memories 10e6 --recalls 50 --remembers 5 --active 0.1

    disk     = memories · bytes of a memory · (1 + slack)
             + recalls a second · seconds that records are kept · bytes of a record
    memory   = of the clients: processes · (base + active memories · bytes in a graph),
               of the server: active memories · bytes of their rows and indexes
    cores    = Σ rate · processor time of a call, at the utilisation that leaves room
    sessions = Σ rate · seconds of a call (Little's law), and one of each process at least

The figures of `MEASURED` are those of docs/explanation/postgres-figures.md; measure your own with
`python -m benchmarks.postgres`.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

KEPT = 30 * 86_400
"""Seconds that recall records are kept by default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Bytes, and seconds of processor time, in the clients (`here`) and on the server."""

    row_bytes: float
    index_bytes: float
    record_bytes: float
    log_bytes: float
    graph_bytes: float
    base_bytes: float
    recall_here: float
    recall_server: float
    remember_here: float
    remember_server: float


MEASURED = Measured(
    row_bytes=1_763,
    index_bytes=648,
    record_bytes=2_745,
    log_bytes=3_463,
    graph_bytes=2_600,
    base_bytes=100e6,
    recall_here=0.0053,
    recall_server=0.00175,
    remember_here=0.0022,
    remember_server=0.0022,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Rates per second in the busiest hour; `active`: the share of memories in spaces that are in
    use at a time; `processes`: how many hold the same active spaces (1: requests for a space go to
    one process)."""

    memories: float
    recalls: float
    remembers: float
    active: float = 0.1
    processes: int = 1
    slack: float = 0.3
    busy: float = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Needed:
    """Bytes, cores and sessions."""

    disk: float
    records: float
    log_per_day: float
    client_memory: float
    server_memory: float
    client_cores: float
    server_cores: float
    sessions: int


def needed(wanted: Wanted, measured: Measured = MEASURED) -> Needed:
    """See the module's formulas."""
    row = measured.row_bytes + measured.index_bytes
    records = wanted.recalls * KEPT * measured.record_bytes
    active = wanted.memories * wanted.active
    recall = measured.recall_here + measured.recall_server
    remember = measured.remember_here + measured.remember_server
    inside = wanted.recalls * recall + wanted.remembers * remember
    return Needed(
        disk=wanted.memories * row * (1 + wanted.slack) + records,
        records=records,
        log_per_day=86_400
        * (wanted.remembers * measured.log_bytes + wanted.recalls * measured.record_bytes),
        client_memory=wanted.processes * (measured.base_bytes + active * measured.graph_bytes),
        server_memory=active * row,
        client_cores=(
            wanted.recalls * measured.recall_here + wanted.remembers * measured.remember_here
        )
        / wanted.busy,
        server_cores=(
            wanted.recalls * measured.recall_server + wanted.remembers * measured.remember_server
        )
        / wanted.busy,
        sessions=max(wanted.processes, math.ceil(inside / wanted.busy)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--memories", type=float, required=True)
    parser.add_argument("--recalls", type=float, required=True, help="per second")
    parser.add_argument("--remembers", type=float, default=0.0, help="per second")
    parser.add_argument("--active", type=float, default=0.1, help="share of memories in use")
    parser.add_argument("--processes", type=int, default=1, help="that hold the same spaces")
    given = parser.parse_args()
    found = needed(
        Wanted(
            memories=given.memories, recalls=given.recalls, remembers=given.remembers,
            active=given.active, processes=given.processes,
        )
    )  # fmt: skip
    for name, value, unit in (
        ("disk", found.disk / 1e9, "GB"),
        ("of it records of recalls", found.records / 1e9, "GB"),
        ("write-ahead log a day", found.log_per_day / 1e9, "GB"),
        ("memory of the clients", found.client_memory / 1e9, "GB"),
        ("memory of the server", found.server_memory / 1e9, "GB"),
        ("cores of the clients", found.client_cores, ""),
        ("cores of the server", found.server_cores, ""),
        ("sessions", found.sessions, ""),
    ):
        print(f"{name:<28}{value:>10,.1f} {unit}")


if __name__ == "__main__":
    main()
