"""What of a statement is sealed in an encrypted space: which parameters, which columns it returns.

Found out once per statement, from its SQLAlchemy form, so that no verb has to know of encryption.
A statement that would look into sealed values within the database (compare, cut or sort them)
cannot work on an encrypted space; compiling it raises TypeError, and a test compiles every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Integer,
    LargeBinary,
    Select,
    Table,
    case,
    cast,
    func,
)
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.dml import Insert, Update
from sqlalchemy.sql.elements import BinaryExpression, Label
from sqlalchemy.sql.functions import FunctionElement

from cofire.store.columns import HalfVector
from cofire.store.schema import (
    attributes,
    derived,
    events,
    interactions,
    items,
    projections,
    recalls,
    tags,
    vectors,
    versions,
)

if TYPE_CHECKING:
    from cofire.store.sealing import SpaceKey
    from cofire.store.session import SqlFlavour

Row = tuple[Any, ...]

SEALED: dict[str, frozenset[str]] = {
    items.name: frozenset((
        "content", "title", "speaker", "role", "session", "metadata", "keywords", "event_times",
        "tags", "key", "language", "terms", "concepts", "facets",
    )),
    vectors.name: frozenset(("vector",)),
    versions.name: frozenset(("content", "title")),
    recalls.name: frozenset(("query",)),
    derived.name: frozenset(("subject", "slot", "value", "reasons")),
    projections.name: frozenset(("data",)),
}  # fmt: skip
"""Columns that are encrypted, by table."""

MASKED: dict[str, frozenset[str]] = {
    items.name: frozenset(("speaker_hash", "session_hash", "key_hash")),
    tags.name: frozenset(("hash",)),
    attributes.name: frozenset(("hash",)),
    interactions.name: frozenset(("hash",)),
    events.name: frozenset(("question",)),
    derived.name: frozenset(("subject_hash", "slot_hash")),
}
"""Columns of hashes that are looked up, by table: permuted under a key."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The characters from `start` to `end` of `whole`, or all of it where `parent` is 0."""

    whole: Column[Any]
    parent: Column[Any]
    start: Column[Any]
    end: Column[Any]


_CUTS: dict[Any, _Cut] = {}


def cut_text(whole: Any, part: Any, name: str) -> Label[Any]:
    """The text of a row of `part` out of its whole's `content`: cut by the database, or after it
    was opened where it is sealed."""
    content = whole.c.content
    first, count = part.c.start + 1, part.c.end - part.c.start
    text = case(
        (part.c.parent == 0, content),
        else_=func.substr(content, cast(first, Integer), cast(count, Integer)),
    ).label(name)
    _CUTS[text] = _Cut(content, part.c.parent, part.c.start, part.c.end)
    return text


@dataclass(frozen=True, slots=True)
class _Value:
    """A sealed value among those bound: at `at`, its row's key at `row`."""

    at: Any
    column: str
    text: bool
    row: tuple[Any, ...]
    vector: bool = False


@dataclass(frozen=True, slots=True)
class _Cutting:
    at: int
    parent: int
    start: int
    end: int


