"""LongMemEval without a language model: does recall bring back the turns and sessions that hold the
answer?

Measured as the benchmark's own retrieval evaluation does (Wu et al., 2025; its `eval_utils`), at
four levels. Its figures are those of the first two, for it indexes only what the user said:

    user turns       among the user's turns, those marked as holding the answer
    user sessions    sessions in the order of their best user turn; those with such a turn
    turns            among all turns, those marked as holding the answer, whoever said them
    sessions         sessions in the order of their best turn; those that the file names

A question counts at a level if there is something to find at it. Abstention questions are left out
everywhere, because what they ask for is nowhere. The whole ranking counts: a profile's `cutoff`,
which returns fewer where the rest hardly matters, is off, so that k alone decides.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from cofire.errors import InputError
from cofire.evaluation.benches import opened
from cofire.evaluation.metrics import at_k, mean
from cofire.evaluation.qa.longmemeval_set import longmemeval_set
from cofire.evaluation.qa.tasks import Material, Task
from cofire.interchange.report import ImportReport
from cofire.memory import Memory
from cofire.models import Embedder, make_embedder
from cofire.retrieval.profiles import Profile, asked_of, profile_named
from cofire.settings import load_settings
from cofire.types import Message, Progress

KS = (5, 10, 30, 50)
PROFILES = ("cofire", "dense", "lexical")
LEVELS = ("user turns", "user sessions", "turns", "sessions")
PUBLISHED_LEVELS = LEVELS[:2]
"""Those that the figures of the paper are at."""
_DEEPER = 4
"""Hits asked for, in units of the largest k: some are parts of one turn, or said by the assistant.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Of one question at one k, each in [0, 1]: the `share` of the evidence among the first k,
    whether `any` and `all` of it is, and its `ndcg`."""

    share: float
    any: float
    all: float
    ndcg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What one question brought back under one profile. `measures`: by level, one per k; a level
    without anything to find is missing. `ranks`: the place of each evidence turn among all turns,
    from 1; None: it was not among those asked for. `milliseconds` of the recall, with embedding
    the question."""

    task: str
    group: str
    profile: str
    measures: Mapping[str, tuple[Measure, ...]]
    ranks: tuple[int | None, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Means over the `questions` of a group at one level, in %, one per k."""

    questions: int
    share: tuple[float, ...]
    any: tuple[float, ...]
    all: tuple[float, ...]
    ndcg: tuple[float, ...]


@dataclass(slots=True, kw_only=True)
class Retrieval:
    """Everything measured. `left_out`: questions by reason; `seconds`: of the whole run, by
    `jobs` processes; `turns`: messages remembered."""

    source: str
    ks: tuple[int, ...]
    profiles: tuple[str, ...]
    slept: bool
    jobs: int
    retrieved: list[Retrieved] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    turns: int = 0
    seconds: float = 0.0
    report: ImportReport

    def rows(self, profile: str, level: str) -> dict[str, Row]:
        """By group in alphabetical order, then "all"; only groups with a question that counts."""
        counted = [
            one for one in self.retrieved if one.profile == profile and level in one.measures
        ]
        groups = {
            group: [one for one in counted if one.group == group]
            for group in sorted({one.group for one in counted})
        }
        every = groups | ({"all": counted} if counted else {})
        return {group: self._row(some, level) for group, some in every.items()}

    def _row(self, some: Sequence[Retrieved], level: str) -> Row:
        def means(of: Callable[[Measure], float]) -> tuple[float, ...]:
            return tuple(
                100 * mean([of(one.measures[level][place]) for one in some])
                for place in range(len(self.ks))
            )

        return Row(
            questions=len(some),
            share=means(lambda measure: measure.share),
            any=means(lambda measure: measure.any),
            all=means(lambda measure: measure.all),
            ndcg=means(lambda measure: measure.ndcg),
        )


def evaluate_retrieval(
    path: str | Path,
    *,
    profiles: Sequence[str] = PROFILES,
    ks: Sequence[int] = KS,
    slept: bool = False,
    limit: int | None = None,
    jobs: int = 1,
    embedder: str | None = None,
    progress: Progress | None = None,
) -> Retrieval:
    """Measure profiles on a file of LongMemEval, one haystack after another in a store of its own.

    `slept`: each is consolidated first, without a language model. `limit`: only so many questions,
    from the start of the file. `jobs`: haystacks at a time, each in a process of its own.

    Raises NotFoundError, FormatError, InputError (a profile that does not exist, no question).
    """
    wanted = tuple(sorted(set(ks)))
    _profiles(profiles, slept=slept)  # what does not exist is told before anything is read
    data = longmemeval_set(path)
    result = Retrieval(
        source=str(path), ks=wanted, profiles=tuple(profiles),
        slept=slept, jobs=jobs, report=data.report,
    )  # fmt: skip
    started = perf_counter()
    work = _Work(profiles=tuple(profiles), ks=wanted, slept=slept, embedder=embedder)
    todo = _worthwhile(islice(data.materials(), limit), result)
    for done, retrieved in enumerate(_each(work, todo, jobs), start=1):
        result.retrieved += retrieved
        if progress is not None:
            progress(done, limit)
    result.seconds = perf_counter() - started
    if not result.retrieved:
        raise InputError(f"{path} has no question of LongMemEval with evidence to score")
    return result


def ndcg_at(ranked: Sequence[Hashable], evidence: Sequence[Hashable], k: int) -> float:
    """Normalised discounted cumulative gain of the first k, in [0, 1], as LongMemEval computes it:
    DCG@k = Σ rel_i / max(1, log2 i) over places i from 1, over that of the best possible ranking
    (Järvelin and Kekäläinen, 2002: the first two places count in full). 0 without evidence."""
    wanted = set(evidence)
    gains = [1 / max(1.0, math.log2(place)) for place in range(1, k + 1)]
    best = sum(gains[: len(wanted)])
    got = sum(gain for one, gain in zip(ranked, gains, strict=False) if one in wanted)
    return got / best if best else 0.0


def measures_of(
    ranked: Sequence[str], evidence: Sequence[str], ks: Sequence[int]
) -> tuple[Measure, ...]:
    """At each k; `ranked` has nothing twice. Raises ValueError if there is no evidence."""
    found = []
    for k in ks:
        at = at_k(ranked, evidence, k)
        ndcg = ndcg_at(ranked, evidence, k)
        found.append(Measure(share=at.share, any=float(at.any), all=float(at.all), ndcg=ndcg))
    return tuple(found)


def measures_by_level(
    ranked: Sequence[Message], task: Task, by_key: Mapping[str, Message], ks: Sequence[int]
) -> dict[str, tuple[Measure, ...]]:
    """`ranked`: turns, best first, each once. `by_key`: every turn of the haystack."""
    evidence = [by_key[key] for key in task.evidence if key in by_key]
    theirs = [message for message in evidence if message.role == "user"]
    said = [message for message in ranked if message.role == "user"]
    levels = {
        "user turns": (_keys(said), _keys(theirs)),
        "user sessions": (_sessions(said), _sessions(theirs)),
        "turns": (_keys(ranked), _keys(evidence)),
        "sessions": (_sessions(ranked), list(task.evidence_sessions)),
    }
    return {
        level: measures_of(found, wanted, ks) for level, (found, wanted) in levels.items() if wanted
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is done to each material, in whichever process; `profiles` are names."""

    profiles: tuple[str, ...]
    ks: tuple[int, ...]
    slept: bool
    embedder: str | None


def _profiles(names: Sequence[str], *, slept: bool) -> list[Profile]:
    """As they are asked here, under the names they were asked for by."""
    return [
        replace(asked_of(profile_named(name), slept=slept), name=name, cutoff=None, order="score")
        for name in names
    ]


def _worthwhile(materials: Iterator[Material], result: Retrieval) -> Iterator[Material]:
    """Those with something to find; the others need not be remembered."""
    for material in materials:
        result.questions += len(material.tasks)
        kept = []
        for task in material.tasks:
            if task.unanswerable:
                result.left_out["abstention"] += 1
            elif not task.evidence and not task.evidence_sessions:
                result.left_out["no evidence"] += 1
            else:
                kept.append(task)
        if kept:
            result.turns += len(material.messages)
            yield replace(material, tasks=tuple(kept))


def _each(work: _Work, todo: Iterator[Material], jobs: int) -> Iterator[list[Retrieved]]:
    """In the order of the file; no more haystacks in memory than are worked on."""
    if jobs == 1:
        # Haystacks share sessions: the cache of vectors outlives one.
        held = make_embedder(load_settings(embedder=work.embedder))
        try:
            for material in todo:
                yield _retrieved(work, material)
        finally:
            held.close()
        return
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=_hold, initargs=(work.embedder,)
    ) as pool:
        running: deque[Future[list[Retrieved]]] = deque()
        try:
            for material in todo:
                running.append(pool.submit(_retrieved, work, material))
                if len(running) > jobs:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


