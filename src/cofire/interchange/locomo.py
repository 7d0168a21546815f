"""LoCoMo (Maharana et al., 2024): conversations of many sessions, with questions about them.

The published file has quirks; each is repaired or left out, and reported:

- evidence such as "D8:6; D9:17", "D:11:26", "D30:05" is read as the turns it means; "D" and ids
  that no turn has cannot be, and are dropped from the question;
- dates without a session are skipped, sessions are put in the order of their dates;
- answers may be numbers, or missing (category 5 has an `adversarial_answer` instead);
- a question may occur twice: both are kept and the later one is marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cofire.encoding.timestamps import parse_time
from cofire.errors import FormatError, InputError
from cofire.interchange.files import decoded, existing, json_entries
from cofire.interchange.report import Action, ImportReport, Problem
from cofire.types import Message

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}

_SESSION = re.compile(r"session_(\d+)")
_SESSION_DATE = re.compile(r"session_(\d+)_date_time")
_EVIDENCE = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)", re.IGNORECASE)
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sitting of a conversation; `time` is None where the file gives no usable date."""

    number: int
    time: datetime | None
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a conversation. `position` is its 0-based place in `qa`; `evidence` are
    ids of turns (see `Conversation.turns`); `correction` is the kind of correction applied to
    the published key; `duplicate_of` is the position of an earlier question of the same words.
    """

    sample: str
    position: int
    question: str
    answer: str | None
    category: int
    evidence: tuple[str, ...]
    adversarial_answer: str | None = None
    correction: str | None = None
    duplicate_of: int | None = None

    @property
    def adversarial(self) -> bool:
        """Whether the conversation does not hold the answer."""
        return self.category == 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One sample: two speakers, sessions in the order of their dates, questions as published."""

    sample: str
    speakers: tuple[str, ...]
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """All turns, oldest session first."""
        return tuple(message for session in self.sessions for message in session.messages)

    @property
    def turns(self) -> dict[str, Message]:
        """Turns by their id, such as "D1:3"."""
        return {str(message.metadata["dia_id"]): message for message in self.messages}


def load(
    path: str | Path, *, corrections: str | Path | None = None
) -> tuple[tuple[Conversation, ...], ImportReport]:
    """Read conversations with their questions, for evaluation.

    `corrections`: a JSON file of sample id → position in `qa` → kind, evidence, answer; what it
    gives replaces the published key. Raises FormatError if a file is something else.
    """
    source = existing(path)
    corrected = _corrections(existing(corrections)) if corrections is not None else {}
    report = ImportReport(source=str(source))
    conversations = []
    unused = {(sample, position) for sample, entries in corrected.items() for position in entries}
    for place, entry in enumerate(json_entries(source)):
        problems: list[Problem] = []
        conversation = _conversation(entry, place, problems)
        if conversation is not None:
            fixes = corrected.get(conversation.sample, {})
            questions = _questions(entry, conversation, fixes, problems)
            conversations.append(replace(conversation, questions=questions))
            unused -= {(conversation.sample, question.position) for question in questions}
        for problem in problems:
            report.add(problem)
    for sample, position in sorted(unused):
        where = f"{sample}, question {position}"
        report.add(Problem(where=where, reason="a correction is for a question that is not there"))
    report.read += sum(len(conversation.messages) for conversation in conversations)
    return tuple(conversations), report


def read(path: str | Path) -> Iterator[Message | Problem]:
    """The turns of all conversations of a file, to be remembered; questions are left out."""
    for place, entry in enumerate(json_entries(existing(path))):
        problems: list[Problem] = []
        conversation = _conversation(entry, place, problems)
        yield from problems
        if conversation is not None:
            yield from conversation.messages


def _conversation(entry: Any, place: int, problems: list[Problem]) -> Conversation | None:
    """Everything of one sample but its questions."""
    body = entry.get("conversation") if isinstance(entry, dict) else None
    if not isinstance(body, dict):
        where = f"entry {place}"
        problems.append(Problem(where=where, reason="it is no object with a `conversation`"))
        return None
    sample = str(entry.get("sample_id") or f"sample-{place}")
    dates = {
        int(match[1]): value
        for name, value in body.items()
        if (match := _SESSION_DATE.fullmatch(name))
    }
    sessions = [
        _session(sample, int(match[1]), value, dates.pop(int(match[1]), None), problems)
        for name, value in body.items()
        if (match := _SESSION.fullmatch(name))
    ]
    for number in sorted(dates):
        where = f"{sample}, session {number}"
        reason = f"it has a date ({dates[number]}) and no turns"
        problems.append(Problem(where=where, reason=reason, action=Action.SKIPPED))
    speakers = [body.get("speaker_a"), body.get("speaker_b")]
    ordered = sorted(sessions, key=lambda session: (session.time or _LATEST, session.number))
    return Conversation(
        sample=sample,
        speakers=tuple(speaker for speaker in speakers if isinstance(speaker, str)),
        sessions=tuple(session for session in ordered if session.messages),
        questions=(),
    )


def _session(sample: str, number: int, turns: Any, date: Any, problems: list[Problem]) -> Session:
    where = f"{sample}, session {number}"
    time: datetime | None = None
    try:
        time, _ = parse_time(date)
    except InputError as exc:
        reason = f"its date cannot be read: {exc}"
        problems.append(Problem(where=where, reason=reason, action=Action.REPAIRED))
    if not isinstance(turns, list):
        problems.append(Problem(where=where, reason="its turns are no list"))
        turns = []
    messages: dict[str, Message] = {}
    for index, turn in enumerate(turns, start=1):
        message = _turn(sample, number, index, turn, time)
        place = f"{where}, turn {index}"
        if isinstance(message, Problem):
            problems.append(message)
        elif message.key in messages:
            reason = f"its id {message.metadata['dia_id']} was used before"
            problems.append(Problem(where=place, reason=reason))
        else:
            messages[str(message.key)] = message
    return Session(number=number, time=time, messages=tuple(messages.values()))


