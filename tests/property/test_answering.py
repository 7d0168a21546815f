"""Invariants of contexts and of reading replies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.answering.context import compose
from cofire.answering.dates import with_dates
from cofire.answering.refusing import refuses
from cofire.answering.replies import Citations, choice_of, read_reply
from cofire.answers import Entry
from cofire.encoding.expressions import event_times
from cofire.models.generator import FINISHES
from cofire.models.wordpiece import WordPieces
from cofire.types import Item, Kind, Recall, Recalled, SpaceRef

PIECES = WordPieces()
START = datetime(2023, 1, 1, tzinfo=UTC)
SPACE = SpaceRef(tenant="default", identity="default")

TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["I went there yesterday.", "[/memory 123456]", "2) forged", "a\nb\n\n\nc", "word " * 30,
         "8 May 2023:", "x" * 400, "\ufeff \u2028", "[untrusted 1]", "last week and last year"]
    ),
)  # fmt: skip


@st.composite
def recalls(draw: st.DrawFn) -> Recall:
    hits = []
    for index in range(draw(st.integers(0, 12))):
        content = draw(TEXTS)
        time = START + timedelta(hours=draw(st.integers(0, 400)))
        item = Item(
            id=f"{index:04d}", number=index, space=SPACE, kind=Kind.EPISODE, content=content,
            speaker=draw(st.sampled_from([None, "Ada", "Bob\nEve", "[memory"])), time=time,
            recorded=time, updated=time, untrusted=draw(st.booleans()),
            offset=draw(st.sampled_from([None, 0, 840, -720])),
            event_times=event_times(content, time),
        )  # fmt: skip
        score = draw(st.floats(-5, 5))
        hits.append(Recalled(id=item.id, content=content, score=score, item=item))
    return Recall(id="r", query="q", items=tuple(hits), profile="cofire", tokens=0)


@settings(max_examples=60, deadline=None)
@given(recalls(), st.integers(1, 200))
def test_a_context_keeps_its_budget_and_numbers_its_lines(recall: Recall, budget: int) -> None:
    context = compose(recall, budget=budget, count=PIECES.count)
    assert context.tokens <= budget
    assert context.tokens == PIECES.count(context.text)
    assert [entry.label for entry in context.entries] == list(range(1, len(context.entries) + 1))
    assert len(set(context.ids)) == len(context.ids)
    assert len(context.ids) + context.left_out == len(recall)
    trusted = [entry for entry in context.entries if not entry.untrusted]
    assert list(context.entries[: len(trusted)]) == trusted
    offsets = {hit.id: hit.item.offset or 0 for hit in recall}
    days = [(entry.time + timedelta(minutes=offsets[entry.id])).date() for entry in trusted]
    assert all(one <= other for one, other in pairwise(days))
    for entry in context.entries:  # each line begins a line of the text, and nothing forges one
        assert context.text.count(f"\n{entry.label}) ") == 1
    assert compose(recall, budget=budget, count=PIECES.count) == context


@settings(max_examples=60, deadline=None)
@given(recalls(), st.integers(1, 120), st.integers(0, 120))
def test_more_room_never_takes_the_best_away(recall: Recall, budget: int, more: int) -> None:
    small = compose(recall, budget=budget, count=PIECES.count)
    assert not small or max(recall, key=lambda hit: hit.score).id in small.ids or small.left_out
    whole = compose(recall, budget=None, count=PIECES.count)
    assert set(whole.ids) == set(recall.ids)
    assert set(compose(recall, budget=budget + more, count=PIECES.count).ids) <= set(whole.ids)


def test_numbers_of_more_digits_are_counted() -> None:
    hits = []
    for number in range(400):
        time = START + timedelta(minutes=number)
        item = Item(
            id=f"{number:04d}", number=number, space=SPACE, kind=Kind.EPISODE, content="a kite",
            speaker="Ada", time=time, recorded=time, updated=time,
        )  # fmt: skip
        hits.append(Recalled(id=item.id, content=item.content, score=1.0, item=item))
    recall = Recall(id="r", query="q", items=tuple(hits), profile="cofire", tokens=0)
    for budget in range(600, 1_400, 37):
        assert compose(recall, budget=budget, count=PIECES.count).tokens <= budget


ENTRIES = tuple(
    Entry(label=label, id=str(label), text="t", quote="q", section="said", time=START)
    for label in range(1, 6)
)
REPLIES = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            ["[1]", "[2, 9]", "[3-5", "]", "[", "<think>", "</think>", "Not mentioned", "```", "{",
             '"answer": "x"', "}", "\ud800", "\u3010", "4", "\u3011", " ", "a.", "\n", "Answer:"]
        ),
        max_size=12,
    ).map("".join),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(REPLIES, st.sampled_from(FINISHES))
def test_no_reply_raises(text: str, finish: str) -> None:
    reply = read_reply(text, ENTRIES, finish)  # type: ignore[arg-type]
    assert set(reply.labels) <= {1, 2, 3, 4, 5}
    assert len(set(reply.labels)) == len(reply.labels)
    assert reply.text == reply.text.strip()
    assert reply.text or reply.malformed
    reply.text.encode("utf-8")
    refuses(text)
    chosen = choice_of(text, 4)
    assert chosen is None or 0 <= chosen < 4


@settings(max_examples=200, deadline=None)
@given(REPLIES, st.lists(st.integers(1, 9), max_size=30))
def test_pieces_add_up_to_the_whole(text: str, sizes: list[int]) -> None:
    one = Citations(ENTRIES)
    whole = one.feed(text) + one.end()
    other = Citations(ENTRIES)
    told, at = "", 0
    for size in sizes:
        told += other.feed(text[at : at + size])
        at += size
    told += other.feed(text[at:]) + other.end()
    assert told == whole
    assert other.labels == one.labels


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(-720, 840))
def test_dates_only_add_to_a_text(text: str, offset: int) -> None:
    said = START + timedelta(days=40)
    told = with_dates(text, event_times(text, said, offset), said.date(), offset=offset)
    rest = iter(told)
    assert all(character in rest for character in text)
