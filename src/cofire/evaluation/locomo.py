"""LoCoMo, turn by turn: does recall bring back the turns a question's answer rests on?

Every conversation becomes a real memory (an SQLite file, the product's own path) in a temporary
folder; every question of categories 1–4 that has evidence is asked of it. No language model is
involved anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cofire.errors import InputError
from cofire.evaluation.benches import SCORED, Bench, remembered
from cofire.evaluation.gate import Gating, evaluate_gate
from cofire.evaluation.metrics import at_k
from cofire.evaluation.tuning import Fold, cross_validated
from cofire.interchange import ImportReport
from cofire.interchange.locomo import CATEGORIES, load
from cofire.models import Embedder
from cofire.retrieval.profiles import MECHANISMS, Profile, asked_of, profile_named
from cofire.types import Progress

KS = (5, 10, 20, 30)
FAR = (0.5, 0.3)
"""Subsets: questions all of whose evidence is less similar than this to the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one question brought back under one profile."""

    sample: str
    position: int
    category: int
    closeness: float
    evidence: tuple[str, ...]
    sessions: tuple[str, ...]
    ranked: tuple[str, ...]
    ranked_sessions: tuple[str, ...]
    tokens: tuple[int, ...]
    """Wordpieces of the rendered lines at each k."""
    milliseconds: float
    """Recall with the question's vector at hand."""
    milliseconds_embedding: float
    """Recall of a question seen for the first time."""


@dataclass(slots=True, kw_only=True)
class Result:
    """Everything measured: per profile the outcome of each question."""

    source: str
    corrected: bool
    ks: tuple[int, ...]
    asked: dict[str, list[Asked]] = field(default_factory=dict)
    folds: tuple[Fold, ...] = ()
    gating: dict[str, Gating] = field(default_factory=dict)
    """By profile, of those that say how sure they are."""
    report: ImportReport
    questions: int = 0
    left_out: int = 0


def evaluate_locomo(
    path: str | Path,
    *,
    corrections: str | Path | None = None,
    profiles: Sequence[str] = ("cofire", "dense", "lexical"),
    ks: Sequence[int] = KS,
    ablations: bool = True,
    cross_validate: bool = False,
    slept: bool = False,
    database: str | None = None,
    embedder: Embedder | str | None = None,
    progress: Callable[[str], Progress] | None = None,
) -> Result:
    """Measure profiles on a LoCoMo file.

    `ablations` adds the first profile with each mechanism switched off in turn;
    `cross_validate` adds it with every tunable constant chosen without the conversation that is
    scored. `slept`: every memory was consolidated, without a language model. `database`: the
    URL of a PostgreSQL store to measure on (None: SQLite), of which nothing is left. `progress`
    makes a reporter for a named stage.

    Raises NotFoundError, FormatError, InputError (a profile that does not exist, no question).
    """
    chosen = [asked_of(profile_named(name), slept=slept) for name in profiles]
    conversations, report = load(path, corrections=corrections)
    wanted = tuple(sorted(set(ks)))
    result = Result(source=str(path), corrected=corrections is not None, ks=wanted, report=report)
    stage = progress or (lambda _: lambda done, total: None)
    told_of = stage("remembering")
    with remembered(conversations, embedder, told_of, slept=slept, database=database) as benches:
        result.questions = sum(len(bench.questions) for bench in benches)
        every = sum(len(conversation.questions) for conversation in conversations)
        result.left_out = every - result.questions
        if not result.questions:
            raise InputError(f"{path} has no question of categories 1-4 with evidence to score")
        runs = list(chosen)
        if ablations and chosen:
            runs += [chosen[0].without(name) for name in (*MECHANISMS, "names")]
        for profile in runs:
            told = stage(profile.name)
            result.asked[profile.name] = [
                asked for bench in benches for asked in ask(bench, profile, wanted, told)
            ]
        for profile in chosen:
            gating = evaluate_gate(benches, profile, stage(f"{profile.name}, gate"))
            if gating is not None:
                result.gating[profile.name] = gating
        if cross_validate and chosen:
            folds = cross_validated(benches, chosen[0], stage("cross-validation"))
            result.folds = tuple(folds)
            result.asked[f"{chosen[0].name} (left out)"] = [
                asked
                for bench, fold in zip(benches, folds, strict=True)
                for asked in ask(bench, fold.profile, wanted, stage(fold.profile.name))
            ]
    return result


def ask(
    bench: Bench, profile: Profile, ks: Sequence[int], told: Progress | None = None
) -> list[Asked]:
    """Every question of a conversation under one profile."""
    asked = []
    for index, (question, evidence) in enumerate(zip(bench.questions, bench.evidence, strict=True)):
        bench.memory.forget_vectors()
        started = perf_counter()
        bench.memory.recall(question.question, max(ks), profile=profile, now=bench.now)
        first = perf_counter()
        recall = bench.memory.recall(question.question, max(ks), profile=profile, now=bench.now)
        second = perf_counter()
        # A profile may return in order of time; a cut-off of k takes the best k all the same.
        hits = sorted(recall, key=lambda hit: -hit.score)
        costs = np.cumsum([bench.memory.count_tokens(hit.line) for hit in hits])
        places = [min(k, len(costs)) - 1 for k in ks]
        sessions = [bench.session_of[hit.id] for hit in hits]
        asked.append(
            Asked(
                sample=question.sample,
                position=question.position,
                category=question.category,
                closeness=bench.closeness[index],
                evidence=evidence,
                sessions=tuple(dict.fromkeys(bench.session_of[id] for id in evidence)),
                ranked=tuple(hit.id for hit in hits),
                ranked_sessions=tuple(sessions),
                tokens=tuple(int(costs[place]) if place >= 0 else 0 for place in places),
                milliseconds=1e3 * (second - first),
                milliseconds_embedding=1e3 * (first - started),
            )
        )
        if told is not None:
            told(index + 1, len(bench.questions))
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Means over some questions, in per cent, by k."""

    questions: int
    recall: tuple[float, ...]
    any: tuple[float, ...]
    all: tuple[float, ...]
    session_recall: tuple[float, ...]
    session_any: tuple[float, ...]
    session_all: tuple[float, ...]


def summarise(asked: Sequence[Asked], ks: Sequence[int]) -> Row:
    """The means of `asked`; zeros of nothing."""
    turns = [[at_k(one.ranked, one.evidence, k) for k in ks] for one in asked]
    sessions = [[at_k(one.ranked_sessions, one.sessions, k) for k in ks] for one in asked]

    def means(rows: list[list[Any]], name: str) -> tuple[float, ...]:
        if not rows:
            return tuple(0.0 for _ in ks)
        values = np.array([[float(getattr(cell, name)) for cell in row] for row in rows])
        return tuple(float(value) for value in 100.0 * values.mean(axis=0))

    return Row(
        questions=len(asked),
        recall=means(turns, "share"),
        any=means(turns, "any"),
        all=means(turns, "all"),
        session_recall=means(sessions, "share"),
        session_any=means(sessions, "any"),
        session_all=means(sessions, "all"),
    )


def subsets(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """All questions, each category, and those whose evidence is far from the question."""
    found = {"all": list(asked)}
    for category in SCORED:
        found[CATEGORIES[category]] = [one for one in asked if one.category == category]
    for limit in FAR:
        found[f"similarity < {limit}"] = [one for one in asked if one.closeness < limit]
    return found
