"""Column types that databases store in different ways."""

from __future__ import annotations

from typing import Any

from sqlalchemy import LargeBinary
from sqlalchemy.ext.compiler import compiles


class HalfVector(LargeBinary):
    """A vector of float16 as little-endian bytes: pgvector's `halfvec` on PostgreSQL."""

    inherit_cache = True


@compiles(HalfVector, "postgresql")
def _on_postgresql(type_: HalfVector, compiler: Any, **options: Any) -> str:
    return "halfvec"
