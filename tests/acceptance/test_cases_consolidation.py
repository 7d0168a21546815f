"""Kind a of the case bank, as far as sleep goes: nothing is lost and nothing is done twice, while
others write, whatever the model answers, however the work is cut up, and whenever it is killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.consolidation.night import SleepRule
from cofire.errors import InputError
from cofire.models.generator import Generation
from cofire.store import ledger
from cofire.testing import ScriptedGenerator
from cofire.types import SemanticRecord, SleepReport
from forked_interpreter import Process, start_python
from scripts_of_models import echo, turns_in

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src"
NIGHT = datetime.fromisoformat("2024-08-01T03:00:00+00:00")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64") as memory:
        yield memory


def tell(memory: Memory, *texts: str, **values: Any) -> list[str]:
    given = {"speaker": "Robin", "time": "2024-01-05", "now": "2024-01-05", **values}
    return [memory.remember(text, **given).id for text in texts]


def sleep(memory: Memory, *steps: str, days: int = 0, **options: Any) -> SleepReport:
    (report,) = memory.consolidate(steps, now=NIGHT + timedelta(days=days), **options)
    return report


def current(memory: Memory) -> dict[str, SemanticRecord]:
    return {one.content: one for one in memory.records() if one.valid_to is None}


def contents(memory: Memory) -> Counter[str]:
    return Counter(item.content for item in memory.list(kinds="episode", limit=10_000))


def start(code: str, *arguments: object) -> Process:
    return start_python(
        ["-X", "dev", "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1"},
    )


# a-01: what others write while a model thinks

OTHER = """
    import sys
    from cofire import Memory
    path, *ids = sys.argv[1:]
    with Memory.open(path, embedder="hashing:64") as memory:
        memory.remember("I own a sledge.", speaker="Robin", time="2024-02-01")
        memory.update(ids[0], content="I own a red lamp.", now="2024-08-01T03:00:02Z")
        memory.forget(ids[1])
