"""Claims: who consolidates a space, until when, and what is refused to whoever lost it."""

from __future__ import annotations

import threading
import time

import pytest

from cofire.errors import ClaimLostError, InputError, NotFoundError
from cofire.store import Store
from cofire.store.claims import Claim, Held
from cofire.store.planning import OutdatedPlanError, Plan
from cofire.store.records import SpaceInfo, StepRow
from cofire.testing.deriving import a_record
from cofire.testing.fixtures import Opener, StoreFixtures
from cofire.testing.samples import an_item, make_space

SHORT, LONG = 0.02, 30.0
"""Seconds: a lease that is over in no time, and one that outlives the test."""


class ClaimTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_one_worker_at_a_time_has_a_space(
        self, opener: Opener, store: Store, space: SpaceInfo
    ) -> None:
        assert store.held(space) is None
        own = taken(store, space, "one")
        assert (own.holder, own.fence, own.lease) == ("one", 1, 30_000_000)
        with opener() as other:
            for refused in (other.claim(space, "two", LONG), other.held(space)):
                assert isinstance(refused, Held)
                assert refused.holder == "one"
                assert abs(refused.until - time.time_ns() / 1_000 - LONG * 1e6) < 20e6
            elsewhere = make_space(other, "u2")
            assert taken(other, elsewhere, "two").fence == 1

    def test_what_is_released_is_free_and_its_fence_rises(
        self, store: Store, space: SpaceInfo
    ) -> None:
        for fence in range(1, 4):
            own = taken(store, space, f"worker {fence}")
            assert own.fence == fence
            store.release_claim(space, own)
            assert store.held(space) is None
            with pytest.raises(ClaimLostError):
                store.renew_claim(space, own)
            store.release_claim(space, own)

    def test_an_expired_claim_is_taken_over(self, store: Store, space: SpaceInfo) -> None:
        first = taken(store, space, "one", SHORT)
        second = taken_after(store, space, "two", LONG)
        assert second.fence == first.fence + 1
        with pytest.raises(ClaimLostError, match="two took the space over") as lost:
            store.renew_claim(space, first)
        held = store.held(space)
        assert held is not None
        assert (lost.value.holder, lost.value.until) == (held.holder, held.until)
        store.release_claim(space, first)
        assert store.held(space) == held

    def test_an_expired_claim_that_nobody_took_is_renewed(
        self, store: Store, space: SpaceInfo
    ) -> None:
        own = taken(store, space, "one", 0.3)
        time.sleep(0.31)
        assert store.held(space) is None
        store.renew_claim(space, own)
        assert store.held(space) is not None
        assert isinstance(store.claim(space, "two", LONG), Held)

    def test_a_renewal_makes_it_last_from_then_on(self, store: Store, space: SpaceInfo) -> None:
        own = taken(store, space, "one")
        before = store.held(space)
        time.sleep(0.005)
        store.renew_claim(space, own)
        after = store.held(space)
        assert before is not None
        assert after is not None
        assert before.until < after.until

    def test_claiming_again_ends_ones_former_claim(self, store: Store, space: SpaceInfo) -> None:
        first = taken(store, space, "one")
        assert taken(store, space, "one").fence == 2
        with pytest.raises(ClaimLostError):
            store.renew_claim(space, first)

    @pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
    def test_a_claim_lasts(self, store: Store, space: SpaceInfo, seconds: float) -> None:
        with pytest.raises(InputError, match="more than 0 seconds"):
            store.claim(space, "one", seconds)

    def test_nothing_is_written_once_it_is_lost(self, store: Store, space: SpaceInfo) -> None:
        (number,) = store.append(space, [an_item("I own a canoe.")]).numbers
        first = taken(store, space, "one", SHORT)
        second = taken_after(store, space, "two", LONG)
        plan = Plan(derived=(a_record(number),), archived=(number,))
        revision = store.revision(space)
        row = StepRow("facts", 0, revision, 0, 5)
        with pytest.raises(ClaimLostError):
            store.apply(space, plan, row, claim=first, now=5)
        with pytest.raises(ClaimLostError):
            store.add_report(space, {"steps": []}, started=1, ended=2, claim=first)
        assert (store.revision(space), store.steps(space), store.reports(space)) == (
            revision, {}, [],
        )  # fmt: skip
        applied = store.apply(space, plan, row, claim=second, now=5)
        assert (len(applied.filed), applied.archived) == (1, 1)
        assert store.add_report(space, {"steps": []}, started=1, ended=2, claim=second) == 1
        with pytest.raises(OutdatedPlanError):  # the ledger is asked as well
            store.apply(space, plan, row, before=StepRow("facts"), claim=second, now=5)
        store.release_claim(space, second)
        with pytest.raises(ClaimLostError):
            store.apply(space, plan, row, claim=second, now=6)

    def test_writing_renews(self, store: Store, space: SpaceInfo) -> None:
        own = taken(store, space, "one")
        seen = [store.held(space)]
        for write in (
            lambda: store.apply(space, Plan(), StepRow("facts"), claim=own, now=5),
            lambda: store.add_report(space, {}, started=1, ended=2, claim=own),
        ):
            time.sleep(0.005)
            write()
            seen.append(store.held(space))
        ends = [one.until for one in seen if one is not None]
        assert len(ends) == 3
        assert ends == sorted(set(ends))

    def test_forgetting_a_space_forgets_its_claim(self, store: Store, space: SpaceInfo) -> None:
        own = taken(store, space, "one")
        store.forget_space(space)
        assert store.held(space) is None
        for verb in (
            lambda: store.claim(space, "two", LONG),
            lambda: store.renew_claim(space, own),
            lambda: store.apply(space, Plan(), StepRow("facts"), claim=own, now=5),
        ):
            with pytest.raises(NotFoundError):
                verb()
        store.release_claim(space, own)
        assert taken(store, make_space(store), "two").fence == 1

    def test_of_many_that_claim_at_once_one_does(self, opener: Opener, space: SpaceInfo) -> None:
        won: list[Claim | Held] = []
        start = threading.Barrier(6)

        def work(name: int) -> None:
            with opener() as own:
                start.wait(30)
                won.append(own.claim(space, f"worker {name}", LONG))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (claim,) = [one for one in won if isinstance(one, Claim)]
        assert {one.holder for one in won} == {claim.holder}
        assert len(won) == 6


def taken(store: Store, space: SpaceInfo, holder: str, seconds: float = LONG) -> Claim:
    """A claim that nobody is in the way of."""
    claim = store.claim(space, holder, seconds)
    assert isinstance(claim, Claim), claim
    return claim


def taken_after(store: Store, space: SpaceInfo, holder: str, seconds: float) -> Claim:
    """A claim of a space that somebody still has for a moment."""
    deadline = time.monotonic() + 10
    while isinstance(claim := store.claim(space, holder, seconds), Held):
        assert time.monotonic() < deadline, claim
        time.sleep(0.005)
    return claim
