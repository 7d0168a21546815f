"""Vectors after the fact: those still missing, another model's, and the fitted projection."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, bindparam, delete, exists, func, insert, or_, select, update

from cofire.errors import ConfigurationError, InputError
from cofire.store.forgetting import RAISE_FLOOR
from cofire.store.reading import ITEM_SELECTION, ITEM_SOURCE, ONE
from cofire.store.records import ItemRow, NewVector, SpaceInfo
from cofire.store.rows import VECTOR_COLUMNS, item_from_row
from cofire.store.schema import items, projections, vectors
from cofire.store.session import Query, Session
from cofire.store.spaces import FIND_MODEL, SET_MODEL, model_id, read_space
from cofire.store.writing import ADD_VECTOR, BUMP, take_turn


def _has_vector(model: str | None) -> object:
    conditions = [
        vectors.c.tenant == items.c.tenant,
        vectors.c.space == items.c.space,
        vectors.c.number == items.c.number,
    ]
    if model is not None:
        conditions.append(vectors.c.model == bindparam(model))
    return exists().where(and_(*conditions))


# What should have a vector: rows with text of their own (or a segment's) that have one of any
# model, or are marked as waiting for one.
_WANTING = Query(
    lambda _: (
        select(items.c.number)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            items.c.number > bindparam("after"),
            items.c.segments == 0,
            ~_has_vector("model"),  # type: ignore[operator]
            or_(items.c.pending == 1, _has_vector(None)),  # type: ignore[arg-type]
        )
        .order_by(items.c.number)
        .limit(bindparam("row_limit"))
    )
)
COUNT_LOST = Query(
    lambda _: select(func.count()).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.segments == 0,
        items.c.pending == 0,
        _has_vector("former"),  # type: ignore[arg-type]
        ~_has_vector("model"),  # type: ignore[operator]
    )
)
MARK_LOST = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.segments == 0,
            items.c.pending == 0,
            _has_vector("former"),  # type: ignore[arg-type]
            ~_has_vector("chosen"),  # type: ignore[operator]
        )
        .values(pending=bindparam("mark"))
    )
)
UNMARK_FOUND = Query(
    lambda _: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.pending == 1,
            _has_vector("chosen"),  # type: ignore[arg-type]
        )
        .values(pending=bindparam("mark"))
    )
)
READ = Query(
    lambda flavour: (
        select(*ITEM_SELECTION)
        .select_from(ITEM_SOURCE)
        .where(
            ONE.c.tenant == bindparam("tenant"),
            ONE.c.space == bindparam("space"),
            ONE.c.number.in_(flavour.members("numbers")),
        )
        .order_by(ONE.c.number)
    )
)
REVISIONS = Query(
    lambda flavour: select(items.c.number, items.c.revision).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.number.in_(flavour.members("numbers")),
    )
)
DROP_SAME = Query(
    lambda flavour: delete(vectors).where(
        vectors.c.tenant == bindparam("tenant"),
        vectors.c.space == bindparam("space"),
        vectors.c.model == bindparam("model"),
        vectors.c.number.in_(flavour.members("numbers")),
    )
)
DROP_OTHERS = Query(
    lambda _: delete(vectors).where(
        vectors.c.tenant == bindparam("tenant"),
        vectors.c.space == bindparam("space"),
        vectors.c.model != bindparam("model"),
    )
)
EMBEDDED = Query(
    lambda flavour: (
        update(items)
        .where(
            items.c.tenant == bindparam("in_tenant"),
            items.c.space == bindparam("in_space"),
            items.c.number.in_(flavour.members("numbers")),
        )
        .values(pending=bindparam("mark"), revision=bindparam("now_revision"))
    )
)
MOVE_VECTORS = Query(
    lambda _: (
        update(vectors)
        .where(
            vectors.c.tenant == bindparam("in_tenant"),
            vectors.c.space == bindparam("in_space"),
            vectors.c.number > bindparam("after"),
            vectors.c.number <= bindparam("last"),
            vectors.c.indexed != bindparam("mark"),
        )
        .values(indexed=bindparam("mark"))
    )
)
READ_VECTORS = Query(
    lambda flavour: select(vectors.c.number, vectors.c.vector).where(
        vectors.c.tenant == bindparam("tenant"),
        vectors.c.space == bindparam("space"),
        vectors.c.model == bindparam("model"),
        vectors.c.number.in_(flavour.members("numbers")),
    )
)
READ_PROJECTION = Query(
    lambda _: (
        select(projections.c.version, projections.c.data)
        .where(
            projections.c.tenant == bindparam("tenant"), projections.c.space == bindparam("space")
        )
        .order_by(projections.c.version.desc())
        .limit(1)
    )
)
DROP_PROJECTIONS = Query(
    lambda _: delete(projections).where(
        projections.c.tenant == bindparam("tenant"), projections.c.space == bindparam("space")
    )
)
ADD_PROJECTION = Query(lambda _: insert(projections))


def pending(
    session: Session, space: SpaceInfo, model: str, dimension: int, *, limit: int, after: int
) -> list[ItemRow]:
    """Items and segments numbered above `after` that lack a vector of this model, by number. Their
    revisions say of which text a vector will be (`put_vectors`)."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    found = session.one(FIND_MODEL, tenant=space.tenant_id, name=model, dimension=dimension)
    numbers = session.all(
        _WANTING, model=found[0] if found else None, after=after, row_limit=limit, **here
    )
    packed = session.pack([row[0] for row in numbers])
    return [item_from_row(row) for row in session.all(READ, numbers=packed, **here)]


