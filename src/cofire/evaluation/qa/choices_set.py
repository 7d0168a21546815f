"""Multiple-choice questions over dated documents, in a JSON format of our own.

    {"name": "my set",
     "documents": [{"id": "d1", "date": "2024-03-01", "text": "..."},
                   {"id": "d2", "date": "2024-03-02",
                    "turns": [{"role": "user", "text": "...", "time": "2024-03-02T10:00Z"}]}],
     "questions": [{"id": "q1", "question": "...", "choices": ["...", "..."], "answer": "B",
                    "date": "2024-04-01", "documents": ["d1"], "group": "preferences",
                    "evidence": ["d1", "d2#0"]}]}

One such object is a case. A file is one case, a JSON array of cases, or (`.jsonl`, `.ndjson`) a
case a line; cases are read one at a time. docs/reference/evaluation-data.md explains each field.
A question or document that cannot be used is reported and left out; nothing aborts the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cofire.encoding.timestamps import parse_time
from cofire.errors import InputError
from cofire.evaluation.qa.choosing import read_choices, right_choice
from cofire.evaluation.qa.tasks import DataSet, Material, Task, dated, reading, undated_problem
from cofire.interchange.files import Constants, check_utf8, existing, json_entries
from cofire.interchange.report import Action, ImportReport, Problem
from cofire.types import Message

LINES = frozenset({".jsonl", ".ndjson"})
"""Endings of files that hold a case a line."""

_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""When documents are dated that all have no date."""


@dataclass(slots=True, kw_only=True)
class _Case:
    """A case while it is read: its `name`, messages by document, and what was wrong."""

    name: str
    documents: dict[str, tuple[Message, ...]]
    problems: list[Problem]

    def tell(self, where: str, reason: str, action: Action = Action.DROPPED) -> None:
        place = f"{self.name}, {where}"
        self.problems.append(Problem(where=place, reason=reason, action=action))


def choices_set(path: str | Path) -> DataSet:
    """A file of multiple-choice questions as a data set. Questions over the same documents share
    a material; where a question says nothing of documents, that is all of its case.

    Raises NotFoundError at once, FormatError while it is read (not UTF-8, or not JSON).
    """
    source = existing(path)
    report = ImportReport(source=str(source))
    return DataSet(
        name="choices",
        materials=reading(report, lambda: _entries(source)),
        counts={},
        scored_apart=frozenset(),
        key="published",
        report=report,
    )


def _entries(source: Path) -> Iterator[Material | Problem]:
    seen: Counter[str] = Counter()
    for place, entry in enumerate(_cases(source)):
        if isinstance(entry, Problem):
            yield entry
            continue
        if not isinstance(entry, dict):
            reason = 'it is to be an object with "documents" and "questions"'
            yield Problem(where=f"{source.name}, case {place}", reason=reason)
            continue
        name = str(entry.get("name") or (f"{source.stem}-{place}" if place else source.stem))
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}#{seen[name]}"
        case = _Case(name=name, documents={}, problems=[])
        materials = list(_materials(case, entry))
        yield from case.problems
        yield from materials


