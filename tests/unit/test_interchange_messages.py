"""JSONL of messages: every shape of line, and keys that make importing again harmless."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import FormatError, NotFoundError
from cofire.interchange import messages
from cofire.interchange.report import MAX_DETAILS, Action, ImportReport, Problem
from cofire.types import Kind, Message


def read(*lines: Any) -> tuple[list[Message], ImportReport]:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    report = ImportReport(source="x")
    stream = messages.read_stream(io.BytesIO(b"\n".join(raw)), "x")
    return list(report.messages(stream)), report


def test_fields_and_their_other_names() -> None:
    (first, second), report = read(
        {
            "content": "hello",
            "role": "user",
            "speaker": "Ada",
            "time": "2024-01-01T09:00:00+09:00",
            "session": "s1",
            "title": "T",
            "kind": "fact",
            "tags": ["a", "b"],
            "importance": 8,
            "pinned": True,
            "expires": "2030-01-01",
            "metadata": {"x": 1},
            "key": "k1",
        },
        {
            "text": "hi",
            "author": {"role": "assistant", "name": "bot"},
            "timestamp": 1704067204000,
            "conversation_id": 7,
            "tags": "solo",
            "mood": "calm",
        },
    )
    assert first == Message(
        content="hello",
        role="user",
        speaker="Ada",
        time="2024-01-01T09:00:00+09:00",
        session="s1",
        title="T",
        kind=Kind.FACT,
        tags=("a", "b"),
        importance=8,
        pinned=True,
        expires="2030-01-01",
        metadata={"x": 1},
        key="k1",
    )
    assert (second.content, second.role, second.speaker) == ("hi", "assistant", "bot")
    assert (second.time, second.session, second.tags) == (1704067204000, "7", ("solo",))
    assert second.metadata == {"mood": "calm"}
    assert (report.read, report.repaired, report.dropped) == (2, 0, 0)


def test_list_of_parts_is_read_as_its_texts() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url"}, "two"]
    (message,), _ = read({"content": parts})
    assert message.content == "one\ntwo"


@pytest.mark.parametrize(
    ("line", "action", "reason"),
    [
        (b'{"content": "cut off', Action.DROPPED, "no JSON"),
        (b"plain words", Action.DROPPED, "no JSON"),
        (b"[1, 2]", Action.DROPPED, "no object but list"),
        (b'"text"', Action.DROPPED, "no object but str"),
        (b"[" * 100_000, Action.DROPPED, "no JSON"),
        (b'{"role": "user"}', Action.DROPPED, "no text"),
        (b'{"content": 5}', Action.DROPPED, "no text"),
        (b'{"content": null}', Action.DROPPED, "no text"),
        (b'{"content": "  "}', Action.SKIPPED, "empty"),
        (b'{"content": "a", "time": "soon"}', Action.REPAIRED, "without its time"),
        (b'{"content": "a", "time": true}', Action.REPAIRED, "without its time"),
        (b'{"content": "a", "expires": [1]}', Action.REPAIRED, "without its expires"),
        (b'{"content": "a", "score": NaN}', Action.REPAIRED, "NaN"),
        (b'{"content": "a", "kind": "cue"}', Action.REPAIRED, "kind 'cue'"),
        (b'{"content": "a", "importance": 11}', Action.REPAIRED, "importance"),
        (b'{"content": "a", "tags": [1]}', Action.REPAIRED, "tags"),
        (b'{"content": "a", "tags": 3}', Action.REPAIRED, "tags"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(line: bytes, action: Action, reason: str) -> None:
    found, report = read({"content": "before"}, line, {"content": "after"})
    assert [message.content for message in found][:1] == ["before"]
    assert found[-1].content == "after"
    assert len(found) == (3 if action is Action.REPAIRED else 2)
    (problem,) = report.problems
    assert (problem.where, problem.action) == ("x, line 2", action)
    assert reason in problem.reason


def test_nan_becomes_null() -> None:
    (message,), _ = read(b'{"content": "a", "score": NaN, "top": -Infinity}')
    assert message.metadata == {"score": None, "top": None}


def test_glued_objects_are_both_taken() -> None:
    found, report = read(b'{"content": "a"}{"content": "b"} {"content": "c"', {"content": "d"})
    assert [message.content for message in found] == ["a", "b", "d"]
    assert [problem.action for problem in report.problems] == [Action.DROPPED, Action.REPAIRED]


def test_line_ends_only_at_lf(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    separators = "a\u2028b\u2029c\u0085d"
    text = json.dumps({"content": separators}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n" + text.encode())
    found = [entry for entry in messages.read(path) if isinstance(entry, Message)]
    assert [message.content for message in found] == [separators, separators]


def test_keys_say_what_is_the_same_message() -> None:
    timed = {"content": "ok", "time": 1704067200}
    plain = {"content": "ok"}
    (first, again, other), _ = read(timed, timed, {**timed, "speaker": "Ben"})
    assert first.key == again.key != other.key
    (here, there), _ = read(plain, plain)
    assert here.key != there.key
    (same, _, new), _ = read(plain, plain, plain)
    assert same.key == here.key
    assert new.key not in {here.key, there.key}


def test_keys_survive_lines_added_before_timed_messages() -> None:
    rows = [{"content": f"m{n}", "time": 1704067200 + n} for n in range(5)]
    before, _ = read(*rows)
    after, _ = read({"content": "new", "time": 1704067100}, *rows[::-1])
    assert {message.key for message in before} == {message.key for message in after[1:]}


def test_ids_tell_equal_texts_apart_without_conflicts() -> None:
    rows = [{"id": 1, "content": "ok", "time": 1704067200}, {"id": 2, "content": "ok"}]
    (one, two), _ = read(*rows)
    (edited,), _ = read({"id": 1, "content": "ok!", "time": 1704067200})
    assert len({one.key, two.key, edited.key}) == 3
    assert one.metadata["id"] == "1"


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        (b'{"content":"caf\xe9"}\n', 15),
        (b'{"content":"ok"}\n{"content":"caf\xe9"}\n', 32),
        (b"\xef\xbb\xbf" + b'{"content":"caf\xe9"}', 18),
        (b"\xff\xfe{\0", 0),
        (b"x" * (1 << 20) + b"\xe4\xe4", 1 << 20),
        (b"x" * ((1 << 20) - 1) + b"\xe4\xb8x", (1 << 20) - 1),
    ],
)
def test_other_encodings_are_refused_before_anything_is_imported(
    tmp_path: Path, content: bytes, offset: int
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"not UTF-8: byte 0x\w\w at offset {offset}\b"):
        next(messages.read(path))
    if b"x" * 99 not in content:
        with pytest.raises(FormatError, match=rf"at offset {offset}\b"):
            list(messages.read_stream(io.BytesIO(content), "stdin"))


def test_character_cut_off_at_the_end_is_a_cut_off_line(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"content":"ok"}\n{"content":"\xe4\xb8')
    message, problem = messages.read(path)
    assert isinstance(message, Message)
    assert isinstance(problem, Problem)
    assert problem.where == "m.jsonl, line 2"


def test_overlong_line_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_LINE", 64)
    found, report = read({"content": "a"}, {"content": "b" * 500}, {"content": "c"})
    assert [message.content for message in found] == ["a", "c"]
    assert report.reasons(Action.DROPPED) == ["x, line 2: it is longer than 64 bytes"]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        next(messages.read(tmp_path / "none.jsonl"))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    line = json.dumps({"content": "word " * 200, "time": 1704067200}) + "\n"
    path.write_text(line * 20_000, encoding="utf-8")
    tracemalloc.start()
    count = sum(1 for _ in messages.read(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 8_000_000 < path.stat().st_size


def test_report_of_a_broken_file_stays_small() -> None:
    report = ImportReport(source="x")
    stream = messages.read_stream(io.BytesIO(b"no\n" * (MAX_DETAILS + 5)), "x")
    assert list(report.messages(stream)) == []
    assert (report.dropped, len(report.problems)) == (MAX_DETAILS + 5, MAX_DETAILS)
    assert str(report.problems[0]) == "x, line 1: dropped: it is no JSON: Expecting value"