"""


def test_what_threads_and_processes_write_while_a_model_thinks_survives(
    path: Path, memory: Memory
) -> None:
    things = ["lamp", "desk", "bike", "kite", "drum", "sofa", "tent", "flag"]
    ids = tell(memory, *(f"I own a {thing}." for thing in things))
    errors: list[BaseException] = []

    def add(number: int) -> None:
        tell(memory, f"I own canoe {number}.", time="2024-02-01")

    def edit(number: int) -> None:
        memory.update(ids[number], content=f"I sold the {things[number]}.", now=NIGHT)

    def forget(number: int) -> None:
        memory.forget(ids[number])

    def run(*work: Any) -> None:
        try:
            work[0](*work[1:])
        except BaseException as exc:  # noqa: BLE001 - handed to the test
            errors.append(exc)

    def meanwhile(_: Generation) -> None:
        if len(model.requests) > 1:
            return
        other = start(OTHER, path, ids[0], ids[1])
        work = [(add, 1), (add, 2), (edit, 2), (edit, 3), (forget, 4), (forget, 5)]
        threads = [threading.Thread(target=run, args=one) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        output = other.communicate(timeout=60)
        assert (other.returncode, *output) == (0, "", "")
        assert not any(thread.is_alive() for thread in threads), "a lock was held"

    model = ScriptedGenerator(then=echo, wait=meanwhile)
    report = sleep(memory, "distil", generator=model)
    assert not errors
    assert report.counts["outdated"] == 6
    told = ["I own a red lamp.", "I sold the bike.", "I sold the kite.", "I own a tent.",
            "I own a flag.", "I own a sledge.", "I own canoe 1.", "I own canoe 2."]  # fmt: skip
    assert contents(memory) == Counter(told)
    assert current(memory).keys() >= {"I own a tent.", "I own a flag."}
    assert current(memory).keys() <= set(told)
    sleep(memory, days=2, generator=ScriptedGenerator(then=echo))
    assert current(memory).keys() == set(told)
    assert memory.check() == []


def test_an_edit_that_began_before_the_night_and_ended_in_it_is_read(memory: Memory) -> None:
    """Its time is that of its beginning: an embedder may take seconds."""
    (id,) = tell(memory, "I live in Oslo.")
    sleep(memory, "facts")
    memory.update(id, content="I live in Rome.", now=NIGHT - timedelta(seconds=5))
    sleep(memory, "verify", "facts", days=1)
    assert current(memory).keys() == {"I live in Rome."}


def test_every_edit_is_read_however_many_there_are_and_whatever_stops_the_night(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cofire.consolidation.facts.BATCH", 2)
    ids = tell(
        memory, *(f"I speak {name}." for name in ("Norse", "Welsh", "Irish", "Manx", "Scots"))
    )
    sleep(memory, "facts")
    new = [f"I speak {name}." for name in ("Latin", "Greek", "Hindi", "Tamil", "Farsi")]
    for place, (id, text) in enumerate(zip(ids, new, strict=True)):
        memory.update(id, content=text, now=NIGHT + timedelta(hours=1, minutes=place))
    wanted, put_step = [True, False], ledger.put_step

    def fails_once(*given: Any) -> None:
        if not wanted.pop(0):
            raise sqlite3.OperationalError("disk I/O error")
        put_step(*given)

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "put_step", fails_once)
        assert sleep(memory, "facts", days=1).failed == ("facts",)
    sleep(memory, "verify", "facts", days=2)
    assert current(memory).keys() == set(new)
    assert memory.check() == []


# a-02: a reply that cannot be used removes nothing; what is made and what is ended go together


@pytest.mark.parametrize(
    "reply",
    [
        '{"creates":[{"wrong_field":"x"}],"deletes":["m1","m2"]}',
        '{"records":[{"wrong_field":"x"}],"deletes":["T1","T2"]}',
        '{"records":[],"deletes":["T1","T2"]}',
        '{"deletes":["*"]}',
    ],
)
def test_no_reply_removes_a_source(memory: Memory, reply: str) -> None:
    said = ("The shed key is in the blue tin", "The blue tin is on the top shelf")
    ids = tell(memory, *said)
    report = sleep(memory, "distil", generator=ScriptedGenerator(then=reply))
    assert contents(memory) == Counter(said)
    assert ids[0] in memory.recall("shed key").ids
    assert not memory.records()
    if '"records":[]' not in reply:
        assert report.counts["unanswered"] == 2
        again = sleep(memory, "distil", days=1, generator=ScriptedGenerator(then=echo))
        assert again.counts["new"] == 2


@pytest.mark.parametrize(
    "where",
    ["deriving._file", "deriving.set_validity", "deriving.join", "ledger.put_step"],
)
def test_what_is_made_and_what_it_ends_are_one_transaction(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    tell(memory, "I live in Bergen.")
    sleep(memory, "facts")
    before = memory.records()
    tell(memory, "I moved to Oslo", time="2024-05-05")

    def fails(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(f"cofire.store.{where}", fails)
        report = sleep(memory, "facts", days=1)
    assert report.failed == ("facts",)
    assert memory.records() == before
    assert before[0].valid_to is None
    assert sleep(memory, "facts", days=1).counts["replaced"] == 1
    bergen, oslo = memory.records()
    assert (bergen.valid_to, oslo.valid_to) == (oslo.valid_from, None)
    assert memory.check() == []


# a-03: several processes that tell and sleep

SLEEPER = """
    import sys
    from cofire import Memory
    from cofire.testing import ScriptedGenerator
    from scripts_of_models import echo
    path, name = sys.argv[1:]
    with Memory.open(path, embedder="hashing:64") as memory:
        for index in range(12):
            memory.remember(f"proc {name} item {index}", speaker="Kim", session=name)
            memory.remember(f"I have {index + 2} boats", speaker="Robin",
                            time=f"2024-01-{index + 2:02}T{'06' if name == 'a' else '18'}:00Z")
            if index % 4 == 3:
                for report in memory.consolidate(generator=ScriptedGenerator(then=echo)):
                    assert not report.failed, report
