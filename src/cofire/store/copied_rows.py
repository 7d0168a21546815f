"""Rows on their way between stores: read in pages, told in a digest, given their new place."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    BigInteger,
    Column,
    LargeBinary,
    Table,
    bindparam,
    cast,
    func,
    insert,
    select,
    tuple_,
)

from cofire.errors import StoreCorruptError
from cofire.store.receipts import OF_SPACE
from cofire.store.schema import (
    SPACE_TABLES,
    accesses,
    claims,
    consolidations,
    events,
    jobs,
    projections,
    spaces,
    steps,
    vectors,
)
from cofire.store.sealed_queries import MASKED
from cofire.store.session import Query, Row, Session

PAGE = 4_000
"""Rows that are written at once, at most."""
PAGE_BYTES = 8_000_000
"""About as much as is read or written at once, so that long texts do not fill the memory."""

_MODULUS = 1 << 256
_PLACE = ("tenant", "space")

After = tuple[int | str | bytes, ...]
"""The key, within its space, of the last row that was read, as it is stored."""


class CopiedTable(NamedTuple):
    """A table with a row per something of a space, and the statements that copying needs."""

    table: Table
    key: tuple[str, ...]
    """What tells rows of one space apart."""
    first: Query
    further: Query
    add: Query

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of a row as it is copied: all but tenant and space."""
        return tuple(column.name for column in self.table.columns[2:])


def _of_table(table: Table) -> CopiedTable:
    key = [column for column in table.primary_key if column.name not in _PLACE]
    # Compared as tuples, which the session takes as they are: pages are told apart by hashes as
    # stored, in whatever order masking gives them.
    bounds = (bindparam(f"after_{column.name}", type_=column.type) for column in key)
    begun = (
        select(*table.columns[2:])
        .where(table.c.tenant == bindparam("tenant"), table.c.space == bindparam("space"))
        .order_by(*key)
        .limit(bindparam("row_limit"))
    )
    gone_on = begun.where(tuple_(*key) > tuple_(*bounds))
    return CopiedTable(
        table,
        tuple(column.name for column in key),
        Query(lambda _: begun),
        Query(lambda _: gone_on),
        Query(lambda _: insert(table)),
    )


COPIED: Mapping[str, CopiedTable] = {
    table.name: _of_table(table) for table in SPACE_TABLES if table not in {claims, jobs}
}
"""Every table of a space by its name, in the order of copying. Nobody holds a claim in a copy, and
how workers get on is the business of each store's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where rows are: a space of a tenant, by number, and its tenant's models by id."""

    tenant: int
    space: int
    models: Mapping[int, tuple[str, int]]

    @property
    def here(self) -> dict[str, int]:
        """The parameters that name it."""
        return {"tenant": self.tenant, "space": self.space}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many rows, and the sum of the SHA-256 of each modulo 2²⁵⁶: a digest of a set of rows in
    whatever order they are read (Bellare and Micciancio 1997, AdHash), so that databases that sort
    in different ways agree on it, and that can be gone on with. It finds damage and mistakes; who
    may choose the rows could make two sets alike."""

    rows: int = 0
    total: int = 0

    @property
    def digest(self) -> str:
        """64 hexadecimal digits."""
        return f"{self.total:064x}"

    @classmethod
    def read(cls, rows: int, digest: str) -> Self:
        """A tally from its number of rows and its digest."""
        return cls(rows=rows, total=int(digest, 16))

    def __add__(self, other: Tally) -> Tally:
        return Tally(rows=self.rows + other.rows, total=(self.total + other.total) % _MODULUS)

    def counted(self, encoded: Sequence[bytes]) -> Tally:
        """With more rows, as `canonical` writes them."""
        more = sum(int.from_bytes(hashlib.sha256(one).digest(), "big") for one in encoded)
        return self + Tally(rows=len(encoded), total=more)


def canonical(values: Sequence[Any]) -> bytes:
    """The one way in which a row's values are written for its digest: a letter for the type, the
    length where it varies, the value. Raises TypeError for what no column holds."""
    return b"".join([_written(value) for value in values])


def _written(value: Any) -> bytes:
    kind = type(value)
    if kind is int:
        return b"i%d;" % value
    if value is None:
        return b"n"
    if kind is str:
        data = value.encode("utf-8", "surrogatepass")
        return b"s%d:%s" % (len(data), data)
    if kind is bytes:
        return b"b%d:%s" % (len(value), value)
    if kind is float:
        return b"f" + struct.pack(">d", value)
    raise TypeError(f"no column holds a {kind.__name__}")


class Portion(NamedTuple):
    """Some rows of a table in the order of their keys, without tenant and space, and the same as
    `canonical` writes them. `after`: the last one's key as stored; None at the table's end."""

    rows: list[Row]
    encoded: list[bytes]
    after: After | None


def portions(
    session: Session, place: Place, copied: CopiedTable, after: After | None = None
) -> Iterator[Portion]:
    """The rows of a table from `after` on; a last portion, which may be empty, says that it ends.
    Raises StoreCorruptError."""
    limit = min(PAGE, 256)
    while True:
        rows = _page(session, place, copied, after, limit)
        encoded = [canonical(row) for row in _told(copied, place, rows)]
        ended = len(rows) < limit
        after = None if ended else _key(session, place, copied, rows[-1])
        yield Portion(rows, encoded, after)
        if ended:
            return
        size = max(1, sum(map(len, encoded)))
        limit = max(1, min(PAGE, 4 * limit, limit * PAGE_BYTES // size))


def _page(
    session: Session, place: Place, copied: CopiedTable, after: After | None, limit: int
) -> list[Row]:
    if after is None:
        return session.all(copied.first, row_limit=limit, **place.here)
    bounds = {f"after_{name}": value for name, value in zip(copied.key, after, strict=True)}
    return session.all(copied.further, row_limit=limit, **place.here, **bounds)


def _key(session: Session, place: Place, copied: CopiedTable, row: Row) -> After:
    """A row's key as it is stored."""
    values = dict(zip(copied.columns, row, strict=True))
    masked = MASKED.get(copied.table.name, frozenset())
    key = session.vault.key(place.tenant, place.space)
    return tuple(
        key.mask(values[name]) if key is not None and name in masked else values[name]
        for name in copied.key
    )


