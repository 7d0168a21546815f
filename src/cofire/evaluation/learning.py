"""Does a memory get better by being used? Learn from some questions, be asked the others.

Every conversation is remembered once. For each split of its questions and each way of learning
(`arms`) a copy of that store is taught the training questions and then asked the test questions;
what comes back is compared with what a memory that learned nothing brings back for the same
question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from cofire.errors import InputError
from cofire.evaluation.adjusting import BOOSTS, foreknown
from cofire.evaluation.arms import ARMS, Arm, Pupil, Teacher, citable
from cofire.evaluation.benches import remembered
from cofire.evaluation.courses import Course, Tested, course_of
from cofire.evaluation.grounds import ground_named
from cofire.evaluation.splits import CHRONOLOGICAL, Split
from cofire.evaluation.sweeps import Swept, sweep_cues, sweep_synapse
from cofire.interchange.locomo import load
from cofire.models import Embedder
from cofire.types import Progress

KS = (5, 10, 30)
HALF = 0.5
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the questions learned from, along the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A learned link (strength 0: two memories used in training, never together): how often, among
    held-out questions that use one of its ends, the other is used too."""

    strength: float
    used: int
    together: int


@dataclass(slots=True, kw_only=True)
class LearningResult:
    """Everything measured. `ground`: the recall that learning builds on. `tested` by arm; `curve`
    by share of the questions learned from, as (taught, untaught) on the questions left; `sweeps`
    by what was varied."""

    source: str
    corrected: bool
    conversations: int
    questions: int
    splits: int
    ground: str = "cofire"
    dropped: int = 0
    boost: float = 0.0
    tested: dict[str, list[Tested]] = field(default_factory=dict)
    curve: dict[float, tuple[list[Tested], list[Tested]]] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    sweeps: list[Swept] = field(default_factory=list)


def evaluate_learning(
    path: str | Path,
    *,
    corrections: str | Path | None = None,
    arms: Sequence[str] = tuple(ARMS),
    ground: str = "cofire",
    splits: int = 5,
    sweeps: bool = False,
    embedder: Embedder | str | None = None,
    progress: Callable[[str], Progress] | None = None,
) -> LearningResult:
    """Measure learning on a LoCoMo file: random halves of the questions, `splits` times, and once
    the earlier against the later half. Learning builds on the recall named `ground`
    (`grounds.GROUNDS`). The arms an arm's differences are to are always measured.

    Raises NotFoundError, FormatError, InputError (an arm or ground that does not exist, no
    question).
    """
    chosen, profile = _chosen(arms), ground_named(ground).profile
    conversations, _ = load(path, corrections=corrections)
    stage = progress or (lambda _: lambda done, total: None)
    result = LearningResult(
        source=str(path),
        corrected=corrections is not None,
        conversations=len(conversations),
        questions=0,
        splits=splits,
        ground=ground,
    )
    with (
        remembered(conversations, embedder, stage("remembering")) as benches,
        TemporaryDirectory(prefix="cofire-") as folder,
    ):
        told = stage("learning nothing")
        courses = []
        for index, bench in enumerate(benches):
            if bench.questions:
                courses.append(
                    course_of(index, bench, Path(folder), embedder, splits=splits, ground=profile)
                )
            told(index + 1, len(benches))
        result.questions = sum(len(course.bench.questions) for course in courses)
        if not result.questions:
            raise InputError(f"{path} has no question of categories 1-4 with evidence to score")
        _measure(result, courses, chosen, stage)
        if sweeps:
            result.sweeps = [
                *sweep_synapse([course.bench for course in courses], stage("sweeping synapse")),
                *sweep_cues(courses, stage("sweeping cofire")),
            ]
    return result


def _chosen(names: Sequence[str]) -> list[Arm]:
    unknown = [name for name in names if name not in ARMS]
    if unknown:
        raise InputError(f"there is no arm {unknown[0]!r}; use some of {', '.join(ARMS)}")
    wanted = {"frozen", *names, *(ARMS[name].base for name in names)}
    return [arm for name, arm in ARMS.items() if name in wanted]