"""


def test_processes_that_tell_and_sleep_at_once_lose_and_double_nothing(path: Path) -> None:
    for process in [start(SLEEPER, path, name) for name in "ab"]:
        assert (*process.communicate(timeout=120), process.returncode) == ("", "", 0)
    with Memory.open(path, create=False, embedder="hashing:64") as memory:
        later = datetime.now(NIGHT.tzinfo) + timedelta(days=2)
        memory.consolidate(generator=ScriptedGenerator(then=echo), now=later)
        told = contents(memory)
        assert told == Counter(
            {
                **{f"proc {name} item {index}": 1 for name in "ab" for index in range(12)},
                **{f"I have {index + 2} boats": 2 for index in range(12)},
            }
        )
        facts = [one for one in memory.records() if one.slot and one.maker == "extractive"]
        facts.sort(key=lambda one: str(one.valid_from))
        assert [one.value for one in facts] == [str(index + 2) for index in range(12)]
        assert [one.valid_to for one in facts] == [one.valid_from for one in facts[1:]] + [None]
        assert [len(one.evidence) for one in facts] == [2] * 12
        made = Counter(one.content for one in memory.records() if one.content.startswith("proc"))
        assert made == {text: 1 for text in told if text.startswith("proc")}
        assert memory.check() == []


# a-04: no message is lost or read twice, whatever the sizes

SIZES = [(1, 1), (5, 1), (1, 30), (3, 2), (7, 30), (100, 30), (100, 1)]


@pytest.mark.parametrize(("window", "request_"), SIZES)
@pytest.mark.parametrize("sessions", [1, 7])
def test_every_message_is_read_once_whatever_the_sizes(
    memory: Memory, window: int, request_: int, sessions: int
) -> None:
    rule = SleepRule(turns_per_window=window, turns_per_request=request_)
    texts = [f"fact number {n}" for n in range(1, 8)]
    asked: Counter[str] = Counter()

    def night(days: int, **limits: int) -> None:
        model = ScriptedGenerator(then=echo)
        sleep(memory, "verify", "distil", days=days, rule=rule, generator=model, **limits)
        asked.update(one["text"] for request in model.requests for one in turns_in(request))

    ids = []
    for n, text in enumerate(texts):
        ids += tell(memory, text, session=f"s{n % sessions}", now=NIGHT)
        if n in {2, 3}:
            night(0)
    night(2)
    night(4)
    assert asked == Counter(texts)
    assert contents(memory) == Counter(texts)
    assert current(memory).keys() >= set(texts)
    edits = [f"The {thing} is new" for thing in ("kettle", "ladder", "saddle", "needle", "bottle")]
    for n, text in enumerate(edits):
        later = NIGHT + timedelta(days=5, minutes=n)
        memory.update(ids[n], content=text, now=later)
    asked.clear()
    for days in range(6, 20, 2):  # the budget stops every night after one call
        night(days, most_calls=1)
    assert asked == Counter(edits)
    assert contents(memory) == Counter([*edits, *texts[5:]])
    assert current(memory).keys() >= {*edits, *texts[5:]}
    assert not current(memory).keys() & set(texts[:5])
    assert memory.check() == []


def test_a_size_of_nothing_is_refused() -> None:
    for name in ("turns_per_window", "turns_per_request", "tries", "most_items"):
        for size in (0, -1):
            with pytest.raises(InputError, match=name):
                SleepRule(**{name: size})  # type: ignore[arg-type]


# kill -9, at any moment

LEASE = 0.5  # seconds, after which a killed one's claim on its space is void

KILLED = (
    f"""
    import os
    os.environ["COFIRE_CLAIM_SECONDS"] = "{LEASE}"
"""
    + """
    import sys
    from datetime import UTC, datetime, timedelta
    from cofire import Memory
    from cofire.testing import ScriptedGenerator
    from scripts_of_models import echo
    path, first, day = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    towns = ["Bergen", "Oslo", "Rome"]
    with Memory.open(path, embedder="hashing:64") as memory:
        for index in range(first, 10_000):
            memory.remember(f"I live in {towns[index % 3]}.", speaker="Robin", key=f"t{index}",
                            time=f"2024-{index // 28 % 12 + 1:02}-{index % 28 + 1:02}",
                            session=f"s{index // 5}")
            memory.remember(f"Item {index} is green", speaker="Kim", key=f"i{index}")
            print(index, flush=True)
            if index % 3 == 2:
                day += 1
                now = datetime.now(UTC) + timedelta(days=day)
                for report in memory.consolidate(now=now, generator=ScriptedGenerator(then=echo)):
                    print("failed" if report.failed else "slept", report.failed, flush=True)
"""
)


def test_a_kill_at_any_moment_of_sleep_loses_and_doubles_nothing(path: Path) -> None:
    rng = random.Random(5)
    told, nights = -1, 0
    for _ in range(4):
        process = start(KILLED, path, told + 1, nights)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(rng.randrange(3, 10))]
        time.sleep(rng.uniform(0.0, 0.08))
        process.send_signal(signal.SIGKILL)
        rest, errors = process.communicate(timeout=60)
        assert errors == ""
        time.sleep(LEASE)
        lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        assert not any(line.startswith("failed") for line in lines)
        nights += sum(line.startswith("slept") for line in lines) + 1
        told = max([told, *(int(line) for line in lines if line[0].isdigit())])
        with Memory.open(path, embedder="hashing:64") as memory:
            assert memory.check() == []
            assert {f"Item {n} is green" for n in range(told + 1)} <= contents(memory).keys()
            made = Counter(one.content for one in memory.records() if "Item" in one.content)
            assert set(made.values()) <= {1}
            lines_ = [one for one in memory.records() if one.slot == "lives in"]
            assert sum(one.valid_to is None for one in lines_) <= 1
    with Memory.open(path, embedder="hashing:64") as memory:
        model = ScriptedGenerator(then=echo)
        for days in (nights + 1, nights + 3):
            memory.consolidate(
                generator=model, now=datetime.now(NIGHT.tzinfo) + timedelta(days=days)
            )
        count = max(
            int(item.key[1:]) for item in memory.list(kinds="episode", limit=10_000) if item.key
        )
        made = Counter(one.content for one in memory.records() if "Item" in one.content)
        assert made == {text: 1 for text in contents(memory) if "Item" in text}
        towns = [one for one in memory.records() if one.slot == "lives in"]
        assert len(towns) >= count
        towns.sort(key=lambda one: (str(one.valid_from), one.valid_to is None))
        assert [one.valid_to for one in towns] == [one.valid_from for one in towns[1:]] + [None]
        assert memory.check() == []
