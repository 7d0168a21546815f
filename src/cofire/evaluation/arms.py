"""Ways to learn from use, side by side: what each is taught, and how it is asked afterwards.

Every way of teaching gets a copy of the untaught store and the same training questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from cofire.dynamics.plasticity import COFIRE_RULE, HELA_MEM_RULE, SIGNALS, Rule
from cofire.evaluation.splits import permuted
from cofire.memory import Memory
from cofire.retrieval.profiles import AWAKE, HELA_MEM, Profile, profile_of
from cofire.retrieval.recipes import HELA_MEM_RECIPE
from cofire.store.learning import NewEvent
from cofire.types import Recall, to_micros
from cofire.workings import Workings

K = 30
"""Memories recalled for a training question: what an agent could cite."""
TRUSTED = "evaluation"
"""The principal whose feedback has no daily cap: all training happens on one day."""
ONE_USER = "one user"
RETRIEVED = 10
"""Mere co-retrieval strengthens every pair of so many best."""
CO_RETRIEVAL_RULE = replace(
    COFIRE_RULE,
    name="co-retrieval",
    alpha={**dict.fromkeys(SIGNALS, 0.0), "retrieved": 0.1},
    graded=False,
    cap_per_day=None,
    cue_alpha=0.0,
    most_cues=0,
)
"""Cofire's rule with the signal that it leaves off, at Atamaia's rate and without credit."""
HELA_MEM_TIMELESS = profile_of(replace(HELA_MEM_RECIPE, tau_days=None), "hela_mem without decay")


@dataclass(frozen=True, slots=True)
class Lesson:
    """A training question with its evidence, and which of it an untaught recall brings back."""

    question: str
    evidence: tuple[str, ...]
    citable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pupil:
    """A store to be taught; `size` is how many memories it has, `seed` that of its split, `ground`
    how it recalls."""

    memory: Memory
    workings: Workings
    now: datetime
    size: int
    seed: int
    ground: Profile = AWAKE

    def recall(self, question: str) -> Recall:
        """What an agent would see."""
        return self.memory.recall(question, K, profile=self.ground, now=self.now)


Teacher = Callable[[Pupil, Sequence[Lesson]], None]


def _cite(pupil: Pupil, recall: Recall, evidence: Sequence[str], by: str) -> None:
    found = set(recall.ids)
    used = [id for id in evidence if id in found]
    if used:
        pupil.memory.feedback(recall, used, by=by, now=pupil.now)


def citable(pupil: Pupil, lessons: Sequence[Lesson], by: str = TRUSTED) -> None:
    """Feedback names the evidence among what was retrieved."""
    for lesson in lessons:
        _cite(pupil, pupil.recall(lesson.question), lesson.evidence, by)


def capped(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """The same from one principal who is not trusted: a link moves by 0.2 at most."""
    citable(pupil, lessons, ONE_USER)


def all_evidence(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """Feedback names all evidence: more than an agent could know."""
    for lesson in lessons:
        _cite(pupil, _deep(pupil, lesson.question, lesson.evidence), lesson.evidence, TRUSTED)


def shuffled(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """Feedback names what another training question could cite."""
    dealt = permuted([lesson.citable for lesson in lessons], pupil.seed)
    for lesson, evidence in zip(lessons, dealt, strict=True):
        _cite(pupil, _deep(pupil, lesson.question, evidence), evidence, TRUSTED)


def _deep(pupil: Pupil, question: str, evidence: Sequence[str]) -> Recall:
    """An ordinary recall if it brings back all the evidence, else one that brings everything."""
    recall = pupil.recall(question)
    if set(evidence) <= set(recall.ids):
        return recall
    everything = replace(pupil.ground, name=f"{pupil.ground.name}, everything", cutoff=None)
    return pupil.memory.recall(question, pupil.size, profile=everything, now=pupil.now)


def co_retrieval(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """No feedback: what is retrieved together is strengthened."""
    _rehearse(pupil, lessons, pupil.ground, CO_RETRIEVAL_RULE, RETRIEVED)


def hela_mem(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """HeLa-Mem's update on its own retrieval sets."""
    _rehearse(pupil, lessons, HELA_MEM, HELA_MEM_RULE, HELA_MEM.depth)


