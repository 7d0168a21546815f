"""LongMemEval (Wu et al., 2025): questions, each with a haystack of dated chat sessions.

Rules for what the published files leave open:

- sessions are put in the order of their dates;
- a session id that occurs twice in one haystack is two occurrences: "s", "s#2", …;
- a session dated after its question is kept, as the official evaluation does (the answer may lie
  in it), flagged `late` and reported;
- an answer that is a number or a list becomes a text; an answer session that is not in the
  haystack is noted;
- turns without text are skipped; `question_id` ending in "_abs" means the answer is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cofire.encoding.timestamps import parse_time
from cofire.errors import InputError
from cofire.interchange.files import existing, json_entries
from cofire.interchange.report import Action, Problem
from cofire.types import Message

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One chat of a haystack. `occurrence` is its id, made unique within the haystack."""

    id: str
    occurrence: str
    time: datetime | None
    late: bool
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and its haystack. `time` is when it is asked; `evidence` are the keys of the
    turns marked as holding the answer, `evidence_sessions` the occurrences that hold it."""

    id: str
    type: str
    question: str
    answer: str | None
    time: datetime | None
    sessions: tuple[Session, ...]
    evidence: tuple[str, ...]
    evidence_sessions: tuple[str, ...]

    @property
    def abstention(self) -> bool:
        """Whether the right answer is that the haystack does not say."""
        return self.id.endswith("_abs")

    @property
    def messages(self) -> tuple[Message, ...]:
        """All turns, oldest session first."""
        return tuple(message for session in self.sessions for message in session.messages)


def load(path: str | Path) -> Iterator[Question | Problem]:
    """Questions one at a time (a file may hold gigabytes), each after its problems.

    Raises FormatError if the file is not JSON.
    """
    for place, entry in enumerate(json_entries(existing(path))):
        sessions = entry.get("haystack_sessions") if isinstance(entry, dict) else None
        if not isinstance(sessions, list):
            reason = "it is no object with `haystack_sessions`"
            yield Problem(where=f"entry {place}", reason=reason)
            continue
        problems: list[Problem] = []
        question = _question(entry, place, problems)
        yield from problems
        yield question


def read(path: str | Path) -> Iterator[Message | Problem]:
    """The turns of all haystacks, to be remembered; which of them hold answers is left out."""
    for entry in load(path):
        if isinstance(entry, Problem):
            yield entry
        else:
            yield from entry.messages


def _question(entry: Mapping[str, Any], place: int, problems: list[Problem]) -> Question:
    name = str(entry.get("question_id") or f"question-{place}")
    asked = _time(entry.get("question_date"), f"{name}, question date", problems)
    evidence: list[str] = []
    sessions = _sessions(name, entry, asked, evidence, problems)
    holding = dict.fromkeys(str(session) for session in _list(entry.get("answer_session_ids")))
    for missing in sorted(holding.keys() - {session.id for session in sessions}):
        reason = f"its answer session {missing} is not in the haystack"
        problems.append(Problem(where=name, reason=reason, action=Action.NOTED))
    return Question(
        id=name,
        type=str(entry.get("question_type") or ""),
        question=str(entry.get("question") or ""),
        answer=_answer(entry.get("answer")),
        time=asked,
        sessions=tuple(sessions),
        evidence=tuple(evidence),
        evidence_sessions=tuple(s.occurrence for s in sessions if s.id in holding),
    )


def _sessions(
    name: str,
    entry: Mapping[str, Any],
    asked: datetime | None,
    evidence: list[str],
    problems: list[Problem],
) -> list[Session]:
    """The haystack, oldest first; keys of turns that hold the answer are added to `evidence`."""
    chats = _list(entry.get("haystack_sessions"))
    ids = _list(entry.get("haystack_session_ids"))[: len(chats)]
    dates = _list(entry.get("haystack_dates"))[: len(chats)]
    dated = []
    for index, (chat, given, date) in enumerate(zip_longest(chats, ids, dates)):
        session = str(given) if given is not None else f"session-{index}"
        time = _time(date, f"{name}, session {session}", problems)
        dated.append((time or _EARLIEST, index, session, time, chat))
    seen: Counter[str] = Counter()
    sessions = []
    for _, _, session, time, chat in sorted(dated, key=lambda row: row[:2]):
        seen[session] += 1
        occurrence = session if seen[session] == 1 else f"{session}#{seen[session]}"
        where = f"{name}, session {occurrence}"
        late = time is not None and asked is not None and time > asked
        if late:
            reason = f"it is dated {time:%Y-%m-%d %H:%M}, after the question"
            problems.append(Problem(where=where, reason=reason, action=Action.NOTED))
        messages = tuple(_turns(name, occurrence, time, chat, problems))
        evidence.extend(_holding(messages, chat))
        sessions.append(
            Session(id=session, occurrence=occurrence, time=time, late=late, messages=messages)
        )
    return sessions


def _turns(
    name: str,
    occurrence: str,
    time: datetime | None,
    chat: Any,
    problems: list[Problem],
) -> Iterator[Message]:
    for index, turn in enumerate(_list(chat)):
        where = f"{name}, session {occurrence}, turn {index}"
        content = turn.get("content") if isinstance(turn, dict) else None
        if not isinstance(content, str):
            problems.append(Problem(where=where, reason="it has no text"))
            continue
        if not content.strip():
            problems.append(Problem(where=where, reason="it is empty", action=Action.SKIPPED))
            continue
        role = turn.get("role")
        yield Message(
            content=content,
            role=role if isinstance(role, str) else None,
            time=time,
            session=f"{name}:{occurrence}",
            metadata={"question_id": name, "turn": index},
            key=f"longmemeval:{name}:{occurrence}:{index}",
        )


def _holding(messages: tuple[Message, ...], chat: Any) -> Iterator[str]:
    """Keys of the turns that are marked as holding the answer."""
    for message in messages:
        if chat[message.metadata["turn"]].get("has_answer") is True:
            yield str(message.key)


def _answer(value: Any) -> str | None:
    """The answer as a text: some are numbers; of a list, its members with commas."""
    if isinstance(value, list):
        return ", ".join(str(member) for member in value)
    return None if value is None else str(value)


def _time(value: Any, where: str, problems: list[Problem]) -> datetime | None:
    try:
        return parse_time(value)[0]
    except InputError as exc:
        problems.append(Problem(where=where, reason=str(exc), action=Action.REPAIRED))
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
