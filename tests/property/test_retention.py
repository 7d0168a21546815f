"""The rules of forgetting agree with their readable twins, stay in bounds, and never take what is
kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.dynamics import retention
from cofire.dynamics import retention_reference as reference
from cofire.dynamics.arrays import F64, I64, Bool
from cofire.dynamics.plasticity import DAY_US
from cofire.dynamics.retention_reference import Remembered

NOW = 400 * DAY_US
moments = st.integers(0, NOW)
memories = st.builds(
    Remembered,
    importance=st.integers(1, 10),
    pinned=st.booleans(),
    uses=st.integers(0, 50),
    strength=st.floats(0, 20),
    information=st.floats(0, 1),
    stored=moments,
    accessed=st.none() | moments,
    changed=st.none() | moments,
    size=st.integers(1, 9),
)
several = st.lists(memories, min_size=1, max_size=12)


class Columns:
    """Memories as the fast rules take them."""

    def __init__(self, given_memories: Sequence[Remembered]) -> None:
        def whole(name: str) -> I64:
            return np.array([getattr(one, name) for one in given_memories], np.int64)

        self.importance, self.uses, self.stored = (
            whole("importance"),
            whole("uses"),
            whole("stored"),
        )
        self.last, self.size = whole("last"), whole("size")
        self.strength: F64 = np.array([one.strength for one in given_memories])
        self.information: F64 = np.array([one.information for one in given_memories])
        self.changed: I64 = np.array(
            [one.stored if one.changed is None else one.changed for one in given_memories], np.int64
        )
        pinned: Bool = np.array([one.pinned for one in given_memories], np.bool_)
        self.kept = retention.kept(pinned, self.importance)

    def score(self) -> F64:
        return retention.retention_score(
            self.importance, self.strength, self.uses, NOW - self.last, self.information
        )

    def walked(self, runs: Sequence[int], importance: I64 | None = None) -> I64:
        """After runs of the staircase at these times; who is kept is settled before."""
        now = self.importance if importance is None else importance
        for since, until in pairwise([0, *runs]):
            due = retention.steps_due(self.last, since, until, 30.0)
            now = retention.lowered(now, due, self.kept, self.strength, protect_strength=0.5)
        return now


runs = st.lists(moments, min_size=1, max_size=8, unique=True).map(sorted)


@given(several, runs)
def test_the_staircase_is_its_twin(given_memories: list[Remembered], times: list[int]) -> None:
    expected = [
        reference.walked_down(one, times, step_days=30.0, protect_strength=0.5)
        for one in given_memories
    ]
    assert Columns(given_memories).walked(times).tolist() == expected


@given(several, runs)
def test_one_late_run_does_what_many_would_have_done(
    given_memories: list[Remembered], times: list[int]
) -> None:
    columns = Columns(given_memories)
    assert columns.walked(times).tolist() == columns.walked(times[-1:]).tolist()


@given(several, runs)
def test_importance_falls_at_most_and_never_of_the_kept(
    given_memories: list[Remembered], times: list[int]
) -> None:
    columns = Columns(given_memories)
    after = columns.walked(times)
    assert (after >= 1).all()
    assert (after <= columns.importance).all()
    assert (after == columns.importance)[columns.kept].all()
    again = columns.walked([times[-1], times[-1]])
    assert again.tolist() == columns.walked(times[-1:]).tolist()  # at once again: nothing


@given(several, moments, st.integers(0, 60 * DAY_US))
def test_the_longer_unused_the_lower(
    given_memories: list[Remembered], until: int, longer: int
) -> None:
    columns = Columns(given_memories)
    assert (columns.walked([until + longer]) <= columns.walked([until])).all()


@given(several)
def test_archiving_and_adaptive_forgetting_are_their_twins(
    given_memories: list[Remembered],
) -> None:
    columns = Columns(given_memories)
    archived = retention.archivable(
        columns.importance, columns.uses, NOW - columns.stored, columns.kept, archive_days=90.0
    )
    forgotten = retention.forgettable(
        columns.strength, NOW - columns.changed, NOW - columns.last, columns.kept,
        idle_strength=0.5, idle_days=90.0,
    )  # fmt: skip
    assert archived.tolist() == [
        reference.is_archivable(one, NOW, archive_days=90.0) for one in given_memories
    ]
    assert forgotten.tolist() == [
        reference.is_forgettable(one, NOW, idle_strength=0.5, idle_days=90.0)
        for one in given_memories
    ]
    assert not (archived & columns.kept).any()
    assert not (forgotten & columns.kept).any()


@given(st.lists(st.tuples(st.floats(0, 1), moments), min_size=1, max_size=20))
def test_pruning_is_its_twin(links: list[tuple[float, int]]) -> None:
    strength = np.array([link[0] for link in links])
    unused = np.array([link[1] for link in links], np.int64)
    found = retention.prunable(strength, unused, below=0.1, idle_days=60.0)
    assert found.tolist() == [
        reference.is_prunable(*link, below=0.1, idle_days=60.0) for link in links
    ]


pairs = st.tuples(st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.1, 0.5, 0.5, 0.9]))


@given(st.lists(pairs, max_size=20, unique_by=lambda link: link[:2]), st.integers(1, 4))
def test_the_cap_is_its_twin_and_idempotent(links: list[tuple[int, int, float]], most: int) -> None:
    def gone_of(given_links: list[tuple[int, int, float]]) -> list[bool]:
        columns = [np.array([link[at] for link in given_links]) for at in (1, 2, 0)]
        target, strength, source = columns
        found: list[bool] = retention.beyond(
            target.astype(np.int64), strength.astype(np.float64), source.astype(np.int64), most=most
        ).tolist()
        return found

    gone = gone_of(links)
    expected = reference.too_many(links, most=most)
    assert {link[:2] for link, goes in zip(links, gone, strict=True) if goes} == expected
    left = [link for link, goes in zip(links, gone, strict=True) if not goes]
    assert not any(gone_of(left))


@given(several)
def test_the_score_is_its_twin_and_in_bounds(given_memories: list[Remembered]) -> None:
    score = Columns(given_memories).score()
    assert score.tolist() == pytest.approx(
        [reference.score_of(one, NOW) for one in given_memories], abs=1e-12
    )
    assert ((score >= 0.0) & (score <= 1.0)).all()


@given(memories, st.integers(0, 9), st.floats(0, 5), st.integers(0, 20), st.integers(0, NOW))
def test_the_score_never_falls_where_anything_rises(
    memory: Remembered, importance: int, strength: float, uses: int, later: int
) -> None:
    better = [
        replace(memory, importance=min(10, memory.importance + importance)),
        replace(memory, strength=memory.strength + strength),
        replace(memory, uses=memory.uses + uses),
        replace(memory, accessed=max(memory.last, later)),
        replace(memory, information=1.0),
    ]
    own, *others = Columns([memory, *better]).score().tolist()
    assert all(other >= own - 1e-12 for other in others)


@given(several, st.data(), st.integers(-3, 60))
def test_who_leaves_is_its_twin(
    given_memories: list[Remembered], data: st.DataObject, over: int
) -> None:
    # Scores that differ by rounding alone would be ordered by it.
    rounded = [
        replace(one, strength=round(one.strength), information=round(one.information), uses=0)
        for one in given_memories
    ]
    dormant = data.draw(
        st.lists(st.booleans(), min_size=len(rounded), max_size=len(rounded)), label="dormant"
    )
    columns = Columns(rounded)
    gone = retention.surplus(
        columns.score().round(9), np.array(dormant), columns.stored, columns.size, columns.kept,
        over=over,
    )  # fmt: skip
    assert gone.tolist() == reference.to_go(rounded, NOW, dormant, over=over)
    assert not columns.kept[gone].any()
    freed = int(columns.size[gone].sum())
    if over > 0 and not columns.kept.all():
        spared = freed < over
        assert not spared or len(gone) == int((~columns.kept).sum())
        assert freed - int(columns.size[gone[-1]]) < over  # and no more than needed
