"""What Citus asks of statements: that one tenant's number binds every table of each.

A statement of which that is true runs on one machine, where Citus supports all of SQL; so most of
its restrictions (locks of rows, correlated subqueries, outer joins, recursion) come down to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import BindParameter, FromClause, Table
from sqlalchemy.sql import ClauseElement, operators, visitors
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.dml import Delete, Insert, Update
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList, ColumnClause, Grouping
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import (
    CTE,
    Alias,
    CompoundSelect,
    Join,
    Select,
    SelectBase,
    Subquery,
)

from cofire.store.distributing import (
    BY_TENANT,
    ROUTER,
    SETTINGS,
    SQL,
    Violation,
    distribution_column,
)
from cofire.store.schema import metadata

IMMUTABLE = frozenset(
    "abs coalesce count greatest least left length lower max min nullif row_number substr sum "
    "unnest upper".split()
)
"""The functions that a change may call: the same values give the same result on every machine."""

Node: TypeAlias = tuple[str, object]
Frame: TypeAlias = tuple[int, dict[str, str]]
"""One SELECT: its number, and by the names of its tables what binds each."""


@dataclass(slots=True)
class Bounds:
    """What holds the tenants of a statement's tables equal to which parameters."""

    held: dict[Node, set[Node]] = field(default_factory=dict)
    """By what each table is held: a parameter, or a table that is held itself."""
    tables: list[tuple[Node, str]] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    """Outer joins that are not on the tenant."""
    frames: int = 0

    def hold(self, one: Node, other: Node, inside: Container[Node]) -> None:
        """Takes note that two are equal, for those that are `inside`: a condition within a
        subquery or of an outer join says nothing of the rows outside."""
        if one in inside:
            self.held.setdefault(one, set()).add(other)
        if other in inside:
            self.held.setdefault(other, set()).add(one)

    def parameters(self, node: Node) -> set[Node]:
        """The parameters that bind a table."""
        met, open_ = {node}, [node]
        while open_:
            further = self.held.get(open_.pop(), set()) - met
            met |= further
            open_.extend(further)
        return {one for one in met if one[0] == "parameter"}

    def frame(self, tables: Sequence[FromClause]) -> Frame:
        self.frames += 1
        names: dict[str, str] = {}
        for table in tables:
            base = _base(table)
            if base is not None:
                name = _name(table)
                names[name] = distribution_column(base).name
                self.tables.append((("table", (self.frames, name)), base.name))
        return self.frames, names


def _name(table: FromClause) -> str:
    return str(table.name)  # type: ignore[attr-defined]


def _base(table: Any) -> Table | None:
    """The table behind an alias; None for what is no table of the store."""
    while isinstance(table, Alias):
        table = table.element
    return table if isinstance(table, Table) else None


def _leaves(froms: Sequence[FromClause]) -> Iterator[FromClause]:
    for part in froms:
        if isinstance(part, Join):
            yield from _leaves([part.left, part.right])
        else:
            yield part


def _tables(froms: Sequence[FromClause]) -> Iterator[FromClause]:
    return (leaf for leaf in _leaves(froms) if _base(leaf) is not None)


def _joins(froms: Sequence[FromClause]) -> Iterator[Join]:
    for part in froms:
        if isinstance(part, Join):
            yield part
            yield from _joins([part.left, part.right])


def _conjuncts(condition: Any) -> Iterator[Any]:
    if isinstance(condition, Grouping):
        yield from _conjuncts(condition.element)
    elif isinstance(condition, BooleanClauseList) and condition.operator is operators.and_:
        for part in condition.clauses:
            yield from _conjuncts(part)
    elif condition is not None:
        yield condition


def _inner(element: ClauseElement) -> Iterator[SelectBase]:
    """The selects right under an element, but not those under them."""
    for child in element.get_children():
        if isinstance(child, SelectBase):
            yield child
        elif isinstance(child, ClauseElement) and not isinstance(child, Table):
            yield from _inner(child)


def _node(side: Any, frames: Sequence[Frame]) -> Node | None:
    while isinstance(side, Grouping):
        side = side.element
    if isinstance(side, BindParameter):
        return "parameter", side.key
    if isinstance(side, ColumnClause) and side.table is not None and _base(side.table) is not None:
        name = _name(side.table)
        for number, names in frames:
            if name in names:
                return ("table", (number, name)) if names[name] == side.name else None
    return None


