"""Running precompiled statements on a raw connection: the store's hot path.

A `Query` is built once in SQLAlchemy Core and compiled once per back end; running it is one call
of the DB-API with a tuple, without the cost of the ORM, of result objects or of compiling again.
What differs between databases is behind `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Select, Table, bindparam, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler

from cofire.store.columns import HalfVector
from cofire.store.records import Finding, SpaceInfo
from cofire.store.sealed_queries import Plan, make_plan
from cofire.store.sealing import Vault
from cofire.types import Progress

T = TypeVar("T")
Row = tuple[Any, ...]
Opening = Callable[[list[Row]], list[Row]]


class Cursor(Protocol):
    """The part of a DB-API cursor that is used."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def fetchmany(self, size: int, /) -> list[Any]: ...


class SqlFlavour(Protocol):
    """How one database wants its SQL."""

    @property
    def dialect(self) -> Dialect: ...

    def members(self, name: str, *, text: bool = False) -> Select[Any]:
        """A one-column select of the list bound as `name`, however long (see `pack`)."""
        ...

    def pack(self, values: Sequence[int] | Sequence[str]) -> Any:
        """A list of integers or texts as the one parameter that `members` unpacks."""
        ...

    def unpack(self, packed: Any) -> list[Any]:
        """The reverse of `pack`."""
        ...

    def vector(self, data: bytes) -> Any:
        """A vector of float16 (bytes, little-endian) as the parameter that the database takes."""
        ...

    def widen(self, sealed: bytes) -> bytes:
        """Sealed bytes as a vector of float16, for columns that hold nothing else."""
        ...

    def narrow(self, vector: bytes) -> bytes:
        """The reverse of `widen`."""
        ...

    def clock(self) -> ColumnElement[int]:
        """The database's clock, µs since 1970, at the moment that the statement is run."""
        ...


