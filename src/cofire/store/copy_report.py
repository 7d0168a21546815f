"""What there is to copy, and what a copy did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cofire.store.copied_rows import COPIED, Tally
from cofire.store.copy_marker import SPACE_ROW
from cofire.store.records import SpaceInfo
from cofire.types import SpaceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A tenant to copy: its number in the source, its name, its spaces there."""

    tenant: int
    name: str
    spaces: tuple[SpaceInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """What was copied of a table, and read back: how many rows, and the digest of what is in them
    (64 hexadecimal digits; of the same rows it is the same in every store, in whatever order)."""

    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSpace:
    """A space that was copied, table by table."""

    space: SpaceRef
    tables: tuple[CopiedRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """What `copy_store` did.

    tables: all spaces together. resumed: spaces that an earlier run had begun; restarted: of those,
    the ones that had changed in the source since, and were copied from the start. finished_before:
    tenants that an earlier run had finished.
    """

    source: str
    target: str
    spaces: tuple[CopiedSpace, ...]
    tables: tuple[CopiedRows, ...]
    resumed: tuple[SpaceRef, ...] = ()
    restarted: tuple[SpaceRef, ...] = ()
    finished_before: tuple[str, ...] = ()


def sums(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """The tallies of several spaces together, by table."""
    found: dict[str, Tally] = {}
    for tallies in parts:
        for name, tally in tallies.items():
            found[name] = found.get(name, Tally()) + tally
    return found


def as_rows(tallies: Mapping[str, Tally]) -> tuple[CopiedRows, ...]:
    """Tallies as a report lists them, in the order of copying."""
    order = ("tenants", "models", SPACE_ROW, *COPIED, "receipts", "api_keys", "audit")
    return tuple(_rows_of(tallies, order))


def _rows_of(tallies: Mapping[str, Tally], order: Iterable[str]) -> Iterator[CopiedRows]:
    for name in order:
        if name in tallies:
            yield CopiedRows(table=name, rows=tallies[name].rows, digest=tallies[name].digest)
