"""Background consolidation: which spaces are due, in what order, and what failures lead to."""

from __future__ import annotations

import pytest

from cofire.errors import NotFoundError
from cofire.store import Store
from cofire.store.jobs import FAR_US
from cofire.store.records import SpaceInfo
from cofire.store.serving_records import JobRecord, Queue
from cofire.testing.claiming import LONG, taken
from cofire.testing.fixtures import StoreFixtures
from cofire.testing.samples import an_item, make_space

EVERY, IDLE = 100, 1_000


class JobTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_what_changed_is_due_after_a_while(self, store: Store, space: SpaceInfo) -> None:
        assert due(store, 10**6) == []  # nothing in it
        store.append(space, [an_item()])
        (first,) = store.due_spaces(50, every=EVERY, idle=IDLE)
        assert (first.tenant_id, first.space_id) == (space.tenant_id, space.space_id)
        assert (first.ref, first.lag, first.changed, first.attempts) == (space.ref, 50, True, 0)
        store.job_done(space, store.revision(space), 60)
        store.append(space, [an_item()])
        assert due(store, 159) == []
        assert due(store, 160) == [(space.ref.identity, 0)]
        assert due(store, 165) == [(space.ref.identity, 5)]

    def test_what_did_not_change_is_due_after_long(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item()])
        store.job_done(space, store.revision(space), 60)
        assert due(store, 1_059) == []
        assert due(store, 1_060) == [("agent", 0)]
        (one,) = store.due_spaces(1_070, every=EVERY, idle=IDLE)
        assert (one.lag, one.changed) == (10, False)
        assert [one.lag for one in store.due_spaces(110, every=EVERY, idle=50)] == [0]

    def test_what_a_run_did_not_see_is_looked_at_again(
        self, store: Store, space: SpaceInfo
    ) -> None:
        begun = store.append(space, [an_item()]).revision
        store.append(space, [an_item()])  # meanwhile
        store.job_done(space, begun, 60)
        assert due(store, 160) == [("agent", 0)]

    def test_of_all_tenants_the_longest_overdue_come_first(self, store: Store) -> None:
        for tenant, name, ran in (("t1", "a", 30), ("t2", "b", 10), ("t1", "c", 20)):
            space = make_space(store, name, tenant)
            store.append(space, [an_item()])
            store.job_done(space, 1, ran)
            store.append(space, [an_item()])
        assert due(store, 200) == [("b", 90), ("c", 80), ("a", 70)]
        found = store.due_spaces(200, every=EVERY, idle=IDLE, most=2)
        assert [one.ref.tenant for one in found] == ["t2", "t1"]
        assert due(store, 115) == [("b", 5)]
        assert store.queue(115, every=EVERY, idle=IDLE) == Queue(1, 0, 0, 0, 5)
        assert store.queue(125, every=EVERY, idle=IDLE, tenant="t1") == Queue(1, 0, 0, 0, 5)
        assert store.queue(125, every=EVERY, idle=IDLE, tenant="nobody") == Queue(0, 0, 0, 0, 0)

    def test_what_somebody_works_on_is_not_due(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item()])
        own = taken(store, space, "one", LONG)
        assert due(store, 500) == []
        assert store.queue(500, every=EVERY, idle=IDLE) == Queue(0, 0, 0, 1, 0)
        store.release_claim(space, own)
        assert due(store, 500) == [("agent", 500)]

    def test_a_failure_waits_and_success_forgets_it(self, store: Store, space: SpaceInfo) -> None:
        revision = store.append(space, [an_item()]).revision
        assert store.job(space) is None
        first = store.job_failed(space, "GenerationError: no answer", 100, 150)
        place = (space.tenant_id, space.space_id, space.ref)
        assert first == JobRecord(*place, 0, None, 1, 150, None, "GenerationError: no answer")
        assert store.job(space) == first
        assert due(store, 149) == []
        assert store.queue(149, every=EVERY, idle=IDLE) == Queue(0, 1, 0, 0, 0)
        assert due(store, 150) == [("agent", 0)]
        second = store.job_failed(space, "x" * 501, 160, 200)
        assert (second.attempts, second.error) == (2, "x" * 500)
        assert [one.attempts for one in store.due_spaces(200, every=EVERY, idle=IDLE)] == [2]
        store.job_done(space, revision, 210)
        assert store.job(space) == JobRecord(*place, revision, 210, 0, None, None, None)
        failed = store.job_failed(space, "late", 1_300, None)
        assert (failed.revision, failed.ran, failed.attempts) == (revision, 210, 1)
        assert due(store, 1_300) == [("agent", 90)]

    def test_an_attempt_that_was_counted_is_not_counted_again(
        self, store: Store, space: SpaceInfo
    ) -> None:
        store.append(space, [an_item()])
        assert store.job_failed(space, "begun", 100, 150).attempts == 1
        noted = store.job_failed(space, "no answer", 120, 300, counted=True)
        assert (noted.attempts, noted.next_at, noted.error) == (1, 300, "no answer")

    def test_a_clock_that_was_wrong_keeps_nothing_waiting(
        self, store: Store, space: SpaceInfo
    ) -> None:
        future = 400 * FAR_US
        store.append(space, [an_item()])
        store.job_done(space, store.revision(space), future)
        assert due(store, 10**6) == [("agent", 0)]
        store.job_done(space, store.revision(space), 10**6)
        store.job_failed(space, "E", future, future + 1)
        assert due(store, 10**6 + IDLE) == [("agent", 0)]

    def test_what_was_given_up_waits_to_be_retried(self, store: Store, space: SpaceInfo) -> None:
        others = [make_space(store, name, tenant) for name, tenant in (("x", "t1"), ("y", "t2"))]
        for moment, one in enumerate((*others, space), 100):
            store.append(one, [an_item()])
            store.job_failed(one, f"E{moment}", moment - 50, moment)
            store.job_failed(one, f"E{moment}", moment, None, dead=True)
        assert due(store, 10**6) == []
        assert store.queue(10**6, every=EVERY, idle=IDLE) == Queue(0, 0, 3, 0, 0)
        dead = store.dead_jobs()
        assert [(job.ref.identity, job.dead, job.attempts, job.error) for job in dead] == [
            ("x", 100, 2, "E100"), ("y", 101, 2, "E101"), ("agent", 102, 2, "E102"),
        ]  # fmt: skip
        assert store.dead_jobs("t2") == dead[1:2]
        assert store.dead_jobs("nobody") == []
        assert store.retry_job(space)
        assert not store.retry_job(space)
        assert store.retry_jobs("t1") == 1
        assert store.retry_jobs("t1") == 0
        assert {name for name, _ in due(store, 200)} == {"agent", "x"}
        assert store.dead_jobs() == dead[1:2]
        job = store.job(space)
        assert job is not None
        assert (job.attempts, job.next_at, job.dead, job.error) == (0, None, None, None)

    def test_a_forgotten_space_is_nobodys_job(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item()])
        store.job_failed(space, "E", 10, None, dead=True)
        store.forget_space(space)
        assert due(store, 10**6) == []
        assert store.dead_jobs() == []
        assert store.job(space) is None
        assert not store.retry_job(space)
        for verb in (
            lambda: store.job_done(space, 1, 10),
            lambda: store.job_failed(space, "E", 10, None),
        ):
            with pytest.raises(NotFoundError):
                verb()


def due(store: Store, now: int) -> list[tuple[str | None, int]]:
    """The identities of what is due, and since when."""
    found = store.due_spaces(now, every=EVERY, idle=IDLE)
    queue = store.queue(now, every=EVERY, idle=IDLE)
    assert queue.due == len(found)
    assert queue.oldest == max((one.lag for one in found), default=0)
    return [(one.ref.identity, one.lag) for one in found]
