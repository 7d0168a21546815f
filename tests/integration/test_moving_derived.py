"""What consolidation made, on its way out and back in, and what `check` finds wrong with it."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cofire.consolidation.cursors import EVENT_STEPS
from cofire.consolidation.steps import STEPS
from cofire.errors import FormatError
from cofire.interchange import native
from cofire.memory import Memory
from cofire.sleeping import made
from cofire.store.records import NewDerived, StepRow
from cofire.types import Kind, LinkType, Message, to_micros
from cofire.views import read_id

NOW = 1_780_000_000_000_000


def dreamt(memory: Memory) -> list[str]:
    """A memory that has slept: derived records of every state, ended ones, archived texts, steps.
    Ids of the turns."""
    ids = list(memory.remember(["gone", "I live in Porto.", "I live in Lyon now.", "Tea?"]).ids)
    ids.append(memory.remember("A long text goes on and on. " * 60, session="s").id)
    memory.forget(ids.pop(0))  # so that the file's numbers are not the store's
    workings = memory._workings
    store, space = workings.store, workings.spaces.own
    numbers = [workings.spaces.locate(id)[1] for id in ids]

    def file(text: str, *sources: int, kind: Kind = Kind.FACT, **fields: Any) -> int:
        now = memory.get(ids[0]).recorded
        (item,) = made(workings, [Message(content=text, kind=kind, time=now)], now)
        new = NewDerived(
            item=item,
            maker=fields.pop("maker", "extractive"),
            sources=tuple((numbers[at], 1, 0, 4) for at in sources),
            links=tuple((numbers[at], LinkType.EVIDENCE.value, 0.5) for at in sources),
            **fields,
        )
        (number,) = store.file_derived(space, [new], now=NOW).numbers
        assert number is not None
        return number

    former = file("Lives in Porto.", 0, subject="Ada", slot="lives in", value="Porto", single=True)
    file(
        "Lives in Lyon.", 1,
        subject="Ada", slot="lives in", value="Lyon", single=True, maker="a model", prompt="d@1",
        supersedes=((former, NOW + 5),),
    )  # fmt: skip
    file("Likes tea.", 2, 0, state="quarantined", reasons=("support: it is a question",))
    file("boats: 2 memories", 3, kind=Kind.SHAPE)
    memory.archive([ids[3]])
    recall = memory.recall("Porto", 2)
    memory.feedback(recall, used=recall.ids[:1])
    memory.update(ids[2], content="Coffee?")  # what rests on it is stale
    store.put_step(space, StepRow("distil", seq=numbers[1], time=NOW))
    store.put_step(space, StepRow("distil/1", 2, numbers[0], numbers[1], NOW))
    store.put_step(space, StepRow("strengthen", 20_000, 0, 1, NOW))
    store.put_step(space, StepRow("window", -1, 0, 99, NOW))
    return ids


def exported(memory: Memory) -> list[dict[str, Any]]:
    stream = io.BytesIO()
    memory.export(stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()[1:-1]]


def test_export_and_import_are_the_identity(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        ids = dreamt(memory)
        memory.export(tmp_path / "all.jsonl")
        first = exported(memory)
        records, quarantined = memory.records(), memory.quarantine()
        before = [line for line in first if line["type"] in {"derived", "step"}]
    assert [line["type"] for line in before].count("derived") == 4
    assert {line["name"]: line for line in before if line["type"] == "step"} == {
        "distil": {"type": "step", "name": "distil", "time": before[-1]["time"], "last": 2},
        "distil/1": {**before[-3], "first": 1, "last": 2, "period": 2},
        "strengthen": {**before[-2], "events": 1, "period": 20_000},
        "window": {**before[-1], "events": 1},
    }
    with Memory.open(tmp_path / "other.db", embedder="hashing:16") as other:
        report = other.import_(tmp_path / "all.jsonl")
        assert report.dropped == 0
        assert exported(other) == first
        assert other.check() == []
        assert other.import_(tmp_path / "all.jsonl").imported == 0
        assert exported(other) == first
        again = other.records()
        assert [one.content for one in again] == [one.content for one in records]
        assert [one.evidence for one in again] == [one.evidence for one in records]
        assert [one.reasons for one in other.quarantine()] == [one.reasons for one in quarantined]
        assert other.list(archived=True, kinds="episode").items[0].id == ids[3]
        asked = "Where does Ada live"
        found = {record.content for record in other.recall(asked, now="2030-01-01").semantic}
        assert "Likes tea." not in found
        assert other.unarchive(ids[3]) == 1
        assert other.check() == []
        # What rests on what was imported follows its deletion there, too.
        assert other.forget(ids[1]).reopened
        assert other.check() == []


def test_a_memory_that_is_not_empty_keeps_its_own_ledger(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        dreamt(memory)
        memory.export(tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "other.db", embedder="hashing:16") as other:
        other.remember("it has seen nothing of this")
        other.import_(tmp_path / "all.jsonl")
        assert other._workings.store.steps(other._workings.spaces.own) == {}
        assert len(other.records()) == 2
        assert other.check() == []


def test_redaction_reaches_what_was_derived(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        dreamt(memory)
        memory.export(tmp_path / "all.jsonl")

    def redact(text: str) -> str:
        return text.replace("Porto", "[city]").replace("Ada", "[name]").replace("question", "[-]")

    with Memory.open(tmp_path / "other.db", embedder="hashing:16", redact=redact) as other:
        other.import_(tmp_path / "all.jsonl")
        (former,) = [one for one in other.records() if one.value == "[city]"]
        assert (former.content, former.subject) == ("Lives in [city].", "[name]")
        assert former.evidence[0].text == "I live in [city].", "its words are at no certain place"
        assert other.records("[name]")
        assert "[-]" in other.quarantine()[0].reasons[0]
        assert other.check() == []
        other.export(tmp_path / "redacted.jsonl")
    assert b"Porto" not in (tmp_path / "redacted.jsonl").read_bytes()


def test_a_file_of_the_former_version_is_read(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        memory.remember("one")
        stream = io.BytesIO()
        memory.export(stream)
    old = stream.getvalue().replace(b'"version":2,"created"', b'"version":1,"created"', 1)
    lines = old.splitlines(keepends=True)
    import hashlib

    footer = json.loads(lines[-1])
    footer["sha256"] = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    whole = b"".join(lines[:-1]) + json.dumps(footer).encode() + b"\n"
    assert len(list(native.read_stream(io.BytesIO(whole), "x"))) == 2


def at(lines: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(line for line in lines if line["type"] == kind)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda v: at(v, "derived").update(number=99), "item 99 is named but not there"),
        (lambda v: at(v, "derived")["sources"][0].update(number=99), "item 99 is named"),
        (lambda v: at(v, "derived")["sources"][0].update(number=at(v, "derived")["number"]),
         "rests on itself"),
        (lambda v: at(v, "derived")["sources"][0].update(start=9), "ends before it begins"),
        (lambda v: at(v, "derived")["sources"].append(at(v, "derived")["sources"][0]), "twice on"),
        (lambda v: v.insert(v.index(at(v, "derived")), at(v, "derived")), "is late"),
        (lambda v: at(v, "derived").update(state="fine"), "'state' must be one of"),
        (lambda v: at(v, "derived").update(maker=""), "'maker' must have"),
        (lambda v: at(v, "step").update(last=99), "item 99 is named"),
        (lambda v: at(v, "step").update(period=-2), "'period' must not be negative"),
        (lambda v: v.append(at(v, "step")), "the step 'distil' is there twice"),
        (lambda v: at(v, "step").update(name="x" * 41), "'name' must have 1 to 40"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused(
    tmp_path: Path, spoil: Callable[[list[dict[str, Any]]], object], reason: str
) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        dreamt(memory)
        lines = exported(memory)
    spoil(lines)
    header = {"type": "header", "format": "cofire", "version": 2, "created": "2026-01-01T00:00:00Z"}
    text = "".join(json.dumps(line) + "\n" for line in (header, *lines))
    with pytest.raises(FormatError, match=reason):
        list(native.read_stream(io.BytesIO(text.encode()), "x"))


def test_the_steps_that_count_events_are_steps() -> None:
    assert {step.name for step in STEPS} >= EVENT_STEPS


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        ("DELETE FROM items WHERE number = (SELECT min(number) FROM derived)", "orphan"),
        ("INSERT INTO sources SELECT tenant, space, number, 9999, 0, 0, 0 FROM derived LIMIT 1",
         "orphan"),
        ("INSERT INTO sources SELECT tenant, space, 9999, number, 0, 0, 0 FROM derived LIMIT 1",
         "orphan"),
        ("UPDATE items SET archived = NULL WHERE number IN "
         "(SELECT number FROM derived WHERE state = 1)", "state"),
        ("UPDATE derived SET state = 7 WHERE number = (SELECT min(number) FROM derived)", "state"),
        ("DELETE FROM derived", "derived"),
        ("UPDATE items SET signals = signals | (1 << 30) WHERE number = 2", "derived"),
        ("UPDATE items SET valid_to = NULL", "closed"),
        ("UPDATE derived SET closed = NULL", "superseded"),
        ("UPDATE items SET archived = NULL WHERE parent > 0", "archived"),
        ("UPDATE items SET archived = NULL WHERE segments > 0", "archived"),
    ],
)  # fmt: skip
def test_the_doctor_finds(tmp_path: Path, harm: str, code: str) -> None:
    path = tmp_path / "m.db"
    with Memory.open(path, embedder="hashing:16") as memory:
        dreamt(memory)
        assert memory.check() == []
    connection = sqlite3.connect(path)
    connection.execute(harm)
    connection.commit()
    connection.close()
    with Memory.open(path, embedder="hashing:16") as memory:
        assert code in {finding.code for finding in memory._workings.store.check()}


def test_ids_are_kept(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:16") as memory:
        dreamt(memory)
        memory.export(tmp_path / "all.jsonl")
        ids = [record.id for record in memory.records()]
        assert all(len(read_id(id)) == 16 for id in ids)
    with Memory.open(tmp_path / "other.db", embedder="hashing:16") as other:
        other.import_(tmp_path / "all.jsonl")
        assert [record.id for record in other.records()] == ids
        assert to_micros(other.records()[0].item.recorded) > 0
