"""How far consolidation has come, and what each run did. No content is kept here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from cofire.store.records import SpaceInfo, StepRow, canonical_json
from cofire.store.schema import consolidations, steps
from cofire.store.session import Query, Session

KEPT_REPORTS = 400
"""Reports kept per space: a year of nights and a month of days by hand."""

READ_STEPS = Query(
    lambda _: select(
        steps.c.name, steps.c.period, steps.c.revision, steps.c.seq, steps.c.time
    ).where(steps.c.tenant == bindparam("tenant"), steps.c.space == bindparam("space"))
)
REMOVE_STEP = Query(
    lambda _: delete(steps).where(
        steps.c.tenant == bindparam("tenant"),
        steps.c.space == bindparam("space"),
        steps.c.name == bindparam("step"),
    )
)
ADD_STEP = Query(lambda _: insert(steps))
STEP_COLUMNS = tuple(column.name for column in steps.columns)
LAST_REPORT = Query(
    lambda _: select(func.coalesce(func.max(consolidations.c.seq), 0)).where(
        consolidations.c.tenant == bindparam("tenant"),
        consolidations.c.space == bindparam("space"),
    )
)
ADD_REPORT = Query(lambda _: insert(consolidations))
REPORT_COLUMNS = tuple(column.name for column in consolidations.columns)
REPORTS = Query(
    lambda _: (
        select(consolidations.c.report)
        .where(
            consolidations.c.tenant == bindparam("tenant"),
            consolidations.c.space == bindparam("space"),
        )
        .order_by(consolidations.c.seq.desc())
        .limit(bindparam("row_limit"))
    )
)
REMOVE_REPORTS = Query(
    lambda _: delete(consolidations).where(
        consolidations.c.tenant == bindparam("tenant"),
        consolidations.c.space == bindparam("space"),
        consolidations.c.seq <= bindparam("up_to"),
    )
)


def read_steps(session: Session, space: SpaceInfo) -> dict[str, StepRow]:
    """How far each step has come, by name; a step that never ran is not there."""
    rows = session.all(READ_STEPS, tenant=space.tenant_id, space=space.space_id)
    return {row[0]: StepRow._make(row) for row in rows}


def put_step(session: Session, space: SpaceInfo, step: StepRow) -> None:
    """Notes how far a step has come."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    session.run(REMOVE_STEP, step=step.name, **here)
    session.many(ADD_STEP, [(*here.values(), *step)], STEP_COLUMNS)


def drop_step(session: Session, space: SpaceInfo, name: str) -> None:
    """Takes a row of the ledger away."""
    session.run(REMOVE_STEP, step=name, tenant=space.tenant_id, space=space.space_id)


def unread(number: int, maker: str, *, now: int, step: str | None = None) -> StepRow:
    """A note that a step (None: that by which `maker` made records) is to read a memory again: its
    `revision` and `seq` are the first and last number, its `period` counts the tries."""
    if step is None:
        step = "facts" if maker == "extractive" else "distil"
    return StepRow(f"{step}/{number}", 0, number, number, now)


def add_report(
    session: Session, space: SpaceInfo, report: Mapping[str, Any], *, started: int, ended: int
) -> int:
    """Keeps the report of a run; returns its number. The oldest beyond `KEPT_REPORTS` go."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    seq: int = session.all(LAST_REPORT, **here)[0][0] + 1
    row = (*here.values(), seq, started, ended, canonical_json(dict(report)))
    session.many(ADD_REPORT, [row], REPORT_COLUMNS)
    session.run(REMOVE_REPORTS, up_to=seq - KEPT_REPORTS, **here)
    return seq


def reports(session: Session, space: SpaceInfo, limit: int) -> list[dict[str, Any]]:
    """The reports of the last runs, newest first."""
    rows = session.all(REPORTS, tenant=space.tenant_id, space=space.space_id, row_limit=limit)
    return [json.loads(row[0]) for row in rows]