def _equals(condition: Any, frames: Sequence[Frame]) -> tuple[Node, Node] | None:
    if isinstance(condition, BinaryExpression) and condition.operator is operators.eq:
        one, other = _node(condition.left, frames), _node(condition.right, frames)
        if one is not None and other is not None:
            return one, other
    return None


def _own(frame: Frame) -> set[Node]:
    number, names = frame
    return {("table", (number, name)) for name in names}


def _look_at_joins(select: Select[Any], frames: Sequence[Frame], bounds: Bounds) -> None:
    own = _own(frames[0])
    for join in _joins(select.get_final_froms()):
        right = own & {("table", (frames[0][0], _name(leaf))) for leaf in _tables([join.right])}
        outer = join.isouter or join.full
        inside: set[Node] = set() if join.full else right if outer else own
        on_tenant = not right
        for condition in _conjuncts(join.onclause):
            if (pair := _equals(condition, frames)) is not None:
                bounds.hold(*pair, inside)
                on_tenant = on_tenant or bool(right & set(pair))
        if outer and not on_tenant:
            bounds.outer.append(", ".join(_name(leaf) for leaf in _tables([join.right])))


def _look_at(select: SelectBase, outer: Sequence[Frame], bounds: Bounds) -> None:
    if isinstance(select, CompoundSelect):
        for part in select.selects:
            if isinstance(part, SelectBase):
                _look_at(part, outer, bounds)
        return
    if not isinstance(select, Select):
        for part in _inner(select):
            _look_at(part, outer, bounds)
        return
    froms = select.get_final_froms()
    leaves = list(_leaves(froms))
    around = {name for _, names in outer for name in names}
    # A table of a select around it is that one, unless nothing else is left to select from.
    own = [leaf for leaf in leaves if _base(leaf) is None or _name(leaf) not in around] or leaves
    frames = [bounds.frame(own), *outer]
    _look_at_joins(select, frames, bounds)
    for condition in _conjuncts(select.whereclause):
        if (pair := _equals(condition, frames)) is not None:
            bounds.hold(*pair, _own(frames[0]))
    below = {id(part) for leaf in leaves if isinstance(leaf, Subquery | CTE)
             for part in _inner(leaf)}  # fmt: skip
    for part in _inner(select):
        _look_at(part, [] if id(part) in below else frames, bounds)


def _bounds(statement: Any) -> Bounds:
    bounds = Bounds()
    if isinstance(statement, SelectBase):
        _look_at(statement, [], bounds)
    elif isinstance(statement, Insert):
        for part in _inner(statement):
            _look_at(part, [], bounds)
    elif isinstance(statement, Update | Delete):
        used = [statement.table, *_other_tables(statement)]
        frames = [bounds.frame(used)]
        for condition in _conjuncts(statement.whereclause):
            if (pair := _equals(condition, frames)) is not None:
                bounds.hold(*pair, _own(frames[0]))
        for part in _inner(statement):
            _look_at(part, frames, bounds)
    else:
        raise TypeError(f"not a statement on tables: {statement}")
    return bounds


def _other_tables(statement: Update | Delete) -> list[FromClause]:
    found: dict[str, FromClause] = {}
    for condition in _conjuncts(statement.whereclause):
        for table in getattr(condition, "_from_objects", ()):
            for leaf in _leaves([table]):
                if _base(leaf) is not None and leaf is not statement.table:
                    found[_name(leaf)] = leaf
    return list(found.values())


# Rules


def _unbound(statement: Any) -> Iterator[str]:
    bounds = _bounds(statement)
    for node, table in bounds.tables:
        if not bounds.parameters(node):
            yield f"{table} is not bound to a tenant"


def _several(statement: Any) -> Iterator[str]:
    bounds = _bounds(statement)
    names = {str(name) for node, _ in bounds.tables for _, name in bounds.parameters(node)}
    if len(names) > 1:
        yield f"tenants of several parameters: {', '.join(sorted(names))}"


def _outer_joins(statement: Any) -> Iterator[str]:
    for right in _bounds(statement).outer:
        yield f"an outer join with {right} that is not on the tenant"


def _locks(statement: Any) -> Iterator[str]:
    if isinstance(statement, Select) and statement._for_update_arg is not None:
        for what in _unbound(statement):
            yield f"rows are locked on every machine: {what}"