def _cases(source: Path) -> Iterator[Any]:
    """The cases as JSON; of a file of lines also the lines that cannot be read."""
    if source.suffix.lower() not in LINES:
        yield from json_entries(source)
        return
    check_utf8(source)
    constants = Constants()
    with source.open(encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            where = f"{source.name}, line {number}"
            try:
                value, end = constants.decode(text, 0) if text else (None, 0)
            except (ValueError, RecursionError) as exc:
                yield Problem(where=where, reason=f"it is no JSON: {exc}")
                continue
            if end < len(text):
                yield Problem(where=where, reason="something follows its JSON: write a case a line")
            elif text:
                yield value


def _materials(case: _Case, entry: Mapping[str, Any]) -> Iterator[Material]:
    """One per set of documents that is asked of."""
    _read_documents(case, entry.get("documents"))
    groups: dict[tuple[str, ...], list[Task]] = {}
    for documents, task in _tasks(case, entry.get("questions")):
        groups.setdefault(documents, []).append(task)
    for number, (documents, tasks) in enumerate(groups.items()):
        whole = len(documents) == len(case.documents)
        name = case.name if whole else f"{case.name}/documents-{number}"
        messages = [message for document in documents for message in case.documents[document]]
        messages.sort(key=_when)
        yield Material(
            name=name,
            messages=tuple(messages),
            now=_when(messages[-1]) + timedelta(days=1),
            tasks=tuple(replace(task, material=name) for task in tasks),
        )


def _when(message: Message) -> datetime:
    return parse_time(message.time if message.time is not None else _UNDATED)[0]


def _read_documents(case: _Case, listed: Any) -> None:
    if not isinstance(listed, list) or not listed:
        case.tell('"documents"', "it is to be a list with at least one document")
        return
    found: list[Message] = []
    for place, document in enumerate(listed):
        where = f"document {place}"
        if not isinstance(document, dict):
            case.tell(where, 'it is to be an object with "id", "date" and "text" or "turns"')
            continue
        id = str(document["id"]) if document.get("id") not in (None, "") else f"document-{place}"
        messages = list(_messages(case, id, document))
        if id in case.documents:
            case.tell(where, f"its id {id!r} was used before: give it one of its own")
        elif not messages:
            case.tell(f"document {id}", 'it has neither "text" nor "turns" with text')
        else:
            case.documents[id] = ()
            found += messages
    moments, undated = dated(found, _UNDATED)
    case.problems += [undated_problem(case.name, session) for session in undated]
    for message in moments:
        case.documents[str(message.session)] += (message,)


def _messages(case: _Case, id: str, document: Mapping[str, Any]) -> Iterator[Message]:
    """The text of a document, or its turns that have one, with its date."""
    title = document.get("title")
    where = f"document {id}"
    date = _time(case, document.get("date"), f'{where}, "date"')
    text = document.get("text")
    if isinstance(text, str) and text.strip():
        yield Message(
            content=text,
            title=title if isinstance(title, str) else None,
            time=date,
            session=id,
            key=f"choices:{case.name}:{id}",
        )
        return
    turns = document.get("turns")
    for place, turn in enumerate(turns if isinstance(turns, list) else []):
        said = turn.get("text") if isinstance(turn, dict) else None
        if not isinstance(said, str) or not said.strip():
            case.tell(f"{where}, turn {place}", 'it has no "text"', Action.SKIPPED)
            continue
        role, speaker = turn.get("role"), turn.get("speaker")
        own = _time(case, turn.get("time"), f'{where}, turn {place}, "time"')
        yield Message(
            content=said,
            role=role if isinstance(role, str) else None,
            speaker=speaker if isinstance(speaker, str) else None,
            time=own or date,
            session=id,
            key=f"choices:{case.name}:{id}#{place}",
        )


def _time(case: _Case, value: Any, where: str) -> datetime | None:
    """None if there is none or, reported, it cannot be read."""
    if value is None or value == "":
        return None
    try:
        return parse_time(value)[0]
    except InputError as exc:
        case.tell(where, f"{exc}; it is left out", Action.REPAIRED)
        return None


def _tasks(case: _Case, listed: Any) -> Iterator[tuple[tuple[str, ...], Task]]:
    """Each question that can be asked, with the documents it is asked over."""
    if not isinstance(listed, list) or not listed:
        case.tell('"questions"', "it is to be a list with at least one question")
        return
    seen: Counter[str] = Counter()
    for place, question in enumerate(listed):
        if not isinstance(question, dict):
            case.tell(f"question {place}", 'it is to be an object with "question" and "choices"')
            continue
        id = str(question["id"]) if question.get("id") not in (None, "") else str(place)
        seen[id] += 1
        if seen[id] > 1:
            reason = f"its id was used before; it is called {id}#{seen[id]}"
            case.tell(f"question {id}", reason, Action.NOTED)
            id = f"{id}#{seen[id]}"
        try:
            yield _task(case, id, question)
        except InputError as exc:
            case.tell(f"question {id}", f"{exc}")


def _task(case: _Case, id: str, row: Mapping[str, Any]) -> tuple[tuple[str, ...], Task]:
    """Raises InputError if it cannot be asked or scored."""
    text = row.get("question")
    if not isinstance(text, str) or not text.strip():
        raise InputError('it has no "question": give its text')
    choices = read_choices(row.get("choices"))
    right = right_choice(row.get("answer"), row["choices"], choices)
    documents = _asked_over(case, row.get("documents"))
    group = row.get("group")
    where = f"question {id}"
    evidence = _evidence(case, where, row.get("evidence"), documents)
    return documents, Task(
        id=f"{case.name}/{id}",
        material=case.name,
        group=str(group) if group not in (None, "") else "all",
        question=text,
        answer=choices[right],
        evidence=tuple(str(message.key) for message in evidence),
        evidence_sessions=tuple(dict.fromkeys(str(message.session) for message in evidence)),
        asked=_time(case, row.get("date"), f'{where}, "date"'),
        choices=choices,
        right=right,
    )


def _asked_over(case: _Case, value: Any) -> tuple[str, ...]:
    """Ids of documents, in the order of the case. Raises InputError: none, or one is unknown."""
    if not case.documents:
        raise InputError("its case has no document to ask it over")
    if value is None:
        return tuple(case.documents)
    if not isinstance(value, list) or not value:
        raise InputError('"documents" is to be a list of ids; leave it out to ask over all')
    wanted = {str(id) for id in value}
    unknown = sorted(wanted - case.documents.keys())
    if unknown:
        raise InputError(f'"documents" names {unknown[0]!r}, which is no document of its case')
    return tuple(id for id in case.documents if id in wanted)


def _evidence(case: _Case, where: str, value: Any, documents: Sequence[str]) -> tuple[Message, ...]:
    """The messages that "id" (all of a document) and "id#turn" name; others are reported."""
    found: dict[str, Message] = {}
    for name in value if isinstance(value, list) else [] if value is None else [value]:
        messages = [message for id in documents for message in case.documents[id]]
        named = [
            message
            for message in messages
            if str(name)
            in (message.session, str(message.key).removeprefix(f"choices:{case.name}:"))
        ]
        found.update((str(message.key), message) for message in named)
        if not named:
            reason = f'"evidence" {name!r} is no document or turn that it is asked over'
            case.tell(where, reason, Action.REPAIRED)
    return tuple(found.values())