def _measure(
    result: LearningResult,
    courses: Sequence[Course],
    arms: Sequence[Arm],
    stage: Callable[[str], Progress],
) -> None:
    result.tested = {arm.name: [] for arm in arms}
    popular: dict[float, list[Tested]] = {boost: [] for boost in BOOSTS}
    halves = [
        (course, course.split(name, order, HALF))
        for course in courses
        for name, order in course.orders
    ]
    result.dropped = sum(split.dropped for _, split in halves)
    for course, split in halves:
        for name, tested in _adjusted(course, split).items():
            if name in result.tested:
                result.tested[name] += tested
        for boost in BOOSTS if "popularity" in result.tested else ():
            popular[boost] += _popular(course, split, boost)
    if "popularity" in result.tested:
        result.boost = max(BOOSTS, key=lambda boost: sum(one.recall(10) for one in popular[boost]))
        result.tested["popularity"] = popular[result.boost]
    for teacher, taught in _by_teacher(arms):
        told = stage(taught[0].name)
        for at, (course, split) in enumerate(halves):
            _teach_and_ask(result, course, split, teacher, taught, seed=at)
            told(at + 1, len(halves))
    if "cofire" in result.tested:
        told = stage("learning curve")
        for at, course in enumerate(courses):
            _draw_curve(result, course)
            told(at + 1, len(courses))


def _by_teacher(arms: Sequence[Arm]) -> list[tuple[Teacher | None, list[Arm]]]:
    """Arms that are taught alike share a store. What `_adjusted` does is left out."""
    found: dict[Teacher | None, list[Arm]] = {}
    for arm in arms:
        if not arm.adjusts and arm.name != "frozen":
            found.setdefault(arm.teacher, []).append(arm)
    return list(found.items())


def _adjusted(course: Course, split: Split) -> dict[str, list[Tested]]:
    """The arms that need no learning store, but for popularity."""
    evidence = course.bench.evidence
    frozen = {question: course.ranked[question].returned() for question in split.test}
    lessons = course.lessons(split.train)
    found = {"frozen": course.tested(split, frozen)}
    for name, known in (
        ("oracle", {id for lesson in lessons for id in lesson.citable}),
        ("oracle-all", {id for lesson in lessons for id in lesson.evidence}),
    ):
        ranked = {
            question: foreknown(frozen[question], evidence[question], known)
            for question in split.test
        }
        found[name] = course.tested(split, ranked)
    return found


def _popular(course: Course, split: Split, boost: float) -> list[Tested]:
    used = {id for lesson in course.lessons(split.train) for id in lesson.citable}
    return course.tested(
        split,
        {question: course.ranked[question].boosted(used, boost) for question in split.test},
    )


def _teach_and_ask(
    result: LearningResult,
    course: Course,
    split: Split,
    teacher: Teacher | None,
    arms: Sequence[Arm],
    *,
    seed: int,
) -> None:
    if teacher is None:
        for arm in arms:
            result.tested[arm.name] += course.asked(
                split, course.bench.memory, arm.asks(course.ground)
            )
        return
    with course.pupil(seed) as pupil:
        teacher(pupil, course.lessons(split.train))
        for arm in arms:
            result.tested[arm.name] += course.asked(split, pupil.memory, arm.asks(course.ground))
        if arms[0].name == "cofire":
            result.pairs += _pairs(course, split, pupil)


def _pairs(course: Course, split: Split, pupil: Pupil) -> list[Pair]:
    """Learned links and, for comparison, pairs of used memories that are not linked, against the
    evidence of the held-out questions."""
    turns = course.bench.session_of
    strength = {
        (min(link.a, link.b), max(link.a, link.b)): link.strength
        for link in pupil.memory.strengths(now=pupil.now)
        if link.a in turns and link.b in turns
    }
    uses = [set(course.bench.evidence[question]) for question in split.test]
    used = sorted({id for lesson in course.lessons(split.train) for id in lesson.citable})
    pairs = []
    for at, one in enumerate(used):
        for other in used[at + 1 :]:
            either = [use for use in uses if one in use or other in use]
            if either:
                both = sum(one in use and other in use for use in either)
                known = strength.get((one, other), 0.0)
                pairs.append(Pair(strength=known, used=len(either), together=both))
    return pairs


def _draw_curve(result: LearningResult, course: Course) -> None:
    """Teach more and more of an order, and ask what is left each time."""
    for at, (name, order) in enumerate(course.orders):
        if name == CHRONOLOGICAL:
            continue
        with course.pupil(at) as pupil:
            taught = 0
            for share in SHARES:
                split = course.split(name, order, share)
                citable(pupil, course.lessons(split.train[taught:]))
                taught = len(split.train)
                frozen = {question: course.ranked[question].returned() for question in split.test}
                before = course.tested(split, frozen)
                after = course.asked(split, pupil.memory, course.ground) if taught else before
                known = result.curve.setdefault(share, ([], []))
                known[0].extend(after)
                known[1].extend(before)
