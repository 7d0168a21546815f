"""LongMemEval as a data set of questions: each has a haystack of its own.

The oracle, S and M files have the same format and are read one question at a time. What
`cofire.interchange.longmemeval` leaves to the evaluation is settled here:

- a session without a date is dated like the one before it (reported);
- a question is asked at its `question_date`; without one, a day after its last session (noted);
- sessions dated after the question are remembered like the others, as the official evaluation
  does: recall leaves nothing out for being later than the moment it is asked at;
- a question id that occurs again gets "#2", "#3" (noted);
- a question without text, without a turn to remember, or with no gold answer though it can be
  answered, is skipped (reported).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cofire.evaluation.qa.tasks import (
    DataSet,
    Material,
    Task,
    dated,
    reading,
    undated_problem,
)
from cofire.interchange.files import existing
from cofire.interchange.longmemeval import Question, load
from cofire.interchange.report import Action, ImportReport, Problem
from cofire.types import Message

COUNTS = {
    "single-session-user": 70,
    "single-session-assistant": 56,
    "single-session-preference": 30,
    "multi-session": 133,
    "temporal-reasoning": 133,
    "knowledge-update": 78,
}
"""Questions per type of the 500 published ones (Wu et al., 2025). The 30 that ask for what the
haystack does not say (`_abs`) count under their type, as in the official evaluation."""

_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""The last session of a haystack in which no date can be read."""


def longmemeval_set(path: str | Path) -> DataSet:
    """A file of LongMemEval as a data set, a material per question.

    Raises NotFoundError at once, FormatError while it is read (the file is not JSON).
    """
    source = existing(path)
    report = ImportReport(source=str(source))
    return DataSet(
        name="longmemeval",
        materials=reading(report, lambda: _entries(source)),
        counts=COUNTS,
        scored_apart=frozenset(),
        key="published",
        report=report,
    )


def _entries(source: Path) -> Iterator[Material | Problem]:
    seen: Counter[str] = Counter()
    for entry in load(source):
        if isinstance(entry, Problem):
            yield entry
            continue
        reason = _unusable(entry)
        if reason:
            yield Problem(where=entry.id, reason=reason, action=Action.SKIPPED)
            continue
        seen[entry.id] += 1
        name = entry.id if seen[entry.id] == 1 else f"{entry.id}#{seen[entry.id]}"
        if name != entry.id:
            reason = f"its id was used before; it is called {name}"
            yield Problem(where=entry.id, reason=reason, action=Action.NOTED)
        if entry.time is None:
            reason = "it has no date: it is asked a day after the last session"
            yield Problem(where=name, reason=reason, action=Action.NOTED)
        messages, undated = dated(entry.messages, _UNDATED)
        yield from (undated_problem(name, session) for session in undated)
        yield _material(entry, name, messages)


def _unusable(question: Question) -> str:
    """Why it cannot be asked or scored; "" if it can."""
    if not question.question.strip():
        return "it asks nothing"
    if not question.messages:
        return "its haystack has no turn with text"
    if not question.abstention and not (question.answer or "").strip():
        return "it has no gold answer"
    return ""


def _material(question: Question, name: str, messages: tuple[Message, ...]) -> Material:
    asked = question.time
    if asked is None:
        times = [session.time for session in question.sessions if session.time is not None]
        asked = max(times, default=_UNDATED) + timedelta(days=1)
    holding = frozenset(question.evidence_sessions)
    task = Task(
        id=name,
        material=name,
        group=question.type or "unknown",
        question=question.question,
        answer=question.answer,
        unanswerable=question.abstention,
        evidence=question.evidence,
        evidence_sessions=tuple(
            str(session.messages[0].session)
            for session in question.sessions
            if session.occurrence in holding and session.messages
        ),
        asked=asked,
    )
    return Material(name=name, messages=messages, now=asked, tasks=(task,))
