"""Kind c of the case bank: when something was said, and when it happened.

Times in every form, on hosts in every zone; relative words count from the message, never from the
import; filters and expiry are exact to the microsecond.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.errors import InputError
from cofire.retrieval.profiles import COFIRE
from cofire.types import Recall

SOURCES = Path(__file__).resolve().parents[2] / "src"
INGESTED = "2024-06-12T10:00:00Z"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        yield memory


def contents(recall: Recall) -> set[str]:
    return {hit.content for hit in recall}


# c-01: relative words count from the message's own time

EVENTS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("I adopted a parrot last Friday.", "2024-03-13T09:00:00Z", [("2024-03-08", "2024-03-09")]),
    ("I saw her yesterday.", "2024-03-01T00:30:00Z", [("2024-02-29", "2024-03-01")]),
    # The speaker's own calendar decides what "yesterday" is.
    ("I saw her yesterday.", "2024-03-01T00:30:00+09:00", [("2024-02-29", "2024-03-01")]),
    ("We leave tomorrow.", "2023-12-31T12:00:00Z", [("2024-01-01", "2024-01-02")]),
    ("It was three days ago.", "2024-01-02T12:00:00Z", [("2023-12-30", "2023-12-31")]),
    ("We married last year.", "2024-06-12T10:00:00Z", [("2023-01-01", "2024-01-01")]),
    ("My lease runs until 31 December 2024", INGESTED, [("2024-06-12", "2025-01-01")]),
    ("The festival will be in July", INGESTED, [("2024-07-01", "2024-08-01")]),
    ("Nothing was said about when.", INGESTED, []),
]


@pytest.mark.parametrize(("text", "said", "wanted"), EVENTS, ids=lambda value: str(value)[:30])
def test_event_times_count_from_the_message(
    memory: Memory, text: str, said: str, wanted: list[tuple[str, str]]
) -> None:
    id = memory.remember(text, time=said, now="2031-01-01T00:00:00Z").id
    item = memory.get(id)
    offset = timezone(timedelta(minutes=item.offset or 0))
    found = [
        (event.start.astimezone(offset).date().isoformat(),
         event.end.astimezone(offset).date().isoformat())
        for event in item.event_times
    ]  # fmt: skip
    assert found == wanted
    for event in item.event_times:
        assert event.text == text[slice(*event.span)]
    assert item.time == datetime.fromisoformat(said)
    assert item.recorded == datetime(2031, 1, 1, tzinfo=UTC)  # both times are kept


def test_about_two_weeks(memory: Memory) -> None:
    id = memory.remember("The fair is in two weeks.", time="2024-03-13T09:01:00Z").id
    (event,) = memory.get(id).event_times
    assert event.start <= datetime(2024, 3, 27, 9, tzinfo=UTC) < event.end


def test_imported_messages_count_from_their_own_time(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    line = {"content": "I adopted a parrot last Friday.", "at": "2024-03-13T09:00:00Z"}
    path.write_text(json.dumps(line))
    memory.import_(path)
    (item,) = memory.list()
    assert item.event_times[0].start == datetime(2024, 3, 8, tzinfo=UTC)


def test_an_update_counts_from_the_message_too(memory: Memory) -> None:
    id = memory.remember("nothing", time="2024-03-13T09:00:00+02:00").id
    before = memory.get(id)
    item = memory.update(id, content="I saw it yesterday", now="2030-01-01T00:00:00Z")
    assert (item.time, item.offset) == (before.time, before.offset) == (before.time, 120)
    assert item.event_times[0].start == datetime(2024, 3, 11, 22, tzinfo=UTC)
    unknown = memory.remember("no offset", time="2024-03-13T09:00:00").id
    assert memory.update(unknown, title="x").offset is None


# c-02: recorded late, said early


def test_the_order_of_ingestion_says_nothing(memory: Memory) -> None:
    repaired = memory.remember("The roof was repaired", time="2021-05-04T08:00:00Z", now=INGESTED)
    leaks = memory.remember("The roof leaks", time="2020-01-10T08:00:00Z", now=INGESTED)
    assert memory.get(leaks.id).time == datetime(2020, 1, 10, 8, tzinfo=UTC)
    early = memory.recall("state of the roof", until="2020-06-01T00:00:00Z")
    assert early.ids == (leaks.id,)
    assert set(memory.recall("state of the roof").ids) == {repaired.id, leaks.id}
    assert [item.id for item in memory.list()] == [repaired.id, leaks.id]
    assert [item.id for item in memory.list(newest_first=False)] == [leaks.id, repaired.id]


# c-04: the host's zone

HOST = """
    import sys, json
    from cofire import Memory
    with Memory.open(sys.argv[1], embedder="hashing:64") as memory:
        if sys.argv[2] == "write":
            memory.remember("night note yesterday", now="2025-07-25T02:00:00Z", key="aware")
            memory.remember("naive note", time="2025-07-25T02:00:00", key="naive")
            memory.remember("epoch note", time=1753408800, key="epoch")
            memory.remember("day note", time="2025-07-25", key="day")
        since, until = "2025-07-25T00:00:00", "2025-07-25T03:00:00Z"
        told = {
            "list": [[i.key, i.time.isoformat(), i.offset] for i in memory.list()],
            "events": [e.start.isoformat() for i in memory.list() for e in i.event_times],
            "recall": sorted(h.line for h in memory.recall("note", since=since, until=until)),
            "before": len(memory.recall("note", until="2025-07-25T00:00:00Z")),
            "trace": str(memory.recall("note yesterday", now="2025-07-26T01:00:00Z",
                                       explain=True).trace.time_range),
        }
        memory.export(sys.argv[3])
        print(json.dumps(told, sort_keys=True))
