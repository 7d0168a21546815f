"""How PostgreSQL wants its SQL, and how psycopg hands values over."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import adapt, pq
from psycopg.types.numeric import Int8BinaryDumper
from sqlalchemy import BigInteger, Select, Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

if TYPE_CHECKING:
    from psycopg import Connection


class Half(bytes):
    """A vector of float16, little-endian, on its way into a `halfvec`."""

    __slots__ = ()


class PostgresFlavour:
    """Lists travel as arrays, vectors in pgvector's binary form."""

    def __init__(self) -> None:
        self.dialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]

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