def _told(copied: CopiedTable, place: Place, rows: list[Row]) -> list[Row]:
    """The rows as the digest tells of them: models by name, and not whether they are indexed."""
    if copied.table is not vectors:
        return rows
    return [(number, *_model(place, model), vector, 0) for number, model, vector, _ in rows]


def placed(copied: CopiedTable, rows: list[Row], source: Place, target: Place) -> list[Row]:
    """Whole rows of the target. Raises StoreCorruptError."""
    at = (target.tenant, target.space)
    if copied.table is not vectors:
        return [at + tuple(row) for row in rows]
    ids = {named: id for id, named in target.models.items()}
    return [
        (*at, number, ids[_model(source, model)], vector, 0) for number, model, vector, _ in rows
    ]


def _model(place: Place, id: int) -> tuple[str, int]:
    named = place.models.get(id)
    if named is None:
        raise StoreCorruptError(
            f"vectors: there are some of an embedding model ({id}) that is not known; `cofire "
            "doctor` examines the store"
        )
    return named


def after_json(after: After | None) -> list[Any] | None:
    """A key as JSON knows it."""
    if after is None:
        return None
    return [value.hex() if isinstance(value, bytes) else value for value in after]


def read_after(copied: CopiedTable, given: list[Any] | None) -> After | None:
    """The reverse of `after_json`."""
    if given is None:
        return None
    key: list[Column[Any]] = [copied.table.c[name] for name in copied.key]
    return tuple(
        bytes.fromhex(value) if isinstance(column.type, LargeBinary) else value
        for column, value in zip(key, given, strict=True)
    )


# A state of a space

ONE_SPACE = Query(
    lambda _: select(*spaces.columns).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)


def _whole(table: Table, *columns: Any) -> Query:
    return Query(
        lambda _: select(*(cast(column, BigInteger) for column in columns)).where(
            table.c.tenant == bindparam("tenant"), table.c.space == bindparam("space")
        )
    )


_MARKS = (
    _whole(events, func.max(events.c.seq)),
    _whole(accesses, func.sum(accesses.c.access_count), func.max(accesses.c.last_accessed)),
    _whole(
        steps,
        func.sum(steps.c.period),
        func.sum(steps.c.revision),
        func.sum(steps.c.seq),
        func.max(steps.c.time),
    ),
    _whole(consolidations, func.max(consolidations.c.seq)),
    _whole(projections, func.max(projections.c.version)),
)
_COUNTS = tuple(query for name, query in OF_SPACE if name in COPIED)


def row_count(session: Session, place: Place) -> int:
    """How many rows of a space are copied."""
    return sum(session.all(query, **place.here)[0][0] for query in _COUNTS)


def state_of(session: Session, place: Place) -> str:
    """A hash of what changes whenever anything in a space does: its revision and settings, how
    many rows each table has, the last event, how often memories were used."""
    row = session.one(ONE_SPACE, **place.here)
    values: list[Any] = [] if row is None else list(row[1:-1])
    for query in (*_COUNTS, *_MARKS):
        values += session.all(query, **place.here)[0]
    return hashlib.sha256(canonical(values)).hexdigest()
