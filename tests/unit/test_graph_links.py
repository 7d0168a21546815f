"""Links by number, both ways, through replacement, removal and merging."""

from __future__ import annotations

import numpy as np
import pytest

from cofire.graph import links as links_module
from cofire.graph.links import Links

Pairs = list[tuple[int, int, int, float]]


def changed(links: Links, *new: tuple[int, int, int, float], removed: Pairs | None = None) -> Links:
    columns = list(zip(*new, strict=True)) or [(), (), (), ()]
    return links.changed(
        [(pair[0], pair[1]) for pair in removed or []],
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.uint8),
        np.array(columns[3], np.float32),
    )


def met(links: Links, *numbers: int) -> list[tuple[int, int, int, float, bool]]:
    found = links.edges(np.array(numbers, np.int64))
    return sorted(
        zip(
            [numbers[o] for o in found.origin],
            found.target.tolist(),
            found.type.tolist(),
            found.strength.tolist(),
            found.outward.tolist(),
            strict=True,
        )
    )


def test_links_are_met_from_both_ends() -> None:
    links = changed(Links.empty(), (1, 2, 0, 0.5), (2, 3, 4, 0.25))
    assert met(links, 2) == [(2, 1, 0, 0.5, False), (2, 3, 4, 0.25, True)]
    assert met(links, 3, 1) == [(1, 2, 0, 0.5, True), (3, 2, 4, 0.25, False)]
    assert met(links, 99) == []
    one_way = links.edges(np.array([2]), inward=False)
    assert one_way.target.tolist() == [3]


def test_a_pair_given_again_is_replaced_and_the_last_counts() -> None:
    links = changed(Links.empty(), (1, 2, 0, 0.5))
    newer = changed(links, (1, 2, 0, 0.6), (1, 2, 0, 0.75))
    assert met(newer, 1) == [(1, 2, 0, 0.75, True)]
    assert met(links, 1) == [(1, 2, 0, 0.5, True)]


def test_removal_then_addition_of_the_same_pair() -> None:
    links = changed(Links.empty(), (1, 2, 0, 0.5), (2, 3, 0, 0.5))
    assert met(changed(links, removed=[(1, 2, 0, 0.0)]), 1) == []
    again = changed(links, (1, 2, 3, 1.0), removed=[(1, 2, 0, 0.0)])
    assert met(again, 1) == [(1, 2, 3, 1.0, True)]
    assert met(changed(links, removed=[(7, 8, 0, 0.0)]), 2) == met(links, 2)


@pytest.mark.parametrize("few", [0, 1000], ids=["many at once", "one by one"])
def test_merging_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(links_module, "DELTA_MIN", 8)
    monkeypatch.setattr(links_module, "_FEW", few)
    rng = np.random.default_rng(4)
    expected: dict[tuple[int, int], tuple[int, float]] = {}
    links = Links.empty()
    for _ in range(60):
        batch = [
            (int(s), int(t), int(rng.integers(3)), int(rng.integers(9)) / 8)
            for s, t in rng.integers(0, 12, (3, 2))
        ]
        gone = [(int(s), int(t), 0, 0.0) for s, t in rng.integers(0, 12, (2, 2))]
        for pair in gone:
            expected.pop(pair[:2], None)
        expected.update({(s, t): (kind, w) for s, t, kind, w in batch})
        links = changed(links, *batch, removed=gone)
        outward = [(s, t, kind, w) for s, t, kind, w, out in met(links, *range(12)) if out]
        inward = [(t, s, kind, w) for s, t, kind, w, out in met(links, *range(12)) if not out]
        wanted = sorted((s, t, *value) for (s, t), value in expected.items())
        assert sorted(outward) == wanted
        assert sorted(inward) == wanted
    assert len(links.base)


def test_visible_links_have_both_ends() -> None:
    links = changed(Links.empty(), (1, 2, 0, 0.5), (2, 3, 0, 0.5))
    rows = np.array([-1, 0, 1, -1], np.int32)
    source, target, *_ = links.arrays(rows)
    assert (source.tolist(), target.tolist()) == ([1], [2])
