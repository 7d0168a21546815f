"""Kind f of the case bank: what models answer, as the reader of answers sees it, and what a store
is like afterwards.

The bank's replies have a schema of their own. Each is read as it stands, where it must give nothing
(it cites no turn) and say why, and again with its facts put into our schema, broken as it is.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.consolidation.asking import ask
from cofire.consolidation.budgets import Budget
from cofire.consolidation.prompts import load
from cofire.consolidation.replies import parse_records
from cofire.testing import ScriptedGenerator
from cofire.types import SleepReport
from scripts_of_models import GOOD, record, turn

SHARED = Path(os.environ.get("COFIRE_SHARED") or Path(__file__).parents[3] / "shared")
REPLIES = SHARED / "cases" / "files" / "llm" / "bad_replies.json"
KEYS = json.loads(REPLIES.read_text(encoding="utf-8")) if REPLIES.is_file() else {}
TURN = turn("T1", "I own a canoe.")

pytestmark = pytest.mark.skipif(
    not KEYS, reason="the shared case bank is not beside the project (set COFIRE_SHARED)"
)

READ = {
    "fenced", "prose_around", "think_then_fence", "broken_think", "trailing_comma", "list_top",
}  # fmt: skip
"""What is broken around the facts: with ours in their place, the record is read."""
FAILED = {
    "empty": "empty", "whitespace": "empty", "null": "empty", "only_think": "thinking",
    "truncated": "cut", "bad_u_escape": "escape", "two_objects": "ambiguous", "refusal": "prose",
    "html_502": "prose", "string_for_list": "shape",
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_no_reply_without_evidence_gives_a_record(key: str) -> None:
    found = parse_records(KEYS[key], [TURN], "stop", "m", "distil@2")
    assert found.drafts == ()
    assert found.failed == FAILED.get(key, "unusable")


@pytest.mark.parametrize("key", KEYS)
def test_with_evidence_it_is_read_or_fails_whole(key: str) -> None:
    ours = json.dumps(record(content="Robin owns a canoe."))
    text = KEYS[key].replace('"Robin owns a canoe"', ours)
    found = parse_records(text, [TURN], "stop", "m", "distil@2")
    if key in READ:
        assert [draft.content for draft in found.drafts] == ["Robin owns a canoe."]
    elif key == "string_for_list":  # now one record stands where a list was due
        assert found.failed == "shape"
    else:
        assert found.failed == FAILED.get(key, "unusable")
        assert found.drafts == ()


@pytest.mark.parametrize("key", sorted(FAILED))
def test_what_fails_is_tried_within_bounds_and_told(key: str) -> None:
    """f-01, f-02, f-05: nothing is taken from it, the turn is named as unanswered, and the next
    run asks again."""
    generator = ScriptedGenerator(then=KEYS.get(key, ""))
    result = ask(generator, load("distil"), [TURN], Budget())
    assert result.drafts == ()
    assert result.unanswered == ("T1",)
    assert result.calls <= 3
    assert sum(result.failures.values()) == result.calls


def test_only_what_was_offered_is_accepted() -> None:
    """f-03: ids of other memories, of nobody's, and words that would mean all of them."""
    entries = [
        record(quotes=[{"turn": name, "text": "I own a canoe."}], content=f"By {name}.")
        for name in ("0", "all", "*", "m1", "12", "T01", "T1")
    ]
    text = json.dumps({"records": entries, "deletes": ["0", "all", "*"], "links": [["m1", "0"]]})
    found = parse_records(text, [TURN], "stop", "m", "distil@2")
    assert [draft.content for draft in found.drafts] == ["By T1."]
    assert found.dropped == {"evidence": 6, "label": 6}


def test_the_language_is_asked_for() -> None:
    """f-04."""
    generator = ScriptedGenerator(['{"records": []}'])
    ask(generator, load("distil"), [turn("T1", "Mi perro se llama Brisa.")], Budget())
    assert "keep the language of the message" in generator.requests[0].system


# On a store

NIGHT = datetime(2024, 8, 1, 3, tzinfo=UTC)
SAID = "I own a canoe."
UNKEPT = ("sorry", "think", "reasoning", "learni", "html", "```", "{", "user")
"""Words of the answers that are nobody's memories."""


def sleep(memory: Memory, day: int, **options: Any) -> SleepReport:
    (report,) = memory.consolidate("distil", now=NIGHT + timedelta(days=day), **options)
    return report


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("ours", [False, True], ids=["as it stands", "in our schema"])
def test_a_reply_leaves_the_message_and_at_most_the_fact(
    tmp_path: Path, key: str, *, ours: bool
) -> None:
    """f-01, f-02, f-05: the message is kept and found; what failed is told, and asked again in the
    next nights, a bounded number of times; no reasoning, refusal or fragment becomes a record."""
    text = KEYS[key]
    if ours:
        text = text.replace('"Robin owns a canoe"', json.dumps(record()))
    read = ours and key in READ
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        id = memory.remember(SAID, speaker="Robin", time="2024-01-05", now=NIGHT).id
        calls = []
        for day in range(2, 8):
            model = ScriptedGenerator(then=text)
            report = sleep(memory, day, generator=model)
            assert not report.failed
            calls.append(len(model.requests))
            assert report.counts.get("unanswered", 0) == (0 if read or not calls[-1] else 1)
            assert memory.recall("canoe", now=NIGHT).ids[0] == id
        assert calls[3:] == [0, 0, 0]
        assert calls[0] == 1 if read else 0 < sum(calls) <= 9
        assert [one.content for one in memory.records()] == ["Robin owns a canoe."] * read
        kept = [one.content for one in (*memory.records(), *memory.quarantine())]
        assert not any(word in text.casefold() for text in kept for word in UNKEPT)
        assert [item.content for item in memory.list(kinds="episode")] == [SAID]
        assert memory.check() == []


@pytest.mark.parametrize("key", sorted(FAILED))
def test_a_good_reply_after_a_bad_night_gives_the_fact(tmp_path: Path, key: str) -> None:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        memory.remember(SAID, speaker="Robin", time="2024-01-05", now=NIGHT)
        first = sleep(memory, 2, generator=ScriptedGenerator(then=KEYS[key]))
        assert first.counts["unanswered"] == 1
        again = sleep(memory, 3, generator=ScriptedGenerator([GOOD]))
        assert again.counts["new"] == 1
        model = ScriptedGenerator()
        assert not sleep(memory, 4, generator=model).counts
        assert not model.requests
        assert memory.check() == []


def test_what_is_cut_off_is_asked_about_with_less(tmp_path: Path) -> None:
    """f-01: an identical retry would be cut off again."""
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        for number in range(4):
            memory.remember(f"I own kite {number}.", speaker="Robin", now=NIGHT)
        model = ScriptedGenerator(then=KEYS["truncated"])
        report = sleep(memory, 2, generator=model)
        assert report.counts["unanswered"] == 4
        different = {(request.user, request.max_tokens) for request in model.requests}
        assert len(different) == len(model.requests)
        assert not memory.records()