def _moves(statement: Any) -> Iterator[str]:
    if not isinstance(statement, Insert | Update):
        return
    column = distribution_column(statement.table).name  # type: ignore[arg-type]
    changed: set[str] = set()
    if isinstance(statement, Update):
        changed = {_text(name) for name in statement._values or ()}
    else:
        clause = getattr(statement, "_post_values_clause", None)
        changed = {
            _text(name) for name in dict(getattr(clause, "update_values_to_set", None) or ())
        }
    if column in changed:
        yield f"{column} of a row is changed"


def _text(name: Any) -> str:
    return str(getattr(name, "name", name))


def _unplaced(statement: Any) -> Iterator[str]:
    if not isinstance(statement, Insert):
        return
    column = distribution_column(statement.table).name  # type: ignore[arg-type]
    if statement.select is not None:
        if column not in {_text(name) for name in statement._select_names or ()}:
            yield f"rows are selected for it without {column}"
        return
    given = {_text(name): value for name, value in (statement._values or {}).items()}
    if given and column not in given:
        yield f"a row is added without {column}"
    elif given and not isinstance(given[column], BindParameter):
        yield f"{column} of a new row is computed"


def _nested_in_insert(statement: Any) -> Iterator[str]:
    if isinstance(statement, Insert):
        for part in _inner(statement):
            if part is not statement.select:
                yield "a subquery within the values of an INSERT"


def _changing_tables(statement: Any) -> Iterator[str]:
    for part in visitors.iterate(statement):
        if isinstance(part, CTE) and isinstance(part.element, Insert | Update | Delete):
            yield f"the common table expression {part.name} changes rows"


def _unlike(statement: Any) -> Iterator[str]:
    if isinstance(statement, Insert | Update | Delete):
        for part in visitors.iterate(statement):
            if isinstance(part, FunctionElement) and _text(part).casefold() not in IMMUTABLE:
                yield f"a change calls {_text(part)}, not known to be immutable"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRule:
    """A restriction on statements; `broken` yields what a statement has against it."""

    name: str
    source: str
    broken: Callable[[Any], Iterator[str]]


QUERY_RULES = (
    QueryRule(name="one-machine", source=BY_TENANT, broken=_unbound),
    QueryRule(name="one-tenant", source=BY_TENANT, broken=_several),
    QueryRule(name="outer-joins-on-tenant", source=SQL, broken=_outer_joins),
    QueryRule(name="locks-on-one-machine", source=SQL, broken=_locks),
    QueryRule(name="tenant-never-changes", source=ROUTER, broken=_moves),
    QueryRule(name="rows-have-a-place", source=BY_TENANT, broken=_unplaced),
    QueryRule(name="no-subqueries-in-values", source=SQL, broken=_nested_in_insert),
    QueryRule(name="no-changes-in-with", source=ROUTER, broken=_changing_tables),
    QueryRule(name="immutable-functions", source=SQL, broken=_unlike),
)
SETTING_RULE = "settings-by-command"
_NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:cofire\.)?(\w+)", re.IGNORECASE)


def query_violations(statement: Executable, *, where: str) -> list[Violation]:
    """What Citus would refuse of a statement, or would do on more than one machine. `where`: what
    the statement is called. Raises TypeError for what is no SELECT, INSERT, UPDATE or DELETE."""
    return [
        Violation(rule=rule.name, where=where, what=what, source=rule.source)
        for rule in QUERY_RULES
        for what in dict.fromkeys(rule.broken(statement))
    ]


def text_violations(sql: str, *, where: str) -> list[Violation]:
    """The same of a statement that is no more than text, as far as words can tell."""
    found: list[Violation] = []
    if "set_config('cofire." in sql.casefold():
        what = "set_config() counts on the coordinator only; SET LOCAL is handed on"
        found.append(Violation(rule=SETTING_RULE, where=where, what=what, source=SETTINGS))
    for name in dict.fromkeys(_NAMED.findall(sql)):
        table = metadata.tables.get(name)
        if table is not None:
            column = distribution_column(table).name
            if not re.search(rf"\b{column} = %", sql) and not re.search(rf"\({column}\b", sql):
                what = f"{name} is not bound to a tenant"
                found.append(
                    Violation(rule="one-machine", where=where, what=what, source=BY_TENANT)
                )
    return found
