"""The line of values that a slot of one value at a time has had, made of the evidence alone.

Whatever came in whatever order, was deleted or found untrue: the line is what the evidence that is
left says, in the order of time. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from cofire.consolidation.drafts import Span


class Point(NamedTuple):
    """One piece of evidence: from `time` on, record `number` has its value, say `spans`. Of two
    for one time that counts which was `said` later (and of two at once, the later comer)."""

    time: datetime
    said: tuple[datetime, int]
    number: int
    spans: tuple[Span, ...]


class Stretch(NamedTuple):
    """A value from its first evidence on, until another follows (`until`, None: still).

    `number`: the record that keeps it; a `copy` of that record where it keeps an earlier one."""

    number: int
    points: tuple[Point, ...]
    until: datetime | None
    copy: bool

    @property
    def since(self) -> datetime:
        return self.points[0].time


def timeline(points: Iterable[Point], equal: Callable[[int, int], bool]) -> list[Stretch]:
    """The stretches of a line, in order of time. `equal`: whether two records have one value.

    A record keeps one stretch, the first that it is the oldest of (stored ones, numbered from 1,
    before those that are to be filed, -1, -2, …).
    """
    runs: list[list[Point]] = []
    for point in sorted(points, key=lambda point: (point.time, point.said, point.number)):
        if runs and equal(runs[-1][0].number, point.number):
            runs[-1].append(point)
        else:
            runs.append([point])
    used: set[int] = set()
    found = []
    for place, run in enumerate(runs):
        number, copy = _keeper(run, used)
        used.add(number)
        until = runs[place + 1][0].time if place + 1 < len(runs) else None
        found.append(Stretch(number, tuple(run), until, copy))
    return found


def _keeper(run: Sequence[Point], used: set[int]) -> tuple[int, bool]:
    numbers = sorted({point.number for point in run}, key=lambda one: (one < 0, abs(one)))
    free = [number for number in numbers if number not in used]
    return (free[0], False) if free else (numbers[0], True)
