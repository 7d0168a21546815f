"""What holds for any memory: texts come back, exports are whole, recall is a function of what is
stored and asked, filters are exact, traces add up, budgets hold, and nothing disagrees."""

from __future__ import annotations

import io
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cofire import Memory
from cofire.encoding.text import sanitise
from cofire.errors import InputError, NotFoundError
from cofire.retrieval import loading
from cofire.types import Deletion, Filters, Item, Kind, Recall, line_header
from confirming import forget_all

NOW = datetime(2024, 6, 12, 10, tzinfo=UTC)
slow = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])

any_text = st.text(st.characters(codec=None), max_size=40)
"""Lone surrogates and NUL included."""
contents_ = any_text.filter(lambda text: sanitise(text).strip() != "")
WORDS = (
    *("boat", "dock", "harbour", "kiln", "bowl", "Tuesday", "parrot", "soup", "canoe", "shed"),
    *("key", "tin", "mast", "level", "Robin", "Ada", "Sam", "likes", "owns", "repaired", "the"),
    *("is", "a", "what", "when", "图书馆", "café", "running", "yesterday"),
)
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
names = st.sampled_from(["Ada", "Sam", "Robin Hart", "a_b", "%"])
times = st.datetimes(datetime(2020, 1, 1), datetime(2024, 6, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False,
    allow_infinity=False) | any_text.map(sanitise),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text.map(sanitise), inner,
    max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "content": draw(sentences),
        "speaker": draw(st.none() | names),
        "session": draw(st.none() | st.sampled_from(["s1", "s2"])),
        "tags": draw(st.lists(st.sampled_from(["x", "y", "x_y"]), max_size=2)),
        "kind": draw(st.sampled_from([Kind.EPISODE, Kind.FACT])),
        "time": draw(times),
        "metadata": draw(st.dictionaries(st.sampled_from(["p", "q"]), st.sampled_from(
            [1, "1", True, None, [1]]), max_size=2)),
        "expires": draw(st.none() | st.just(NOW - timedelta(days=1))
                        | st.just(NOW + timedelta(days=1))),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


stores = st.lists(messages(), min_size=1, max_size=20)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def opened(path: Path, **options: Any) -> Memory:
    return Memory.open(path, embedder="hashing:32", **options)


def everything(memory: Memory) -> list[Item]:
    return list(memory.list(limit=10_000, newest_first=False))


def gist(recall: Recall) -> list[tuple[str, str, float]]:
    return [(hit.id, hit.content, hit.score) for hit in recall]


def exported(memory: Memory) -> list[dict[str, Any]]:
    """An export's lines without the header, whose date and hash differ."""
    stream = io.BytesIO()
    memory.export(stream)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0]["type"] == "header"
    assert lines[-1].pop("sha256")
    return lines[1:]


# Texts


@given(contents_, any_text, any_text, any_text, json_values)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_comes_back_byte_for_byte(
    content: str, title: str, tag: str, key: str, value: Any
) -> None:
    with folder() as place, opened(place / "m.db") as memory:
        tags = [tag] if sanitise(tag) else []
        metadata = {key: value}
        id = memory.remember(content, title=title, tags=tags, metadata=metadata, key=key).id
        item = memory.get(id)
        wanted = sanitise(content).encode()
        assert item.content.encode() == wanted
        assert (item.title, item.key) == (sanitise(title) or None, sanitise(key) or None)
        assert item.tags == tuple(sanitise(tag) for tag in tags)
        assert item.metadata == {sanitise(key): value}
        assert everything(memory) == [item]
        assert all(hit.content.encode() == wanted for hit in memory.recall(content))
        assert [one.id for one in memory.list(metadata=metadata, tags=tags)] == [id]
        memory.export(place / "out.jsonl")
        with opened(place / "other.db") as other:
            report = other.import_(place / "out.jsonl")
            assert (report.imported, report.dropped) == (1, 0)
            (copy,) = everything(other)
            assert copy.content.encode() == wanted
            assert memory.get(id) == other.get(id)
        assert list(memory.check()) == []


