"""Echoes: what Cofire rendered into a context and a transcript brings back is not remembered again.

A rendering is known by its marks (`fences`): what stands between a pair of them is cut, whatever
became of its indentation. In a quote ("> ") what somebody wrote between the quoted lines stays.
Where the end is missing, the lines that follow are cut for as long as they have the form of a
rendering. Without any mark, lines are cut that are a memory of these spaces as it is rendered: its
day, who said it, and the very words. Somebody who cites one in a sentence keeps it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cofire.fences import SAYS, fenced_line, is_mark_number
from cofire.store import Store
from cofire.store.records import ItemRow, SpaceInfo
from cofire.types import HEADINGS, MONTHS, Filters, Kind, Message, from_micros, line_header

MOST_DAYS = 64
"""Days of one message that memories are looked up of, at most: the first."""
KEPT_DAYS = 256
"""Days whose memories are kept in mind for the messages that are remembered together."""
MOST_LINES = 1_000
"""Lines of one message that are looked up, at most: the first."""
MOST_OF_A_DAY = 5_000
"""Memories of a day that are looked through, at most."""
PART = 60
"""Characters from which a part of a memory is one: of long texts a rendering has but a segment."""
LEAST_CUT = 20
"""Characters from which the beginning of a memory counts, where a message breaks off."""
ENDED = "end of the last session"
"""Who said it, in the line of a session's summary in an opening context."""

_MARK = re.compile(rf"\[(/?)(memory|untrusted) (\d{{6}})(?:: {re.escape(SAYS)})?\]")
_FENCE = re.compile(r"\[untrusted \d{6}")
_QUOTING = re.compile(r"[\s>|*`~-]*")
_DAY = re.compile(rf"(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{4}})(?=[ :])")
_STATE = re.compile(r"(?:Goal|Thread), [a-z]+ ")
_LINE = re.compile(rf"^[ \t>|*`~-]*(?:{_STATE.pattern})?{_DAY.pattern}", re.MULTILINE)
_BEGUN = re.compile(rf"\d{{1,2}}(?: (?:{'|'.join(MONTHS)})| [A-Z][a-z]*$|$)|\[/?[a-z]* ?\d*$")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_EMPTY_CODE = re.compile(r"^[ \t>]*(```|~~~)[^\S\n]*\w*[ \t]*\n\s*^[ \t>]*\1[ \t]*$", re.MULTILINE)
_HEADINGS = frozenset(HEADINGS.values())
_WORKING = (Kind.GOAL, Kind.THREAD)


@dataclass(slots=True)
class Texts:
    """Texts of one line each. Most lines are in none of them, which one look at all shows: of a
    message of many lines, and a day of many memories, each is not compared with each."""

    each: list[str] = field(default_factory=list)
    _together: str = ""

    def having(self, part: str) -> Iterator[str]:
        """Those that have this part."""
        if not self._together:
            self._together = "\n".join(self.each)
        if part and part in self._together:
            yield from (one for one in self.each if part in one)


Told = Mapping[str, Texts]
"""Memories as they are rendered: by their header the texts."""
Known = Callable[[str], Told]
"""The memories that a line may be the rendering of."""


