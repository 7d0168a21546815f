"""Learning from use: a log, and strengths that are its fold."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cofire.dynamics.plasticity import (
    COFIRE_RULE,
    DAY_US,
    ECHOMCP_RULE,
    HELA_MEM_RULE,
    RULES,
    SIGNALS,
    current,
)
from cofire.errors import ConfigurationError, InputError, NotFoundError
from cofire.store import Store
from cofire.store.cues import NewCue
from cofire.store.learning import VOUCHING, Learned, NewEvent
from cofire.store.looking_back import Proposal
from cofire.store.records import LinkRow, SpaceInfo
from cofire.testing.changes import seen
from cofire.testing.fixtures import Opener, StoreFixtures
from cofire.testing.samples import a_recall, a_vector, an_item, make_space, some_segments

QUESTION = (1 << 64) - 5
SELF_MADE = frozenset(SIGNALS) - VOUCHING
"""Signals that nobody gives who has judged what a memory was worth."""


def evidence(*used: int, **fields: Any) -> NewEvent:
    """Memories used together, and what else a test says."""
    rejected = fields.pop("rejected", ())
    items = [(number, 1.0) for number in used] + [(number, -1.0) for number in rejected]
    return NewEvent(items=tuple(items), **{"signal": "used", "time": 0, **fields})


def a_cue(content: str = "which?", merge_into: int | None = None, **fields: Any) -> NewCue:
    """A question to remember."""
    return NewCue(item=an_item(content, kind="cue", **fields), merge_into=merge_into)


def learn(store: Store, space: SpaceInfo, *used: int, **fields: Any) -> Learned:
    """One piece of evidence, by the default rule."""
    options = {name: fields.pop(name) for name in ("trusted", "cue") if name in fields}
    event = evidence(*used, **fields)
    rule = store.rule(space)
    return store.learn(space, event, rule, now=event.time, **options)


def strengths(store: Store, space: SpaceInfo) -> Mapping[tuple[int, int], float]:
    """The learned links as they are stored."""
    return {link[:2]: link.strength for link in learned(store, space)}


def learned(store: Store, space: SpaceInfo) -> list[LinkRow]:
    """The rows of learned links."""
    return [link for link in store.iterate_links(space) if link.last_coactivated is not None]


def require_fold(store: Store, space: SpaceInfo) -> None:
    """Asserts that every learned link is what the log says."""
    stored = {
        (min(link[:2]), max(link[:2])) if link.type == "coactivation" else link[:2]: (
            *(link.strength, link.coactivations, link.last_coactivated, link.tick),
            *(link.rejections, link.quota_day, link.quota),
        )
        for link in learned(store, space)
    }
    assert stored == {pair: tuple(state) for pair, state in store.fold(space).items()}


class LearningTests(StoreFixtures):
    """Part of `StoreConformance`."""

    @pytest.fixture
    def learner(self, store: Store, space: SpaceInfo) -> SpaceInfo:
        """A space of nine memories."""
        store.append(space, [an_item(str(number)) for number in range(1, 10)])
        return space

    @pytest.fixture
    def visited(self, store: Store, learner: SpaceInfo) -> SpaceInfo:
        """The space of nine, and two memories from outside: 10, and 11, which has segments."""
        store.append(
            learner,
            [
                an_item("a page", untrusted=True),
                an_item("a long page", untrusted=True, segments=some_segments((0, 5), (6, 11))),
            ],
        )
        return learner

    @pytest.mark.parametrize(
        ("signal", "trusted"),
        [("used", False), ("explicit", False), *((one, True) for one in sorted(SELF_MADE))],
    )
    def test_what_is_not_trusted_earns_nothing_by_itself(
        self, store: Store, visited: SpaceInfo, signal: str, trusted: bool
    ) -> None:
        before = store.revision(visited)
        for page in (10, 11, 12):
            made = learn(store, visited, page, signal=signal, trusted=trusted, cue=a_cue())
            assert (made.seq, made.cue) == (None, None)
        assert store.revision(visited) == before
        together = learn(store, visited, 1, 10, 13, signal=signal, trusted=trusted, cue=a_cue())
        assert {10, 11, 12, 13}.isdisjoint(end for link in together.changed for end in link[:2])
        require_fold(store, visited)

    @pytest.mark.parametrize("signal", ["used", "explicit"])
    def test_who_is_trusted_vouches_for_it(
        self, store: Store, visited: SpaceInfo, signal: str
    ) -> None:
        learn(store, visited, 1, 10, 13, signal=signal, trusted=True)
        assert set(strengths(store, visited)) >= {(1, 10), (1, 11), (10, 11)}
        require_fold(store, visited)
        before = strengths(store, visited)
        learn(store, visited, 1, signal="used", rejected=(10,))
        assert strengths(store, visited)[1, 10] < before[1, 10]
        require_fold(store, visited)
        assert store.replay(visited) == 0

    def test_use_links_what_was_used(self, store: Store, learner: SpaceInfo) -> None:
        before = store.revision(learner)
        event = evidence(2, 1, 3, rejected=(4,), time=7, principal="p", recall=b"r" * 16)
        done = store.learn(learner, event, COFIRE_RULE, now=9)
        assert (done.seq, done.revision, done.cue, done.evicted) == (1, before + 1, None, ())
        assert done.changed == (
            (1, 2, 0.15), (1, 3, 0.15), (1, 4, 0.0), (2, 3, 0.15), (2, 4, 0.0), (3, 4, 0.0),
        )  # fmt: skip
        link, *_, apart = learned(store, learner)
        assert (link.type, link.coactivations, link.rejections) == ("coactivation", 1, 0)
        assert (link.last_coactivated, link.created, link.revision) == (7, 9, before + 1)
        assert (link.quota_day, link.quota) == (0, (("p", 0.15),))
        assert (apart.source, apart.target, apart.rejections) == (3, 4, 1)
        (kept,) = store.iterate_events(learner)
        assert kept.items == ((1, 1.0), (2, 1.0), (3, 1.0), (4, -1.0))
        assert (kept.type, kept.signal, kept.principal) == ("feedback", "used", "p")
        assert (kept.recall, kept.time, kept.question) == (b"r" * 16, 7, None)
        changes = seen(store, learner, before)
        assert len(changes.links) == 6
        assert not changes.rebuild
        require_fold(store, learner)

    def test_strength_grows_fades_and_falls(self, store: Store, learner: SpaceInfo) -> None:
        for day in range(3):
            learn(store, learner, 1, 2, time=day * DAY_US, trusted=True)
        strong = strengths(store, learner)[1, 2]
        assert 0.65 < strong < 0.66
        (state,) = store.fold(learner).values()
        later = 2 * DAY_US + 180 * DAY_US
        assert current(COFIRE_RULE, state, later) == pytest.approx(strong / 2)
        learn(store, learner, 1, 2, time=later, outcome=-1.0)
        assert strengths(store, learner)[1, 2] == pytest.approx(strong / 2 * 0.8)
        require_fold(store, learner)

    def test_the_same_evidence_counts_once(self, store: Store, learner: SpaceInfo) -> None:
        asked = {"question": QUESTION, "principal": "p"}
        assert learn(store, learner, 1, 2, **asked).seq == 1
        before, strong = store.revision(learner), strengths(store, learner)
        repeated = learn(store, learner, 2, 1, time=DAY_US, **asked)
        assert repeated == Learned(
            seq=None, changed=(), evicted=(), cue=None, revision=store.revision(learner)
        )
        assert store.revision(learner) == before
        assert strengths(store, learner) == strong
        # Only what is new of it counts: another pair, sign, principal, signal or question.
        more = learn(store, learner, 1, 2, 3, **asked)
        assert [pair[:2] for pair in more.changed] == [(1, 3), (2, 3)]
        for other in (
            {"outcome": -1.0}, {"principal": "q"}, {"principal": None}, {"signal": "cited"},
            {"question": QUESTION - 1},
        ):  # fmt: skip
            assert learn(store, learner, 1, 2, **{**asked, **other}).seq is not None
            assert learn(store, learner, 1, 2, **{**asked, **other}).seq is None
        # To name two memories is to say it every time.
        for _ in range(2):
            named = learn(store, learner, 1, 2, type="strengthen", signal="explicit")
            assert named.seq is not None
        require_fold(store, learner)

    def test_what_says_nothing_is_not_logged(self, store: Store, learner: SpaceInfo) -> None:
        before = store.revision(learner)
        for nothing in (
            evidence(1), evidence(1, 99), evidence(), evidence(rejected=(1, 2)),
            evidence(1, 2, signal="retrieved"), evidence(1, 2, outcome=0.0),
            NewEvent(items=((1, 1.0), (2, 0.0)), signal="used", time=0),
            evidence(1, 2, via={2: 1}),
        ):  # fmt: skip
            assert store.learn(learner, nothing, COFIRE_RULE, now=0).seq is None
        only_rejected = store.learn(
            learner, evidence(rejected=(1,)), COFIRE_RULE, cue=a_cue(), now=0
        )
        assert (only_rejected.seq, only_rejected.cue) == (None, None)
        assert store.revision(learner) == before
        assert store.counts(learner).items == 9
        assert store.append(learner, [an_item()]).numbers == (10,)

    def test_impossible_evidence_is_refused(self, store: Store, learner: SpaceInfo) -> None:
        for wrong in (
            evidence(1, 2, signal="wished"), evidence(1, 2, outcome=float("nan")),
            evidence(1, 1), evidence(1, 2, type="evict"),
            NewEvent(items=((1, 2.0),), signal="used", time=0),
        ):  # fmt: skip
            with pytest.raises(InputError):
                store.learn(learner, wrong, COFIRE_RULE, now=0)
        with pytest.raises(InputError):
            store.learn(learner, evidence(1, 2), COFIRE_RULE, cue=NewCue(item=an_item()), now=0)
        assert list(store.iterate_events(learner)) == []
        store.forget_space(learner)
        with pytest.raises(NotFoundError):
            store.learn(learner, evidence(1, 2), COFIRE_RULE, now=0)

    def test_segments_stand_for_their_text(self, store: Store, space: SpaceInfo) -> None:
        whole = an_item("long text", segments=some_segments((0, 4), (4, 9)))
        store.append(space, [an_item(), whole])
        done = learn(store, space, 1, 3, 4)
        assert [pair[:2] for pair in done.changed] == [(1, 2)]
        require_fold(store, space)

    def test_a_link_earns_nothing_for_itself(self, store: Store, learner: SpaceInfo) -> None:
        learn(store, learner, 1, 2)
        strong = strengths(store, learner)[1, 2]
        done = learn(store, learner, 1, 2, 3, via={2: 1, 3: 9}, time=DAY_US)
        assert [pair[:2] for pair in done.changed] == [(1, 3), (2, 3)]
        assert strengths(store, learner)[1, 2] == strong
        assert list(store.iterate_events(learner))[-1].via == ((2, 1),)
        weaker = learn(store, learner, 1, 2, via={2: 1}, time=DAY_US, outcome=-1.0)
        assert weaker.changed[0][2] < strong
        require_fold(store, learner)

    def test_one_principal_moves_a_link_so_far_a_day(
        self, store: Store, learner: SpaceInfo
    ) -> None:
        for _ in range(5):
            learn(store, learner, 1, 2, principal="p")
        assert strengths(store, learner)[1, 2] == pytest.approx(0.2)
        for _ in range(2):
            learn(store, learner, 1, 2, principal="q", outcome=-1.0)
        undone = strengths(store, learner)[1, 2]
        assert undone < 0.14
        learn(store, learner, 1, 2, principal="p", outcome=-1.0)
        assert strengths(store, learner)[1, 2] == undone
        learn(store, learner, 1, 2, principal="p", time=DAY_US)
        assert strengths(store, learner)[1, 2] > undone + 0.19
        learn(store, learner, 1, 2, principal="admin", time=DAY_US, trusted=True)
        assert strengths(store, learner)[1, 2] > undone + 0.3
        require_fold(store, learner)

    def test_an_item_keeps_its_strongest_links(self, store: Store, learner: SpaceInfo) -> None:
        rule = replace(COFIRE_RULE, name="narrow", links_per_item=3)
        store.learn(learner, evidence(1, 2, 3, 4), rule, now=0)
        assert len(strengths(store, learner)) == 6
        before = store.revision(learner)
        strong = evidence(5, 1, recall=b"r" * 16, principal="p", time=3)
        done = store.learn(learner, strong, rule, trusted=True, now=3)
        assert done.evicted == ((1, 2),)
        assert seen(store, learner, before).removed_links == [(1, 2)]
        told = list(store.iterate_events(learner))[-1]
        assert (told.type, told.seq, done.seq) == ("evict", 3, 2)
        assert told.items == ((1, 0.0), (2, 0.0), (5, 0.0))
        assert (told.recall, told.principal, told.time) == (b"r" * 16, "p", 3)
        weak = NewEvent(items=((6, 0.1), (1, 0.5)), signal="used", time=4)
        assert store.learn(learner, weak, rule, now=4).evicted == ((1, 6),)
        assert (1, 6) not in strengths(store, learner)
        # 2 has room: what it lost by 1's doing it may learn again.
        store.learn(learner, replace(strong, items=((1, 1.0), (2, 1.0))), rule, trusted=True, now=5)
        assert (1, 2) in strengths(store, learner)
        assert [move.movement > 0 for move in store.why(learner, 2, 1)] == [True, False, True]
        require_fold(store, learner)

    def test_a_question_becomes_a_cue(self, store: Store, learner: SpaceInfo) -> None:
        cue = a_cue("which?", vector=a_vector(1), tags=("t",), time=5)
        done = learn(store, learner, 1, 2, rejected=(3,), cue=cue, question=QUESTION, time=5)
        assert done.cue == 10
        row = store.get(learner, 10)
        assert row is not None
        assert (row.kind, row.content, row.tags, row.updated) == ("cue", "which?", ("t",), 5)
        assert store.vectors(learner, [10]) == {10: a_vector(1)}
        links = {link[:2]: link for link in learned(store, learner)}
        assert links.keys() == {(1, 2), (1, 3), (2, 3), (10, 1), (10, 2)}
        assert links[10, 1].type == "association"
        assert links[10, 1].strength == pytest.approx(0.2)  # capped
        again = learn(
            store, learner, 2, 4, rejected=(1,), time=DAY_US, question=QUESTION - 1,
            cue=a_cue("which one?", merge_into=10),
        )  # fmt: skip
        assert again.cue == 10
        row = store.get(learner, 10)
        assert row is not None
        assert (row.content, row.updated) == ("which?", DAY_US)
        strong = strengths(store, learner)
        assert strong[10, 1] < 0.2 < strong[10, 2]
        assert (10, 4) in strong
        # A cue among the items is passed over, and one that is gone is made anew.
        assert learn(store, learner, 5, 10, question=1).seq is None
        store.forget(learner, [10])
        anew = learn(store, learner, 6, cue=a_cue(merge_into=10), question=2)
        assert anew.cue == 11
        assert [move.event.cue for move in store.why(learner, 6, 11)] == [11]
        require_fold(store, learner)

    def test_a_cue_does_not_rehearse_itself(self, store: Store, learner: SpaceInfo) -> None:
        first = learn(store, learner, 1, 2, cue=a_cue(), question=1)
        assert first.cue is not None
        strong = strengths(store, learner)
        done = learn(
            store, learner, 1, 2, via={1: first.cue, 2: 1}, question=2, time=DAY_US,
            cue=a_cue(merge_into=first.cue),
        )  # fmt: skip
        assert [pair[:2] for pair in done.changed] == [(first.cue, 2)]
        assert strengths(store, learner)[first.cue, 1] == strong[first.cue, 1]
        require_fold(store, learner)

    def test_the_cue_used_longest_ago_goes(self, store: Store, learner: SpaceInfo) -> None:
        rule = replace(COFIRE_RULE, name="forgetful", most_cues=2)

        def ask(number: int, time: int, merge_into: int | None = None) -> Learned:
            return store.learn(
                learner, evidence(number, number + 1, question=number, time=time), rule,
                cue=a_cue(f"what about {number}?", merge_into), now=time,
            )  # fmt: skip

        cues = [ask(1, 1).cue, ask(2, 2).cue, ask(3, 3).cue]
        assert cues == [10, 11, 12]
        assert store.get(learner, 10) is None
        ask(4, 4, merge_into=11)
        before = store.revision(learner)
        done = ask(5, 5)
        assert done.evicted_cues == (12,)
        assert store.get(learner, 12) is None
        assert (12, 0) not in seen(store, learner, before).removed_links
        assert seen(store, learner, before).removed_items == [12]
        ends = [event for event in store.iterate_events(learner) if event.type == "evict"]
        assert [(event.cue, event.items) for event in ends] == [(10, ()), (12, ())]
        require_fold(store, learner)
        # The same question may be asked anew, and learned anew.
        assert ask(1, 6).cue == 14
        assert (14, 1) in strengths(store, learner)
        store.forget(learner, [3])
        require_fold(store, learner)

    def test_a_rule_is_the_spaces_own(self, store: Store, learner: SpaceInfo) -> None:
        assert store.rule(learner) == COFIRE_RULE
        for rule in RULES.values():
            other = make_space(store, rule.name)
            store.append(other, [an_item(), an_item(), an_item()])
            for time in range(3):
                store.learn(other, evidence(1, 2, time=time), rule, now=time)
                store.learn(other, evidence(2, 3, time=time), rule, now=time)
            assert store.rule(other) == rule
            require_fold(store, other)
            store.forget(other, [3])
            require_fold(store, other)
        learn(store, learner, 1, 2)
        with pytest.raises(ConfigurationError, match="'cofire'"):
            store.learn(learner, evidence(1, 2), HELA_MEM_RULE, now=0)
        by_echo = store.fold(learner, rule=ECHOMCP_RULE)
        assert by_echo[1, 2].strength == 0.5
        assert store.replay(learner, ECHOMCP_RULE) == 1
        assert store.replay(learner) == 0
        assert strengths(store, learner) == {(1, 2): 0.5}
        own = replace(COFIRE_RULE, name="own", alpha_rejected=0.9)
        assert store.replay(learner, own) == 1
        assert store.rule(learner) == own
        assert store.refreshed(learner).settings.keys() == {"learning_rule"}
        # A rule of a later version: nothing is learned, but what is to be forgotten is.
        store.set_settings(learner, {"learning_rule": "of tomorrow", "other": 1})
        with pytest.raises(ConfigurationError, match="of tomorrow"):
            learn(store, learner, 1, 2)
        assert [finding.code for finding in store.check("default")] == ["strengths"]
        assert store.forget(learner, [2]).memories == 1
        store.replay(learner, COFIRE_RULE)
        assert store.refreshed(learner).settings == {"learning_rule": "cofire", "other": 1}

    def test_recalls_teach_only_where_the_rule_says_so(
        self, store: Store, learner: SpaceInfo
    ) -> None:
        def recall(uid: bytes, *numbers: int, teach: bool = True, **fields: Any) -> int:
            record = replace(a_recall(uid=uid * 16, numbers=numbers, time=7), **fields)
            return store.record_recalls([(learner, record)], teach=teach)

        before = store.revision(learner)
        recall(b"a", 1, 2, 3)
        assert (store.revision(learner), list(store.iterate_events(learner))) == (before, [])
        store.replay(learner, HELA_MEM_RULE)
        before = store.revision(learner)
        recall(b"a", 1, 2, 3)  # recorded before: it teaches nothing now
        recall(b"b", 4, 5, teach=False)
        recall(b"c", 6)
        assert (store.revision(learner), list(store.iterate_events(learner))) == (before, [])
        recall(b"d", 1, 2, 99)
        recall(b"e", 1, 2)
        (first, second) = store.iterate_events(learner)
        assert (first.signal, first.recall, first.time) == ("retrieved", b"d" * 16, 7)
        assert first.items == ((1, 1.0), (2, 1.0))
        # η, then what is kept of it for one retrieval and η again: every one counts.
        assert strengths(store, learner) == {(1, 2): pytest.approx(0.02 * 0.995 + 0.02)}
        assert [movement.event.seq for movement in store.why(learner, 1, 2)] == [1, 2]
        assert second.question is None
        hits = a_recall(uid=b"f" * 16, numbers=(2, 3)).hits
        recall(b"f", hits=(hits[0], hits[1]._replace(linked=True, via=2)))
        assert (2, 3) not in strengths(store, learner)
        require_fold(store, learner)
        assert store.replay(learner) == 0
        # Whatever model the space has by now; and at most so many pairs.
        store.append(learner, [an_item() for _ in range(20)])
        switched = store.switch_model(learner, "new", 2, allow_missing=True)
        recall(b"g", *range(10, 30))
        assert len(strengths(store, learner)) == 1 + 15 * 14 // 2
        store.forget(switched, [1, 12])
        require_fold(store, learner)

    def test_one_question_is_rehearsed_once_where_the_rule_has_a_cap(
        self, store: Store, learner: SpaceInfo
    ) -> None:
        rates = {**COFIRE_RULE.alpha, "retrieved": 0.1}
        store.replay(learner, replace(COFIRE_RULE, name="own", alpha=rates))
        for uid, query in (b"1", "Which boat?"), (b"2", "which  BOAT?"), (b"3", "which mast?"):
            record = replace(a_recall(uid=uid * 16, numbers=(1, 2)), query=query)
            store.record_recalls([(learner, record)], teach=True)
        assert len(list(store.iterate_events(learner))) == 2
        assert strengths(store, learner) == {(1, 2): pytest.approx(0.19)}
        require_fold(store, learner)

    def test_an_imported_rule_is_taken_by_a_space_that_learned_nothing(
        self, store: Store, learner: SpaceInfo
    ) -> None:
        named = {"learning_rule": "hela_mem"}
        assert store.adopt_rule(learner, {})
        assert store.adopt_rule(learner, named)
        assert store.rule(learner) == HELA_MEM_RULE
        assert not store.adopt_rule(learner, {"learning_rule": "echomcp"})
        assert not store.adopt_rule(learner, {})
        other = make_space(store, "other")
        store.append(other, [an_item(), an_item()])
        learn(store, other, 1, 2)
        assert not store.adopt_rule(other, named)
        assert store.rule(other) == COFIRE_RULE
        with pytest.raises(ConfigurationError, match="of tomorrow"):
            store.adopt_rule(other, {"learning_rule": "of tomorrow"})

    def test_the_past_can_be_asked(self, store: Store, learner: SpaceInfo) -> None:
        for time in (1, 2, 30):
            learn(store, learner, 1, 2, time=time, principal=str(time))
        learn(store, learner, 1, 3, time=30)
        (first,) = store.fold(learner, up_to_time=1).values()
        assert first.strength == pytest.approx(0.2)
        assert first.last == 1
        assert store.fold(learner, up_to_seq=2) == store.fold(learner, up_to_time=29)
        assert store.fold(learner, up_to_seq=0) == {}
        moves = store.why(learner, 2, 1)
        assert [move.event.seq for move in moves] == [1, 2, 3]
        assert all(move.movement > 0 for move in moves)
        assert sum(move.movement for move in moves) == pytest.approx(moves[-1].strength)
        assert moves[-1].strength == strengths(store, learner)[1, 2]
        assert store.why(learner, 2, 3) == []

    def test_links_of_other_kinds_keep_their_place(self, store: Store, learner: SpaceInfo) -> None:
        store.link(learner, 1, 2, "supports", 0.9)
        learn(store, learner, 1, 2)
        assert strengths(store, learner).keys() == {(2, 1)}
        learn(store, learner, 1, 2, principal="q")
        learn(store, learner, 3, 4)
        before = store.revision(learner)
        store.link(learner, 3, 4, "coactivation", 0.7)  # made by hand: not learned
        assert strengths(store, learner).keys() == {(2, 1), (4, 3)}
        changes = seen(store, learner, before)
        assert sorted(link[:2] for link in changes.links) == [(3, 4), (4, 3)]
        require_fold(store, learner)
        with pytest.raises(InputError, match="already linked"):
            store.link(learner, 4, 3, "supports")
        store.link(learner, 5, 6, "supports")
        store.link(learner, 6, 5, "causes")
        done = learn(store, learner, 5, 6)
        assert (done.seq is not None, done.changed) == (True, ())
        require_fold(store, learner)
        store.unlink(learner, 5, 6)
        assert (5, 6) in strengths(store, learner)
        require_fold(store, learner)

    def test_a_learned_link_can_be_removed(self, store: Store, learner: SpaceInfo) -> None:
        learn(store, learner, 1, 2, cue=a_cue(), question=1, time=3)
        store.unlink(learner, 1, 2, now=5)
        store.unlink(learner, 10, 2)
        assert strengths(store, learner).keys() == {(10, 1)}
        told = list(store.iterate_events(learner))[1:]
        assert [(event.type, event.time, event.cue) for event in told] == [
            ("prune", 5, None), ("prune", 3, 10),
        ]  # fmt: skip
        moves = store.why(learner, 1, 2)
        assert [move.movement for move in moves] == [
            pytest.approx(0.2), pytest.approx(-0.2),
        ]  # fmt: skip
        learn(store, learner, 1, 2, principal="q")
        assert (1, 2) in strengths(store, learner)
        require_fold(store, learner)
        store.forget(learner, [2])
        require_fold(store, learner)

    def test_rejections_propose_a_contradiction(self, store: Store, learner: SpaceInfo) -> None:
        for time in range(4):
            learn(store, learner, 2, rejected=(1,), time=time)
            if time:
                learn(store, learner, 3, rejected=(4,), time=time)
        learn(store, learner, 5, rejected=(6,))
        assert store.proposals(learner) == [Proposal(1, 2, 4), Proposal(3, 4, 3)]
        assert store.proposals(learner, least=4) == [Proposal(1, 2, 4)]
        store.link(learner, 2, 1, "contradicts")
        assert store.proposals(learner) == [Proposal(3, 4, 3)]

    def test_forgetting_redacts_the_log(self, store: Store, learner: SpaceInfo) -> None:
        cue = a_cue("about 1 alone")
        learn(store, learner, 1, 2, 3, time=1, via={3: 1}, question=1)
        learn(store, learner, 1, time=2, cue=cue, question=2)
        learn(store, learner, 1, 4, time=3)
        learn(store, learner, 2, 3, time=4)
        both = learn(store, learner, 1, 5, time=5, cue=a_cue("of both"), question=3)
        other = make_space(store, "other")
        store.append(other, [an_item(str(number)) for number in range(1, 10)])
        learn(store, other, 2, 3, time=1, question=1)
        learn(store, other, 2, 3, time=4)
        store.forget(learner, [1])
        assert store.get(learner, 10) is None  # the cue that nothing answers any more
        assert store.get(learner, 11) is not None
        assert store.fold(learner)[2, 3] == store.fold(other)[2, 3]
        assert strengths(store, learner).keys() == {(2, 3), (both.cue, 5)}
        require_fold(store, learner)
        left = list(store.iterate_events(learner))
        assert [(event.type, event.items, event.via) for event in left] == [
            ("feedback", ((2, 1.0), (3, 1.0)), ()),
            ("feedback", ((2, 1.0), (3, 1.0)), ()),
            ("feedback", ((5, 1.0),), ()),
            ("redact", (), ()),
        ]
        store.forget(learner, [2, 5])
        assert {event.type for event in store.iterate_events(learner)} == {"redact"}
        assert store.get(learner, 11) is None
        assert learned(store, learner) == []

    def test_forgetting_undoes_evictions(self, store: Store, learner: SpaceInfo) -> None:
        rule = replace(COFIRE_RULE, name="narrow", links_per_item=2)
        for number, time in ((2, 1), (3, 2), (4, 3), (5, 4)):
            event = evidence(1, number, time=time, principal=str(number))
            store.learn(learner, event, rule, trusted=number > 3, now=time)
        assert strengths(store, learner).keys() == {(1, 4), (1, 5)}
        store.forget(learner, [4])
        assert strengths(store, learner).keys() == {(1, 3), (1, 5)}
        require_fold(store, learner)
        evicted = [event for event in store.iterate_events(learner) if event.type == "evict"]
        assert [event.items[:2] for event in evicted] == [((1, 0.0), (2, 0.0))]
        store.forget(learner, [5])
        assert strengths(store, learner).keys() == {(1, 2), (1, 3)}
        require_fold(store, learner)

    def test_a_mended_chain_finds_its_place(self, store: Store, space: SpaceInfo) -> None:
        store.append(space, [an_item(str(turn), session="s") for turn in range(4)])
        learn(store, space, 1, 3, time=5)
        strong = strengths(store, space)[1, 3]
        store.forget(space, [2])
        links = {link[:2]: link.type for link in store.iterate_links(space)}
        assert links == {(1, 3): "temporal", (3, 1): "coactivation", (3, 4): "temporal"}
        assert strengths(store, space) == {(3, 1): strong}
        require_fold(store, space)

    def test_what_was_learned_can_be_copied(self, store: Store, learner: SpaceInfo) -> None:
        learn(store, learner, 1, 2, 3, rejected=(4,), principal="p", question=QUESTION)
        learn(store, learner, 2, 3, via={3: 2, 2: 9}, trusted=True, outcome=-0.5, question=2)
        other = make_space(store, "copy")
        store.append(other, [an_item(str(number)) for number in range(1, 10)])
        store.put_links(other, list(store.iterate_links(learner)))
        store.append_events(other, list(store.iterate_events(learner)))
        assert store.replay(other) == 0
        assert list(store.iterate_events(other)) == list(store.iterate_events(learner))
        require_fold(store, other)

    def test_a_changed_strength_is_found_and_mended(self, store: Store, learner: SpaceInfo) -> None:
        learn(store, learner, 1, 2)
        learn(store, learner, 3, 4)
        (link, _) = learned(store, learner)
        store.put_links(learner, [link._replace(strength=0.9)])
        store.put_links(learner, [link._replace(source=5, target=6)])
        (finding,) = store.check("default")
        assert (finding.code, finding.count) == ("strengths", 2)
        assert finding.examples == ("1 to 2", "5 to 6")
        before = store.revision(learner)
        assert store.replay(learner) == 2
        assert [link[:2] for link in seen(store, learner, before).links] == [(1, 2)]
        assert seen(store, learner, before).removed_links == [(5, 6)]
        require_fold(store, learner)

    def test_threads_learn_everything(
        self, opener: Opener, store: Store, learner: SpaceInfo
    ) -> None:
        errors: list[BaseException] = []

        def work(name: int) -> None:
            try:
                with opener() as own:
                    for time in range(25):
                        cue = a_cue(f"{name} {time}")
                        learn(
                            own, learner, 1, 2, 3 + time % 6, principal=str(name), time=time,
                            question=time, cue=cue,
                        )  # fmt: skip
            except BaseException as exc:  # noqa: BLE001 - shown by the assertion below
                errors.append(exc)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        events = list(store.iterate_events(learner))
        assert sum(event.type == "feedback" for event in events) == 100
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        require_fold(store, learner)
