"""The store's verbs for servers and workers; part of `Store`."""

from __future__ import annotations

from collections.abc import Sequence

from cofire.store import audit, jobs, keys, requests
from cofire.store.records import SpaceInfo
from cofire.store.serving_records import (
    AuditCursor,
    AuditEntry,
    Begun,
    DueSpace,
    JobRecord,
    KeyRecord,
    NewKey,
    Queue,
)
from cofire.store.session import Scope, Session
from cofire.store.transacting import Transacting


class ServingVerbs(Transacting):
    """What `Store` keeps for servers: API keys, the audit trail, requests done once, jobs of
    background consolidation. Each verb is one transaction (`write_audit`: one for each tenant).
    `tenant` is a tenant's name."""

    # API keys

    def put_key(self, tenant: str, key: NewKey) -> KeyRecord:
        """Keeps an API key; makes the tenant if need be. Raises InputError for a key that could
        not be used, or whose uid is there already."""

        def work(session: Session) -> KeyRecord:
            return keys.put_key(session, tenant, key)

        return self._backend.write(Scope(tenant=tenant), work)

    def find_key(self, tenant_number: int, uid: bytes) -> KeyRecord | None:
        """The key of this uid, of the tenant that a token names by `records.tenant_number` of its
        name; also a key that is revoked or expired (see `KeyRecord.good`)."""
        found = self._key(tenant_number, uid)
        return None if found is None else found[1]

    def _key(self, number: int, uid: bytes) -> tuple[int, KeyRecord] | None:
        """A key, after its tenant's number in this store."""
        rows = self._backend.glance(Scope(tenant=number), keys.FIND_KEY, tenant=number, uid=uid)
        if not rows and not self._backend.shared:
            stored = self._backend.read(Scope(), lambda s: keys.stored_number(s, number))
            if stored is not None and stored != number:
                return self._key(stored, uid)
        return (number, keys.key_record(rows[0])) if rows else None

    def list_keys(self, tenant: str) -> list[KeyRecord]:
        """A tenant's keys, oldest first."""
        return self._backend.read(
            Scope(tenant=tenant), lambda session: keys.list_keys(session, tenant)
        )

    def revoke_key(self, tenant: str, uid: bytes, now: int) -> bool:
        """Makes a key good for nothing from now on; False if there is none or it was before."""
        return self._backend.write(
            Scope(tenant=tenant), lambda session: keys.revoke_key(session, tenant, uid, now)
        )

    def touch_key(self, tenant_number: int, uid: bytes, now: int) -> bool:
        """Notes that a key is used; returns whether anything was written, which happens once a
        minute at most."""
        found = self._key(tenant_number, uid)
        if found is None or not keys.is_stale(found[1], now):
            return False  # without beginning to write
        number = found[0]
        return self._backend.write(
            Scope(tenant=number), lambda session: keys.touch_key(session, number, uid, now)
        )

    # The audit trail

    def write_audit(self, entries: Sequence[AuditEntry]) -> int:
        """Keeps entries, each tenant's in one transaction; returns how many are new: what is there
        already is passed over, so that a batch may be given again. Makes the tenants if need be.
        Raises InputError."""
        by_tenant: dict[str, list[AuditEntry]] = {}
        for entry in entries:
            audit.require_sound(entry)
            by_tenant.setdefault(entry.tenant, []).append(entry)
        return sum(self._write_audit(tenant, own) for tenant, own in by_tenant.items())

    def _write_audit(self, tenant: str, entries: Sequence[AuditEntry]) -> int:
        return self._backend.write(
            Scope(tenant=tenant), lambda session: audit.write_audit(session, tenant, entries)
        )

    def list_audit(
        self,
        tenant: str,
        *,
        since: int | None = None,
        until: int | None = None,
        principal: str | None = None,
        action: str | None = None,
        after: AuditCursor | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """A page of a tenant's entries with `since` ≤ time < `until`, newest first; the next begins
        `after` the last one's (time, uid)."""
        return self._backend.read(
            Scope(tenant=tenant),
            lambda session: audit.list_audit(
                session,
                tenant,
                since=since,
                until=until,
                principal=principal,
                action=action,
                after=after,
                limit=limit,
            ),
        )

    def purge_audit(self, tenant: str, before: int) -> int:
        """Deletes a tenant's entries of before `before`; returns how many."""
        return self._backend.write(
            Scope(tenant=tenant), lambda session: audit.purge_audit(session, tenant, before)
        )

    # Requests

    def begin_request(
        self, tenant: str, hash: bytes, digest: bytes, *, now: int, expires: int, stale: int
    ) -> Begun:
        """Begins a request that is to be done once, or says what became of it. `hash` is of the
        principal and the caller's idempotency key (16 to 64 bytes), `digest` of the request. Kept
        until `expires`; one that was begun `stale` µs ago or more and is still running counts as
        abandoned (its process was killed), and is begun anew. Makes the tenant if need be."""

        def work(session: Session) -> Begun:
            return requests.begin_request(
                session, tenant, hash, digest, now=now, expires=expires, stale=stale
            )

        return self._backend.write(Scope(tenant=tenant), work)

    def finish_request(
        self, tenant: str, hash: bytes, fence: int, *, status: int, response: str
    ) -> bool:
        """Keeps the answer (JSON of ids and counts) to a request that one has begun; False if
        somebody else began it anew meanwhile, or it is gone."""

        def work(session: Session) -> bool:
            return requests.finish_request(
                session, tenant, hash, fence, status=status, response=response
            )

        return self._backend.write(Scope(tenant=tenant), work)

    def abandon_request(self, tenant: str, hash: bytes, fence: int) -> bool:
        """Forgets a request that one has begun and that failed, so that it may be repeated; False
        as in `finish_request`."""
        return self._backend.write(
            Scope(tenant=tenant),
            lambda session: requests.abandon_request(session, tenant, hash, fence),
        )

    def purge_requests(self, tenant: str, now: int) -> int:
        """Deletes a tenant's requests that have expired; returns how many."""
        return self._backend.write(
            Scope(tenant=tenant), lambda session: requests.purge_requests(session, tenant, now)
        )

    # Jobs

    def due_spaces(self, now: int, *, every: int, idle: int, most: int = 100) -> list[DueSpace]:
        """The spaces, of all tenants, that background consolidation ought to see, the longest
        overdue first: those that changed since their last success, if that was `every` µs ago or
        longer, and any that had one `idle` µs ago or longer. Not those that were given up, wait
        for their next attempt, are claimed at present, or are being copied."""
        query = jobs.SHARED_DUE_SPACES if self._backend.shared else jobs.DUE_SPACES
        rows = self._backend.glance(Scope(), query, now_at=now, every=every, idle=idle, most=most)
        return [jobs.due_space(row) for row in rows]

    def job(self, space: SpaceInfo) -> JobRecord | None:
        """How background consolidation of a space stands; None: it never ran."""
        return self._read(jobs.read_job, space)

    def job_done(self, space: SpaceInfo, revision: int, now: int) -> None:
        """Notes a success at `now` that saw everything up to `revision` (the space's when it
        began: what it wrote itself is looked at once more). Raises NotFoundError."""
        self._write(jobs.job_done, space, revision, now)

    def job_failed(
        self,
        space: SpaceInfo,
        error: str,
        now: int,
        next_at: int | None,
        *,
        dead: bool = False,
        counted: bool = False,
    ) -> JobRecord:
        """Notes a failure at `now`, to be tried again from `next_at` on, or (`dead`) not before
        `retry_job`. Of `error` 500 characters are kept. `counted`: the attempt was noted before,
        such as when it began. Raises NotFoundError."""
        return self._write(jobs.job_failed, space, error, now, next_at, dead=dead, counted=counted)

    def dead_jobs(self, tenant: str | None = None) -> list[JobRecord]:
        """The spaces that background consolidation gave up, of a tenant or (None) of all; the
        longest dead first."""
        query = jobs.SHARED_DEAD_JOBS if self._backend.shared else jobs.DEAD_JOBS

        def work(session: Session) -> list[JobRecord]:
            rows = session.all(query, of_tenant=jobs.whose(session, tenant))
            return [jobs.dead_job(row) for row in rows]

        return self._backend.read(Scope(tenant=tenant), work)

    def retry_job(self, space: SpaceInfo) -> bool:
        """Has a space tried again at once; False if no attempt had failed."""
        return self._write(jobs.retry_job, space)

    def retry_jobs(self, tenant: str) -> int:
        """Has all spaces of a tenant tried again that were given up; returns how many."""
        return self._backend.write(
            Scope(tenant=tenant), lambda session: jobs.retry_jobs(session, tenant)
        )

    def queue(self, now: int, *, every: int, idle: int, tenant: str | None = None) -> Queue:
        """How many spaces of a tenant or (None) of all are due, wait, are dead or worked on;
        `every` and `idle` as in `due_spaces`."""
        query = jobs.SHARED_QUEUE if self._backend.shared else jobs.QUEUE

        def work(session: Session) -> Queue:
            found = jobs.whose(session, tenant)
            rows = session.all(query, now_at=now, every=every, idle=idle, of_tenant=found)
            return Queue._make(rows[0])

        return self._backend.read(Scope(tenant=tenant), work)
