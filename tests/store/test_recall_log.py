"""How long questions are kept: by the clock, whatever time their callers gave."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cofire.ids import new_uuid7
from cofire.memory import Memory
from cofire.store import open_store, recall_log
from cofire.store.recall_log import RecallLog
from cofire.testing import a_recall, an_item, make_space
from cofire.types import to_micros


@pytest.mark.parametrize("now", ["2099-01-01", "1999-01-01"])
def test_the_time_a_caller_gives_purges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    monkeypatch.setattr(recall_log, "PURGE_EVERY", 0.0)
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        memory.remember("a boat")
        memory.recall("boat")
        assert memory.export(io.BytesIO())["recall"] == 1
        memory.recall("boat", now=now)
        assert memory.export(io.BytesIO())["recall"] == 2
        memory.recall("boat")
        assert memory.export(io.BytesIO())["recall"] == 3


def test_what_was_asked_30_days_ago_goes(tmp_path: Path) -> None:
    clock = datetime.now(UTC)
    with open_store(tmp_path / "m.db") as store:
        space = make_space(store)
        store.append(space, [an_item()])
        log = RecallLog(store, interval=60.0)
        for days in (0, 29, 31):
            asked = clock - timedelta(days=days)
            uid = new_uuid7(to_micros(asked) // 1_000).bytes
            log.add([(space, a_recall(uid=uid, numbers=(1,), time=to_micros(clock)))])
        log.flush()
        assert len(list(store.iterate_recalls(space))) == 2
        log.close()


def test_spaces_of_two_tenants_that_have_one_number_are_both_purged(tmp_path: Path) -> None:
    clock = datetime.now(UTC)
    long_ago = to_micros(clock - timedelta(days=31)) // 1_000
    with open_store(tmp_path / "m.db") as store:
        spaces = [make_space(store, tenant=tenant) for tenant in ("t1", "t2")]
        assert len({space.space_id for space in spaces}) == 1
        log = RecallLog(store, interval=60.0)
        for space in spaces:
            store.append(space, [an_item()])
            for _ in range(2):  # the first looks for old ones, the second need not
                uid = new_uuid7(long_ago).bytes
                log.add([(space, a_recall(uid=uid, numbers=(1,), time=to_micros(clock)))])
        log.flush()
        assert [list(store.iterate_recalls(space)) for space in spaces] == [[], []]
        log.close()
