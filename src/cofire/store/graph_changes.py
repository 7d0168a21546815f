"""What the active graph of a space is made of: everything, or what is newer than a revision."""

from __future__ import annotations

from operator import itemgetter

from sqlalchemy import and_, bindparam, select

from cofire.store.reading import SPACE_STATE
from cofire.store.records import Changes, SpaceInfo
from cofire.store.schema import items, links, tombstones, vectors
from cofire.store.session import Query, Row, Session
from cofire.store.spaces import missing_space

PORTION = 2_000
"""Rows read at a time."""

_GRAPH_ROWS = (
    select(
        items.c.number,
        items.c.uid,
        items.c.revision,
        items.c.parent,
        items.c.kind,
        items.c.speaker_hash,
        items.c.session_hash,
        items.c.time,
        items.c.event_start,
        items.c.event_end,
        items.c.expires,
        items.c.importance,
        items.c.pinned,
        items.c.signals,
        items.c.length,
        items.c.terms,
        items.c.concepts,
        items.c.facets,
        vectors.c.vector,
        items.c.valid_from,
        items.c.valid_to,
        items.c.recorded,
    )
    .select_from(
        items.outerjoin(
            vectors,
            and_(
                vectors.c.tenant == items.c.tenant,
                vectors.c.space == items.c.space,
                vectors.c.number == items.c.number,
                vectors.c.model == bindparam("model"),
            ),
        )
    )
    .where(items.c.tenant == bindparam("tenant"), items.c.space == bindparam("space"))
)
_GRAPH_LINKS = select(
    links.c.source,
    links.c.target,
    links.c.type,
    links.c.strength,
    links.c.revision,
    links.c.last_coactivated,
).where(links.c.tenant == bindparam("tenant"), links.c.space == bindparam("space"))
# What is archived is not in the graph.
ALL_ROWS = Query(lambda _: _GRAPH_ROWS.where(items.c.archived.is_(None)).order_by(items.c.number))
ALL_LINKS = Query(lambda _: _GRAPH_LINKS.order_by(links.c.source, links.c.target))
# Sorted afterwards: asked for an order, the planner reads the whole space in it.
NEW_ROWS = Query(
    lambda _: _GRAPH_ROWS.where(items.c.revision > bindparam("since"), items.c.archived.is_(None))
)
ARCHIVED = Query(
    lambda _: select(items.c.number).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.revision > bindparam("since"),
        items.c.archived.is_not(None),
    )
)
NEW_LINKS = Query(lambda _: _GRAPH_LINKS.where(links.c.revision > bindparam("since")))
ROWS_BY_NUMBER = Query(
    lambda flavour: _GRAPH_ROWS.where(
        items.c.number.in_(flavour.members("numbers")), items.c.archived.is_(None)
    )
)
LINKS_AMONG = Query(
    lambda flavour: _GRAPH_LINKS.where(links.c.source.in_(flavour.members("numbers")))
)
REMOVALS = Query(
    lambda _: (
        select(tombstones.c.source, tombstones.c.target)
        .where(
            tombstones.c.tenant == bindparam("tenant"),
            tombstones.c.space == bindparam("space"),
            tombstones.c.revision > bindparam("since"),
        )
        .order_by(tombstones.c.source, tombstones.c.target)
    )
)


def changes(session: Session, space: SpaceInfo, since: int) -> Changes:
    """What changed after revision `since` (0: everything). Raises NotFoundError."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    state = session.one(SPACE_STATE, **here)
    if state is None:
        raise missing_space(space)
    revision, floor, model = state
    if since == revision:
        return Changes(
            revision=revision, rebuild=False, rows=[], links=[], removed_items=[], removed_links=[]
        )
    # A revision from the future was read before a backup was restored.
    rebuild = since <= 0 or since < floor or since > revision
    if rebuild:
        # In portions: a hundred thousand rows need not be there twice.
        rows: list[Row] = []
        for portion in session.portions(ALL_ROWS, PORTION, model=model, **here):
            rows += graph_rows(portion)
        linked = session.all(ALL_LINKS, **here)
        removed, archived = [], []
    else:
        rows = graph_rows(session.all(NEW_ROWS, model=model, since=since, **here))
        rows.sort(key=itemgetter(0))
        linked = sorted(session.all(NEW_LINKS, since=since, **here), key=itemgetter(0, 1))
        removed = session.all(REMOVALS, since=since, **here)
        archived = session.all(ARCHIVED, since=since, **here)
    return Changes(
        revision=revision,
        rebuild=rebuild,
        rows=rows,
        links=linked,
        removed_items=sorted(
            {source for source, target in removed if target == 0} | {row[0] for row in archived}
        ),
        removed_links=[(source, target) for source, target in removed if target != 0],
    )


def graph_rows(rows: list[Row]) -> list[Row]:
    """Rows as read, in the order of `GraphRow`, with unsigned hashes."""
    # Flat, with the sign of the two hashes mended in passing: a hundred thousand rows go through
    # here when a space is opened, and a call per row would double the time.
    wrap = 1 << 64
    # fmt: off
    return [
        (
            n, u, r, p, k, s if s >= 0 else s + wrap, t if t >= 0 else t + wrap,
            c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15,
        )
        for (
            n, u, r, p, k, s, t,
            c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15,
        ) in rows
    ]
    # fmt: on