# Export and import


@given(stores, st.data())
@slow
def test_an_imported_export_is_exported_the_same(
    store: list[dict[str, Any]], data: st.DataObject
) -> None:
    with folder() as place, opened(place / "m.db", projects=["p"]) as memory:
        ids = list(memory.remember(store).ids)
        memory.remember("shared", project="p")
        memory.remember("Every sentence says more. " * 60, session="s1")
        for id in data.draw(st.lists(st.sampled_from(ids), max_size=4, unique=True)):
            memory.update(id, content=data.draw(contents_), now=NOW)
        for id in data.draw(st.lists(st.sampled_from(ids), max_size=3, unique=True)):
            memory.forget(id)
            ids.remove(id)
        if len(ids) > 1:
            memory.link(ids[0], ids[1], "supports", strength=0.25, now=NOW) if not any(
                {link.source, link.target} == {ids[0], ids[1]} for link in memory.links(ids[0])
            ) else None
        memory.recall("what is the boat", now=NOW)
        memory.export(place / "out.jsonl")
        with opened(place / "other.db", projects=["p"]) as other:
            other.import_(place / "out.jsonl")
            assert exported(other) == exported(memory)
            assert gist(other.recall("boat dock", 50, now=NOW)) == gist(
                memory.recall("boat dock", 50, now=NOW)
            )
            again = other.import_(place / "out.jsonl")
            assert again.imported == 0
            assert list(other.check()) == []


# Recall is a function


@given(stores, st.lists(sentences, min_size=1, max_size=3), st.randoms(use_true_random=False))
@slow
def test_the_same_question_has_the_same_answer(
    store: list[dict[str, Any]], questions: list[str], random: Any
) -> None:
    with folder() as place, patch.object(loading, "SIDECAR_FROM", 1):
        with opened(place / "m.db") as memory:
            memory.remember(store)
            first = {question: gist(memory.recall(question, 50, now=NOW)) for question in questions}
            assert all(
                gist(memory.recall(question, 50, now=NOW)) == first[question]
                for question in reversed(questions)
            )
            before = {path.name for path in place.iterdir()}
        sidecars = {path.name for path in place.iterdir()} - before
        for removed in (False, True):
            if removed:
                for name in sidecars:
                    (place / name).unlink()
            with opened(place / "m.db") as memory:
                random.shuffle(questions)
                for question in questions:
                    assert gist(memory.recall(question, 50, now=NOW)) == first[question]
        # Grown one by one and with a detour, the store ranks as if made at once.
        ids = {id for answer in first.values() for id, *_ in answer}
        with opened(place / "m.db") as memory:
            extra = memory.remember("boat boat boat canoe").id
            memory.recall("boat", now=NOW)
            memory.forget(extra)
            for question in questions:
                assert gist(memory.recall(question, 50, now=NOW)) == first[question]
            assert list(memory.check()) == []
        assert all(id for id in ids)


def test_a_sidecar_is_written_and_used(tmp_path: Path) -> None:
    with patch.object(loading, "SIDECAR_FROM", 1):
        with opened(tmp_path / "m.db") as memory:
            memory.remember(["boat", "dock"])
            first = gist(memory.recall("boat", now=NOW))
        assert len(list(tmp_path.iterdir())) > 1
        with opened(tmp_path / "m.db") as memory:
            assert gist(memory.recall("boat", now=NOW)) == first


# Traces


