"""The importers on the real files and on the quirk files of the case bank."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError
from cofire.interchange import Format, detect, documents, locomo, longmemeval, messages
from cofire.interchange.report import Action, ImportReport, Problem
from cofire.types import Message

PROJECT = Path(__file__).resolve().parents[2]


def shared(path: str) -> Path:
    """A file of the folder `shared` (COFIRE_SHARED, or beside the project); skips without it."""
    base = Path(os.environ.get("COFIRE_SHARED") or PROJECT.parent / "shared")
    if not (base / path).exists():
        pytest.skip(f"{base / path} is not here; COFIRE_SHARED names the folder that has it")
    return base / path


def test_jsonl_messages_with_bom_and_crlf() -> None:
    path = shared("cases/files/jsonl/messages_bom_crlf.jsonl")
    report = ImportReport(source=path.name)
    found = list(report.messages(messages.read(path)))
    assert detect(path) is Format.JSONL
    assert [message.content for message in found] == [
        "first line after BOM",
        "lone surrogate \ud83d here",
        "nul\0byte",
        "pair 😀 ok",
        "ms epoch",
        "naive time",
        "line separator \u2028 inside",
        "two objects",
        "glued",
        "last line without newline",
    ]
    assert [problem.where for problem in report.problems] == [
        f"{path.name}, line 5",
        f"{path.name}, line 10",
    ]
    assert [problem.action for problem in report.problems] == [Action.DROPPED, Action.REPAIRED]
    times = [parse_time(message.time or "")[0] for message in found]
    assert times[2] == datetime(2023, 12, 31, 15, 0, 2, tzinfo=UTC)
    assert times[4] == datetime(2024, 1, 1, 0, 0, 4, tzinfo=UTC)
    assert times[5] == datetime(2024, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert len({message.key for message in found}) == 10
    assert found == list(ImportReport(source="again").messages(messages.read(path)))


def test_jsonl_in_latin1_is_refused_with_the_byte_offset() -> None:
    with pytest.raises(FormatError, match=r"not UTF-8: byte 0xe9 at offset 29"):
        next(messages.read(shared("cases/files/jsonl/latin1.jsonl")))


def test_locomo_quirks() -> None:
    path = shared("cases/files/locomo/locomo_quirks.json")
    assert detect(path) is Format.LOCOMO
    (conversation,), report = locomo.load(path)
    assert [session.number for session in conversation.sessions] == [2, 1]
    assert sorted(conversation.turns) == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2"]
    assert conversation.sessions[1].time == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)
    photo = conversation.turns["D1:2"]
    assert photo.content == "[photo: a photo of a red car on a road]"
    assert photo.metadata["image_query"] == "brand-q 488 sports car"

    questions = conversation.questions
    assert len(questions) == 14
    assert [question.position for question in questions if question.adversarial] == [10, 11]
    assert [q.answer for q in questions if q.adversarial] == [None, "No"]
    assert questions[1].answer == "2022"
    assert [question.position for question in questions if question.duplicate_of is not None] == [
        13
    ]
    evidence = {question.position: question.evidence for question in questions}
    assert evidence[2] == ()
    assert evidence[3] == ("D1:1", "D2:2")
    assert evidence[4] == ("D1:1", "D2:1", "D2:2")
    assert evidence[5] == ("D1:1",)
    assert evidence[6] == ("D2:1",)
    assert evidence[7] == ("D2:1",)
    assert evidence[8] == ()
    assert report.reasons(Action.SKIPPED) == [
        "conv-q1, session 3: it has a date (9:35 am on 31 October, 2023) and no turns"
    ]
    repaired = report.reasons(Action.REPAIRED)
    assert len(repaired) == 6
    assert any("'D2:36' is of a turn that does not exist" in reason for reason in repaired)
    assert any("'D' names no turn" in reason for reason in repaired)
    assert list(locomo.read(path))[-5:] == list(conversation.messages)


def test_locomo_itself_with_its_corrections() -> None:
    path = shared("data/locomo/locomo6.json")
    assert detect(path) is Format.LOCOMO
    conversations, report = locomo.load(path, corrections=shared("data/locomo/corrections.json"))
    assert [conversation.sample for conversation in conversations] == [
        "conv-26",
        "conv-30",
        "conv-41",
        "conv-42",
        "conv-43",
        "conv-48",
    ]
    questions = [question for each in conversations for question in each.questions]
    assert len(questions) == 1238
    assert sum(question.correction is not None for question in questions) == 98
    for conversation in conversations:
        turns = conversation.turns
        assert all(dia_id in turns for q in conversation.questions for dia_id in q.evidence)
        assert all(message.time is not None for message in conversation.messages)
    assert report.dropped == 0
    assert len({m.key for each in conversations for m in each.messages}) == sum(
        len(each.messages) for each in conversations
    )


def test_longmemeval_quirks() -> None:
    path = shared("cases/files/longmemeval/lme_quirks.json")
    assert detect(path) is Format.LONGMEMEVAL
    entries = list(longmemeval.load(path))
    questions = [entry for entry in entries if not isinstance(entry, Problem)]
    assert [question.id for question in questions] == ["q_0001", "q_0002_abs", "q_0003"]
    first, second, third = questions
    assert [session.occurrence for session in first.sessions] == ["s_dup", "s_dup#2", "s_a", "s_b"]
    assert [session.late for session in first.sessions] == [False, False, False, True]
    assert first.evidence == ("longmemeval:q_0001:s_a:0", "longmemeval:q_0001:s_b:0")
    assert first.evidence_sessions == ("s_b",)
    assert [message.content for message in first.messages].count("Filler about soup.") == 2
    assert second.abstention
    assert (third.abstention, third.answer) == (False, "3")
    report = ImportReport(source=path.name)
    found = list(report.messages(longmemeval.read(path)))
    assert len(found) == len({message.key for message in found}) == 7
    assert (report.skipped, report.noted, report.dropped) == (2, 1, 0)
    assert all("has_answer" not in message.metadata for message in found)


def test_longmemeval_itself() -> None:
    path = shared("data/longmemeval_one/longmemeval_single.json")
    (question,) = [e for e in longmemeval.load(path) if not isinstance(e, Problem)]
    assert len(question.sessions) == 53
    times = [session.time for session in question.sessions if session.time is not None]
    assert times == sorted(times)
    assert len(times) == 53
    assert question.evidence_sessions == ("answer_280352e9",)


def test_vault() -> None:
    path = shared("cases/files/vault")
    report = ImportReport(source="vault")
    found = {str(m.metadata["path"]): m for m in report.messages(documents.read(path))}
    assert sorted(found) == [
        "Archive/Plan.md",
        "Home.md",
        "Projects/Plan.md",
        "notes/עברית.md",
        "日本語メモ.md",
    ]
    assert sorted(p.where for p in report.problems if p.action is Action.SKIPPED) == [
        "Empty.md",
        "Only Front Matter.md",
    ]
    plan = found["Projects/Plan.md"]
    assert "Budget is 400." in plan.content
    assert "After the rule." in plan.content
    assert found["Home.md"].time is None
    assert report.repaired == 1


def test_hostile_texts_pass_through_jsonl(tmp_path: Path) -> None:
    import json

    hostile = json.loads(shared("cases/files/text/hostile_texts.json").read_text("utf-8"))
    texts = [text for text in hostile.values() if isinstance(text, str)]
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(json.dumps({"content": text}) for text in texts), encoding="utf-8")
    found = [entry for entry in messages.read(path) if isinstance(entry, Message)]
    assert [message.content for message in found] == [text for text in texts if text.strip()]
