"""Does everything in the store agree with everything else? What `cofire doctor` asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from sqlalchemy import FromClause, Table, and_, bindparam, exists, func, or_, select

from cofire.errors import ConfigurationError, StoreCorruptError
from cofire.store.checking_serving import OF_TENANTS
from cofire.store.records import (
    DERIVED_SIGNAL,
    KINDS,
    LINK_CODES,
    LINK_TYPES,
    STATE_CODES,
    STATES,
    Finding,
    SpaceInfo,
)
from cofire.store.rows import tag_hashes
from cofire.store.rules import read_rule
from cofire.store.schema import (
    NUMBERED_TABLES,
    SPACE_TABLES,
    derived,
    interactions,
    items,
    jobs,
    links,
    models,
    recall_items,
    recalls,
    sources,
    spaces,
    tags,
    vectors,
)
from cofire.store.sealed_queries import SEALED
from cofire.store.session import Backend, Query, Scope, Session, of_space
from cofire.store.settling import differences
from cofire.store.spaces import COPYING
from cofire.types import LinkType

PAGE = 2_000
EXAMPLES = 5


def _same(table: FromClause, other: FromClause, *pairs: Any) -> Any:
    return and_(table.c.tenant == other.c.tenant, table.c.space == other.c.space, *pairs)


def _here(table: FromClause) -> Any:
    return and_(table.c.tenant == bindparam("tenant"), table.c.space == bindparam("space"))


def _orphans(table: Table, column: str) -> Query:
    """Rows that name an item that is not there."""
    return Query(
        lambda _: select(table.c[column]).where(
            _here(table), ~exists().where(_same(items, table, items.c.number == table.c[column]))
        )
    )


_whole = items.alias("whole")
_part = items.alias("part")

ORPHANS = tuple(
    (table.name, column, _orphans(table, column))
    for table, column in (
        *((table, "number") for table in NUMBERED_TABLES if table is not items),
        (links, "source"),
        (links, "target"),
        (sources, "source"),
    )
)
LOST_SEGMENTS = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        items.c.parent != 0,
        ~exists().where(
            _same(_whole, items, _whole.c.number == items.c.parent, _whole.c.parent == 0)
        ),
    )
)
MISCOUNTED_SEGMENTS = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        items.c.parent == 0,
        items.c.segments
        != select(func.count())
        .where(_same(_part, items, _part.c.parent == items.c.number))
        .scalar_subquery(),
        or_(
            items.c.segments > 0,
            exists().where(_same(_part, items, _part.c.parent == items.c.number)),
        ),
    )
)
HITS_WITHOUT_RECALL = Query(
    lambda _: select(recall_items.c.number).where(
        _here(recall_items),
        ~exists().where(_same(recalls, recall_items, recalls.c.uid == recall_items.c.recall)),
    )
)
MISCOUNTED_SESSIONS = Query(
    lambda _: select(interactions.c.hash).where(
        _here(interactions),
        interactions.c.turns
        != select(func.count())
        .where(
            _same(
                items,
                interactions,
                items.c.session_hash == interactions.c.hash,
                items.c.parent == 0,
            )
        )
        .scalar_subquery(),
    )
)
UNKNOWN_SESSIONS = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        items.c.session_hash != 0,
        ~exists().where(_same(interactions, items, interactions.c.hash == items.c.session_hash)),
    )
)
BAD_ITEMS = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        or_(
            items.c.kind < 0,
            items.c.kind >= len(KINDS),
            items.c.importance < 1,
            items.c.importance > 10,
            items.c.number < 1,
            items.c.number > bindparam("last_number"),
            items.c.revision > bindparam("revision"),
            and_(items.c.parent == 0, items.c.content.is_(None)),
        ),
    )
)
BAD_LINKS = Query(
    lambda _: select(links.c.source).where(
        _here(links),
        or_(
            links.c.type < 0,
            links.c.type >= len(LINK_TYPES),
            ~links.c.strength.between(0.0, 1.0),
            links.c.source == links.c.target,
            links.c.revision > bindparam("revision"),
            links.c.coactivations < 0,
            links.c.rejections < 0,
        ),
    )
)
NEEDLESSLY_PENDING = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        items.c.pending == 1,
        exists().where(
            _same(vectors, items, vectors.c.number == items.c.number),
            vectors.c.model == bindparam("model"),
        ),
    )
)
REPEATED_KEYS = Query(
    lambda _: (
        select(func.min(items.c.number))
        .where(_here(items), items.c.key_hash.is_not(None))
        .group_by(items.c.key_hash)
        .having(func.count() > 1)
    )
)
_CURRENT = STATES.index("current")
WRONG_STATES = Query(
    lambda _: select(derived.c.number).where(
        _here(derived),
        or_(
            derived.c.state < 0,
            derived.c.state >= len(STATES),
            and_(
                derived.c.state != _CURRENT,
                exists().where(
                    _same(items, derived, items.c.number == derived.c.number),
                    items.c.archived.is_(None),
                ),
            ),
        ),
    )
)
# A derived memory is told apart from what people said by a bit that the active graph reads.
UNMARKED = Query(
    lambda _: select(items.c.number).where(
        _here(items),
        items.c.parent == 0,
        exists().where(_same(derived, items, derived.c.number == items.c.number))
        != (items.c.signals.op("&")(DERIVED_SIGNAL) != 0),
    )
)
WRONG_ENDS = Query(
    lambda _: select(derived.c.number).where(
        _here(derived),
        derived.c.closed.is_not(None),
        exists().where(
            _same(items, derived, items.c.number == derived.c.number), items.c.valid_to.is_(None)
        ),
    )
)
_later = derived.alias()
ENDLESS = Query(
    lambda _: (
        select(links.c.target)
        .where(
            _here(links),
            links.c.type == LINK_CODES[LinkType.SUPERSEDES.value],
            exists().where(
                _same(derived, links, derived.c.number == links.c.target),
                derived.c.closed.is_(None),
                derived.c.state == STATE_CODES["current"],
            ),
            exists().where(  # what is not trusted has ended nothing
                _same(_later, links, _later.c.number == links.c.source),
                _later.c.state == STATE_CODES["current"],
            ),
        )
        .distinct()
    )
)
HALF_ARCHIVED = Query(
    lambda _: select(_part.c.number).where(
        _here(_part),
        _part.c.parent != 0,
        exists().where(
            _same(_whole, _part, _whole.c.number == _part.c.parent),
            _whole.c.archived.is_(None) != _part.c.archived.is_(None),
        ),
    )
)
IMPOSSIBLE_JOBS = Query(
    lambda _: select(jobs.c.space).where(
        _here(jobs),
        or_(
            jobs.c.revision > bindparam("revision"),
            jobs.c.attempts < 0,
            and_(jobs.c.dead.is_not(None), jobs.c.attempts == 0),
        ),
    )
)
SIMPLE = (
    ("lost-segment", "segments whose text is not there", LOST_SEGMENTS),
    ("segment-count", "texts whose number of segments is wrong", MISCOUNTED_SEGMENTS),
    ("recall-hit", "hits without a recall record", HITS_WITHOUT_RECALL),
    ("session-count", "sessions whose number of memories is wrong", MISCOUNTED_SESSIONS),
    ("session", "memories whose session is not listed", UNKNOWN_SESSIONS),
    ("item", "memories with impossible fields", BAD_ITEMS),
    ("link", "links with impossible fields", BAD_LINKS),
    ("pending", "memories that have a vector and are said to lack one", NEEDLESSLY_PENDING),
    ("key", "keys used more than once", REPEATED_KEYS),
    ("state", "derived memories that are not trusted and not archived", WRONG_STATES),
    ("derived", "memories that are not marked as what they are, derived or told", UNMARKED),
    ("closed", "derived memories whose end was recorded, but not when it is", WRONG_ENDS),
    ("superseded", "derived memories that others supersede and that have no end", ENDLESS),
    ("job", "background consolidation has seen more than there is", IMPOSSIBLE_JOBS),
    ("archived", "segments that are archived unlike their text", HALF_ARCHIVED),
)
SPACE_NUMBERS = Query(
    lambda _: select(spaces.c.revision, spaces.c.last_number, spaces.c.model).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
STRAYS = tuple(
    (
        table.name,
        Query(
            lambda _, table=table: (
                select(table.c.space)  # type: ignore[misc]
                .where(
                    ~exists().where(spaces.c.tenant == table.c.tenant, spaces.c.id == table.c.space)
                )
                .distinct()
            )
        ),
    )
    for table in SPACE_TABLES
)
BLOBS = Query(
    lambda _: (
        select(items.c.number, items.c.terms, items.c.concepts, items.c.facets, items.c.tags)
        .where(_here(items), items.c.number > bindparam("after"))
        .order_by(items.c.number)
        .limit(bindparam("row_limit"))
    )
)
VECTORS = Query(
    lambda _: (
        select(vectors.c.number, vectors.c.vector, models.c.dimension)
        .select_from(
            vectors.outerjoin(
                models, and_(models.c.tenant == vectors.c.tenant, models.c.id == vectors.c.model)
            )
        )
        .where(_here(vectors), vectors.c.number > bindparam("after"))
        .order_by(vectors.c.number)
        .limit(bindparam("row_limit"))
    )
)
SEALED_VALUES = tuple(
    Query(
        lambda _, table=table: select(
            *(table.c[name] for name in sorted(SEALED[table.name]))
        ).where(  # type: ignore[misc]
            _here(table)
        )
    )
    for table in SPACE_TABLES
    if table.name in SEALED
)
TAGS = Query(
    lambda _: select(tags.c.number, tags.c.hash).where(
        _here(tags), tags.c.number > bindparam("after"), tags.c.number <= bindparam("last")
    )
)


def check(backend: Backend, among: list[SpaceInfo], tenant: str | None) -> list[Finding]:
    """Everything found wrong in these spaces, and in the database itself; [] if all is well. Each
    space is examined in a snapshot of its own."""
    findings = backend.check()
    if findings:
        return findings  # what a damaged file says of its rows means nothing
    findings += backend.read(Scope(tenant=tenant), _of_tenants)
    for space in among:
        findings += backend.read(of_space(space), partial(_examined, space=space))
    return findings


def _of_tenants(session: Session) -> list[Finding]:
    questions = [
        *(("stray", f"spaces in {name} that do not exist", query) for name, query in STRAYS),
        *OF_TENANTS,
    ]
    return [
        finding
        for code, what, query in questions
        for finding in _found(code, what, session.all(query))
    ]


def _examined(session: Session, space: SpaceInfo) -> list[Finding]:
    locked = session.vault.locked(space.tenant_id, space.space_id)
    if locked is not None:
        return [Finding(code="locked", message=f"not examined: {locked}", count=1)]
    if COPYING in space.settings:
        message = f"{space.ref}: not examined: it is not copied whole; see `cofire db copy`"
        return [Finding(code="copying", message=message, count=1)]
    sealed = list(_sealed(session, space)) if space.encrypted else []
    return sealed or list(_check_space(session, space))


def _sealed(session: Session, space: SpaceInfo) -> Iterator[Finding]:
    """Is every sealed value what was written, where it was written? Tells the first of each table
    that is not."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    for query in SEALED_VALUES:
        try:
            for _ in session.portions(query, PAGE, **here):
                pass
        except StoreCorruptError as exc:
            yield Finding(code="sealed", message=f"{space.ref}: {exc}", count=1)