class Query:
    """A statement, built from a flavour when first used and compiled once per flavour."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[SqlFlavour], Executable]) -> None:
        self.build = build


def row_change(table: Table, *columns: str) -> Query:
    """Sets columns (parameters new_…) of the row of one number (in_tenant, in_space, at_number)."""
    return Query(
        lambda _: (
            update(table)
            .where(
                table.c.tenant == bindparam("in_tenant"),
                table.c.space == bindparam("in_space"),
                table.c.number == bindparam("at_number"),
            )
            .values({name: bindparam(f"new_{name}") for name in columns})
        )
    )


class Compiled:
    """A statement as text, the names of its parameters in order, and its constants."""

    __slots__ = ("constants", "names", "plan", "sql", "vectors")

    def __init__(self, query: Query, flavour: SqlFlavour, *, sealed: bool = False) -> None:
        statement = query.build(flavour)
        self.plan: Plan | None = make_plan(statement) if sealed else None
        if self.plan is not None:
            statement = self.plan.statement
        compiled = statement.compile(dialect=flavour.dialect)  # type: ignore[attr-defined]
        if not isinstance(compiled, SQLCompiler):
            raise TypeError(f"not a statement that can be run: {compiled}")
        self.sql = str(compiled)
        self.names: tuple[str, ...] = tuple(compiled.positiontup or ())
        self.constants = {
            name: bound.value for name, bound in compiled.binds.items() if bound.value is not None
        }
        self.vectors: tuple[int, ...] = tuple(
            place
            for place, name in enumerate(self.names)
            if isinstance(compiled.binds[name].type, HalfVector)
        )
        """Which of the parameters are vectors."""


class Session:
    """One transaction: runs queries on a cursor. Parameters are given by name; a list is packed, as
    `SqlFlavour.members` wants it. What is sealed in an encrypted space (`sealed_queries`) is sealed
    and opened here, by the keys of `vault`: verbs see none of it."""

    __slots__ = ("_compiled", "_sealed", "cursor", "flavour", "vault")

    def __init__(
        self,
        cursor: Cursor,
        flavour: SqlFlavour,
        compiled: dict[Query, Compiled],
        sealed: dict[Query, Compiled],
        vault: Vault,
    ) -> None:
        self.cursor = cursor
        self.flavour = flavour
        self.vault = vault
        self._compiled = compiled
        self._sealed = sealed

    def _prepare(self, query: Query) -> Compiled:
        found = self._compiled.get(query)
        if found is None:
            found = self._compiled[query] = Compiled(query, self.flavour)
        return found

    def _seal(self, query: Query) -> Compiled:
        found = self._sealed.get(query)
        if found is None:
            found = self._sealed[query] = Compiled(query, self.flavour, sealed=True)
        return found

    def _execute(self, query: Query, parameters: dict[str, Any]) -> Opening | None:
        """Runs a statement; returns what opens the rows that it will give, if they are sealed."""
        prepared, opening = None, None
        if self.vault.keys:
            tenant = parameters.get("tenant", parameters.get("in_tenant"))
            space = parameters.get("space", parameters.get("in_space"))
            if tenant is not None and space is not None and (tenant, space) in self.vault.keys:
                plan = (sealed := self._seal(query)).plan
                if plan is not None and (plan.binds or plan.returns):
                    key = self.vault.key(tenant, space)
                    if key is not None:
                        prepared = sealed
                        parameters = plan.bound(key, parameters, self.flavour)
                        opening = plan.opener(key, self.flavour) if plan.returns else None
        if prepared is None:
            prepared = self._prepare(query)
        if prepared.constants:
            parameters = {**prepared.constants, **parameters}
        values = [parameters[name] for name in prepared.names]
        for place, value in enumerate(values):
            if type(value) is list:
                values[place] = self.flavour.pack(value)
        for place in prepared.vectors:
            values[place] = self.flavour.vector(values[place])
        self.cursor.execute(prepared.sql, values)
        return opening

    def run(self, query: Query, **parameters: Any) -> int:
        """Runs a statement; returns how many rows it touched."""
        self._execute(query, parameters)
        return self.cursor.rowcount

    def all(self, query: Query, **parameters: Any) -> list[Row]:
        """Every row. Reading to the end also ends the statement's hold on its snapshot."""
        return self.asked(query, **parameters)()

    def asked(self, query: Query, **parameters: Any) -> Callable[[], list[Row]]:
        """Sends a statement; what it returns gives every row, once they are wanted."""
        opening = self._execute(query, parameters)

        def answer() -> list[Row]:
            rows = self.cursor.fetchall()
            return rows if opening is None else opening(rows)

        return answer

    def portions(self, query: Query, size: int, **parameters: Any) -> Iterator[list[Row]]:
        """Every row, some at a time; to be read to the end."""
        opening = self._execute(query, parameters)
        while rows := self.cursor.fetchmany(size):
            yield rows if opening is None else opening(rows)

    def one(self, query: Query, **parameters: Any) -> Row | None:
        """The only row, or None."""
        rows = self.all(query, **parameters)
        return rows[0] if rows else None

    def many(self, query: Query, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> None:
        """Runs a statement for each row of values in the order of `columns`."""
        if not rows:
            return
        prepared = self._prepare(query)
        if tuple(columns) != prepared.names:
            raise TypeError(f"columns {tuple(columns)} do not match {prepared.names}")
        if self.vault.keys and "space" in prepared.names:
            rows = self._sealed_rows(query, rows, prepared.names)
        if prepared.vectors:
            rows = [self._with_vectors(row, prepared.vectors) for row in rows]
        if len(rows) == 1:  # psycopg would wait three times for one answer
            self.cursor.execute(prepared.sql, rows[0])
        else:
            self.cursor.executemany(prepared.sql, rows)

    def _with_vectors(self, row: Sequence[Any], places: tuple[int, ...]) -> Sequence[Any]:
        values = list(row)
        for place in places:
            values[place] = self.flavour.vector(values[place])
        return values

    def _sealed_rows(
        self, query: Query, rows: Sequence[Sequence[Any]], names: tuple[str, ...]
    ) -> Sequence[Sequence[Any]]:
        plan = self._seal(query).plan
        if plan is None or not plan.binds:
            return rows
        at, whose = names.index("space"), names.index("tenant")
        sealed: list[Sequence[Any]] = []
        for row in rows:
            key = self.vault.key(row[whose], row[at])
            if key is None:
                sealed.append(row)
            else:
                values = dict(zip(names, row, strict=True))
                sealed.append(tuple(plan.bound(key, values, self.flavour).values()))
        return sealed

    def pack(self, values: Sequence[int] | Sequence[str]) -> Any:
        return self.flavour.pack(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a transaction is about.

    tenant: its number or its name; None: no tenant, for what belongs to none. spaces: the numbers
    of the spaces that a writer takes for itself, in order; a reader needs none.
    """

    tenant: int | str | None = None
    spaces: tuple[int, ...] = ()


def of_space(space: SpaceInfo) -> Scope:
    """The scope of what is about one space."""
    return Scope(tenant=space.tenant_id, spaces=(space.space_id,))


def of_spaces(among: Sequence[SpaceInfo]) -> Scope:
    """The scope of what is about several spaces of one tenant; of none, `Scope()`. Raises
    ValueError for spaces of several tenants: no transaction sees more than one."""
    tenants = {space.tenant_id for space in among}
    if not tenants:
        return Scope()
    if len(tenants) > 1:
        raise ValueError(f"spaces of several tenants in one transaction: {sorted(tenants)}")
    ids = sorted({space.space_id for space in among})
    return Scope(tenant=tenants.pop(), spaces=tuple(ids))


class Backend(Protocol):
    """A database: transactions, and the few things that only it can do."""

    description: str
    vault: Vault
    shared: bool
    """Whether the database keeps tenants apart, also from whoever asks for all of them."""

    def read(self, scope: Scope, work: Callable[[Session], T]) -> T:
        """What `work` returns, run on a consistent snapshot, which ends with it however that
        happens. `work` may be run more than once, as in `write`."""
        ...

    def glance(self, scope: Scope, query: Query, **parameters: Any) -> list[Row]:
        """One statement as a transaction of its own: the cheapest possible read."""
        ...

    def write(self, scope: Scope, work: Callable[[Session], T]) -> T:
        """What `work` returns, run as the only writer of the scope's spaces; commits when it
        returns, rolls back if it raises.

        May run `work` more than once (a serialisation failure, a lost connection): it must not
        change what it was given, and its effects must be in the session alone.
        """
        ...

    def purge_residue(self, *, thorough: bool = False, quietly: bool = False) -> bool:
        """Removes deleted content from logs and free pages as far as that is quick (`thorough`:
        however long it takes); returns whether nothing is left. What was in the way is logged,
        unless `quietly`."""
        ...

    def drop_copies(self, tenant: int, spaces: Mapping[int, Sequence[bytes] | None]) -> bool:
        """Deletes copies of the whole store that were made without being asked for, if any of
        a tenant's memories is in them: by space, uids (None: all). Returns whether none is left."""
        ...

    def scrub(self) -> None:
        """Removes whatever is left of deleted content, however long it takes."""
        ...

    def check(self) -> list[Finding]:
        """The database's own integrity check."""
        ...

    def size(self) -> int:
        """Bytes on disk, logs included."""
        ...

    def sidecar(self, tenant: int, space: int) -> Path | None:
        """Where a rebuildable file of a space's active graph may lie; None if nowhere."""
        ...

    def owns(self, place: Path) -> bool:
        """Whether a file is part of the database, so that nothing else may be written there."""
        ...

    def backup(self, target: Path, progress: Progress | None) -> None: ...

    def restore(self, source: Path, progress: Progress | None) -> None: ...

    def close(self) -> None: ...