@dataclass(slots=True)
class Plan:
    """A statement as it is run on an encrypted space. Places among the parameters are names,
    places in a returned row are indexes."""

    statement: Any
    values: list[_Value] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    returned: list[_Value] = field(default_factory=list)
    unmasked: list[int] = field(default_factory=list)
    cuts: list[_Cutting] = field(default_factory=list)
    width: int = 0
    """Columns that were asked for; those behind are the rows' keys."""

    @property
    def binds(self) -> bool:
        return bool(self.values or self.hashes)

    @property
    def returns(self) -> bool:
        return bool(self.returned or self.unmasked)

    def bound(
        self, key: SpaceKey, parameters: dict[str, Any], flavour: SqlFlavour
    ) -> dict[str, Any]:
        """The parameters, sealed and masked. Lists may be packed."""
        changed = dict(parameters)
        for value in self.values:
            row = tuple(parameters[name] for name in value.row)
            sealed = _sealed(key, value, parameters[value.at], row)
            changed[value.at] = flavour.widen(sealed) if value.vector and sealed else sealed
        for name in self.hashes:
            found = parameters[name]
            if isinstance(found, str):
                found = flavour.unpack(found)
            if isinstance(found, list):
                changed[name] = [key.mask(number) for number in found]
            elif found is not None:
                changed[name] = key.mask(found)
        return changed

    def opener(self, key: SpaceKey, flavour: SqlFlavour) -> Callable[[list[Row]], list[Row]]:
        """What turns rows as stored into rows as asked for."""
        return partial(self._opened, key, flavour)

    def _opened(self, key: SpaceKey, flavour: SqlFlavour, rows: list[Row]) -> list[Row]:
        opened: list[Row] = []
        for row in rows:
            values = list(row)
            for value in self.returned:
                found = values[value.at]
                if found is None:
                    continue
                own = tuple([row[place] for place in value.row])
                if value.vector:
                    found = flavour.narrow(found)
                if value.text:
                    values[value.at] = key.open_text(found, value.column, own)
                elif found != b"":
                    values[value.at] = key.open(found, value.column, own)
            for place in self.unmasked:
                if values[place] is not None:
                    values[place] = key.unmask(values[place])
            for cut in self.cuts:
                if values[cut.parent] and values[cut.at] is not None:
                    values[cut.at] = values[cut.at][values[cut.start] : values[cut.end]]
            opened.append(tuple(values[: self.width]))
        return opened


def _sealed(key: SpaceKey, value: _Value, found: Any, row: tuple[Any, ...]) -> Any:
    if found is None:
        return None
    if value.text:
        return key.seal_text(found, value.column, row)
    return key.seal(bytes(found), value.column, row) if found != b"" else found


def make_plan(statement: Any) -> Plan:
    """Raises TypeError for a statement that cannot work on sealed values."""
    plan = Plan(statement)
    plan.hashes = sorted(_require_seekable(statement))
    if isinstance(statement, Insert):
        _plan_insert(plan, statement)
    elif isinstance(statement, Update):
        _plan_update(plan, statement)
    elif isinstance(statement, Select):
        _plan_select(plan, statement)
    return plan


def _base(element: Any) -> Column[Any] | None:
    """The column of the schema that an element is, under whatever alias."""
    if not isinstance(element, ColumnElement):
        return None
    bases = [base for base in element.base_columns if isinstance(base, Column)]
    if len(bases) == 1 and isinstance(element, Column) and isinstance(bases[0].table, Table):
        return bases[0]
    return None


def _among(element: Any, columns: dict[str, frozenset[str]]) -> Column[Any] | None:
    base = _base(element)
    if base is None or base.name not in columns.get(base.table.name, ()):
        return None
    return base


def _row_key(table: Table) -> list[str]:
    """What tells rows of a space apart."""
    names = [column.name for column in table.primary_key]
    return [name for name in names if name not in {"tenant", "space"}]


def _value(at: Any, base: Column[Any], row: Sequence[Any]) -> _Value:
    text = not isinstance(base.type, LargeBinary)
    vector = isinstance(base.type, HalfVector)
    return _Value(at, f"{base.table.name}.{base.name}", text, tuple(row), vector)


def _plan_insert(plan: Plan, statement: Insert) -> None:
    table = statement.table
    if not isinstance(table, Table):
        raise TypeError(f"an insert into something other than a table: {statement}")
    for column in table.columns:
        if _among(column, SEALED) is not None:
            plan.values.append(_value(column.name, column, _row_key(table)))
        if _among(column, MASKED) is not None:
            plan.hashes.append(column.name)


