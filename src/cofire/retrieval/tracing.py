"""Why each memory was recalled: its anchors, the paths of activation to it, and every term of its
score. Made only when asked for; the terms add up to the score within 1e-6."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cofire.retrieval.abstractions import akin_words
from cofire.retrieval.candidates import Candidates
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Question
from cofire.types import ItemTrace, Path, Recalled, Term, Trace, from_micros

LEAST = 1e-9
"""Contributions and activations below this are not worth a line."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A returned memory and its position among its space's candidates."""

    found: Candidates
    at: int
    hit: Recalled


def trace(
    placed: Sequence[Placed], profile: Profile, question: Question, timings: Mapping[str, float]
) -> Trace:
    """The whole explanation."""
    when = question.range
    return Trace(
        profile=profile.name,
        terms=question.words,
        time_range=None if when is None else (from_micros(when[0]), from_micros(when[1])),
        items=tuple(_item(one, profile, question) for one in placed),
        timings=dict(timings),
    )


def _item(one: Placed, profile: Profile, question: Question) -> ItemTrace:
    found, at = one.found, one.at
    anchors = []
    if found.dense_anchor[at]:
        anchors.append("dense")
    if found.lexical_anchor[at]:
        anchors.append("lexical")
    return ItemTrace(
        id=one.hit.id,
        score=one.hit.score,
        anchors=tuple(anchors),
        terms=tuple(_terms(found, at, profile)),
        paths=tuple(_paths(found, at, profile)),
    )


def _terms(found: Candidates, at: int, profile: Profile) -> list[Term]:
    """The addends, largest first."""
    terms = []
    for name in TERMS:
        weight = profile.weights.get(name, 0.0)
        column = found.columns.get(name)
        if not weight or column is None or abs(column[at]) < LEAST:
            continue
        value = float(column[at])
        terms.append(Term(name=name, value=value, weight=weight, contribution=weight * value))
    return sorted(terms, key=lambda term: (-abs(term.contribution), term.name))


def _paths(found: Candidates, at: int, profile: Profile) -> list[Path]:
    """Over temporal links: what each turn around gave, in units of score. Over concepts: the
    strongest seeds that share one."""
    paths = []
    around = found.around
    steps = (
        ("similarity_before", -1, (around.before,)),
        ("similarity_after", 1, (around.after,)),
        ("similarity_before_2", -2, (around.before, around.before_2)),
        ("similarity_after_2", 2, (around.after, around.after_2)),
        ("", -3, (around.before, around.before_2, around.before_3)),
    )
    words = _words_given(found, at, profile)
    for name, step, route in steps:
        if int(around.at(step)[at]) < 0:
            continue
        column = found.columns.get(name)
        given = profile.weights.get(name, 0.0) * float(column[at]) if column is not None else 0.0
        given += words.get(step, 0.0)
        if given > LEAST:
            via = tuple(_id(found, int(places[at])) for places in reversed(route))
            paths.append(Path(via=(*via, _id(found, at)), type="temporal", activation=given))
    paths += _concept_paths(found, at, profile)
    if found.paths is not None:
        paths += found.paths(int(found.rows[at]))
    paths += _abstract_paths(found, at, profile)
    paths += _learned_paths(found, at, profile)
    return sorted(paths, key=lambda path: (-path.activation, path.via))


def _words_given(found: Candidates, at: int, profile: Profile) -> dict[int, float]:
    """What the question's words in the turns around add, by step. A word that the memory lacks
    is credited to the one turn that gave it its share: the strongest, of equal ones the nearest."""
    weight = profile.weights.get("spread_coverage", 0.0)
    given: dict[int, float] = {}
    if not weight or not len(found.matches):
        return given
    total = float(found.idfs.sum()) or 1.0
    window = sorted(profile.window.items(), key=lambda step: (-step[1], abs(step[0])))
    for term in np.flatnonzero(found.matches[:, at] == 0.0):
        for step, share in window:
            neighbour = int(found.around.at(step)[at])
            if neighbour >= 0 and found.matches[term, neighbour]:
                gift = weight * share * float(found.idfs[term]) / total
                given[step] = given.get(step, 0.0) + gift
                break
    return given


def _concept_paths(found: Candidates, at: int, profile: Profile) -> list[Path]:
    weight = profile.weights.get("concepts", 0.0)
    if not weight or found.shared is None:
        return []
    return [
        Path(
            via=(_id(found, seed), _id(found, at)),
            type="concept",
            activation=weight * amount,
        )
        for seed, amount in found.shared.sources(at)
        if weight * amount > LEAST
    ]


def _abstract_paths(found: Candidates, at: int, profile: Profile) -> list[Path]:
    """From the gist or record that stands for it, and from words akin to the question's."""
    paths = []
    graph, own = found.graph, _id(found, at)
    if found.standing is not None and found.standing[at] >= 0:
        given = profile.weights.get("gist", 0.0) * float(found.columns["gist"][at])
        paths.append((int(found.standing[at]), "abstraction", given))
    weight = profile.weights.get("kin", 0.0)
    if weight and "kin" in found.columns:
        row = int(found.rows[at])
        paths += [
            (word, "related", weight * amount)
            for word, amount in akin_words(graph, found.terms, found.idfs, row)
        ]
    return [
        Path(via=(str(uuid.UUID(bytes=graph.uid(row))), own), type=kind, activation=given)
        for row, kind, given in paths
        if given > LEAST
    ]


def _learned_paths(found: Candidates, at: int, profile: Profile) -> list[Path]:
    """From the past question, and from the memory used together with this one, that say most."""
    paths = []
    for term, numbers in (("cue", found.cue), ("association", found.partner)):
        if numbers is None or not numbers[at]:
            continue
        given = profile.weights.get(term, 0.0) * float(found.columns[term][at])
        row = found.graph.row(int(numbers[at]))
        if given > LEAST and row >= 0:
            source = str(uuid.UUID(bytes=found.graph.uid(row)))
            kind = "cue" if term == "cue" else "coactivation"
            paths.append(Path(via=(source, _id(found, at)), type=kind, activation=given))
    return paths


def _id(found: Candidates, at: int) -> str:
    return str(uuid.UUID(bytes=found.graph.uid(int(found.rows[at]))))