def hela_mem_timeless(pupil: Pupil, lessons: Sequence[Lesson]) -> None:
    """The same with retrieval sets that do not fade with age."""
    _rehearse(pupil, lessons, HELA_MEM_TIMELESS, HELA_MEM_RULE, HELA_MEM_TIMELESS.depth)


def _rehearse(
    pupil: Pupil, lessons: Sequence[Lesson], profile: Profile, rule: Rule, count: int
) -> None:
    space = pupil.workings.spaces.all()[0]
    number_of: dict[str, int] = {}
    time = to_micros(pupil.now)
    for lesson in lessons:
        recall = pupil.memory.recall(lesson.question, count, profile=profile, now=pupil.now)
        for id in recall.ids:
            if id not in number_of:
                number_of[id] = pupil.workings.spaces.end(id)[1]
        if len(recall) < 2:
            continue
        together = NewEvent(
            items=tuple((number_of[id], 1.0) for id in sorted(set(recall.ids))),
            signal="retrieved",
            time=time,
        )
        pupil.workings.store.learn(space, together, rule, trusted=True, now=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """`teacher`: how it is taught; None: not at all. `profile`: how it is asked; None: by the
    ground that learning builds on, `without` a mechanism of it. `base`: the arm that its
    differences are to, one that learned nothing. `adjusts` names an arm that changes the
    untaught ranking instead of a store (see `adjusting`)."""

    name: str
    says: str
    profile: Profile | None = None
    without: str | None = None
    teacher: Teacher | None = None
    base: str = "frozen"
    adjusts: bool = False

    def asks(self, ground: Profile) -> Profile:
        """How it is asked where learning builds on `ground`."""
        if self.profile is not None:
            return self.profile
        return ground if self.without is None else ground.without(self.without)


_ARMS = (
    Arm(name="frozen", says="learned nothing"),
    Arm(name="cofire", says="Cofire's rule; feedback names what it can cite", teacher=citable),
    Arm(name="one-principal", says="the same from one principal on one day", teacher=capped),
    Arm(name="all-evidence", says="feedback names all evidence, found or not",
        teacher=all_evidence),
    Arm(name="shuffled", says="feedback names another question's evidence", teacher=shuffled),
    Arm(name="popularity", says="whatever was ever used is boosted", adjusts=True),
    Arm(name="co-retrieval", says="what is retrieved together is linked", teacher=co_retrieval),
    Arm(name="cues-off", says="taught as cofire, asked without cues", teacher=citable,
        without="cues"),
    Arm(name="links-off", says="taught as cofire, asked without links", teacher=citable,
        without="associations"),
    Arm(name="hela-mem-frozen", says="HeLa-Mem, learned nothing", profile=HELA_MEM,
        base="hela-mem-frozen"),
    Arm(name="hela-mem", says="HeLa-Mem's rule and profile", teacher=hela_mem, profile=HELA_MEM,
        base="hela-mem-frozen"),
    Arm(name="hela-mem-timeless-frozen", says="the same without time decay, learned nothing",
        profile=HELA_MEM_TIMELESS, base="hela-mem-timeless-frozen"),
    Arm(name="hela-mem-timeless", says="HeLa-Mem's rule, profile without time decay",
        teacher=hela_mem_timeless, profile=HELA_MEM_TIMELESS, base="hela-mem-timeless-frozen"),
    Arm(name="oracle", says="knows which cited evidence will be needed again", adjusts=True),
    Arm(name="oracle-all", says="knows which evidence will be needed again", adjusts=True),
)  # fmt: skip
ARMS: Mapping[str, Arm] = MappingProxyType({arm.name: arm for arm in _ARMS})
"""By name, in the order of the tables."""
