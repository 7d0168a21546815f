"""What a benchmark asks, in one shape for all of them.

A data set is a series of materials (what is remembered before anything is asked), each with its
tasks (the questions asked of it). `locomo_set`, `longmemeval_set` and `choices_set` make them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from cofire.interchange.report import Action, ImportReport, Problem
from cofire.types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One question, with what is known of its right answer.

    `id` is unique in the data set, such as "conv-26/12". `material` is the name of the material
    it is asked of; `group` what it is counted under: "multi-hop", "single-session-user".

    `answer` is the gold answer, None where there is none. `unanswerable`: the right reply is that
    the material does not say (LoCoMo's category 5, LongMemEval's `_abs`); `answer` may then be a
    text that says so. `trap` is a plausible wrong answer (LoCoMo's `adversarial_answer`).

    `evidence` are keys of messages (`Message.key`) that the answer rests on, `evidence_sessions`
    values of `Message.session` that hold it; both may be empty, and the second be known where
    the first is not. `asked` is when the question is put; None: at the material's `now`.

    `choices` are the answers to choose from (empty: it is open), `right` the index of the right
    one. `corrected`: the published answer or evidence was replaced by a correction.
    """

    id: str
    material: str
    group: str
    question: str
    answer: str | None
    unanswerable: bool = False
    trap: str | None = None
    evidence: tuple[str, ...] = ()
    evidence_sessions: tuple[str, ...] = ()
    asked: datetime | None = None
    choices: tuple[str, ...] = ()
    right: int | None = None
    corrected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is remembered before its questions are asked, in one space.

    `name` is unique in the data set. `messages` are in the order they are remembered in, each
    with a `key` of its own. `now` (with a time zone) is the time that recall counts from where a
    task has none of its own. `tasks` are the questions asked of it, at least one.
    """

    name: str
    messages: tuple[Message, ...]
    now: datetime
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A benchmark, read as far as it is asked for.

    `name` is "locomo", "longmemeval" or "choices". `materials` starts a new reading each time it
    is called and holds one material at a time (LongMemEval's largest file has gigabytes).

    `counts` are the questions per group of the full published data set, the weights of averages;
    empty: every question that is asked weighs the same. `scored_apart` are groups that stay out
    of averages. `key` is "published", or "corrected" where corrections of it were applied.

    `report` says what was read, repaired and left out by the latest reading of `materials`, as
    far as that has come.
    """

    name: str
    materials: Callable[[], Iterator[Material]]
    counts: Mapping[str, int]
    scored_apart: frozenset[str]
    key: str
    report: ImportReport


def reading(
    report: ImportReport, entries: Callable[[], Iterator[Material | Problem]]
) -> Callable[[], Iterator[Material]]:
    """What `DataSet.materials` is: each call starts `entries` anew, with an empty `report` into
    which the problems go as they are met; messages count as read."""

    def materials() -> Iterator[Material]:
        empty = ImportReport(source=report.source)
        for field in fields(report):
            setattr(report, field.name, getattr(empty, field.name))
        for entry in entries():
            if isinstance(entry, Problem):
                report.add(entry)
            else:
                report.read += len(entry.messages)
                yield entry

    return materials


def dated(
    messages: Sequence[Message], otherwise: datetime
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages, those without a time given the time of the one before them, at the start that
    of the first that has one, and with none at all `otherwise`: a message without a time would be
    remembered as said while the benchmark runs. Also the sessions of those that had none."""
    before = next((one.time for one in messages if one.time is not None), otherwise)
    found = []
    undated: dict[str, None] = {}
    for message in messages:
        if message.time is None:
            undated[str(message.session)] = None
            found.append(replace(message, time=before))
        else:
            before = message.time
            found.append(message)
    return tuple(found), tuple(undated)


def undated_problem(where: str, session: str) -> Problem:
    """What is reported of each session that `dated` gave a time."""
    reason = f"session {session} has no date: it is dated like the one before it"
    return Problem(where=where, reason=reason, action=Action.REPAIRED)
