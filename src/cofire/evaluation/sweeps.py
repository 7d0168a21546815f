"""One constant after another moved away from its default: what recall loses or gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from cofire.dynamics.papers import SynapseWeights
from cofire.evaluation.arms import citable
from cofire.evaluation.benches import Bench
from cofire.evaluation.courses import Course
from cofire.evaluation.metrics import at_k, mean
from cofire.evaluation.splits import CHRONOLOGICAL
from cofire.retrieval.profiles import Profile, profile_of
from cofire.retrieval.recipes import SYNAPSE_RECIPE, SynapseRecipe
from cofire.types import Progress

KS = (5, 10, 30, 50)
SPLITS = 2
"""Random halves that the sweep of Cofire's own constants averages over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """Mean evidence recall@k (`KS`), in per cent, of `profile` with `constant` at `value`;
    `default` marks the value that ships. `multi` is of questions with several pieces of evidence,
    `unshared` of those that share none with a question learned from.
    """

    profile: str
    constant: str
    value: str
    default: bool
    recall: tuple[float, ...]
    multi: tuple[float, ...]
    unshared: tuple[float, ...]


Point = tuple[str, str, bool, Profile]
"""Constant, value, whether it is the default, the profile with it."""


def synapse_points() -> Iterator[Point]:
    """Synapse's appendix C: T, δ, M, S and the weights λ; then what is switched off. k is in the
    columns."""
    recipe = SYNAPSE_RECIPE
    for name, constant, values in (
        ("T (steps)", "steps", (0, 1, 2, 3, 4, 5)),
        ("δ (decay)", "decay", (0.1, 0.3, 0.5, 0.7, 0.9)),
        ("M (competitors)", "competitors", (3, 5, 7, 10)),
        ("S (spreading)", "spreading", (0.4, 0.6, 0.8, 1.0)),
    ):
        for value in values:
            default = value == getattr(recipe.rule, constant)
            yield name, f"{value:g}", default, _synapse(rule=_with(recipe.rule, constant, value))
    for shares in ((0.5, 0.3, 0.2), (0.6, 0.3, 0.1), (0.4, 0.3, 0.3), (0.7, 0.3, 0.0),
                   (0.4, 0.6, 0.0), (0.2, 0.8, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)):  # fmt: skip
        weights = SynapseWeights(similarity=shares[0], activation=shares[1], pagerank=shares[2])
        text = " / ".join(f"{share:g}" for share in shares)
        yield "λ (weights)", text, weights == recipe.shares, _synapse(shares=weights)
    yield from synapse_ablations()


def synapse_ablations() -> Iterator[Point]:
    """The paper's table 3, as far as it is about recall."""
    rule = SYNAPSE_RECIPE.rule
    if "fan" in {constant.name for constant in fields(rule)}:
        yield "without", "fan effect", False, _synapse(rule=_with(rule, "fan", 0.0))
    for name, profile in (
        ("lateral inhibition", _synapse(rule=replace(rule, inhibition=0.0))),
        ("node decay", _synapse(rule=replace(rule, decay=0.0))),
        ("decay of temporal edges", _synapse(rho=0.0)),
        ("activation (a static graph)", _synapse(shares=SynapseWeights(
            similarity=0.8, activation=0.0, pagerank=0.2))),
        ("the graph (vectors only)", _synapse(shares=SynapseWeights(
            similarity=1.0, activation=0.0, pagerank=0.0))),
    ):  # fmt: skip
        yield "without", name, False, profile


def _synapse(**changes: Any) -> Profile:
    recipe: SynapseRecipe = replace(SYNAPSE_RECIPE, **changes)
    return profile_of(recipe, "synapse")


def _with(constants: Any, name: str, value: float) -> Any:
    return replace(constants, **{name: value})


def cue_points(ground: Profile) -> Iterator[Point]:
    """What Cofire's own learning goes by, on top of a ground."""
    for term, values in (("cue", (0.0, 0.2, 0.4, 0.8, 1.0)),
                         ("association", (0.0, 0.5, 1.0, 2.0, 4.0))):  # fmt: skip
        for value in sorted({*values, ground.weights[term]}):
            weights = MappingProxyType({**ground.weights, term: value})
            default = value == ground.weights[term]
            yield f"weight of {term}", f"{value:g}", default, replace(ground, weights=weights)
    for name, tried in (("threshold", (1.0, 1.5, 2.0, 2.5, 3.0)),
                         ("steepness", (1.0, 2.0, 3.0, 5.0))):  # fmt: skip
        for value in sorted({*tried, getattr(ground.cues, name)}):
            cues = _with(ground.cues, name, value)
            default = value == getattr(ground.cues, name)
            yield f"{name} of cues", f"{value:g}", default, replace(ground, cues=cues)


def sweep_synapse(benches: Sequence[Bench], told: Progress) -> list[Swept]:
    """Every point on every question, of memories that learned nothing."""
    points = list(synapse_points())
    swept = []
    for at, point in enumerate(points):
        swept.append(_swept(point, lambda profile: _everything(benches, profile)))
        told(at + 1, len(points))
    return swept


Outcome = tuple[tuple[str, ...], tuple[str, ...], bool]
"""What was ranked, best first, the evidence, and whether some of it was learned from."""


def _everything(benches: Sequence[Bench], profile: Profile) -> Iterator[Outcome]:
    for bench in benches:
        for question, evidence in zip(bench.asked(), bench.evidence, strict=True):
            recall = bench.memory.recall(question, max(KS), profile=profile, now=bench.now)
            hits = sorted(recall, key=lambda hit: -hit.score)
            yield tuple(hit.id for hit in hits), evidence, False


def _swept(point: Point, outcomes: Callable[[Profile], Iterator[Outcome]]) -> Swept:
    constant, value, default, profile = point
    every = list(outcomes(profile))
    several = [one for one in every if len(one[1]) > 1]
    return Swept(
        profile=profile.name,
        constant=constant,
        value=value,
        default=default,
        recall=_means(every),
        multi=_means(several),
        unshared=_means([one for one in every if not one[2]]),
    )


def _means(outcomes: Sequence[Outcome]) -> tuple[float, ...]:
    return tuple(
        100.0 * mean([at_k(ranked, evidence, k).share for ranked, evidence, _ in outcomes])
        for k in KS
    )


def sweep_cues(courses: Sequence[Course], told: Progress) -> list[Swept]:
    """Every point on the test questions of `SPLITS` halves, of memories taught the others."""
    points = list(cue_points(courses[0].ground))
    outcomes: list[list[Outcome]] = [[] for _ in points]
    jobs = [
        (course, course.split(name, order, 0.5))
        for course in courses
        for name, order in course.orders[:SPLITS]
        if name != CHRONOLOGICAL
    ]
    for done, (course, split) in enumerate(jobs):
        asked, evidence, now = course.bench.asked(), course.bench.evidence, course.bench.now
        with course.pupil(done) as pupil:
            citable(pupil, course.lessons(split.train))
            for found, (_, _, _, profile) in zip(outcomes, points, strict=True):
                for question in split.test:
                    recall = pupil.memory.recall(asked[question], max(KS), profile=profile, now=now)
                    shared = question in split.shared
                    found.append((recall.ids, evidence[question], shared))
        told(done + 1, len(jobs))
    return [
        _swept(point, lambda _, found=found: iter(found))  # type: ignore[misc]
        for point, found in zip(points, outcomes, strict=True)
    ]
