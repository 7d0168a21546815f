"""Multiple-choice questions over dated documents: what is read, and what is refused and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import FormatError, InputError
from cofire.evaluation.qa.choices_set import choices_set
from cofire.evaluation.qa.choosing import read_choices, right_choice
from cofire.evaluation.qa.tasks import DataSet, Material
from cofire.interchange.report import Action


def case(*questions: Any, **fields: Any) -> dict[str, Any]:
    return {
        "name": "set",
        "documents": [
            {"id": "d1", "date": "2024-03-02", "text": "The canoe is green."},
            {
                "id": "d2",
                "date": "2024-03-01",
                "turns": [
                    {"role": "user", "text": "I sold the canoe.", "time": "2024-03-03T10:00Z"},
                    {"speaker": "Ben", "text": "To whom?"},
                    {"text": " "},
                ],
            },
        ],
        "questions": list(questions),
    } | fields


def question(**fields: Any) -> dict[str, Any]:
    return {"id": "q", "question": "Colour?", "choices": ["red", "green"], "answer": 1} | fields


def read(folder: Path, content: Any, name: str = "set.json") -> tuple[DataSet, list[Material]]:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    data = choices_set(path)
    return data, list(data.materials())


def test_a_case(tmp_path: Path) -> None:
    asked = question(date="2024-04-01", group="colours", evidence=["d1", "d2#0"])
    data, (material,) = read(tmp_path, case(asked))
    assert (data.name, material.name) == ("choices", "set")
    assert [(m.content, m.session, m.key) for m in material.messages] == [
        ("To whom?", "d2", "choices:set:d2#1"),
        ("The canoe is green.", "d1", "choices:set:d1"),
        ("I sold the canoe.", "d2", "choices:set:d2#0"),
    ]
    assert material.now == datetime(2024, 3, 4, 10, tzinfo=UTC)
    (task,) = material.tasks
    assert (task.id, task.material, task.group) == ("set/q", "set", "colours")
    assert (task.choices, task.right, task.answer) == (("red", "green"), 1, "green")
    assert task.asked == datetime(2024, 4, 1, tzinfo=UTC)
    assert task.evidence == ("choices:set:d1", "choices:set:d2#0")
    assert task.evidence_sessions == ("d1", "d2")
    assert data.report.skipped == 1  # the turn without text


def test_questions_over_the_same_documents_share_a_material(tmp_path: Path) -> None:
    rows = [
        question(id="a", documents=["d2", "d1"]),
        question(id="b"),
        question(id="c", documents=["d1"], evidence="d1"),
        question(id="d", documents=["d1"]),
    ]
    _, materials = read(tmp_path, case(*rows))
    assert [[task.id for task in material.tasks] for material in materials] == [
        ["set/a", "set/b"], ["set/c", "set/d"],
    ]  # fmt: skip
    assert [material.name for material in materials] == ["set", "set/documents-1"]
    assert {message.session for message in materials[1].messages} == {"d1"}
    assert {task.material for task in materials[1].tasks} == {"set/documents-1"}


def test_arrays_and_lines_hold_many_cases(tmp_path: Path) -> None:
    one, other = case(question(), name=None), case(question())
    _, materials = read(tmp_path, [one, other, other])
    assert [material.name for material in materials] == ["set", "set#2", "set#3"]
    lines = "\n".join(["\ufeff" + json.dumps(one), "", "{oops", json.dumps(one) + " x", "[]"])
    data, materials = read(tmp_path, lines + "\n", "many.jsonl")
    assert [material.name for material in materials] == ["many"]
    dropped = "; ".join(data.report.reasons(Action.DROPPED))
    for told in ("line 3: it is no JSON", "line 4: something follows", "case 3: it is to be an"):
        assert told in dropped


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": " "}, 'it has no "question"'),
        ({"choices": ["one"]}, '"choices" is to be a list of 2 to 26 texts'),
        ({"choices": ["x"] * 27}, '"choices" is to be a list of 2 to 26 texts'),
        ({"choices": ["a", ""]}, '"choices"[1] is empty'),
        ({"choices": ["a", None]}, '"choices"[1] is no text'),
        ({"choices": ["a", "a"]}, "are the same"),
        ({"answer": None}, 'it has no "answer"'),
        ({"answer": 2}, "the indices 0 to 1"),
        ({"answer": True}, "an index from 0, a letter or the text"),
        ({"answer": "blue"}, "none of its choices"),
        ({"documents": []}, '"documents" is to be a list of ids'),
        ({"documents": ["d9"]}, "names 'd9', which is no document of its case"),
    ],
)
def test_a_malformed_question_is_reported_and_skipped(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    data, (material,) = read(tmp_path, case(question(**fields), question(id="good")))
    assert [task.id for task in material.tasks] == ["set/good"]
    (told,) = data.report.reasons(Action.DROPPED)
    assert told.startswith("set, question q: ")
    assert reason in told


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (case("x"), "question 0: it is to be an object"),
        (case(), '"questions": it is to be a list'),
        (case(question(), documents=[]), '"documents": it is to be a list'),
        (case(question(), documents=["x"]), "document 0: it is to be an object"),
        (case(question(), documents=[{"id": "e"}]), "neither \"text\" nor \"turns\""),
        (case(question(), documents=[{"id": "e"}]), "no document to ask it over"),
    ],
)  # fmt: skip
def test_what_a_case_lacks_is_reported(tmp_path: Path, content: Any, reason: str) -> None:
    data, materials = read(tmp_path, content)
    assert materials == []
    assert reason in "; ".join(data.report.reasons(Action.DROPPED))


def test_smaller_faults_leave_the_rest(tmp_path: Path) -> None:
    documents = [
        {"date": "soon", "text": "One."},
        {"id": "d", "date": "2024-03-01", "text": "Two."},
        {"id": "d", "text": "Three."},
    ]
    rows = [question(evidence=["d", "e"], date="later"), question()]
    data, (material,) = read(tmp_path, case(*rows, documents=documents))
    assert [message.content for message in material.messages] == ["One.", "Two."]
    assert [task.id for task in material.tasks] == ["set/q", "set/q#2"]
    assert material.tasks[0].asked is None
    repaired = "; ".join(data.report.reasons(Action.REPAIRED))
    for told in ("document document-0", "session document-0 has no date", "'e' is no document",
                 'question q, "date"'):  # fmt: skip
        assert told in repaired
    assert "its id 'd' was used before" in "; ".join(data.report.reasons(Action.DROPPED))
    assert "it is called q#2" in "; ".join(data.report.reasons(Action.NOTED))


def test_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read(tmp_path, "[{")


@pytest.mark.parametrize(
    ("answer", "right"),
    [(0, 0), (2, 2), ("a", 0), ("B", 1), ("(c)", 2), ("C.", 2), ("plums", 1), ("(b) plums", 1)],
)
def test_how_an_answer_may_be_given(answer: Any, right: int) -> None:
    given = ["(a) pears", "(b) plums", "(c) figs"]
    choices = read_choices(given)
    assert choices == ("pears", "plums", "figs")
    assert right_choice(answer, given, choices) == right


def test_labels_stay_where_they_are_not_labels() -> None:
    assert read_choices(["(a) pears", "(c) plums"]) == ("(a) pears", "(c) plums")
    assert read_choices([1, 2.5]) == ("1", "2.5")


def test_a_letter_that_is_also_a_text_is_refused() -> None:
    with pytest.raises(InputError, match="letter of one choice and the text of another"):
        right_choice("A", ["B", "A"], ["B", "A"])
    assert right_choice("B", ["A", "B"], ["A", "B"]) == 1