"""


def on_host(zone: str, *arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(HOST), *map(str, arguments)],
        env={**os.environ, "TZ": zone, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_hosts_zone_changes_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "m.db", tmp_path / "out.jsonl"
    wrote = on_host("America/Los_Angeles", path, "write", out)
    first = out.read_text().splitlines()
    items = [line for line in first if '"type":"item"' in line]
    assert sorted(key for key, *_ in wrote["list"]) == ["aware", "day", "epoch", "naive"]
    assert {time for key, time, _ in wrote["list"] if key != "day"} == {"2025-07-25T02:00:00+00:00"}
    assert ["day", "2025-07-25T00:00:00+00:00", None] in wrote["list"]
    assert wrote["events"] == ["2025-07-24T00:00:00+00:00"]
    assert len(wrote["recall"]) == 4
    assert all(line.startswith("25 July 2025") for line in wrote["recall"])
    assert wrote["before"] == 0
    for zone in ("Asia/Tokyo", "Pacific/Kiritimati", "America/St_Johns"):
        assert on_host(zone, path, "read", out) == wrote
        again = [line for line in out.read_text().splitlines() if '"type":"item"' in line]
        strip = [json.loads(line) | {"access_count": 0, "last_accessed": None} for line in again]
        assert strip == [
            json.loads(line) | {"access_count": 0, "last_accessed": None} for line in items
        ]


# c-05: every form of the same moment, and what is none

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
SAME = [
    1704067200, 1704067200.0, 1704067200000, 1704067200000000, 1704067200000000000,
    "1704067200", "1704067200000", "1704067200.000000", "2024-01-01", "20240101",
    "2024-01-01T00:00:00Z", "2024-01-01T00:00:00z", "2024-01-01 00:00:00", "2024-01-01T00:00",
    "2023-12-31T16:00:00-08:00", "2024-01-01T05:30:00+05:30", "Mon, 01 Jan 2024 00:00:00 GMT",
    "12:00 am on 1 January, 2024", "2024/01/01 (Mon) 00:00", "1 January 2024", "January 1, 2024",
    "  2024-01-01T00:00:00.000Z  ", datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 9, tzinfo=timezone(timedelta(hours=9))), datetime(2024, 1, 1),  # noqa: DTZ001
    date(2024, 1, 1),
]  # fmt: skip
NEVER = [
    -1, 0, 1, 2024, -1704067200, 10**20, 10**5000, float("nan"), float("inf"), True, "", "  ", "-1",
    "0", "9999-99-99", "2024-02-30", "2024-13-01", "2023-02-29T00:00:00Z", "25:00", "now-ish",
    "yesterday", "2024-01-01T00:00:00+99:00", "31/12/2024 10:00 or so", "0001-01-01T00:00:00+05:00",
    "9999-12-31T23:59:59-05:00", "2024-01-01\0", [], {},
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=str)
def test_every_form_is_the_same_moment(memory: Memory, value: Any) -> None:
    id = memory.remember("sec", time=value).id
    assert memory.get(id).time == NEW_YEAR
    assert memory.remember("other", expires=value)
    just_after = NEW_YEAR + timedelta(microseconds=1)
    assert memory.list(since=value, until=just_after).items[0].id == id
    assert memory.recall("sec", until=value).ids == ()
    assert memory.recall("sec", since=value, now=value).ids == (id,)


def test_slack_keeps_its_microseconds(memory: Memory) -> None:
    id = memory.remember("us", time="1704067200.000100").id
    assert memory.get(id).time == NEW_YEAR + timedelta(microseconds=100)


@pytest.mark.parametrize(
    "value", NEVER, ids=lambda value: "huge" if value == 10**5000 else repr(value)[:30]
)
def test_what_is_no_moment_is_refused(memory: Memory, value: Any) -> None:
    kept = memory.remember("kept").id
    for attempt in (
        lambda: memory.remember("x", time=value),
        lambda: memory.remember("x", expires=value),
        lambda: memory.remember("x", now=value),
        lambda: memory.remember([{"content": "fine"}, {"content": "x", "time": value}]),
        lambda: memory.update(kept, time=value),
        lambda: memory.update(kept, expires=value),
        lambda: memory.update(kept, now=value),
        lambda: memory.recall("x", since=value),
        lambda: memory.recall("x", until=value),
        lambda: memory.recall("x", now=value),
        lambda: memory.list(since=value),
    ):
        with pytest.raises(InputError):
            attempt()
    assert [item.id for item in memory.list()] == [kept]


def test_a_time_can_be_set_but_not_cleared(memory: Memory) -> None:
    id = memory.remember("x", time=NEW_YEAR, expires="2030-01-01").id
    with pytest.raises(InputError, match="cannot be cleared"):
        memory.update(id, time=None)  # type: ignore[arg-type]
    assert memory.update(id, expires=None).expires is None
    assert memory.update(id, time="2020-01-01T00:00:00+01:00").offset == 60


# Filters


def test_ranges_are_half_open_to_the_microsecond(memory: Memory) -> None:
    base = datetime(2024, 5, 5, 12, tzinfo=UTC)
    for step in range(-3, 4):
        memory.remember(f"note {step}", time=base + timedelta(microseconds=step))
    for since in (None, -2, 0, 3, 4):
        for until in (None, -3, 0, 1, 4):
            limits: dict[str, Any] = {
                name: base + timedelta(microseconds=step)
                for name, step in (("since", since), ("until", until))
                if step is not None
            }
            wanted = {
                f"note {step}"
                for step in range(-3, 4)
                if (since is None or step >= since) and (until is None or step < until)
            }
            assert {item.content for item in memory.list(**limits)} == wanted
            assert contents(memory.recall("note", k=20, **limits)) == wanted


def test_offsets_are_kept_beside_the_moment(memory: Memory) -> None:
    for text, minutes in (("+05:30", 330), ("-11:00", -660), ("+14:00", 840), ("Z", 0), ("", None)):
        id = memory.remember("late", time=f"2024-01-01T00:00:00{text}", speaker="Ada").id
        item = memory.get(id)
        assert item.offset == minutes
        assert item.time == NEW_YEAR - timedelta(minutes=minutes or 0)
        (hit,) = [hit for hit in memory.recall("late", k=20) if hit.id == id]
        assert hit.line.startswith("1 January 2024")
        assert hit.line.endswith("Ada: late")


# c-07: the future, the distant past, and what has ended


def test_a_coming_end_is_not_an_end(memory: Memory) -> None:
    lease = memory.remember("My lease runs until 31 December 2024", time=INGESTED).id
    for now in (INGESTED, "2025-02-01T00:00:00Z"):
        assert memory.recall("is my lease running", now=now).ids == (lease,)


@pytest.mark.parametrize(
    "now",
    ["0001-01-01T00:00:00Z", "1900-01-01", INGESTED, "2300-01-01", "9999-12-31T23:59:59.999999Z"],
)
def test_no_time_breaks_a_score(memory: Memory, now: str) -> None:
    extremes = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z", now]
    words = "tomorrow, last week, in 3 years, 5000 years ago, next Friday, in July, 40 days ago"
    memory.remember([{"content": f"note {words}", "time": time} for time in extremes])
    memory.remember("note expired long ago", expires="0001-01-01T00:00:00Z")
    memory.remember("note for ever", expires="9999-12-31T23:59:59.999999Z")
    most = sum(abs(weight) for weight in COFIRE.weights.values())
    for query in ("note", f"what note did I write {words}?", "when was the note last century?"):
        recall = memory.recall(query, k=20, now=now, explain=True)
        json.dumps([hit.score for hit in recall], allow_nan=False)
        assert all(-20 * most <= hit.score <= 20 * most for hit in recall)
        assert "note expired long ago" not in contents(recall)
        assert recall.trace is not None
    assert memory.check() == []
    assert len(memory.list()) == 6


def test_expiry_is_exact_and_hides_from_recall_only(memory: Memory) -> None:
    end = datetime(2024, 7, 1, tzinfo=UTC)
    id = memory.remember("parking permit", time=INGESTED, expires=end).id
    for profile in ("cofire", "dense", "lexical"):
        before = end - timedelta(microseconds=1)
        assert memory.recall("parking permit", profile=profile, now=before).ids == (id,)
        assert memory.recall("parking permit", profile=profile, now=end).ids == ()
    assert memory.get(id).expires == end
    assert memory.list().items[0].id == id
    memory.update(id, expires=None)
    assert memory.recall("parking permit", now="2099-01-01").ids == (id,)
    memory.update(id, expires=end)
    assert memory.recall("parking permit", now="2099-01-01").ids == ()


def test_an_expired_neighbour_does_not_come_back_over_links(memory: Memory) -> None:
    said = [
        {"content": "The kiln fires on Tuesday", "session": "s"},
        {"content": "At seven, it takes nine hours", "session": "s", "expires": "2024-07-01"},
        {"content": "Bring the glazed bowls", "session": "s"},
    ]
    memory.remember(said, time=INGESTED)
    recall = memory.recall("When does the kiln fire?", k=10, now="2025-01-01", explain=True)
    assert "At seven, it takes nine hours" not in contents(recall)
    assert "The kiln fires on Tuesday" in contents(recall)


def test_a_question_about_time_prefers_that_time(memory: Memory) -> None:
    for day in range(1, 29):
        memory.remember(f"I walked {day} kilometres by the river", time=f"2024-05-{day:02}T12:00Z")
    recall = memory.recall(
        "What did I do last week?", now="2024-05-22T10:00:00Z", k=5, explain=True
    )
    assert recall.trace is not None
    assert recall.trace.time_range == (
        datetime(2024, 5, 13, tzinfo=UTC),
        datetime(2024, 5, 20, tzinfo=UTC),
    )
