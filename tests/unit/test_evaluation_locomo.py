"""Measuring on a LoCoMo file: tuning, tables and JSON, and a file with every quirk."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cofire.errors import InputError
from cofire.evaluation.fitting import Example
from cofire.evaluation.locomo import Asked, evaluate_locomo, subsets, summarise
from cofire.evaluation.report import render, to_json
from cofire.evaluation.tuning import (
    Measured,
    alternatives,
    best_on_all,
    cross_validated,
    fitted,
    goodness,
    measure,
)
from cofire.memory import Memory
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import COFIRE, Profile

QUIRKS = Path(__file__).parents[3] / "shared" / "cases" / "files" / "locomo" / "locomo_quirks.json"


def asked(ranked: str, evidence: str, *, category: int = 1, closeness: float = 0.9) -> Asked:
    return Asked(
        sample="conv",
        position=0,
        category=category,
        closeness=closeness,
        evidence=tuple(evidence),
        sessions=tuple({letter.upper() for letter in evidence}),
        ranked=tuple(ranked),
        ranked_sessions=tuple(ranked.upper()),
        tokens=(10, 20),
        milliseconds=1.0,
        milliseconds_embedding=11.0,
    )


def test_means_are_in_per_cent_by_k() -> None:
    row = summarise([asked("abc", "a"), asked("bca", "ac")], (1, 3))
    assert row.questions == 2
    assert row.recall == (50.0, 100.0)
    assert row.any == (50.0, 100.0)
    assert row.all == (50.0, 100.0)
    assert summarise([], (1, 3)).recall == (0.0, 0.0)


def test_subsets_by_category_and_by_how_far_the_evidence_is() -> None:
    every = [
        asked("a", "a", category=1, closeness=0.2),
        asked("a", "a", category=2, closeness=0.4),
        asked("a", "a", category=2, closeness=0.8),
    ]
    sizes = {name: len(found) for name, found in subsets(every).items()}
    assert sizes["all"] == 3
    assert sizes["similarity < 0.5"] == 2
    assert sizes["similarity < 0.3"] == 1
    assert sum(sizes.values()) == 3 + 3 + 2 + 1  # all, the categories, the two limits


def measured(count: int, seed: int) -> list[Measured]:
    """Questions whose evidence goes by similarity minus half of bm25."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        terms = np.zeros((25, len(TERMS)))
        terms[:, TERMS.index("similarity")] = rng.standard_normal(25)
        terms[:, TERMS.index("bm25")] = rng.standard_normal(25)
        score = terms[:, TERMS.index("similarity")] - 0.5 * terms[:, TERMS.index("bm25")]
        best = int((score + 0.3 * rng.gumbel(size=25)).argmax())
        found.append(Measured(Example(terms, np.array([best])), 1))
    return found


def test_fitted_weights_rank_better_and_touch_only_what_is_used() -> None:
    data = measured(200, 0)
    start = Profile(name="start", weights={"similarity": 0.1, "bm25": 3.0})
    better = fitted(start, data, "fitted")
    assert set(better.weights) == {"similarity", "bm25"}
    assert better.weights["similarity"] > 0 > better.weights["bm25"]
    assert goodness(better, measured(100, 1)) > goodness(start, measured(100, 1)) + 0.1
    assert better.name == "fitted"


def test_each_alternative_changes_one_constant_and_no_weight() -> None:
    tried = dict(alternatives(COFIRE))
    assert len(tried) > 5
    names = [field.name for field in fields(Profile)]
    for point in tried.values():
        changed = [name for name in names if getattr(point, name) != getattr(COFIRE, name)]
        assert len(changed) == 1
        assert changed != ["weights"]


@dataclass
class Conversation:
    memory: Memory
    now: datetime
    evidence: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...]

    def asked(self) -> tuple[str, ...]:
        return self.questions


def conversation(path: Path, things: list[str]) -> Conversation:
    memory = Memory.open(path, embedder=HashingEmbedder(64))
    now = datetime(2024, 5, 1, tzinfo=UTC)
    receipt = memory.remember(
        [
            {"content": f"I bought a {thing} today.", "time": now - timedelta(days=n + 1),
             "speaker": "Nora", "session": f"s{n // 3}"}
            for n, thing in enumerate(things)
        ]
    )  # fmt: skip
    return Conversation(
        memory,
        now,
        tuple((id,) for id in receipt.ids),
        tuple(f"Where is the {thing}?" for thing in things),
    )


def test_each_conversation_is_scored_with_what_the_others_chose(tmp_path: Path) -> None:
    shelves = (["kiln", "lamp", "ferry", "cue"], ["violin", "tent", "boat", "clock"])
    benches = [conversation(tmp_path / f"{n}.db", list(shelf)) for n, shelf in enumerate(shelves)]
    try:
        profile = Profile(name="small", weights={"similarity": 1.0, "bm25": 1.0})
        assert all(one.wanted == 1 for one in measure(benches[0], profile))
        folds = cross_validated(benches, profile)
        assert [fold.left_out for fold in folds] == [0, 1]
        assert all(set(fold.profile.weights) == {"similarity", "bm25"} for fold in folds)
        assert set(best_on_all(benches, profile).weights) == {"similarity", "bm25"}
        with pytest.raises(InputError, match="at least two"):
            cross_validated(benches[:1], profile)
    finally:
        for bench in benches:
            bench.memory.close()


@pytest.mark.skipif(not QUIRKS.exists(), reason="the case bank (../shared) is not here")
def test_a_file_with_every_quirk_is_measured_and_reported() -> None:
    stages: list[str] = []

    def stage(name: str) -> object:
        stages.append(name)
        return lambda done, total: None

    result = evaluate_locomo(
        QUIRKS,
        profiles=("cofire", "lexical"),
        ks=(10, 5),
        ablations=True,
        embedder=HashingEmbedder(64),
        progress=stage,  # type: ignore[arg-type]
    )
    assert result.ks == (5, 10)
    assert result.questions > 0
    assert {len(found) for found in result.asked.values()} == {result.questions}
    assert "cofire without dense" in result.asked
    assert stages[0] == "remembering"
    text = render(result)
    assert "cofire without session" in text
    assert max(map(len, text.splitlines())) <= 100
    data = json.loads(json.dumps(to_json(result)))
    assert data