def put_vectors(
    session: Session,
    space: SpaceInfo,
    model: str,
    dimension: int,
    rows: Sequence[NewVector],
) -> int:
    """Writes vectors of a model; returns how many. What was forgotten or changed meanwhile is
    passed over: a vector is only ever that of the text that the row has now, and what lacks one
    is still `pending`.

    Those of the space's own model are seen by readers at once; another model's lie beside them
    until `switch_model`. Raises InputError for a vector of the wrong size.
    """
    for row in rows:
        if len(row.vector) != 2 * dimension:
            raise InputError(
                f"the vector of memory {row.number} has {len(row.vector)} bytes; {model} needs "
                f"{2 * dimension}"
            )
    here = {"tenant": space.tenant_id, "space": space.space_id}
    current = read_space(session, space)
    own = (current.model, current.dimension) == (model, dimension)
    numbers = session.pack([row.number for row in rows])
    revisions: dict[int, int] = dict(session.all(REVISIONS, numbers=numbers, **here))
    written = {row.number: row.vector for row in rows if revisions.get(row.number) == row.revision}
    if not written:
        return 0
    code = model_id(session, space.tenant_id, model, dimension)
    turn = take_turn(session, current) if own else None
    indexed = turn.indexed if turn is not None else int(current.indexed)
    packed = session.pack(list(written))
    session.run(DROP_SAME, model=code, numbers=packed, **here)
    session.many(
        ADD_VECTOR,
        [(*here.values(), number, code, vector, indexed) for number, vector in written.items()],
        VECTOR_COLUMNS,
    )
    if turn is not None:
        session.run(
            EMBEDDED,
            in_tenant=turn.tenant,
            in_space=turn.space,
            numbers=packed,
            mark=0,
            now_revision=turn.revision,
        )
    return len(written)


def switch_model(
    session: Session, space: SpaceInfo, model: str, dimension: int, *, allow_missing: bool
) -> SpaceInfo:
    """Makes another model the space's own and drops the vectors of the former one.

    Readers then rebuild. Raises ConfigurationError if memories that had a vector have none of
    the new model, unless `allow_missing`: then they are marked as pending.
    """
    here = {"tenant": space.tenant_id, "space": space.space_id}
    there = {"in_tenant": space.tenant_id, "in_space": space.space_id}
    current = read_space(session, space)
    if (current.model, current.dimension) == (model, dimension):
        return current
    code = model_id(session, space.tenant_id, model, dimension)
    if current.model is not None and current.dimension is not None:
        former = model_id(session, space.tenant_id, current.model, current.dimension)
        lost = session.all(COUNT_LOST, former=former, model=code, **here)[0][0]
        if lost and not allow_missing:
            raise ConfigurationError(
                f"{space.ref}: {lost} memories have no vector of {model} yet; run `cofire reembed` "
                "again, it goes on where it stopped"
            )
        if lost:
            session.run(MARK_LOST, former=former, chosen=code, mark=1, **there)
    session.run(UNMARK_FOUND, chosen=code, mark=0, **there)
    session.run(DROP_OTHERS, model=code, **here)
    session.run(DROP_PROJECTIONS, **here)
    session.run(SET_MODEL, chosen=code, **there)
    revision, last, *_, indexed = session.all(BUMP, wanted=0, **there)[0]
    session.run(MOVE_VECTORS, mark=min(1, indexed), after=0, last=last, **there)
    # Every row has another vector: cheaper said once, through the floor, than on each row.
    session.run(RAISE_FLOOR, lowest=revision, **there)
    return read_space(session, space)


def read_vectors(session: Session, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, bytes]:
    """The vectors (of the space's own model) of those numbers that have one."""
    current = read_space(session, space)
    if current.model is None:
        return {}
    found = session.one(
        FIND_MODEL, tenant=space.tenant_id, name=current.model, dimension=current.dimension
    )
    rows = session.all(
        READ_VECTORS,
        tenant=space.tenant_id,
        space=space.space_id,
        model=found[0] if found else None,
        numbers=session.pack(numbers),
    )
    return {row[0]: row[1] for row in rows}


def projection(session: Session, space: SpaceInfo) -> tuple[int, bytes] | None:
    """The version and content of the space's fitted projection."""
    row = session.one(READ_PROJECTION, tenant=space.tenant_id, space=space.space_id)
    return None if row is None else (row[0], row[1])


def put_projection(session: Session, space: SpaceInfo, version: int, data: bytes) -> None:
    """Keeps a fitted projection in place of the former. Raises InputError if another process
    has already kept this version or a later one."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    read_space(session, space)
    former = projection(session, space)
    if former is not None and former[0] >= version:
        raise InputError(
            f"{space.ref}: projection {former[0]} is already kept; read it instead of keeping "
            f"{version}"
        )
    session.run(DROP_PROJECTIONS, **here)
    session.run(ADD_PROJECTION, version=version, data=data, **here)