_holding: list[Embedder] = []
"""In a process of the pool: haystacks share sessions, so the cache of vectors outlives each."""


def _hold(embedder: str | None) -> None:
    _holding.append(make_embedder(load_settings(embedder=embedder)))


def _retrieved(work: _Work, material: Material) -> list[Retrieved]:
    """The questions of a material under each profile."""
    profiles = _profiles(work.profiles, slept=work.slept)
    with tempfile.TemporaryDirectory(prefix="cofire-") as folder:
        workings = opened(Path(folder) / "haystack.db", work.embedder)
        with Memory(workings) as memory:
            receipt = memory.remember(material.messages)
            by_id = dict(zip(receipt.ids, material.messages, strict=True))
            if work.slept:
                memory.consolidate(generator="none", now=material.now)
            found = []
            for task in material.tasks:
                # What is timed is recall, not the loading of the haystack and of the question.
                memory.recall(task.question, 1, now=task.asked or material.now)
                for profile in profiles:
                    ranked, milliseconds = _ranked(memory, task, profile, work, material.now)
                    turns = [by_id[id] for id in ranked]
                    found.append(
                        _scored(
                            turns, task, material,
                            profile=profile.name, ks=work.ks, milliseconds=milliseconds,
                        )
                    )  # fmt: skip
            return found


