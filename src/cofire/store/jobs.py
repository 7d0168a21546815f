"""Background consolidation: which spaces are due, and how each stands.

Nothing is written when something is remembered: whether a space changed is seen from its revision,
which rises with every write. So looking for what is due goes through the rows of all spaces, a few
tenths of a microsecond each. It is the one question of all tenants; where the database keeps them
apart, functions of its owner answer it (migration 0005), which tell names and numbers only.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, case, func, insert, null, or_, select, update

from cofire.store.records import SpaceInfo
from cofire.store.schema import claims, jobs, spaces, tenants
from cofire.store.serving_records import LONGEST_ERROR, DueSpace, JobRecord
from cofire.store.session import Query, Row, Session, SqlFlavour
from cofire.store.spaces import COPYING, find_tenant, read_space
from cofire.types import SpaceRef

EVERYBODY = -1
"""In place of a tenant's number, which is not negative: all of them."""
NOBODY = -2
FAR_US = 86_400_000_000
"""A time so far ahead was noted by a clock that has been set back since, and does not count:
otherwise an hour's error of a clock would keep a space waiting until that hour comes."""

_NAMES = (spaces.c.identity, spaces.c.user, spaces.c.project)
_STATE = (
    jobs.c.revision,
    jobs.c.ran,
    jobs.c.attempts,
    jobs.c.next_at,
    jobs.c.dead,
    jobs.c.error,
)
_HERE = (jobs.c.tenant == bindparam("tenant"), jobs.c.space == bindparam("space"))
_THERE = (jobs.c.tenant == bindparam("in_tenant"), jobs.c.space == bindparam("in_space"))

_AFRESH = {"attempts": 0, "next_at": null(), "dead": null(), "error": null()}

READ_JOB = Query(lambda _: select(*_STATE).where(*_HERE))
ADD_JOB = Query(lambda _: insert(jobs))
JOB_COLUMNS = tuple(column.name for column in jobs.columns)
DONE = Query(
    lambda _: (
        update(jobs)
        .where(*_THERE)
        .values(
            revision=bindparam("new_revision"),
            ran=bindparam("new_ran"),
            **_AFRESH,
        )
    )
)
FAILED = Query(
    lambda _: (
        update(jobs)
        .where(*_THERE)
        .values(
            attempts=jobs.c.attempts + bindparam("more"),
            next_at=bindparam("new_next"),
            dead=bindparam("new_dead"),
            error=bindparam("new_error"),
        )
    )
)
RETRY = Query(lambda _: update(jobs).where(*_THERE, jobs.c.attempts > 0).values(**_AFRESH))
RETRY_DEAD = Query(
    lambda _: (
        update(jobs)
        .where(jobs.c.tenant == bindparam("in_tenant"), jobs.c.dead.is_not(None))
        .values(**_AFRESH)
    )
)


# Of all tenants, in a file


def _standing(flavour: SqlFlavour) -> Any:
    """What `cofire.standing_spaces` is on PostgreSQL."""
    changed = spaces.c.revision > func.coalesce(jobs.c.revision, 0)
    now: Any = bindparam("now_at")
    ran = case((jobs.c.ran > now + FAR_US, now - bindparam("idle")), else_=jobs.c.ran)
    next_at = case((jobs.c.next_at > now + FAR_US, now), else_=jobs.c.next_at)
    soonest = ran + func.min(bindparam("every"), bindparam("idle"))
    made = func.min(spaces.c.created, now)
    since = case((changed, func.coalesce(soonest, made)), else_=ran + bindparam("idle"))
    clock = flavour.clock()
    held = and_(
        claims.c.tenant == spaces.c.tenant,
        claims.c.space == spaces.c.id,
        claims.c.expires > clock,
        2 * claims.c.taken - claims.c.expires < clock,
    )
    joined = spaces.outerjoin(
        jobs, and_(jobs.c.tenant == spaces.c.tenant, jobs.c.space == spaces.c.id)
    ).outerjoin(claims, held)
    return (
        select(
            spaces.c.tenant,
            spaces.c.id.label("space"),
            *_NAMES,
            func.max(since, func.coalesce(next_at, since)).label("due_at"),
            case((changed, 1), else_=0).label("changed"),
            func.coalesce(jobs.c.attempts, 0).label("attempts"),
            next_at.label("next_at"),
            jobs.c.dead,
            claims.c.expires.is_not(None).label("held"),
        )
        .select_from(joined)
        .where(or_(changed, jobs.c.ran.is_not(None)), ~spaces.c.settings.contains(f'"{COPYING}"'))
        .subquery()
    )


def _due(flavour: SqlFlavour) -> Any:
    one = _standing(flavour)
    lag = (bindparam("now_at") - one.c.due_at).label("lag")
    return (
        select(
            one.c.tenant, one.c.space, tenants.c.name, one.c.identity, one.c.user, one.c.project,
            lag, one.c.changed, one.c.attempts,
        )
        .select_from(one.join(tenants, tenants.c.id == one.c.tenant))
        .where(one.c.due_at <= bindparam("now_at"), one.c.dead.is_(None), ~one.c.held)
        .order_by(lag.desc(), one.c.tenant, one.c.space)
        .limit(bindparam("most"))
    )  # fmt: skip