@given(stores, sentences, st.sampled_from(["cofire", "dense", "lexical"]))
@slow
def test_the_terms_of_a_trace_add_up(
    store: list[dict[str, Any]], question: str, profile: str
) -> None:
    with folder() as place, opened(place / "m.db", projects=["p"]) as memory:
        memory.remember(store)
        memory.remember("shared boat and canoe", project="p")
        plain = memory.recall(question, 50, profile=profile, now=NOW)
        recall = memory.recall(question, 50, profile=profile, now=NOW, explain=True)
        assert gist(plain) == gist(recall)
        assert recall.trace is not None
        assert [one.id for one in recall.trace.items] == list(recall.ids)
        known = {item.id for item in everything(memory)}
        for hit, traced in zip(recall, recall.trace.items, strict=True):
            assert traced.score == hit.score
            assert abs(sum(term.contribution for term in traced.terms) - hit.score) <= 1e-6
            for term in traced.terms:
                assert term.contribution == pytest.approx(term.weight * term.value)
            for path in traced.paths:
                assert path.activation > 0
                assert path.via[-1] == hit.id
                assert path.type != "temporal" or set(path.via) <= known
            assert traced.anchors or traced.paths
        scores = [hit.score for hit in recall]
        assert scores == sorted(scores, reverse=True)
        assert scores == [round(score, 6) for score in scores]


# Filters

OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "kinds": st.lists(st.sampled_from([Kind.EPISODE, Kind.FACT, Kind.GOAL]), max_size=2),
    "speakers": st.lists(names, max_size=2),
    "sessions": st.lists(st.sampled_from(["s1", "s2", "s3"]), max_size=2),
    "tags": st.lists(st.sampled_from(["x", "y", "x_y", "z"]), max_size=2),
    "metadata": st.dictionaries(
        st.sampled_from(["p", "q"]), st.sampled_from([1, "1", True, None, [1], 1.0]), max_size=2
    ),
    "since": times,
    "until": times,
}


def passes(item: Item, filters: Mapping[str, Any]) -> bool:
    """The filters' meaning, in the plainest words."""

    def same(one: Any, other: Any) -> bool:
        return isinstance(one, bool) == isinstance(other, bool) and one == other

    wanted = Filters(**{**filters, "tags": tuple(filters.get("tags", ()))})
    return (
        (not wanted.kinds or item.kind in wanted.kinds)
        and (not wanted.speakers or item.speaker in wanted.speakers)
        and (not wanted.sessions or item.session in wanted.sessions)
        and set(wanted.tags) <= set(item.tags)
        and all(
            key in item.metadata and same(item.metadata[key], value)
            for key, value in wanted.metadata.items()
        )
        and (wanted.since is None or item.time >= wanted.since)
        and (wanted.until is None or item.time < wanted.until)
    )


@given(stores, st.fixed_dictionaries({}, optional=OPTIONS), sentences)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_filters_are_exact(
    store: list[dict[str, Any]], filters: dict[str, Any], question: str
) -> None:
    with folder() as place, opened(place / "m.db", projects=["p"]) as memory:
        memory.remember(store[::2])
        memory.remember(store[1::2], project="p")
        items = everything(memory)
        wanted = {item.id for item in items if passes(item, filters)}
        assert {item.id for item in memory.list(limit=1000, **filters)} == wanted
        current = {item.id for item in items if item.expires is None or item.expires > NOW}
        for profile in ("dense", "cofire", "lexical"):
            found = memory.recall(question, 1000, profile=profile, now=NOW, **filters).ids
            assert len(found) == len(set(found))
            assert set(found) <= wanted & current
            if profile == "dense":  # everything that has a vector is a candidate
                assert set(found) == wanted & current
        one_by_one: list[str] = []
        after = None
        for _ in itertools.count():
            page = memory.list(limit=3, after=after, **filters)
            one_by_one += [item.id for item in page]
            after = page.next
            if after is None:
                break
        assert len(one_by_one) == len(wanted)
        assert set(one_by_one) == wanted


# Budgets


SET_ASIDE = 19
"""Wordpieces that the marks around a rendering have at most."""


