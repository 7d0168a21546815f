"""How PostgreSQL wants its SQL, and how psycopg hands values over."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import adapt, pq
from psycopg.types.numeric import Int8BinaryDumper
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import operators, visitors

if TYPE_CHECKING:
    from psycopg import Connection


class Half(bytes):
    """A vector of float16, little-endian, on its way into a `halfvec`."""

    __slots__ = ()


class LookupCompiler(PGDialect_psycopg.statement_compiler):  # type: ignore[misc,valid-type]
    """Compiles so that plans do not hang on statistics, which a space that was filled a moment ago
    does not have yet: what is joined is looked up by its key for each row on the left, and a list
    is a condition of an index. (Guessing one row where there are thousands, the planner has joined
    a whole space with itself: 180 ms for what takes 0.3.)"""

    def visit_join(self, join: Any, **options: Any) -> str:
        options.pop("asfrom", None)
        options.pop("from_linter", None)
        left = join.left._compiler_dispatch(self, asfrom=True, **options)
        right = join.right._compiler_dispatch(self, asfrom=True, **options)
        conditions = [join.onclause, *self._own(join.right)]
        condition = and_(*conditions)._compiler_dispatch(self, **options)
        kind = "LEFT JOIN" if join.isouter else "JOIN"
        name = self.preparer.quote(join.right.name)
        found = f"(SELECT * FROM {right} WHERE {condition} OFFSET 0)"  # noqa: S608 - made above
        return f"{left} {kind} LATERAL {found} AS {name} ON true"

    def _own(self, table: Any) -> Iterator[Any]:
        """Says of a joined table, too, whose rows are meant: only their part is planned for."""
        bound = {
            part.key for part in visitors.iterate(self.statement) if isinstance(part, BindParameter)
        }
        for name in ("tenant", "space"):
            if name in bound and name in table.c:
                yield table.c[name] == bindparam(name)

    def visit_binary(self, binary: Any, *given: Any, **options: Any) -> str:
        rendered: str = super().visit_binary(binary, *given, **options)
        if binary.operator is operators.in_op:
            return _MEMBERS.sub(r" = ANY(\1)", rendered)
        if binary.operator is operators.not_in_op:
            return _NO_MEMBERS.sub(r" <> ALL(\1)", rendered)
        return rendered


_MEMBERS = re.compile(r" IN \(SELECT unnest\((\S+)\) AS value\)")
_NO_MEMBERS = re.compile(r" NOT IN \(SELECT unnest\((\S+)\) AS value\)")


class PostgresFlavour:
    """Lists travel as arrays, vectors in pgvector's binary form."""

    def __init__(self) -> None:
        self.dialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
        self.dialect.statement_compiler = LookupCompiler

    def members(self, name: str, *, text: bool = False) -> Select[Any]:
        kind = ARRAY(Text() if text else BigInteger())
        return select(func.unnest(bindparam(name, type_=kind)).label("value"))

    def pack(self, values: Sequence[int] | Sequence[str]) -> list[Any]:
        return list(values)

    def unpack(self, packed: Any) -> list[Any]:
        return list(packed)

    def vector(self, data: bytes) -> Half:
        return Half(data)

    def widen(self, sealed: bytes) -> bytes:
        # A `halfvec` takes numbers only, and refuses those that are none: a byte each.
        return np.frombuffer(sealed, dtype=np.uint8).astype("<f2").tobytes()

    def narrow(self, vector: bytes) -> bytes:
        return np.frombuffer(vector, dtype="<f2").astype(np.uint8).tobytes()

    def clock(self) -> ColumnElement[int]:
        # Not now(), which stands still during a transaction: one that waits for others would see
        # claims as they were when it began to wait.
        return literal_column(
            "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000000) AS bigint)", BigInteger()
        )


def _swapped(data: bytes) -> bytes:
    """Numbers of 16 bits in the other order of bytes."""
    numbers = array("H", data)
    numbers.byteswap()
    return numbers.tobytes()


class HalfDumper(adapt.Dumper):
    """pgvector's binary form: the dimension (16 bits), 16 unused bits, float16 in network order."""

    format = pq.Format.BINARY

    def dump(self, obj: Half) -> bytes:
        return (len(obj) // 2).to_bytes(2, "big") + b"\0\0" + _swapped(obj)


class HalfLoader(adapt.Loader):
    """The reverse of `HalfDumper`."""

    format = pq.Format.BINARY

    def load(self, data: Any) -> bytes:
        return _swapped(bytes(data[4:]))


def adapt_connection(connection: Connection[Any], halfvec: int) -> None:
    """Tells a connection how to hand over what we store. `halfvec` is that type's oid."""
    adapters = connection.adapters
    # One form for every integer: a statement is prepared once, not once per size of a number.
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(Half, type("Dumper", (HalfDumper,), {"oid": halfvec}))
    adapters.register_loader(halfvec, HalfLoader)