def _queue(flavour: SqlFlavour) -> Any:
    one = _standing(flavour)
    now: Any = bindparam("now_at")
    whose: Any = bindparam("of_tenant")
    free = and_(one.c.dead.is_(None), ~one.c.held)
    due = and_(free, one.c.due_at <= now)
    return select(
        func.count().filter(due),
        func.count().filter(free, one.c.next_at > now),
        func.count().filter(one.c.dead.is_not(None)),
        func.count().filter(one.c.dead.is_(None), one.c.held),
        func.coalesce(func.max(now - one.c.due_at).filter(due), 0),
    ).where(or_(whose == EVERYBODY, one.c.tenant == whose))


def _dead(_: SqlFlavour) -> Any:
    whose: Any = bindparam("of_tenant")
    joined = jobs.join(
        spaces, and_(spaces.c.tenant == jobs.c.tenant, spaces.c.id == jobs.c.space)
    ).join(tenants, tenants.c.id == jobs.c.tenant)
    return (
        select(jobs.c.tenant, jobs.c.space, tenants.c.name, *_NAMES, *_STATE)
        .select_from(joined)
        .where(jobs.c.dead.is_not(None), or_(whose == EVERYBODY, jobs.c.tenant == whose))
        .order_by(jobs.c.dead, jobs.c.tenant, jobs.c.space)
    )


DUE_SPACES = Query(_due)
QUEUE = Query(_queue)
DEAD_JOBS = Query(_dead)


# Of all tenants, by functions of the tables' owner


def _called(name: str, parameters: str, columns: str) -> Query:
    found = getattr(func.cofire, name)(*map(bindparam, parameters.split()))
    return Query(lambda _: select(found.table_valued(*columns.split())))


SHARED_DUE_SPACES = _called(
    "due_spaces",
    "now_at every idle most",
    "tenant space tenant_name identity user project lag changed attempts",
)
SHARED_QUEUE = _called("queue", "now_at every idle of_tenant", "due waiting dead running oldest")
SHARED_DEAD_JOBS = _called(
    "dead_jobs",
    "of_tenant",
    "tenant space tenant_name identity user project revision ran attempts next_at dead error",
)


def due_space(row: Row) -> DueSpace:
    """A row of `DUE_SPACES`."""
    tenant, space, *names, lag, changed, attempts = row
    return DueSpace(tenant, space, _ref(*names), lag, changed == 1, attempts)


def dead_job(row: Row) -> JobRecord:
    """A row of `DEAD_JOBS`."""
    tenant, space, *names = row[:6]
    return JobRecord(tenant, space, _ref(*names), *row[6:])


def _ref(tenant: str, identity: str, user: str, project: str) -> SpaceRef:
    return SpaceRef(
        tenant=tenant, identity=identity or None, user=user or None, project=project or None
    )


def whose(session: Session, tenant: str | None) -> int:
    """The number that the questions of all tenants take for one, or for all."""
    if tenant is None:
        return EVERYBODY
    found = find_tenant(session, tenant)
    return NOBODY if found is None else found


# Of one space


def read_job(session: Session, space: SpaceInfo) -> JobRecord | None:
    """How background consolidation of a space stands; None: it never ran."""
    row = session.one(READ_JOB, tenant=space.tenant_id, space=space.space_id)
    return None if row is None else JobRecord(space.tenant_id, space.space_id, space.ref, *row)


def job_done(session: Session, space: SpaceInfo, revision: int, now: int) -> None:
    """Notes a success that saw everything up to `revision`. Raises NotFoundError."""
    read_space(session, space)
    there = {"in_tenant": space.tenant_id, "in_space": space.space_id}
    if session.run(DONE, new_revision=revision, new_ran=now, **there) == 0:
        row = (space.tenant_id, space.space_id, revision, now, 0, None, None, None)
        session.many(ADD_JOB, [row], JOB_COLUMNS)


def job_failed(
    session: Session,
    space: SpaceInfo,
    error: str,
    now: int,
    next_at: int | None,
    *,
    dead: bool,
    counted: bool = False,
) -> JobRecord:
    """Notes a failure; `counted`: of an attempt that was noted as one already. Raises
    NotFoundError."""
    read_space(session, space)
    there = {"in_tenant": space.tenant_id, "in_space": space.space_id}
    gone, text = now if dead else None, error.replace("\0", "")[:LONGEST_ERROR]
    noted = {"new_next": next_at, "new_dead": gone, "new_error": text, "more": int(not counted)}
    if session.run(FAILED, **noted, **there) == 0:
        row = (space.tenant_id, space.space_id, 0, None, 1, next_at, gone, text)
        session.many(ADD_JOB, [row], JOB_COLUMNS)
    found = read_job(session, space)
    assert found is not None  # noqa: S101 - written above
    return found


def retry_job(session: Session, space: SpaceInfo) -> bool:
    """Has a space tried again at once; False if no attempt had failed."""
    return session.run(RETRY, in_tenant=space.tenant_id, in_space=space.space_id) > 0


def retry_jobs(session: Session, tenant: str) -> int:
    """Has all spaces of a tenant tried again that were given up; returns how many."""
    number = find_tenant(session, tenant)
    return 0 if number is None else session.run(RETRY_DEAD, in_tenant=number)