def _ranked(
    memory: Memory, task: Task, profile: Profile, work: _Work, now: datetime
) -> tuple[list[str], float]:
    """Ids of turns, best first, each once (hits may be parts of one); milliseconds of the recall
    with the question's vector at hand."""
    started = perf_counter()
    recall = memory.recall(
        task.question,
        _DEEPER * max(work.ks),
        profile=profile,
        now=task.asked or now,
        semantic=0,
    )
    milliseconds = 1e3 * (perf_counter() - started)
    best_first = sorted(recall, key=lambda hit: -hit.score)
    return list(dict.fromkeys(hit.id for hit in best_first)), milliseconds


def _scored(
    turns: Sequence[Message],
    task: Task,
    material: Material,
    *,
    profile: str,
    ks: Sequence[int],
    milliseconds: float,
) -> Retrieved:
    by_key = {str(message.key): message for message in material.messages}
    keys = _keys(turns)
    return Retrieved(
        task=task.id,
        group=task.group,
        profile=profile,
        measures=measures_by_level(turns, task, by_key, ks),
        ranks=tuple(keys.index(key) + 1 if key in keys else None for key in task.evidence),
        milliseconds=milliseconds,
    )


def _keys(messages: Sequence[Message]) -> list[str]:
    return [str(message.key) for message in messages]


def _sessions(messages: Sequence[Message]) -> list[str]:
    """Each once, in the order of its first turn."""
    return list(dict.fromkeys(str(message.session) for message in messages))
