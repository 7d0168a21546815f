"""LoCoMo, LongMemEval, streamed JSON and the guessing of formats, on files made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import FormatError
from cofire.interchange import Format, detect, files, locomo, longmemeval
from cofire.interchange.detect import detect_start
from cofire.interchange.report import Action, Problem
from cofire.types import Message


def saved(tmp_path: Path, value: Any, name: str = "data.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def sample(**changes: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Hello"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Look", "blip_caption": "a red car"},
        ],
    }
    return {"sample_id": "c1", "conversation": {**conversation, **changes}, "qa": []}


def test_locomo_messages(tmp_path: Path) -> None:
    entry = sample()
    entry["conversation"]["session_1"][1].update({"query": "brand-q", "img_url": ["u"]})
    first, second = locomo.read(saved(tmp_path, [entry]))
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert (first.speaker, first.content, first.session) == ("Ada", "Hello", "c1:session_1")
    assert (first.key, first.metadata) == ("locomo:c1:D1:1", {"dia_id": "D1:1"})
    assert second.content == "Look [photo: a red car]"
    assert second.metadata["image_query"] == "brand-q"


@pytest.mark.parametrize(
    ("changes", "reason", "turns"),
    [
        ({"session_1_date_time": "some day"}, "date cannot be read", 2),
        ({"session_1_date_time": None}, "date cannot be read", 2),
        ({"session_1": "hello"}, "no list", 0),
        ({"session_1": ["hello"]}, "no object", 0),
        ({"session_1": [{"dia_id": "D1:1", "text": None}]}, "no text", 0),
        ({"session_1": [{"dia_id": "D1:1", "text": "a"}] * 2}, "was used before", 1),
        ({"session_7_date_time": "1:56 pm on 9 May, 2023"}, "no turns", 2),
    ],
)
def test_locomo_survives(tmp_path: Path, changes: dict[str, Any], reason: str, turns: int) -> None:
    (conversation,), report = locomo.load(saved(tmp_path, [sample(**changes)]))
    assert len(conversation.messages) == turns
    assert any(reason in problem.reason for problem in report.problems)


def test_locomo_turn_without_id_or_text(tmp_path: Path) -> None:
    turns = [{"text": "a"}, {"dia_id": "D1:02", "img_url": ["u"], "text": ""}]
    (conversation,), _ = locomo.load(saved(tmp_path, sample(session_1=turns)))
    assert list(conversation.turns) == ["D1:1", "D1:2"]
    assert conversation.messages[1].content == "[photo]"


def test_locomo_corrections(tmp_path: Path) -> None:
    entry = sample()
    entry["qa"] = [
        {"question": "Q0", "answer": 2022, "evidence": ["D1:1"], "category": 2},
        {"question": "Q1", "answer": "old", "evidence": ["D1:1"], "category": 1},
        {"no": "question"},
        {"question": "Q3", "evidence": "D1:2", "category": "x"},
    ]
    fixes = {
        "c1": {"1": {"kind": "wrong_citation", "evidence": ["D1:2"], "answer": "new"}, "9": {}},
        "gone": {"0": {"kind": "ambiguous"}},
    }
    path = saved(tmp_path, [entry, "no object", {"sample_id": "c2"}])
    (conversation,), report = locomo.load(path, corrections=saved(tmp_path, fixes, "fix.json"))
    first, second, third = conversation.questions
    assert (first.answer, first.correction) == ("2022", None)
    assert (second.answer, second.evidence) == ("new", ("D1:2",))
    assert second.correction == "wrong_citation"
    assert (third.position, third.evidence, third.category) == (3, ("D1:2",), 0)
    dropped = " ".join(report.reasons(Action.DROPPED))
    assert "c1, question 9" in dropped
    assert "gone, question 0" in dropped
    assert "entry 1" in dropped
    assert "entry 2" in dropped


@pytest.mark.parametrize(
    "content",
    [
        "[]", '[{"qa": []}]', "5", '{"c1": []}', '{"c1": {"x": {}}}', '{"c1": {"0": []}}', "no",
    ],
)  # fmt: skip
def test_locomo_corrections_must_be_corrections(tmp_path: Path, content: str) -> None:
    fixes = tmp_path / "fix.json"
    fixes.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match="no corrections file") as raised:
        locomo.load(saved(tmp_path, [sample()]), corrections=fixes)
    assert "attribute" not in str(raised.value)


def test_longmemeval_survives(tmp_path: Path) -> None:
    entry = {
        "question_id": "q_abs",
        "haystack_sessions": [[{"role": "user", "content": "a"}, "x"], None, [{"content": " "}]],
        "haystack_dates": ["2023/05/30 (Tue) 09:00", "soon"],
    }
    problems = [e for e in longmemeval.load(saved(tmp_path, [entry, 5])) if isinstance(e, Problem)]
    (question,) = [
        e for e in longmemeval.load(saved(tmp_path, [entry, 5])) if not isinstance(e, Problem)
    ]
    assert question.abstention
    assert [message.content for message in question.messages] == ["a"]
    assert len(problems) == 6  # question date, two session dates, a turn, an empty one, an entry


@pytest.mark.parametrize(
    "values", [[], [1], [1, "two", [3], {"four": None}, 5.5, True], ["x" * 3_000_000, 7]]
)
def test_arrays_are_streamed(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(values, indent=1).encode() + b"\r\n")
    assert list(files.json_entries(path)) == values


def test_a_number_over_the_edge_of_the_window_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 3)
    values = [1234567, 0.125, "abcdef", {"k": [True, None]}]
    assert list(files.json_entries(saved(tmp_path, values))) == values


@pytest.mark.parametrize(
    "content", ["", "[1, 2", "[1 2]", "[1,]", "[1] x", "{} {}", "[" * 100_000, '["a', "nonsense"]
)
def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=r"a\.json is not valid JSON at character \d+"):
        list(files.json_entries(path))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "{}", Format.TEXT),
        ("a.txt", "", Format.TEXT),
        ("notes", "just words", Format.TEXT),
        ("a.jsonl", '{"content": "x"}\n', Format.JSONL),
        ("a.jsonl", '\ufeff\n{"content": "x"}{"content": "y"}\n', Format.JSONL),
        ("a.jsonl", '{"content": "cut', Format.JSONL),
        ("a.json", '{"role": "user", "content": "x"}', Format.JSONL),
        ("a.jsonl", '{"type":"header","format":"cofire","version":1}\n', Format.COFIRE),
        ("a.json", json.dumps([sample()]), Format.LOCOMO),
        ("a.json", json.dumps(sample()), Format.LOCOMO),
        ("a.json", json.dumps(sample(), indent=2), Format.LOCOMO),
        ("a.json", '[{"haystack_sessions": []}]', Format.LONGMEMEVAL),
    ],
)
def test_formats_are_guessed(tmp_path: Path, name: str, content: str, expected: Format) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert detect(path) is expected
    assert detect(tmp_path) is Format.TEXT


@pytest.mark.parametrize("content", [b'[{"x": 1}]', b"[]", b"\0\1\2", b"{}\x00[["])
def test_other_formats_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    if content.startswith(b"{}"):
        assert detect(path) is Format.JSONL
    else:
        with pytest.raises(FormatError):
            detect(path)


def test_formats_of_streams() -> None:
    assert detect_start(b'\xef\xbb\xbf{"content": "x"}\n') is Format.JSONL
    assert detect_start(b'{"type":"header","format":"cofire"}\n') is Format.COFIRE
    assert detect_start(b"# Title\n") is Format.TEXT
    assert detect_start(b"") is Format.TEXT