def _plan_update(plan: Plan, statement: Update) -> None:
    table = statement.table
    if not isinstance(table, Table):
        raise TypeError(f"an update of something other than a table: {statement}")
    for name, given in statement._values.items() if statement._values else ():
        column = table.c[name] if isinstance(name, str) else name
        if _among(column, MASKED) is not None:
            plan.hashes.append(_bound_name(given, statement))
        if _among(column, SEALED) is not None:
            row = [_bound_key(statement, table.c[part]) for part in _row_key(table)]
            plan.values.append(_value(_bound_name(given, statement), table.c[column.name], row))


def _bound_name(given: Any, statement: Any) -> str:
    if not isinstance(given, BindParameter):
        raise TypeError(f"a sealed column set to something other than a parameter: {statement}")
    return str(given.key)


def _bound_key(statement: Update, column: Column[Any]) -> str:
    """The parameter that a column must be equal to."""
    for criterion in statement._where_criteria:
        for part in visitors.iterate(criterion):
            if isinstance(part, BinaryExpression) and part.operator is operators.eq:
                for one, other in ((part.left, part.right), (part.right, part.left)):
                    if one is column and isinstance(other, BindParameter):
                        return str(other.key)
    raise TypeError(f"not said of which row a sealed value is: {statement}")


def _plan_select(plan: Plan, statement: Select[Any]) -> None:
    columns = list(statement.selected_columns)
    plan.width = len(columns)
    more: list[Any] = []

    def place(column: Any) -> int:
        for index, known in enumerate((*columns, *more)):
            if known is column:
                return index
        more.append(column)
        return len(columns) + len(more) - 1

    for index, column in enumerate(columns):
        cut = _CUTS.get(column)
        element = column.element if isinstance(column, Label) else column
        if cut is not None:
            element = columns[index] = cut.whole
            places = place(cut.parent), place(cut.start), place(cut.end)
            plan.cuts.append(_Cutting(index, *places))
        base = _among(element, SEALED)
        if base is not None:
            row = [place(element.table.c[name]) for name in _row_key(base.table)]
            plan.returned.append(_value(index, base, row))
        elif _among(element, MASKED) is not None:
            plan.unmasked.append(index)
    if plan.returned:
        labelled = [column.label(f"c{index}") for index, column in enumerate((*columns, *more))]
        plan.statement = statement.with_only_columns(*labelled, maintain_column_froms=True)


def _require_seekable(statement: Any) -> set[str]:
    """The parameters that are compared with masked hashes."""
    cuts = {id(part) for text in _CUTS for part in visitors.iterate(text)}
    hashes: set[str] = set()
    for part in visitors.iterate(statement):
        if isinstance(part, BinaryExpression):
            if id(part) not in cuts:
                hashes |= _compared(part, statement)
        elif isinstance(part, FunctionElement) and id(part) not in cuts:
            for inner in visitors.iterate(part):
                if _among(inner, SEALED) is not None:
                    raise TypeError(f"a function of sealed values: {statement}")
    return hashes


def _compared(part: BinaryExpression[Any], statement: Any) -> set[str]:
    if part.operator in {operators.is_, operators.is_not}:
        return set()
    sides = (part.left, part.right)
    if any(_among(side, SEALED) is not None for side in sides):
        raise TypeError(f"a comparison of sealed values: {statement}")
    masked = [_among(side, MASKED) is not None for side in sides]
    if not any(masked) or all(masked):
        return set()
    if part.operator not in {operators.eq, operators.ne, operators.in_op, operators.not_in_op}:
        raise TypeError(f"masked hashes have no order: {statement}")
    other = sides[0] if masked[1] else sides[1]
    names = {bound.key for bound in _binds(other) if bound.value != 0}
    if not names and not any(True for _ in _binds(other)):
        raise TypeError(f"masked hashes compared with something unknown: {statement}")
    return names


def _binds(element: Any) -> Iterator[BindParameter[Any]]:
    for part in visitors.iterate(element):
        if isinstance(part, BindParameter):
            yield part