def _check_space(session: Session, space: SpaceInfo) -> Iterator[Finding]:
    here = {"tenant": space.tenant_id, "space": space.space_id}
    state = session.one(SPACE_NUMBERS, **here)
    if state is None:
        return
    more = dict(zip(("revision", "last_number", "model"), state, strict=True))
    for name, column, query in ORPHANS:
        rows = session.all(query, **here)
        yield from _found("orphan", f"{space.ref}: {column}s in {name} without a memory", rows)
    for code, what, query in SIMPLE:
        yield from _found(code, f"{space.ref}: {what}", session.all(query, **here, **more))
    yield from _strengths(session, space)
    yield from _found("vector", f"{space.ref}: unusable vectors", _bad_vectors(session, space))
    terms, wrong = _bad_blobs(session, space)
    yield from _found("terms", f"{space.ref}: memories with malformed terms", terms)
    yield from _found("tags", f"{space.ref}: memories whose tags are not indexed so", wrong)


def _strengths(session: Session, space: SpaceInfo) -> Iterator[Finding]:
    """Are the strengths what the learning log says?"""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    try:
        wrong = list(differences(session, here, read_rule(session, space)))
    except ConfigurationError as exc:
        yield Finding(code="strengths", message=f"{space.ref}: {exc}", count=1)
        return
    pairs = [(f"{source} to {target}",) for (source, target), _, _ in wrong]
    yield from _found("strengths", f"{space.ref}: links that are not what their log says", pairs)