@dataclass(slots=True)
class Echoes:
    """What echoes were found in messages: `cut` are the places of those that lost a part, `passed`
    of those of which nothing was left, `read` counts all."""

    store: Store
    spaces: Sequence[SpaceInfo]
    read: int = 0
    cut: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    _lookup: Lookup | None = None

    def leave_out(self, numbered: Iterable[tuple[int, Message]]) -> Iterator[tuple[int, Message]]:
        """The messages (with their places) without echoes; those that are nothing else are passed
        over."""
        for place, message in numbered:
            self.read += 1
            own = self._own(message.content)
            if own is None:
                yield place, message
            elif re.search(r"\w", own):
                self.cut.append(place)
                yield place, replace(message, content=own)
            else:
                self.passed.append(place)

    def _own(self, content: object) -> str | None:
        """A text without echoes; None if there are none in it."""
        if not isinstance(content, str) or not may_echo(content):
            return None
        if self._lookup is None:
            self._lookup = Lookup(self.store, self.spaces)
        own = without_echoes(content, self._lookup.of_a_message())
        return None if own == content else own

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, of the messages read so far."""
        told = []
        if self.passed:
            told.append(
                f"nothing but Cofire's own rendering in {len(self.passed):,} of {self.read:,} "
                f"messages, passed over: {_listed(self.passed)}"
            )
        if self.cut:
            told.append(
                f"Cofire's own rendering was cut out of {len(self.cut):,} of {self.read:,} "
                f"messages: {_listed(self.cut)}"
            )
        return tuple(told)


def _listed(places: Sequence[int], most: int = 5) -> str:
    more = f" and {len(places) - most:,} more" if len(places) > most else ""
    return ", ".join(map(str, places[:most])) + more


@dataclass(slots=True)
class Lookup:
    """The memories of some spaces that lines may be renderings of, looked up once a day."""

    store: Store
    spaces: Sequence[SpaceInfo]
    _days: dict[datetime, Told] = field(default_factory=dict)
    _working: Told | None = None
    _asked: set[datetime] = field(default_factory=set)

    def of_a_message(self) -> Known:
        """What is known of the lines of one message."""
        self._asked.clear()
        return self.like

    def like(self, line: str) -> Told:
        """Those of the day that a line names; for one of a goal, the goals and threads."""
        if _STATE.match(line):
            if self._working is None:
                self._working = self._listed(Filters(kinds=_WORKING))
            return self._working
        day = _day_of(line)
        if day is None:
            return {}
        if day not in self._asked:
            if len(self._asked) >= MOST_DAYS:
                return {}
            self._asked.add(day)
        if day not in self._days:
            if len(self._days) >= KEPT_DAYS:
                del self._days[next(iter(self._days))]
            # In whatever time zone its speaker's calendar is.
            around = Filters(since=day - timedelta(days=1), until=day + timedelta(days=2))
            self._days[day] = self._listed(around)
        return self._days[day]

    def _listed(self, filters: Filters) -> Told:
        told: dict[str, Texts] = {}
        for _, row in self.store.list(self.spaces, filters, limit=MOST_OF_A_DAY):
            texts = list(dict.fromkeys(_spellings(row)))
            for header in _headers(row):
                told.setdefault(header, Texts()).each.extend(texts)
        return told


def _day_of(line: str) -> datetime | None:
    match = _DAY.match(line)
    if match is None:
        return None
    try:
        return datetime.strptime(f"{match[3]} {MONTHS.index(match[2]) + 1} {match[1]} +0000",
                                 "%Y %m %d %z")  # fmt: skip
    except ValueError:  # no such day
        return None


def may_echo(text: str) -> bool:
    """Whether there is anything in a text that a rendering has: a mark, or the day of a line."""
    if "[memory " in text or "[untrusted " in text:
        return True
    return any(month in text for month in MONTHS) and _LINE.search(text) is not None


def without_echoes(text: str, known: Known) -> str:
    """A text without what Cofire rendered, by marks first and then line by line."""
    own = _without_lines(_without_pairs(text), known)
    return text if own == text else _EMPTY_CODE.sub("", own)


# -- By marks ------------------------------------------------------------------------------------


def _without_pairs(text: str) -> str:
    """Without what stands between two marks of one number."""
    every = [mark for mark in _MARK.finditer(text) if is_mark_number(mark[3])]
    ends: dict[tuple[str, str], list[int]] = {}
    for mark in every:
        if mark[1]:
            ends.setdefault((mark[2], mark[3]), []).append(mark.end())
    kept: list[str] = []
    done = 0
    for first in every:
        closing = ends.get((first[2], first[3]), [])
        after = bisect_right(closing, first.end())
        if first.start() < done or first[1] or after == len(closing):
            continue
        start = text.rfind("\n", 0, first.start()) + 1
        quoting = text[start : first.start()]
        if _QUOTING.fullmatch(quoting) is None:
            start, quoting = first.start(), ""
        block = text[first.start() : closing[after]]
        if _DAY.search(block) is None:  # no rendering is without one: somebody's own words
            continue
        kept += [text[done : max(start, done)], *_replies(block, quoting)]
        done = closing[after]
    return "".join((*kept, text[done:]))


def _replies(block: str, quoting: str) -> Iterator[str]:
    """What somebody wrote between the lines of a block that they quote."""
    if ">" in quoting:
        for line in block.splitlines(keepends=True)[1:]:
            if line.strip() and not line.lstrip().startswith(">"):
                yield line


# -- By lines ------------------------------------------------------------------------------------


def _without_lines(text: str, known: Known) -> str:
    """Without marks that stand alone, what follows one that nothing closes, and lines that are
    memories as they are rendered."""
    lines = [match for match in _LINES.findall(text) if match]
    plain = [_plain(line) for line in lines]
    kept: list[str] = []
    at, within, looked_up = 0, _OUTSIDE, 0
    while at < len(lines):
        mark = _MARK.fullmatch(plain[at] if at < len(lines) - 1 else _completed(plain[at]))
        if mark is not None and is_mark_number(mark[3]):
            if mark[2] == "memory":
                within = _OUTSIDE if mark[1] else _indent(lines[at])
            at += 1
            continue
        count = _repeated(plain, at, known) if looked_up < MOST_LINES else 0
        looked_up += _DAY.search(plain[at]) is not None
        inside = within != _OUTSIDE
        if not count and inside and (_indent(lines[at]) > within + 1 or _goes_on(plain, at)):
            count = 1
        if not count:
            within = _OUTSIDE
            kept.append(lines[at])
        at += count or 1
    return "".join(kept)


def _completed(line: str) -> str:
    """The last line of a text; of a fence that breaks off, the whole of it."""
    begun = _FENCE.match(line)
    says = f": {SAYS}]"
    return begun[0] + says if begun and says.startswith(line[begun.end() :]) else line


def _plain(line: str) -> str:
    """A line without quoting and indentation, with single spaces."""
    return " ".join(line[_QUOTING.match(line).end() :].split())  # type: ignore[union-attr]


_OUTSIDE = -1


def _indent(line: str) -> int:
    """How far in a line begins, what quotes it included."""
    return len(line) - len(line.lstrip(" \t>|"))


def _goes_on(plain: Sequence[str], at: int) -> bool:
    """Whether a line after a mark that nothing closes has the form of a rendering."""
    line = plain[at]
    if not line:  # between two sections of an opening context, or at the end
        return at + 1 == len(plain) or plain[at + 1] in _HEADINGS
    if line in _HEADINGS or _DAY.match(_STATE.sub("", line, count=1)):
        return True
    return at == len(plain) - 1 and _BEGUN.match(line) is not None


def _repeated(plain: Sequence[str], at: int, known: Known) -> int:
    """How many lines from one on are a memory as it is rendered; 0: it is none."""
    line = _STATE.sub("", plain[at], count=1)
    day = _DAY.match(line)
    if day is None:
        return 0
    told = known(plain[at])
    if line != plain[at]:  # of a goal, since when it stands so
        line = line[day.end() :].lstrip()
    return max(
        (
            _length(plain, at, said, whole)
            for header, texts in told.items()
            if line.startswith(f"{header} ")
            for said in (line[len(header) + 1 :],)
            for whole in texts.having(said)
        ),
        default=0,
    )


def _length(plain: Sequence[str], at: int, said: str, whole: str) -> int:
    """How many lines repeat a text that has `said`, as the first says; 0: they do not."""
    first = 0 if whole.startswith(said) else whole.index(said)
    reached, end = first + len(said), at + 1
    while end < len(plain) and reached < len(whole):
        more = f" {plain[end]}" if plain[end] else ""
        if not whole.startswith(more, reached):
            break
        reached, end = reached + len(more), end + 1
    length = reached - first
    whole_text = length == len(whole)
    breaks_off = end == len(plain) and first == 0 and length >= LEAST_CUT
    return end - at if whole_text or length >= PART or breaks_off else 0


def _headers(row: ItemRow) -> list[str]:
    """How the line of a memory may begin. Of a goal without a day: its line has that of its
    latest change."""
    names = dict.fromkeys((row.speaker, row.role, None, ENDED))
    headers = [_squeezed(line_header(from_micros(row.time), row.offset, who)) for who in names]
    if row.kind in _WORKING:
        headers += [_squeezed(f" {who}:" if who else ":") for who in names]
    return headers


def _spellings(row: ItemRow) -> Iterator[str]:
    """The text of a memory as renderings have it, on one line."""
    for untrusted in (False, True):
        yield _squeezed(fenced_line(row.content, untrusted=untrusted))


def _squeezed(text: str) -> str:
    return " ".join(text.split())
