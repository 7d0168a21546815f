"""What an import did: counts, and every place where a file was not taken as it stood."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cofire.types import Message

MAX_DETAILS = 1_000
"""Problems kept with their reasons; beyond it they are only counted, so that the report of a
broken file of any size stays small."""
KEPT_PLACES = 10_000
"""Messages whose place in their file is still known: more than are stored at once."""


class Action(enum.StrEnum):
    """What an importer did about a problem."""

    DROPPED = "dropped"
    """The record is lost to the import."""
    REPAIRED = "repaired"
    """It was imported after a change, or without one of its fields."""
    SKIPPED = "skipped"
    """There was nothing in it to import."""
    NOTED = "noted"
    """It was imported unchanged, but a reader should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a file that is not as it should be: where, why, and what was done."""

    where: str
    reason: str
    action: Action = Action.DROPPED

    def __str__(self) -> str:
        return f"{self.where}: {self.action}: {self.reason}"


class Places:
    """Where in its file a reader is (`now`, which it sets before each message), and where the last
    messages that were taken from it came from."""

    def __init__(self) -> None:
        self.now = ""
        self._taken = 0
        self._kept: deque[str] = deque(maxlen=KEPT_PLACES)

    def take(self) -> None:
        """Keep the place of the message just read."""
        self._taken += 1
        self._kept.append(self.now)

    def of(self, number: int) -> str:
        """The place of a message, counted from 0; "" if it is not known."""
        back = self._taken - number
        return self._kept[-back] if 0 < back <= len(self._kept) else ""


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """Counts of one import, filled while it runs.

    `read` records were found, of which `imported` were new, `updated` are documents edited or
    moved since they were imported, `known` had been imported before, `skipped` were empty and
    `dropped` could not be used. `repaired` counts changes, and may count one record twice.
    `problems` has the first `MAX_DETAILS` of them in the order met.
    """

    source: str
    read: int = 0
    imported: int = 0
    updated: int = 0
    known: int = 0
    skipped: int = 0
    dropped: int = 0
    repaired: int = 0
    noted: int = 0
    problems: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        """Count a problem; one that lost a whole record counts as read."""
        match problem.action:
            case Action.DROPPED:
                self.dropped += 1
                self.read += 1
            case Action.SKIPPED:
                self.skipped += 1
                self.read += 1
            case Action.REPAIRED:
                self.repaired += 1
            case Action.NOTED:
                self.noted += 1
        if len(self.problems) < MAX_DETAILS:
            self.problems.append(problem)

    def reject(self, where: str, reason: str) -> None:
        """Count a record that was read but could not be stored."""
        self.dropped += 1
        if len(self.problems) < MAX_DETAILS:
            self.problems.append(Problem(where=where, reason=reason))

    def note(self, reason: str) -> None:
        """Say something about the whole import, once."""
        problem = Problem(where=self.source, reason=reason, action=Action.NOTED)
        if problem not in self.problems:
            self.add(problem)

    def reasons(self, action: Action) -> list[str]:
        """Where and why, for one kind of action."""
        return [f"{p.where}: {p.reason}" for p in self.problems if p.action is action]

    def messages(
        self, stream: Iterable[Message | Problem], places: Places | None = None
    ) -> Iterator[Message]:
        """The messages of a stream; its problems go into the report as they are met, and the
        places of its messages into `places`."""
        for entry in stream:
            if isinstance(entry, Problem):
                self.add(entry)
            else:
                self.read += 1
                if places is not None:
                    places.take()
                yield entry
