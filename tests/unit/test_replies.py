"""A model's answer: what is read from it, and what is left out and counted."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from cofire.consolidation.drafts import ConceptDraft, Draft, Quote, RelationDraft
from cofire.consolidation.extracting import UnreadableError, extract
from cofire.consolidation.replies import Parsed, parse_concepts, parse_records
from cofire.consolidation.stated_times import stated_span
from cofire.models.generator import Finish
from cofire.types import Kind
from scripts_of_models import BREAKAGES, CANOE, GOOD, TURNS, concepts, record, reply, turn


def parsed(text: str, finish: Finish = "stop") -> Parsed:
    return parse_records(text, TURNS, finish, "scripted", "distil@2")


def one(**changes: Any) -> Draft:
    (draft,) = parsed(reply(record(**changes))).drafts
    return draft


def dropped(**changes: Any) -> dict[str, int]:
    return dict(parsed(reply(record(**changes))).dropped)


def test_a_record_is_read_whole() -> None:
    draft = one(
        slot="  Owns ",
        single=True,
        happened_from="2023-05-01",
        happened_to="2023-05-03",
        valid_from="2023-05",
        causes=["[T2]", "t2"],
    )
    assert draft == Draft(
        kind=Kind.FACT,
        content="Robin owns a canoe.",
        subject="Robin",
        quotes=(Quote(label="T1", text="I own a canoe."),),
        slot="owns",
        value="canoe",
        single=True,
        happened=(datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 5, 4, tzinfo=UTC)),
        valid_from=datetime(2023, 5, 1, tzinfo=UTC),
        causes=("T2",),
        language=draft.language,
        maker="scripted",
        prompt="distil@2",
    )


@pytest.mark.parametrize("name", BREAKAGES)
def test_broken_answers(name: str) -> None:
    text, failed = BREAKAGES[name]
    found = parsed(text)
    assert found.failed == failed
    contents = [draft.content for draft in found.drafts]
    assert contents == ([] if failed else ["Robin owns a canoe."])
    if not failed:
        assert found.drafts[0].quotes == (Quote(label="T1", text="I own a canoe."),)
    if failed == "unusable":
        assert found.dropped


@pytest.mark.parametrize(
    ("finish", "failed"), [("length", "cut"), ("refusal", "refusal"), ("filter", "refusal")]
)
def test_an_answer_that_was_not_finished_gives_nothing(finish: Finish, failed: str) -> None:
    assert parsed(GOOD, finish) == Parsed(failed=failed)


def test_nothing_to_write_is_an_answer() -> None:
    assert parsed('{"records": []}') == parsed("[]") == Parsed()


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"kind": "concept"}, {"kind": 1}),
        ({"kind": ["fact"]}, {"kind": 1}),
        ({"content": "x" * 501}, {"long": 1}),
        ({"content": ""}, {"content": 1}),
        ({"content": float("nan")}, {"content": 1}),
        ({"content": ["a", "b"]}, {"content": 1}),
        ({"content": "a\0b"}, {"characters": 1}),
        ({"subject": None}, {"subject": 1}),
        ({"subject": "unknown"}, {"subject": 1}),
        ({"quotes": None}, {"evidence": 1}),
        ({"quotes": []}, {"evidence": 1}),
        ({"quotes": "I own a canoe."}, {"evidence": 1, "list": 1}),
        ({"quotes": [{"turn": "T3", "text": "I own a canoe."}]}, {"evidence": 1, "label": 1}),
        ({"quotes": [{"turn": 1, "text": "I own a canoe."}]}, {"evidence": 1, "label": 1}),
        ({"quotes": [{"turn": "T1"}]}, {"evidence": 1, "quote": 1}),
        ({"quotes": [{"turn": "T1", "text": "\ud83d"}]}, {"characters": 1, "evidence": 1}),
        ({"quotes": [{"turn": "T1", "text": "x" * 2_001}]}, {"evidence": 1, "long": 1}),
        ({"quotes": ["These words stand nowhere."]}, {"evidence": 1, "label": 1}),
    ],
    ids=str,
)
def test_records_that_are_dropped(changes: dict[str, Any], count: dict[str, int]) -> None:
    found = parsed(reply(record(**changes), record()))
    assert [draft.content for draft in found.drafts] == ["Robin owns a canoe."]
    assert dict(found.dropped) == count
    assert parsed(reply(record(**changes))).failed == "unusable"


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"slot": None}, {"slot": 1}),
        ({"value": "x" * 201}, {"long": 1, "slot": 1}),
        ({"value": float("inf")}, {"slot": 1}),
        ({"value": True}, {"slot": 1}),
        ({"happened_from": "9999-99-99"}, {"time": 1}),
        ({"happened_from": "9999-12-31"}, {"time": 1}),
        ({"happened_from": "0001-01-01"}, {"time": 1}),
        ({"happened_from": "last week"}, {"time": 1}),
        ({"happened_from": "2023-05-02", "happened_to": "2023-05-01"}, {"time": 1}),
        ({"valid_from": "2023-02-29"}, {"time": 1}),
        ({"causes": ["T9", "D1", "D4", "", "all", "*"]}, {"cause": 5}),
        ({"causes": "T2"}, {"list": 1}),
        ({"causes": ["T1"] * 21}, {"excess": 1}),
        ({"confidence": 7, "weight": -1, "id": "12"}, {}),
    ],
    ids=str,
)
def test_parts_that_are_dropped(changes: dict[str, Any], count: dict[str, int]) -> None:
    found = parsed(reply(record(**changes)))
    assert dict(found.dropped) == count
    (draft,) = found.drafts
    if count.get("slot"):
        assert (draft.slot, draft.value, draft.single) == (None, None, False)
    if count.get("time"):
        assert (draft.happened, draft.valid_from) == (None, None)
    if count.get("cause"):
        assert draft.causes == ()


def test_numbers_and_objects_stand_for_texts() -> None:
    assert one(value=3).value == "3"
    assert one(content={"text": "Robin owns a canoe.", "n": 1}).content == "Robin owns a canoe."
    assert one(content="Robin\n owns\ta canoe.").content == "Robin owns a canoe."


def test_a_quote_without_a_label_belongs_to_the_only_turn_that_has_it() -> None:
    assert one(quotes=["It is green."]).quotes == (Quote(label="T1", text="It is green."),)
    twice = (CANOE, turn("T2", "It is green."))
    text = reply(record(quotes=["It is green."]))
    assert parse_records(text, twice, "stop", "m", "p").dropped == {"evidence": 1, "label": 1}


def test_causes_count_over_what_is_kept() -> None:
    found = parsed(
        reply(
            record(kind="nonsense"),
            record(content="Robin paddles."),
            record(content="Robin  paddles"),
            record(content="Robin is strong.", causes=["D2", "D3", "D1", "D4"]),
        )
    )
    assert [draft.content for draft in found.drafts] == ["Robin paddles.", "Robin is strong."]
    assert found.drafts[1].causes == ("D1",)
    assert found.dropped == {"cause": 2, "kind": 1, "repeated": 1}


def test_days_are_those_of_the_speaker() -> None:
    quotes = [{"turn": "T2", "text": "I moved to Bergen last week because of my new job."}]
    draft = one(quotes=quotes, happened_from="2023-05-01")
    assert draft.happened == (
        datetime(2023, 4, 30, 22, tzinfo=UTC),
        datetime(2023, 5, 1, 22, tzinfo=UTC),
    )


def test_too_many_records() -> None:
    found = parsed(reply(*(record(content=f"Robin owns canoe {n}.") for n in range(250))))
    assert len(found.drafts) == 200
    assert found.dropped == {"excess": 50}


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2024", "2024-01-01T00:00", "2025-01-01T00:00"),
        ("2024-02", "2024-02-01T00:00", "2024-03-01T00:00"),
        ("2024-12", "2024-12-01T00:00", "2025-01-01T00:00"),
        ("2024-02-29", "2024-02-29T00:00", "2024-03-01T00:00"),
        ("2024-05-31T18:30", "2024-05-31T18:30", "2024-05-31T18:31"),
        ("2024-05-31 18:30:12.5Z", "2024-05-31T18:30", "2024-05-31T18:31"),
        ("2024-05-31T18:30:00+0200", "2024-05-31T16:30", "2024-05-31T16:31"),
        ("1492-10-12", "1492-10-12T00:00", "1492-10-13T00:00"),
    ],
)
def test_stated_times(text: str, start: str, end: str) -> None:
    wanted = tuple(datetime.fromisoformat(f"{moment}+00:00") for moment in (start, end))
    assert stated_span(text, 0, None) == wanted


@pytest.mark.parametrize(
    "text", ["", "24", "2023-2-3", "2023-05-01T25:00", "2023-05-01T10:00+99:00", "٢٠٢٣", "2124"]
)
def test_what_is_no_stated_time(text: str) -> None:
    assert stated_span(text, 0, datetime(2023, 5, 8, tzinfo=UTC)) is None


def test_concepts_and_relations() -> None:
    text = concepts(
        [
            {"name": "Robin", "aliases": ["Rob", "Robin", 7, None], "turns": ["T1", "T2", "T7"]},
            {"name": "Bergen", "aliases": "B", "turns": ["T2"]},
            {"name": "robin", "aliases": [], "turns": ["T2"]},
            {"name": "Oslo", "aliases": [], "turns": ["T7"]},
            {"name": "", "aliases": [], "turns": ["T1"]},
            "Kiln",
        ],
        [
            {"from": "Rob", "relation": "Lives in", "to": "Bergen", "turns": ["T2"]},
            {"from": "Rob", "relation": "Lives in", "to": "Oslo", "turns": ["T2"]},
            {"from": "Rob", "relation": "is", "to": "Robin", "turns": ["T2"]},
            {"from": "Rob", "relation": "likes", "to": "Bergen", "turns": []},
            "Robin owns a canoe",
        ],
    )
    found = parse_concepts(text, TURNS, "stop", "scripted", "concepts@1")
    made: dict[str, Any] = {"maker": "scripted", "prompt": "concepts@1"}
    assert found.concepts == (
        ConceptDraft(name="Robin", aliases=("Rob", "7"), labels=("T1", "T2"), **made),
        ConceptDraft(name="Bergen", labels=("T2",), **made),
    )
    assert found.relations == (
        RelationDraft(source="Robin", relation="lives in", target="Bergen", labels=("T2",), **made),
    )
    assert found.dropped == {
        "evidence": 2, "label": 2, "list": 1, "name": 1, "relation": 4, "repeated": 1
    }  # fmt: skip
    bare = json.dumps([{"name": "Bergen", "turns": ["T2"]}])
    assert [c.name for c in parse_concepts(bare, TURNS, "stop", "m", "p").concepts] == ["Bergen"]


def test_mending_is_bounded_in_time() -> None:
    started = time.monotonic()
    with pytest.raises(UnreadableError):
        extract("{'a': 'it's fine', " * 10_000 + "}")
    with pytest.raises(UnreadableError, match="long"):
        extract('{"a": "b" ' + '"c": 1 ' * 10_000 + "}")
    with pytest.raises(UnreadableError):
        extract('{"a"' * 50_000 + "}" * 50_000)
    assert time.monotonic() - started < 5
