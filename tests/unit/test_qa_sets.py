"""LoCoMo and LongMemEval as data sets of questions, on files of their shape made here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError, NotFoundError
from cofire.evaluation.qa.locomo_set import COUNTS as LOCOMO_COUNTS
from cofire.evaluation.qa.locomo_set import locomo_set, without_remarks
from cofire.evaluation.qa.longmemeval_set import COUNTS, longmemeval_set
from cofire.evaluation.qa.tasks import DataSet, Material
from cofire.interchange.report import Action


def saved(folder: Path, content: Any, name: str = "data.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def turn(number: int, text: str, session: int = 1) -> dict[str, Any]:
    return {"speaker": "Ada", "dia_id": f"D{session}:{number}", "text": text}


def sample(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [turn(1, "I planted a plum tree."), turn(2, "My sister repairs boats.")],
    }
    return {"sample_id": "c1", "conversation": conversation | fields, "qa": list(questions)}


def asked(category: Any, **fields: Any) -> dict[str, Any]:
    given = {"question": "What?", "answer": "a tree", "evidence": ["D1:1"], "category": category}
    return given | fields


def told(data: DataSet, action: Action) -> str:
    return "; ".join(data.report.reasons(action))


def only(data: DataSet) -> Material:
    (material,) = data.materials()
    return material


def test_locomo_has_every_category(tmp_path: Path) -> None:
    trap = asked(5, adversarial_answer="a pear tree")
    del trap["answer"]
    questions = [asked(category) for category in (1, 2, 3, 4)]
    data = locomo_set(saved(tmp_path, [sample(*questions, trap)]))
    material = only(data)
    assert [task.group for task in material.tasks] == [
        "multi-hop", "temporal", "open-domain", "single-hop", "adversarial",
    ]  # fmt: skip
    assert [task.id for task in material.tasks] == [f"c1/{place}" for place in range(5)]
    first, last = material.tasks[0], material.tasks[-1]
    assert (first.answer, first.unanswerable, first.trap) == ("a tree", False, None)
    assert first.evidence == ("locomo:c1:D1:1",)
    assert first.evidence_sessions == ("c1:session_1",)
    assert (last.answer, last.unanswerable, last.trap) == (None, True, "a pear tree")
    assert material.now == datetime(2023, 5, 9, 13, 56, tzinfo=UTC)
    assert (data.key, data.counts, data.scored_apart) == (
        "published", LOCOMO_COUNTS, frozenset({"adversarial"}),
    )  # fmt: skip
    assert sum(LOCOMO_COUNTS.values()) == 1540


def test_locomo_keeps_repeated_questions_and_those_without_evidence(tmp_path: Path) -> None:
    data = locomo_set(saved(tmp_path, [sample(asked(1), asked(1), asked(3, evidence=[]))]))
    assert len(only(data).tasks) == 3
    noted = told(data, Action.NOTED)
    assert "question 1: it repeats question 0" in noted
    assert "question 2: it has no evidence" in noted


def test_locomo_says_what_cannot_be_scored(tmp_path: Path) -> None:
    rows = [asked(1), asked(1, answer=None), asked(4, answer=" "), asked(7), asked(4, question=" ")]
    data = locomo_set(saved(tmp_path, [sample(*rows), sample()]))
    assert [task.id for task in only(data).tasks] == ["c1/0"]
    skipped = told(data, Action.SKIPPED)
    assert "question 1: it has no gold answer" in skipped
    assert "question 2: it has no gold answer" in skipped
    assert "question 3: it has no category from 1 to 5" in skipped
    assert "question 4: it asks nothing" in skipped
    assert "c1: it has no question to score" in told(data, Action.NOTED)


def test_locomo_corrections_change_answers_and_evidence(tmp_path: Path) -> None:
    fixes = {
        "c1": {
            "0": {"kind": "wrong_citation", "evidence": ["D1:2"],
                  "answer": "a tree (answer is correct, D1:1 should be D1:2)"},
            "1": {"kind": "ambiguous", "evidence": ["D1:1"], "answer": "a plum tree (a big one)"},
            "2": {"kind": "hallucination", "evidence": [], "answer": None},
        }
    }  # fmt: skip
    path = saved(tmp_path, [sample(asked(1), asked(4), asked(4), asked(4))])
    data = locomo_set(path, corrections=saved(tmp_path, fixes, "fixes.json"))
    first, second, fourth = only(data).tasks
    assert (first.answer, first.evidence, first.corrected) == ("a tree", ("locomo:c1:D1:2",), True)
    assert (second.answer, second.corrected) == ("a plum tree (a big one)", True)
    assert (fourth.id, fourth.corrected) == ("c1/3", False)
    assert data.key == "corrected"
    assert "question 0: the corrected answer" in told(data, Action.REPAIRED)
    assert "question 2: it has no gold answer" in told(data, Action.SKIPPED)
    assert "1 wrong_citation, 1 ambiguous, 1 hallucination" in told(data, Action.NOTED)


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        ("Cakes (answer is correct, D25:19 should be D25:20)", "Cakes"),
        ("2022 (but the book title is made up)", "2022"),
        ("PC (D27:15-17), console (D27:23 - a game).", "PC, console."),
        ("French (Tim took French, per D27:7)", "French"),
        ("Two: (1) a sky (D17:12), (2) a sea.", "Two: (1) a sky, (2) a sea."),
        ("a dog (Max) and three turtles", "a dog (Max) and three turtles"),
        ("butter (buttermilk)", "butter (buttermilk)"),
        ("(D1:1)", "(D1:1)"),
    ],
)
def test_remarks_of_the_auditors_are_no_answer(answer: str, plain: str) -> None:
    assert without_remarks(answer) == plain


def test_locomo_session_without_a_date_is_dated_like_the_one_before(tmp_path: Path) -> None:
    entry = sample(asked(1), session_2=[turn(1, "Later.", 2)], session_2_date_time="some day")
    data = locomo_set(saved(tmp_path, [entry]))
    times = {str(message.time) for message in only(data).messages}
    assert times == {"2023-05-08 13:56:00+00:00"}
    assert "session c1:session_2 has no date" in told(data, Action.REPAIRED)


def haystack(**fields: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "Where is my bike?",
        "answer": "in the shed",
        "question_date": "2023/05/30 (Tue) 09:00",
        "haystack_session_ids": ["s2", "s1"],
        "haystack_dates": ["2023/05/20 (Sat) 10:00", "2023/05/10 (Wed) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I put my bike in the shed.", "has_answer": True},
                {"role": "assistant", "content": "Good.", "has_answer": False},
            ],
            [{"role": "user", "content": "I like soup."}, {"role": "assistant", "content": " "}],
        ],
        "answer_session_ids": ["s2"],
    } | fields


def test_longmemeval_question(tmp_path: Path) -> None:
    data = longmemeval_set(saved(tmp_path, [haystack()]))
    material = only(data)
    (task,) = material.tasks
    assert [message.content for message in material.messages] == [
        "I like soup.", "I put my bike in the shed.", "Good.",
    ]  # fmt: skip
    assert (task.id, task.material, task.group) == ("q1", "q1", "multi-session")
    assert task.asked == material.now == datetime(2023, 5, 30, 9, tzinfo=UTC)
    assert task.evidence == ("longmemeval:q1:s2:0",)
    assert task.evidence_sessions == ("q1:s2",)
    assert not task.unanswerable
    assert (data.counts, data.scored_apart, data.key) == (COUNTS, frozenset(), "published")
    assert sum(COUNTS.values()) == 500
    assert data.report.read == 4  # three messages, and the empty turn that was skipped
    assert "it is empty" in told(data, Action.SKIPPED)


def test_longmemeval_duplicate_sessions_and_late_ones_are_kept(tmp_path: Path) -> None:
    entry = haystack(
        haystack_session_ids=["s1", "s1"],
        haystack_dates=["2023/05/20 (Sat) 10:00", "2023/05/31 (Wed) 10:00"],
        answer_session_ids=["s1", "gone"],
    )
    data = longmemeval_set(saved(tmp_path, [entry]))
    material = only(data)
    (task,) = material.tasks
    assert {message.session for message in material.messages} == {"q1:s1", "q1:s1#2"}
    assert len({message.key for message in material.messages}) == len(material.messages)
    assert task.evidence_sessions == ("q1:s1", "q1:s1#2")
    noted = told(data, Action.NOTED)
    assert "session s1#2: it is dated 2023-05-31 10:00, after the question" in noted
    assert "its answer session gone is not in the haystack" in noted


def test_longmemeval_abstention_numbers_lists_and_repeated_ids(tmp_path: Path) -> None:
    entries = [
        haystack(question_id="q_abs", answer_session_ids=[]),
        haystack(answer=3),
        haystack(answer=["red", 2]),
    ]
    data = longmemeval_set(saved(tmp_path, entries))
    tasks = [task for material in data.materials() for task in material.tasks]
    assert [task.id for task in tasks] == ["q_abs", "q1", "q1#2"]
    assert [task.unanswerable for task in tasks] == [True, False, False]
    assert [task.answer for task in tasks[1:]] == ["3", "red, 2"]
    assert "q1: its id was used before; it is called q1#2" in told(data, Action.NOTED)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2023/05/30 (Tue) 09:00", datetime(2023, 5, 30, 9, tzinfo=UTC)),
        ("2023-05-30T09:00:00Z", datetime(2023, 5, 30, 9, tzinfo=UTC)),
        ("2023/05/30", datetime(2023, 5, 30, tzinfo=UTC)),
        ("one day", datetime(2023, 5, 21, 10, tzinfo=UTC)),
        (None, datetime(2023, 5, 21, 10, tzinfo=UTC)),
    ],
)
def test_longmemeval_question_dates(tmp_path: Path, date: Any, expected: datetime) -> None:
    data = longmemeval_set(saved(tmp_path, [haystack(question_date=date)]))
    assert only(data).now == expected
    assert ("it has no date" in told(data, Action.NOTED)) == (expected.day == 21)


def test_longmemeval_undated_sessions_are_not_said_today(tmp_path: Path) -> None:
    entry = haystack(haystack_dates=["2023/05/20 (Sat) 10:00", "whenever"])
    data = longmemeval_set(saved(tmp_path, [entry]))
    times = [parse_time(message.time or "")[0] for message in only(data).messages]
    assert set(times) == {datetime(2023, 5, 20, 10, tzinfo=UTC)}
    assert "session q1:s1 has no date" in told(data, Action.REPAIRED)


def test_longmemeval_says_what_cannot_be_asked(tmp_path: Path) -> None:
    entries = [
        haystack(question=""),
        haystack(answer=None),
        haystack(haystack_sessions=[[], []]),
        haystack(question_id="fine_abs", answer=None),
        "nothing",
    ]
    data = longmemeval_set(saved(tmp_path, entries))
    assert [material.name for material in data.materials()] == ["fine_abs"]
    skipped = told(data, Action.SKIPPED)
    for reason in ("it asks nothing", "it has no gold answer", "no turn with text"):
        assert reason in skipped
    assert "entry 4" in told(data, Action.DROPPED)


def test_every_reading_starts_the_report_anew(tmp_path: Path) -> None:
    data = longmemeval_set(saved(tmp_path, [haystack(), haystack()]))
    first = [material.name for material in data.materials()]
    noted = data.report.noted
    assert next(data.materials()).name == "q1"
    assert data.report.noted < noted
    assert [material.name for material in data.materials()] == first
    assert data.report.noted == noted


def test_a_file_that_is_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        longmemeval_set(tmp_path / "none.json")
    path = tmp_path / "data.json"
    path.write_text('[{"question_id": ', encoding="utf-8")
    with pytest.raises(FormatError):
        list(longmemeval_set(path).materials())
