"""LoCoMo as a data set of questions: every category, with its published counts.

Categories 1–4 have a gold answer; category 5 asks for what the conversation does not hold, and its
`adversarial_answer` is the trap. Questions that occur twice are kept, as the published figures do.
A question of categories 1–4 without a gold answer, and one of no known category, cannot be scored:
it is reported as skipped. One without evidence can be, and is noted.

A correction replaces the evidence and the answer, whatever its kind: "wrong_citation" (mostly the
evidence alone), "hallucination", "attribution_error", "temporal_error", "ambiguous", "incomplete".
No question is dropped for one. The auditors wrote remarks into some answers, such as "Cakes (answer
is correct, D25:19 should be D25:20)". They are no part of an answer: a bracket that cites turns or
remarks on the key is taken out (`without_remarks`) and noted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cofire.evaluation.qa.tasks import DataSet, Material, Task, dated, undated_problem
from cofire.interchange.locomo import CATEGORIES, Conversation, Question, load
from cofire.interchange.report import Action, ImportReport, Problem

COUNTS = {"multi-hop": 282, "temporal": 321, "open-domain": 96, "single-hop": 841}
"""Questions per category of the ten conversations as published (Maharana et al., 2024)."""
ADVERSARIAL = 5

_BRACKET = re.compile(r"\s*\(([^()]*)\)")
_TURN = re.compile(r"\bD\d+:\d+")
_REMARK = re.compile(r"(?:answer is correct|but)\b", re.IGNORECASE)
_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""The last session of a conversation in which no date can be read."""


def locomo_set(path: str | Path, *, corrections: str | Path | None = None) -> DataSet:
    """LoCoMo's file as a data set, a material per conversation that has questions to score. The
    file is read at once; the report is complete.

    Raises NotFoundError, FormatError (see `cofire.interchange.locomo.load`).
    """
    conversations, report = load(path, corrections=corrections)
    corrected = corrections is not None
    materials = tuple(_materials(conversations, report))
    if corrected:
        _note_corrections(conversations, report)
    return DataSet(
        name="locomo",
        materials=lambda: iter(materials),
        counts=COUNTS,
        scored_apart=frozenset({CATEGORIES[ADVERSARIAL]}),
        key="corrected" if corrected else "published",
        report=report,
    )


def without_remarks(answer: str) -> str:
    """A corrected answer without the brackets that cite turns ("(D8:6, D9:17)") or remark on the
    key ("(answer is correct, ...)", "(but ...)"); the answer itself if nothing else would be left.
    """

    def kept(match: re.Match[str]) -> str:
        remark = _TURN.search(match[1]) or _REMARK.match(match[1].strip())
        return "" if remark else match[0]

    return _BRACKET.sub(kept, answer).strip() or answer


def _materials(conversations: Sequence[Conversation], report: ImportReport) -> Iterator[Material]:
    for conversation in conversations:
        tasks = tuple(
            task
            for question in conversation.questions
            if (task := _task(question, conversation, report)) is not None
        )
        if tasks:
            messages, undated = dated(conversation.messages, _UNDATED)
            for session in undated:
                report.add(undated_problem(conversation.sample, session))
            yield Material(
                name=conversation.sample,
                messages=messages,
                now=_last(conversation) + timedelta(days=1),
                tasks=tasks,
            )
        else:
            reason = "it has no question to score"
            where = conversation.sample
            report.add(Problem(where=where, reason=reason, action=Action.NOTED))


def _last(conversation: Conversation) -> datetime:
    times = [session.time for session in conversation.sessions if session.time is not None]
    return max(times, default=_UNDATED)


def _task(question: Question, conversation: Conversation, report: ImportReport) -> Task | None:
    """None, and reported, if there is nothing to score it by."""
    where = f"{question.sample}, question {question.position}"
    group = CATEGORIES.get(question.category)
    adversarial = question.category == ADVERSARIAL
    answer = question.answer
    reason = ""
    if group is None:
        reason = "it has no category from 1 to 5"
    elif not question.question.strip():
        reason = "it asks nothing"
    elif not adversarial and not (answer or "").strip():
        reason = "it has no gold answer"
    if reason or group is None:
        report.add(Problem(where=where, reason=reason, action=Action.SKIPPED))
        return None
    if not adversarial and not question.evidence:
        reason = "it has no evidence: its answer is scored, its recall is not"
        report.add(Problem(where=where, reason=reason, action=Action.NOTED))
    if question.correction is not None and answer is not None:
        plain = without_remarks(answer)
        if plain != answer:
            reason = f"the corrected answer {answer!r} is read as {plain!r}"
            report.add(Problem(where=where, reason=reason, action=Action.REPAIRED))
        answer = plain
    turns = conversation.turns
    told = [turns[dia] for dia in question.evidence]
    return Task(
        id=f"{question.sample}/{question.position}",
        material=question.sample,
        group=group,
        question=question.question,
        answer=answer,
        unanswerable=adversarial,
        trap=question.adversarial_answer if adversarial else None,
        evidence=tuple(str(message.key) for message in told),
        evidence_sessions=tuple(dict.fromkeys(str(message.session) for message in told)),
        corrected=question.correction is not None,
    )


def _note_corrections(conversations: Sequence[Conversation], report: ImportReport) -> None:
    """How many corrections of which kind were applied, in one line."""
    kinds = Counter(
        question.correction
        for conversation in conversations
        for question in conversation.questions
        if question.correction is not None
    )
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    report.note(f"corrections applied: {told or 'none'}")