def _found(code: str, message: str, rows: list[Any]) -> Iterator[Finding]:
    if rows:
        yield Finding(
            code=code,
            message=message,
            count=len(rows),
            examples=tuple(str(row[0]) for row in rows[:EXAMPLES]),
        )


def _bad_vectors(session: Session, space: SpaceInfo) -> list[tuple[int]]:
    import numpy as np

    bad: list[tuple[int]] = []
    after = 0
    while True:
        rows = session.all(
            VECTORS,
            tenant=space.tenant_id,
            space=space.space_id,
            after=after,
            row_limit=PAGE,
        )
        for number, vector, dimension in rows:
            if dimension is None or len(vector) != 2 * dimension:
                bad.append((number,))
                continue
            values = np.frombuffer(vector, dtype="<f2")
            if not np.isfinite(values).all() or not values.any():
                bad.append((number,))
        if len(rows) < PAGE:
            return bad
        after = rows[-1][0]


def _bad_blobs(session: Session, space: SpaceInfo) -> tuple[list[tuple[int]], list[tuple[int]]]:
    here = {"tenant": space.tenant_id, "space": space.space_id}
    malformed: list[tuple[int]] = []
    untagged: list[tuple[int]] = []
    after = 0
    while True:
        rows = session.all(BLOBS, after=after, row_limit=PAGE, **here)
        if not rows:
            return malformed, untagged
        last = rows[-1][0]
        indexed: dict[int, set[int]] = {}
        for number, label in session.all(TAGS, after=after, last=last, **here):
            indexed.setdefault(number, set()).add(label)
        for number, terms, concepts, facets, text in rows:
            good = _well_formed(terms, 9) and _well_formed(concepts, 9) and _well_formed(facets, 8)
            if not good:
                malformed.append((number,))
            if set(tag_hashes(json.loads(text))) != indexed.get(number, set()):
                untagged.append((number,))
        after = last


def _well_formed(blob: bytes, width: int) -> bool:
    """Hashes ascending and unique; with counts (`width` 9), one above zero for each."""
    import numpy as np

    if len(blob) % width:
        return False
    count = len(blob) // width
    hashes = np.frombuffer(blob, dtype="<u8", count=count)
    ascending = bool((hashes[1:] > hashes[:-1]).all())
    return ascending and (width == 8 or 0 not in blob[8 * count :])