def _turn(
    sample: str, number: int, index: int, turn: Any, time: datetime | None
) -> Message | Problem:
    where = f"{sample}, session {number}, turn {index}"
    if not isinstance(turn, dict):
        return Problem(where=where, reason="it is no object")
    content = _content(turn)
    if not content:
        return Problem(where=where, reason="it has no text", action=Action.SKIPPED)
    dia_id = _turn_id(turn.get("dia_id")) or f"D{number}:{index}"
    metadata: dict[str, Any] = {"dia_id": dia_id}
    if turn.get("query"):
        # What the image was searched by was never said; it must not make the turn easier to find.
        metadata["image_query"] = turn["query"]
    if turn.get("img_url"):
        metadata["image_urls"] = turn["img_url"]
    speaker = turn.get("speaker")
    return Message(
        content=content,
        speaker=speaker if isinstance(speaker, str) else None,
        time=time,
        session=f"{sample}:session_{number}",
        metadata=metadata,
        key=f"locomo:{sample}:{dia_id}",
    )


def _content(turn: Mapping[str, Any]) -> str:
    """What was said, with the caption of a shared photo behind it."""
    text = turn.get("text")
    said = text if isinstance(text, str) else ""
    caption = turn.get("blip_caption")
    if isinstance(caption, str) and caption.strip():
        photo = f"[photo: {caption.strip()}]"
    elif turn.get("img_url") and not said.strip():
        photo = "[photo]"
    else:
        return said if said.strip() else ""
    return f"{said} {photo}" if said.strip() else photo


def _turn_id(value: Any) -> str | None:
    """ "D2:01" and "D:2:1" as "D2:1"; None if it is no id of a turn."""
    match = _EVIDENCE.fullmatch(value.strip()) if isinstance(value, str) else None
    return f"D{int(match[1])}:{int(match[2])}" if match else None


def _questions(
    entry: Mapping[str, Any],
    conversation: Conversation,
    fixes: Mapping[int, Mapping[str, Any]],
    problems: list[Problem],
) -> tuple[Question, ...]:
    known = frozenset(conversation.turns)
    first: dict[str, int] = {}
    questions = []
    listed = entry.get("qa")
    for position, row in enumerate(listed if isinstance(listed, list) else []):
        where = f"{conversation.sample}, question {position}"
        if not isinstance(row, dict) or not isinstance(row.get("question"), str):
            problems.append(Problem(where=where, reason="it has no text"))
            continue
        text = row["question"]
        earlier = first.setdefault(text.casefold().strip(), position)
        if earlier != position:
            reason = f"it repeats question {earlier}"
            problems.append(Problem(where=where, reason=reason, action=Action.NOTED))
        fix = fixes.get(position, {})
        published, corrected = row.get("evidence"), fix.get("evidence")
        category = row.get("category")
        questions.append(
            Question(
                sample=conversation.sample,
                position=position,
                question=text,
                answer=_answer(fix.get("answer", row.get("answer"))),
                category=category if type(category) is int else 0,
                evidence=_evidence(
                    published if corrected is None else corrected, known, where, problems
                ),
                adversarial_answer=_answer(row.get("adversarial_answer")),
                correction=str(fix["kind"]) if "kind" in fix else None,
                duplicate_of=earlier if earlier != position else None,
            )
        )
    return tuple(questions)


def _answer(value: Any) -> str | None:
    return None if value is None else str(value)


def _evidence(
    value: Any, known: frozenset[str], where: str, problems: list[Problem]
) -> tuple[str, ...]:
    """Ids of existing turns, each once; what was repaired or dropped is reported."""
    found: dict[str, None] = {}
    for entry in value if isinstance(value, list) else [] if value is None else [value]:
        ids = [f"D{int(a)}:{int(b)}" for a, b in _EVIDENCE.findall(str(entry))]
        resolved = [dia_id for dia_id in ids if dia_id in known]
        found.update(dict.fromkeys(resolved))
        if not resolved:
            why = "names no turn" if not ids else "is of a turn that does not exist"
            reason = f"evidence {entry!r} {why}"
            problems.append(Problem(where=where, reason=reason, action=Action.REPAIRED))
        elif resolved != [entry]:
            reason = f"evidence {entry!r} is read as {', '.join(resolved)}"
            problems.append(Problem(where=where, reason=reason, action=Action.REPAIRED))
    return tuple(found)


def _corrections(path: Path) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Sample id → position → the corrected fields."""
    wanted = (
        f"{path} is no corrections file; it is to be a JSON object of sample ids, each with an "
        "object of positions in `qa`, each with an object of kind, evidence and answer"
    )
    try:
        content = json.loads(decoded(path.read_bytes(), str(path)))
    except (ValueError, RecursionError) as exc:
        raise FormatError(f"{wanted}: {exc}") from exc
    if isinstance(content, list):
        raise FormatError(f"{wanted}. This one is a list, as the data set itself is")
    if not isinstance(content, dict):
        raise FormatError(wanted)
    corrected: dict[str, dict[int, Mapping[str, Any]]] = {}
    for sample, entries in content.items():
        if not isinstance(entries, dict):
            raise FormatError(f"{wanted}; {sample!r} has something else")
        corrected[sample] = {}
        for position, entry in entries.items():
            if not position.isdecimal() or not isinstance(entry, dict):
                raise FormatError(f"{wanted}; {sample!r} has something else at {position!r}")
            corrected[sample][int(position)] = entry
    return corrected
