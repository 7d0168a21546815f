"""Stored memories as the turns that drafts are made of and verified against."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cofire.consolidation.drafts import Turn
from cofire.encoding.text import aligned
from cofire.store import Store
from cofire.store.records import ItemRow, SpaceInfo
from cofire.types import Kind, from_micros

TOLD = (Kind.EPISODE.value, Kind.TOOL_EVENT.value)
"""Kinds that something is distilled from."""
MOST_CHARACTERS = 20_000
"""Longer texts are documents: read by their segments they are recalled, but not distilled."""


def read_turns(store: Store, space: SpaceInfo, numbers: Sequence[int]) -> list[Turn]:
    """The memories of these numbers that are there, in the order given; labels "T1", "T2", …
    What a tool failed at (metadata "success": false, an "error", or words that say so) teaches
    nothing."""
    rows = [row for row in store.fetch(space, numbers) if not _failed(row)]
    return [turn_of(row, f"T{place}") for place, row in enumerate(rows, 1)]


def trusted(turns: Iterable[Turn]) -> list[Turn]:
    """The turns whose memories are not marked as untrusted: what words and names are read from."""
    return [turn for turn in turns if not turn.marked]


def may_support(turns: Iterable[Turn]) -> list[Turn]:
    """The turns that a record may rest on, and so all that a language model is asked about: of what
    is marked as untrusted only what tools did, which a procedure may rest on."""
    return [turn for turn in turns if not turn.marked or turn.kind is Kind.TOOL_EVENT]


def _failed(row: ItemRow) -> bool:
    if row.kind != Kind.TOOL_EVENT.value:
        return False
    if row.metadata.get("success") is False or bool(row.metadata.get("error")):
        return True
    return tells_failure(row.content)


def tells_failure(text: str) -> bool:
    """Whether the words of a tool's event tell that it failed: a status other than 0, "failed",
    "error", a traceback; "0 errors" and "no failures" do not."""
    return _FAILURE.search(_NONE_FAILED.sub(" ", aligned(text))) is not None


_NONE_FAILED = re.compile(
    r"\b(?:0|no|zero|without(?: any)?) (?:errors?|fail(?:ed|ures?|s)?|exceptions?)\b"
    r"|\b(?:errors?|fail(?:ed|ures?)) ?[:=] ?(?:0|none|null|false)\b",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: (?:code|status))*:? ?-?[1-9]"
    r"|\b(?:return ?code|exit_code|status code)\W{0,4}-?[1-9](?!\d\d\b)"
    r"|\b(?:status code|http(?:/\d\.\d)?)\W{0,4}[45]\d\d\b"
    r"|\bfail(?:s|ed|ure|ures)?\b|\berrors?\b|\w+Error\b|\btraceback\b|\bexception\b|\bfatal\b"
    r"|\b(?:command|file) not found\b|\bpermission denied\b|\bsegmentation fault\b|\btimed out\b"
    r"|\baborted\b",
    re.IGNORECASE,
)


def turn_of(row: ItemRow, label: str) -> Turn:
    """A stored memory as a turn."""
    return Turn(
        number=row.number,
        version=row.version,
        label=label,
        content=row.content,
        time=from_micros(row.time),
        kind=Kind(row.kind),
        speaker=row.speaker,
        role=row.role,
        session=row.session,
        offset=row.offset,
        language=row.language,
        event_times=tuple(
            (from_micros(start), from_micros(end)) for _, start, end, _, _ in row.event_times
        ),
        untrusted=row.untrusted or row.kind == Kind.TOOL_EVENT.value,
        marked=row.untrusted,
    )
