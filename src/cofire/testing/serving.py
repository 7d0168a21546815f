"""What servers keep: API keys, the audit trail, requests that are to be done once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cofire.errors import InputError
from cofire.store import Store
from cofire.store.records import SpaceInfo, tenant_number
from cofire.store.serving_records import AuditEntry, Begun, NewKey
from cofire.testing.fixtures import Opener, StoreFixtures

MINUTE = 60_000_000
HASH, DIGEST = b"h" * 32, b"d" * 32


def a_key(**fields: Any) -> NewKey:
    """A key with what a test does not care about filled in."""
    defaults: dict[str, Any] = {
        "hash": HASH,
        "name": "laptop",
        "principal": "mara",
        "scopes": ("read",),
        "created": 5,
    }
    return NewKey(**{**defaults, **fields})


def an_entry(time: int, **fields: Any) -> AuditEntry:
    """An entry of the audit trail of the tenant "t1"."""
    defaults: dict[str, Any] = {"tenant": "t1", "surface": "rest", "action": "recall"}
    return AuditEntry(time=time, **{**defaults, **fields})


def begun(store: Store, *, hash: bytes = HASH, digest: bytes = DIGEST, now: int) -> Begun:
    """A request that is kept for 1,000 µs, and taken for dead after 100."""
    return store.begin_request("t1", hash, digest, now=now, expires=now + 1_000, stale=100)


class KeyTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_a_key_is_found_as_it_was_kept(self, store: Store) -> None:
        full = a_key(
            identities=("b", "a", "b"),
            users=(),
            projects=("pier",),
            scopes=("read", "admin"),
            expires=9,
        )
        for given in (a_key(), full):
            kept = store.put_key("t1", given)
            found = store.find_key(tenant_number("t1"), given.uid)
            assert found == kept
            assert (found.tenant, found.tenant_number) == ("t1", tenant_number("t1"))
            for name in ("uid", "hash", "name", "principal", "scopes", "created", "expires"):
                assert getattr(found, name) == getattr(given, name), name
            assert (found.revoked, found.last_used) == (None, None)
        names = (found.identities, found.users, found.projects) if found else ()
        assert names == (("b", "a"), (), ("pier",))
        assert found is not None
        assert [found.good(now) for now in (5, 8, 9)] == [True, True, False]
        listed = store.list_keys("t1")
        assert found in listed
        assert [key.identities for key in listed] == [("b", "a"), None]  # oldest first
        assert store.list_keys("t2") == []
        assert store.spaces("t1") == []

    def test_a_key_is_its_tenants_own(self, store: Store) -> None:
        given = a_key()
        store.put_key("t1", given)
        store.put_key("t2", a_key())
        for number in (tenant_number("t2"), tenant_number("nobody"), 1, 0, 2**63 - 1):
            assert store.find_key(number, given.uid) is None
            assert not store.touch_key(number, given.uid, 10)
        assert not store.revoke_key("t2", given.uid, 10)
        assert not store.revoke_key("nobody", given.uid, 10)
        assert store.find_key(tenant_number("t1"), b"x" * 16) is None
        with pytest.raises(InputError, match="already"):
            store.put_key("t1", a_key(uid=given.uid))
        store.put_key("t2", a_key(uid=given.uid, name="another"))
        found = store.find_key(tenant_number("t1"), given.uid)
        assert found is not None
        assert (found.name, found.revoked) == ("laptop", None)

    def test_a_revoked_key_stays_so(self, store: Store) -> None:
        given = a_key()
        store.put_key("t1", given)
        assert store.revoke_key("t1", given.uid, 20)
        assert not store.revoke_key("t1", given.uid, 30)
        found = store.find_key(tenant_number("t1"), given.uid)
        assert found is not None
        assert found.revoked == 20
        assert not found.good(6)

    def test_use_is_noted_once_a_minute(self, store: Store) -> None:
        given, number = a_key(), tenant_number("t1")
        store.put_key("t1", given)
        written = [
            store.touch_key(number, given.uid, now)
            for now in (100, 101, 99 + MINUTE, 100 + MINUTE, 101 + MINUTE, 7)
        ]
        assert written == [True, False, False, True, False, False]
        assert [key.last_used for key in store.list_keys("t1")] == [100 + MINUTE]

    @pytest.mark.parametrize(
        "fields",
        [
            {"hash": b"short"},
            {"uid": b""},
            {"scopes": ()},
            {"scopes": ("read", "everything")},
            {"name": ""},
            {"principal": "p" * 201},
            {"users": ("a", "")},
            {"expires": 5},
        ],
    )
    def test_a_key_that_could_not_be_used_is_refused(
        self, store: Store, fields: dict[str, Any]
    ) -> None:
        with pytest.raises(InputError):
            store.put_key("t1", a_key(**fields))
        assert store.list_keys("t1") == []


class AuditTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_entries_come_back_newest_first_page_by_page(self, store: Store) -> None:
        entries = [an_entry(time) for time in (3, 1, 2, 2, 5)]
        full = an_entry(
            4, surface="mcp", action="forget", outcome="error", principal="mara", key=b"k" * 16,
            space=7, code="StoreBusyError", count=0, request="r-1",
        )  # fmt: skip
        assert store.write_audit([*entries, full, an_entry(9, tenant="t2")]) == 7
        wanted = sorted([*entries, full], key=lambda one: (one.time, one.uid), reverse=True)
        assert store.list_audit("t1") == wanted
        assert wanted[1] == full
        pages, after = [], None
        while page := store.list_audit("t1", after=after, limit=2):
            pages += page
            after = (page[-1].time, page[-1].uid)
        assert pages == wanted
        assert [one.time for one in store.list_audit("t2")] == [9]
        assert store.list_audit("nobody") == []

    def test_they_are_chosen_by_time_principal_and_action(self, store: Store) -> None:
        store.write_audit([
            an_entry(time, principal=who, action=what)
            for time, (who, what) in enumerate(
                [("mara", "recall"), ("ilse", "recall"), ("mara", "forget"), (None, "recall")]
            )
        ])  # fmt: skip
        chosen: dict[str, Any]
        for chosen, times in (
            ({}, [3, 2, 1, 0]),
            ({"since": 1, "until": 3}, [2, 1]),
            ({"principal": "mara"}, [2, 0]),
            ({"action": "recall"}, [3, 1, 0]),
            ({"principal": "mara", "action": "recall"}, [0]),
            ({"since": 2, "until": 2}, []),
            ({"until": 3, "after": (2, b"")}, [1, 0]),
        ):
            assert [one.time for one in store.list_audit("t1", **chosen)] == times, chosen

    def test_what_is_written_again_is_there_once(self, store: Store) -> None:
        first, more = [an_entry(1), an_entry(1), an_entry(2)], [an_entry(1), an_entry(3)]
        assert store.write_audit(first) == 3
        assert store.write_audit([*first, *more, *more]) == 2
        assert store.write_audit([]) == 0
        assert len(store.list_audit("t1")) == 5

    def test_old_ones_are_purged(self, store: Store) -> None:
        store.write_audit([*(an_entry(time) for time in range(5)), an_entry(0, tenant="t2")])
        assert store.purge_audit("t1", 3) == 3
        assert [one.time for one in store.list_audit("t1")] == [4, 3]
        assert len(store.list_audit("t2")) == 1
        assert store.purge_audit("nobody", 3) == 0

    @pytest.mark.parametrize(
        "fields",
        [
            {"surface": "phone"},
            {"outcome": "maybe"},
            {"action": ""},
            {"uid": b"u"},
            {"principal": "p" * 201},
            {"code": "a whole sentence " * 20},
        ],
    )
    def test_an_impossible_entry_is_refused_with_its_batch(
        self, store: Store, fields: dict[str, Any]
    ) -> None:
        with pytest.raises(InputError):
            store.write_audit([an_entry(1), an_entry(2, **fields)])
        assert store.list_audit("t1") == []

    def test_it_outlives_the_space(self, store: Store, space: SpaceInfo) -> None:
        store.write_audit([an_entry(1, tenant="default", space=space.space_id)])
        store.forget_space(space)
        assert [one.space for one in store.list_audit("default")] == [space.space_id]


class RequestTests(StoreFixtures):
    """Part of `StoreConformance`."""

    def test_it_is_done_once(self, store: Store) -> None:
        new = begun(store, now=10)
        assert new.state == "new"
        assert begun(store, now=11).state == "running"
        assert store.finish_request("t1", HASH, new.fence, status=201, response='{"id":"x"}')
        done = Begun("done", status=201, response='{"id":"x"}')
        assert begun(store, now=12) == done
        assert begun(store, now=500) == done  # however long ago it was begun
        assert begun(store, digest=b"other", now=12).state == "mismatch"
        assert not store.finish_request("t1", HASH, new.fence, status=500, response="{}")
        assert not store.abandon_request("t1", HASH, new.fence)
        assert begun(store, now=12) == done

    def test_requests_are_told_apart(self, store: Store) -> None:
        new = begun(store, now=10)
        assert begun(store, hash=b"g" * 16, now=10).state == "new"
        assert store.begin_request("t2", HASH, DIGEST, now=10, expires=20, stale=5).state == "new"
        assert store.finish_request("t1", HASH, new.fence, status=200, response="{}")
        assert begun(store, hash=b"g" * 16, now=10).state == "running"

    def test_what_failed_may_be_repeated(self, store: Store) -> None:
        new = begun(store, now=10)
        assert store.abandon_request("t1", HASH, new.fence)
        again = begun(store, digest=b"other", now=11)
        assert again.state == "new"
        # Whoever wakes up late does not finish what somebody else began since.
        assert not store.finish_request("t1", HASH, new.fence, status=200, response="{}")
        assert not store.abandon_request("t1", HASH, new.fence)
        assert store.finish_request("t1", HASH, again.fence, status=200, response="{}")

    def test_one_whose_process_was_killed_is_taken_over(self, store: Store) -> None:
        killed = begun(store, now=10)
        assert begun(store, now=109).state == "running"
        assert begun(store, digest=b"other", now=110).state == "mismatch"
        taken = begun(store, now=110)
        assert taken.state == "new"
        assert begun(store, now=111).state == "running"
        assert not store.finish_request("t1", HASH, killed.fence, status=200, response="{}")
        assert store.finish_request("t1", HASH, taken.fence, status=200, response="{}")

    def test_it_expires(self, store: Store) -> None:
        new = begun(store, now=10)
        store.finish_request("t1", HASH, new.fence, status=200, response="{}")
        begun(store, hash=b"g" * 16, now=500)
        assert begun(store, digest=b"other", now=1_010).state == "new"
        assert store.purge_requests("t1", 1_500) == 1
        assert store.purge_requests("t1", 2_010) == 1
        assert store.purge_requests("nobody", 2_010) == 0
        assert begun(store, hash=b"g" * 16, now=1_500).state == "new"

    @pytest.mark.parametrize(
        "given",
        [
            {"hash": b"short"},
            {"hash": b"l" * 65},
            {"digest": b""},
            {"expires": 10},
            {"stale": 0},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, store: Store, given: dict[str, Any]) -> None:
        usual: dict[str, Any] = {
            "hash": HASH, "digest": DIGEST, "now": 10, "expires": 20, "stale": 5,
        }  # fmt: skip
        with pytest.raises(InputError):
            store.begin_request("t1", **{**usual, **given})
        assert not store.finish_request("nobody", HASH, 1, status=200, response="{}")

    def test_of_many_at_once_one_begins(self, opener: Opener, store: Store) -> None:
        begun(store, hash=b"dead" * 8, now=1)
        for hash, now in ((HASH, 10), (b"dead" * 8, 500)):
            won: list[Begun] = []
            start = threading.Barrier(6)

            def work(
                hash: bytes = hash,
                now: int = now,
                won: list[Begun] = won,
                start: threading.Barrier = start,
            ) -> None:
                with opener() as own:
                    start.wait(30)
                    won.append(begun(own, hash=hash, now=now))

            threads = [threading.Thread(target=work) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(one.state for one in won) == ["new", *["running"] * 5]
