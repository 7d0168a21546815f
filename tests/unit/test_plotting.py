"""What pictures are made of, and that they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from cofire.errors import FormatError, InputError, MissingExtraError, NotFoundError
from cofire.memory import Memory
from cofire.models.hashing import HashingEmbedder
from cofire.plotting.canvas import shortened, target
from cofire.plotting.graph import plot_graph
from cofire.plotting.layout import spring_layout
from cofire.plotting.learned import LearnedGraph, learned_graph
from cofire.plotting.learning import plot_learning, read_figures
from cofire.plotting.strengths import plot_strengths
from cofire.plotting.trace import GROUPS, bar_parts, find_givers, plot_trace
from cofire.retrieval.features import TERMS

NOW = datetime(2026, 3, 20, tzinfo=UTC)
PNG = b"\x89PNG"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Five memories of which three were used together, two of them twice."""
    with Memory.open(tmp_path / "m.db", embedder=HashingEmbedder(64), trusted="Ada") as opened:
        texts = ("The kiln is in the shed.", "The shed key costs $5 or $6.", "窯は小屋にあります",
                 "Nora plays the violin.", "Boats are \x1b[31mred\x1b[0m.")  # fmt: skip
        opened.remember([{"content": text, "speaker": "Ada", "time": NOW} for text in texts])
        for question, used in (("Where is the kiln?", 3), ("What is in the shed?", 2)):
            recall = opened.recall(question, now=NOW)
            ids = [hit.id for hit in sorted(recall, key=lambda hit: hit.item.number)[:used]]
            opened.feedback(recall, ids, by="Ada", now=NOW)
        yield opened


def test_the_graph_of_what_was_learned(memory: Memory) -> None:
    graph = learned_graph(memory, as_of=NOW)
    assert len(graph.items) == 3
    assert graph.isolated == 2
    np.testing.assert_array_equal(graph.strength, graph.strength.T)
    assert not graph.strength.diagonal().any()
    assert list(graph.totals) == sorted(graph.totals, reverse=True)
    assert graph.totals[0] > graph.totals[2]
    assert graph.hubs == 1
    assert learned_graph(memory, as_of="2026-03-19").items == ()
    assert len(graph.first(2).items) == 2
    assert graph.first(2).strength.shape == (2, 2)


def test_a_layout_is_bounded_repeatable_and_brings_friends_together() -> None:
    strength = np.zeros((12, 12))
    for group in (range(6), range(6, 12)):
        for one in group:
            for other in group:
                strength[one, other] = float(one != other)
    place = spring_layout(strength)
    np.testing.assert_array_equal(place, spring_layout(strength))
    assert np.abs(place).max() == pytest.approx(1.0)
    distance = np.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1))
    inside = distance[:6, :6].sum() / 30
    assert inside < distance[:6, 6:].mean() / 2
    assert distance[np.triu_indices(12, 1)].min() > 0.02, "no two nodes on one spot"
    for count in (0, 1):
        assert spring_layout(np.zeros((count, count))).shape == (count, 2)


def test_the_parts_of_a_bar_add_up_to_the_score(memory: Memory) -> None:
    recall = memory.recall("Where is the kiln?", now=NOW, explain=True)
    parts = bar_parts(recall)
    for at, hit in enumerate(recall):
        assert sum(values[at] for values in parts.values()) == pytest.approx(hit.score, abs=1e-5)
    assert "learned from use" in parts
    givers = find_givers(recall, memory)
    assert any(giver.text == "? Where is the kiln?" for giver in givers)
    with pytest.raises(InputError, match="explain"):
        bar_parts(memory.recall("Where is the kiln?", now=NOW))


def test_every_term_of_the_default_belongs_to_one_group() -> None:
    placed = [term for _, terms in GROUPS.values() for term in terms]
    assert len(placed) == len(set(placed))
    assert set(TERMS) <= set(placed), "name the group of the new term"


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_pictures_of_a_memory(memory: Memory, tmp_path: Path, suffix: str) -> None:
    graph = learned_graph(memory, as_of=NOW)
    recall = memory.recall("Where is the kiln?", now=NOW, explain=True)
    folder = tmp_path / "pictures"
    folder.mkdir()
    drawn = [
        plot_strengths(graph, folder / f"strengths{suffix}"),
        plot_graph(graph, folder / f"graph{suffix}"),
        plot_trace(recall, memory, folder / f"trace{suffix}"),
    ]
    for place in drawn:
        data = place.read_bytes()
        if suffix == ".png":
            assert data.startswith(PNG)
        else:
            assert ElementTree.fromstring(data).tag.endswith("svg")  # noqa: S314  our own file
    assert sorted(folder.iterdir()) == sorted(drawn), "nothing is left over"
    first = drawn[1].read_bytes()
    assert plot_graph(graph, drawn[1]).read_bytes() == first, "the same picture is the same file"


def test_large_graphs_are_drawn_in_part(memory: Memory, tmp_path: Path) -> None:
    small = learned_graph(memory, as_of=NOW)
    count = 60
    strength = np.triu(np.random.default_rng(0).random((count, count)) < 0.1, 1) * 0.5
    many = LearnedGraph(small.items[:1] * count, strength + strength.T, 2_000)
    assert plot_graph(many, tmp_path / "graph.png", 40).exists()
    assert plot_strengths(many, tmp_path / "strengths.png", 30).exists()


def test_nothing_learned_is_said_and_not_drawn(tmp_path: Path) -> None:
    nothing = LearnedGraph((), np.zeros((0, 0)), 3)
    for plot in (plot_strengths, plot_graph):
        with pytest.raises(InputError, match="nothing has been learned"):
            plot(nothing, tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


def test_an_unfit_target_or_result_is_refused(tmp_path: Path) -> None:
    for name in ("x.pdf", "x", "png"):
        with pytest.raises(InputError, match=r"\.png or \.svg"):
            target(tmp_path / name)
    with pytest.raises(FormatError, match="--learning"):
        plot_learning({"profiles": {}}, tmp_path / "x.png")
    with pytest.raises(NotFoundError):
        read_figures(tmp_path / "missing.json")
    (tmp_path / "odd.json").write_text("[1")
    with pytest.raises(FormatError):
        read_figures(tmp_path / "odd.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(FormatError):
        read_figures(tmp_path / "list.json")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    graph = LearnedGraph((), np.zeros((0, 0)), 0)
    with pytest.raises(InputError):
        plot_graph(graph, tmp_path / "x.png")
    figures = {"ks": [5, 10, 30], "arms": {}, "curve": []}
    with pytest.raises(MissingExtraError, match=r"cofire\[plot\]"):
        plot_learning(figures, tmp_path / "x.png")


def test_labels_are_one_printable_line() -> None:
    assert shortened("a\nb\t\x1b[31mc", 20) == "a b [31mc"
    assert shortened("abcdefgh", 5) == "abcd…"