@given(stores, sentences, st.integers(1, 120), st.integers(1, 30))
@slow
def test_a_token_budget_is_never_passed_and_nothing_is_cut(
    store: list[dict[str, Any]], question: str, budget: int, k: int
) -> None:
    with folder() as place, opened(place / "m.db") as memory:
        memory.remember(store)
        memory.remember("Every sentence says boat once more. " * 80)
        free = memory.recall(question, k, now=NOW)
        packed = memory.recall(question, k, token_budget=budget, now=NOW)
        for recall in (free, packed):
            assert len(recall) <= k
            costs = [
                hit.item.tokens
                + memory.count_tokens(
                    line_header(hit.item.time, hit.item.offset, hit.item.speaker or hit.item.role)
                )
                for hit in recall
            ]
            marks = memory.count_tokens(recall.text) - sum(costs)
            assert recall.tokens == sum(costs) + marks
            assert (9 if costs else 0) <= marks <= (SET_ASIDE if costs else 0)
            for hit in recall:
                whole = memory.get(hit.id).content
                part = whole if hit.segment is None else whole[hit.segment.start : hit.segment.end]
                assert hit.content == part
        assert packed.tokens <= budget
        if free.tokens + SET_ASIDE - 9 <= budget and len(free) == k:
            assert gist(packed) == gist(free)
        assert gist(memory.recall(question, k, token_budget=10**9, now=NOW)) == gist(free)


# Any sequence of changes

steps = st.lists(
    st.one_of(
        st.tuples(st.just("remember"), st.lists(messages(), min_size=1, max_size=3)),
        st.tuples(st.just("update"), st.integers(0, 99), messages()),
        st.tuples(st.just("forget"), st.lists(st.integers(0, 99), min_size=1, max_size=3)),
        st.tuples(st.just("link"), st.integers(0, 99), st.integers(0, 99)),
        st.tuples(st.just("recall"), sentences),
        st.tuples(st.just("long"), st.integers(1, 80)),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("everything")),
    ),
    min_size=1,
    max_size=20,
)


@given(steps)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_of_changes_leaves_all_in_agreement(  # noqa: PLR0912 - a case per verb
    changes: list[tuple[Any, ...]],
) -> None:
    with folder() as place, patch.object(loading, "SIDECAR_FROM", 1):
        memory = opened(place / "m.db")
        model: dict[str, str] = {}
        receipts: list[Deletion] = []

        def pick(number: int) -> str | None:
            return list(model)[number % len(model)] if model else None

        try:
            for verb, *arguments in changes:
                match verb:
                    case "remember":
                        ids = memory.remember(arguments[0]).ids
                        model.update(zip(ids, (m["content"] for m in arguments[0]), strict=True))
                    case "long":
                        text = "A sentence of the long text. " * arguments[0]
                        model[memory.remember(text, session="s1").id] = text
                    case "update" if (id := pick(arguments[0])) is not None:
                        memory.update(id, **arguments[1])
                        model[id] = arguments[1]["content"]
                    case "forget":
                        gone = {id for number in arguments[0] if (id := pick(number)) is not None}
                        if gone:
                            receipt = memory.forget(sorted(gone))
                            assert receipt.memories == len(gone)
                            receipts.append(receipt)
                        for id in gone:
                            del model[id]
                            with pytest.raises(NotFoundError):
                                memory.get(id)
                    case "link" if model:
                        with_id, to = pick(arguments[0]), pick(arguments[1])
                        assert with_id is not None
                        assert to is not None
                        try:
                            memory.link(with_id, to)
                        except InputError:  # itself, or linked already
                            assert with_id == to or any(
                                link.target == to for link in memory.links(with_id)
                            )
                    case "recall":
                        assert set(memory.recall(arguments[0], 99, now=NOW).ids) <= set(model)
                    case "reopen":
                        memory.close()
                        memory = opened(place / "m.db")
                    case "everything":
                        receipts.append(forget_all(memory))
                        assert receipts[-1].memories == len(model)
                        model.clear()
            assert {item.id: item.content for item in everything(memory)} == model
            assert list(memory.check()) == []
            memory.recall("boat", now=NOW)
        finally:
            memory.close()
        with opened(place / "m.db") as again:
            assert {item.id: item.content for item in everything(again)} == model
            assert list(again.check()) == []
            assert again.receipts(limit=100) == tuple(reversed(receipts))
            assert all(map(again.verify, receipts))
