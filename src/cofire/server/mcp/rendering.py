"""Memories as texts for a model, in as many tokens as were asked for.

Some clients (Claude Code, VS Code) show the model only the structured answer, others only the text,
so both say the same. What belongs into a context is one text within it, rendered as
`Recall.text` is, marks and fences included, with the id of each memory behind it. Where memories
are objects of a list, those that are not trusted are fenced one by one, and nothing that came with
them is told outside of their fence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cofire.fences import fenced_line, fences, mark_number, rendered
from cofire.server.mcp.tools import Answer, said
from cofire.types import (
    HEADINGS,
    Hydrated,
    Hydration,
    Item,
    Link,
    Recall,
    Recalled,
    SemanticRecord,
    line_header,
)

ID_TOKENS = 30
"""Wordpieces of an id behind a memory, about."""
FRAME_TOKENS = 120
"""Wordpieces of everything else in an answer: marks, the recall's id, notes."""
LEAST_CHARACTERS = 40
"""Characters of a memory that are left of it at least."""
LIST_CHARACTERS = 280
"""Characters of a memory in a list."""
PAGE_CHARACTERS = 6_000
"""Characters of a memory that `get_memory` gives at once."""

T = TypeVar("T")
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Lines between marks; `shown` of the memories are in it, `left` did not fit."""

    text: str
    shown: int
    left: int


def room_for_texts(budget: int, memories: int) -> int:
    """How many tokens of an answer's budget its memories' own texts may take."""
    return max(budget - FRAME_TOKENS - ID_TOKENS * memories, budget // 2)


def recall_rendering(recall: Recall, budget: int, count: Count) -> Rendering:
    """What a recall brought back, within `budget` tokens. A first memory that is too long by
    itself is cut."""
    told: list[SemanticRecord | Recalled] = [*recall.semantic, *recall.items]

    def whole(shown: Sequence[SemanticRecord | Recalled], longest: int | None = None) -> str:
        return rendered(
            [_line(one, longest) for one in shown if not one.untrusted],
            [_line(one, longest) for one in shown if one.untrusted],
        )

    shown = _fitting(told, lambda some: count(whole(some)) <= budget)
    if shown or not told:
        return Rendering(text=whole(shown), shown=len(shown), left=len(told) - len(shown))
    longest = 4 * budget  # a wordpiece is four characters, or one, as in Chinese
    text = whole(told[:1], longest)
    while longest > LEAST_CHARACTERS and count(text) > budget:
        longest //= 2
        text = whole(told[:1], longest)
    return Rendering(text=text, shown=1, left=len(told) - 1)


def hydration_rendering(hydration: Hydration, budget: int, count: Count) -> Rendering:
    """A session's opening context, as `Hydration.text`, with ids, within `budget` tokens."""

    def whole(shown: Sequence[Hydrated]) -> str:
        parts = []
        for section in hydration.sections:
            lines = [
                _bullet(entry)
                for entry in shown
                if entry.section == section and not entry.untrusted
            ]
            if lines:
                parts.append("\n".join((HEADINGS.get(section, section), *lines)))
        outside = [_bullet(entry) for entry in shown if entry.untrusted]
        return rendered(["\n\n".join(parts)] if parts else [], outside)

    entries = list(hydration.entries)
    shown = _fitting(entries, lambda some: count(whole(some)) <= budget)
    return Rendering(text=whole(shown), shown=len(shown), left=len(entries) - len(shown))


def item_line(item: Item, *, longest: int = LIST_CHARACTERS) -> Answer:
    """A memory in a list: whose text is cut, and by which call one gets the whole."""
    text, cut = shortened(item.content, longest)
    return said(
        {
            "id": item.id,
            "kind": item.kind.value,
            "title": None if item.untrusted else item.title,
            "text": guarded(f"{_header(item)} {text}", untrusted=item.untrusted),
            "tags": [] if item.untrusted else list(item.tags),
            "project": item.space.project,
            "untrusted": item.untrusted or None,
            "cut": f"{len(item.content)} characters; get_memory gives the whole" if cut else None,
        }
    )


def item_whole(item: Item, links: Sequence[Link], *, offset: int) -> Answer:
    """A memory with everything about it; its text from `offset` on, a page at a time."""
    end = offset + PAGE_CHARACTERS
    more = end < len(item.content)
    text = item.content[offset:end]
    if item.untrusted:
        text = guarded(f"{_header(item)} {text}", untrusted=True)
    return said(
        {
            "id": item.id,
            "kind": item.kind.value,
            "title": None if item.untrusted else item.title,
            "text": text,
            "next_offset": end if more else None,
            "characters": len(item.content),
            "time": moment(item),
            "speaker": None if item.untrusted else item.speaker or item.role,
            "session": None if item.untrusted else item.session,
            "tags": [] if item.untrusted else list(item.tags),
            "project": item.space.project,
            "importance": item.importance,
            "pinned": item.pinned or None,
            "expires": None if item.expires is None else item.expires.isoformat(),
            "archived": None if item.archived is None else item.archived.isoformat(),
            "version": item.version,
            "untrusted": item.untrusted or None,
            "links": [link_of(one, item.id) for one in strongest(links)],
        }
    )


def _header(item: Item) -> str:
    """Day, speaker, and of what comes from outside the title: it says as much as the text."""
    header = line_header(item.time, item.offset, item.speaker or item.role)
    return f"{header} {item.title}." if item.untrusted and item.title else header


LINKS = 10
"""Links that come with a memory, strongest first."""


def strongest(links: Sequence[Link]) -> Sequence[Link]:
    """Those that are told of."""
    return sorted(links, key=lambda one: (-one.strength, one.source, one.target))[:LINKS]


def link_of(link: Link, id: str) -> Answer:
    """A link as seen from one of its ends."""
    away = link.source == id
    return {
        "type": link.type.value,
        "to" if away else "from": link.target if away else link.source,
        "strength": round(link.strength, 3),
    }


def moment(item: Item) -> str:
    """When it was said, as ISO 8601 in UTC."""
    return item.time.isoformat().replace("+00:00", "Z")


def shortened(text: str, longest: int) -> tuple[str, bool]:
    """The beginning of a text, up to a word's end, and whether anything is left out."""
    if len(text) <= longest:
        return text, False
    head = text[:longest]
    space = head.rfind(" ", longest - 40)
    return (head if space < 0 else head[:space]).rstrip() + "…", True


def guarded(text: str, *, untrusted: bool) -> str:
    """A text as it may stand in an answer: fenced if it is not trusted."""
    if not untrusted:
        return text
    first, last = fences(mark_number(text))
    return "\n".join((first, fenced_line(text, untrusted=True), last))


def _line(one: SemanticRecord | Recalled, longest: int | None) -> str:
    content = one.content if longest is None else shortened(one.content, longest)[0]
    notes = [f"id {one.id}"]
    if isinstance(one, SemanticRecord):
        notes.insert(0, one.kind.value)
    elif one.segment is not None:
        notes.append(f"part {one.segment.index + 1} of {one.segment.count}")
    return fenced_line(f"{one.header} {content} ({', '.join(notes)})", untrusted=one.untrusted)


def _bullet(entry: Hydrated) -> str:
    line = f"{entry.line} (id {entry.id})"
    return fenced_line(line, untrusted=entry.untrusted, bullet="- ")


def _fitting(all: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """The longest beginning that fits."""
    kept = list(all)
    while kept and not fits(kept):
        kept.pop()
    return kept
