"""Memories, pages and reports as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from cofire.cli.output import many, say, shortened, table, width
from cofire.cli.recorded import as_record, held_text, print_evidence, record_fields
from cofire.plain import plain
from cofire.types import Item, Link, Recalled, SemanticRecord, Version, line_header

if TYPE_CHECKING:
    from cofire.interchange import ImportReport

SHOWN_PROBLEMS = 10
UNTRUSTED = "  (untrusted)"
"""What stands behind the speaker of what comes from outside."""
_WORST = ("dropped", "repaired", "skipped", "noted")
"""What an import did about problems, from what a reader must know to what is only by the way."""


def heading(item: Item) -> str:
    """ "8 May 2023, Ada" """
    return line_header(item.time, item.offset, item.speaker or item.role).rstrip(":")


def moment(time: datetime, offset: int | None = None) -> str:
    """ "2023-05-08 19:55 +02:00", in the speaker's own time where it is known."""
    local = time.astimezone(UTC if offset is None else timezone(timedelta(minutes=offset)))
    text = local.strftime("%Y-%m-%d %H:%M")
    return (
        f"{text} UTC"
        if not offset
        else f"{text} {local.strftime('%z')[:3]}:{local.strftime('%z')[3:]}"
    )


def print_recalled(rank: int, hit: Recalled, record: SemanticRecord | None = None) -> None:
    """A recalled memory: rank, day, speaker, score and id; then its text. `record`: what says the
    same word for word, and so need not be told twice."""
    part = ""
    if hit.segment is not None:
        part = f"  part {hit.segment.index + 1} of {hit.segment.count}"
    say(
        f"{rank:>2}  ",
        (heading(hit.item), "bold"),
        f"  {shortened(hit.item.title, 40)}" if hit.item.title else "",
        UNTRUSTED if hit.untrusted else "",
        (f"  {hit.score:.3f}{part}  {hit.id}", "dim"),
        "" if record is None else f"  [{as_record(record)}]",
        hang=4,
    )
    say(hit.content.strip("\n"), indent=4)


def print_listed(item: Item) -> None:
    """A memory in a listing: id, day and speaker, tags, and the start of its text."""
    tags = "".join(f" #{tag}" for tag in item.tags)
    kind = "" if item.kind == "episode" else f" [{item.kind}]"
    outside = UNTRUSTED if item.untrusted else ""
    say((item.id, "dim"), "  ", (heading(item), "bold"), f"{outside}{kind}{tags}")
    room = (width() or 120) - 2
    say(shortened(f"{item.title}: {item.content}" if item.title else item.content, room), indent=2)


def print_item(item: Item, record: SemanticRecord | None = None) -> None:
    """Everything about one memory that is set, then its text; about a `record`, also what it says
    of whom, when it holds and what it rests on."""
    rows = _fields(item) + ([] if record is None else record_fields(record))
    for name, value in rows:
        say((f"{name:<11}", "bold"), " ", value, hang=12)
    say("")
    say(item.content)
    if record is not None and record.evidence:
        say("")
        say((f"Rests on {many(len(record.evidence), 'quote')}", "bold"))
        print_evidence(record.evidence, indent=2)


def _fields(item: Item) -> list[tuple[str, str]]:
    rows: list[tuple[str, str | None]] = [
        ("id", item.id),
        ("number", str(item.number)),
        ("space", str(item.space)),
        ("kind", str(item.kind)),
        ("title", item.title),
        ("speaker", item.speaker),
        ("role", item.role),
        ("time", moment(item.time, item.offset)),
        ("session", item.session),
        ("tags", ", ".join(item.tags) or None),
        ("importance", f"{item.importance} of 10" + (", pinned" if item.pinned else "")),
        ("metadata", _pairs(item.metadata)),
        ("expires", None if item.expires is None else moment(item.expires)),
        ("archived", None if item.archived is None else moment(item.archived)),
        ("untrusted", "yes: it comes from outside" if item.untrusted else None),
        ("key", item.key),
        ("language", item.language),
        ("keywords", ", ".join(item.keywords) or None),
        ("tells of", "; ".join(_told(item)) or None),
        ("recorded", moment(item.recorded)),
        ("version", f"{item.version}, of {moment(item.updated)}" if item.version > 1 else None),
        ("vector", None if item.embedded else "missing; `cofire reembed` makes it"),
        ("tokens", str(item.tokens)),
    ]
    return [(name, value) for name, value in rows if value]


def _told(item: Item) -> list[str]:
    """The times that the text tells of: '"last Friday" = 13 March 2026'."""
    told = []
    for event in item.event_times:
        first = line_header(event.start, item.offset, None).rstrip(":")
        last = line_header(event.end - timedelta(microseconds=1), item.offset, None).rstrip(":")
        told.append(f'"{event.text}" = {first}' + ("" if first == last else f" to {last}"))
    return told


def _pairs(values: Mapping[str, Any]) -> str | None:
    from cofire.cli.output import dumps

    return ", ".join(f"{key}={dumps(plain(value))}" for key, value in values.items()) or None


def print_versions(versions: tuple[Version, ...]) -> None:
    """Former texts, and the records that it took the place of, oldest first."""
    say(("Former texts", "bold") if versions else "No former texts: it was never changed.")
    for version in versions:
        title = f", {version.title}" if version.title else ""
        if version.id is None:
            said = f"version {version.version}{title}, until {moment(version.replaced)}"
            say(said, indent=2, hang=2)
        else:
            held = held_text(version.valid_from, version.valid_to)
            say(f"a replaced record, {held}  ", (version.id, "dim"), indent=2, hang=2)
        say(version.content, indent=4)


def print_links(item: Item, links: tuple[Link, ...], texts: Mapping[str, str]) -> None:
    """Links from and to a memory; `texts` are the starts of those at the other ends."""
    say("")
    say((f"{many(len(links), 'link')}", "bold"))
    for link in links:
        forward = link.source == item.id
        other = link.target if forward else link.source
        arrow = "→" if forward else "←"
        say(f"{arrow} {link.type} {link.strength:.2f}  ", (other, "dim"), indent=2)
        text = texts.get(other)
        if text is not None:
            say(shortened(text, (width() or 120) - 4), indent=4)


def print_report(report: ImportReport) -> None:
    """What an import did, and the reasons for what it did not."""
    counts = [
        (report.imported, "imported"),
        (report.updated, "updated"),
        (report.known, "known before"),
        (report.skipped, "empty, skipped"),
        (report.dropped, "could not be used"),
    ]
    say((report.source, "bold"), f": {many(report.read, 'record')} read")
    table([(f"{count:,}", what) for count, what in counts if count], indent=2, right=frozenset({0}))
    for count, what in ((report.repaired, "repaired"), (report.noted, "noted")):
        if count:
            say(f"{many(count, 'time')} {what} on the way", indent=2)
    if not report.problems:
        return
    say("")
    worst_first = sorted(report.problems, key=lambda problem: _WORST.index(problem.action))
    for problem in worst_first[:SHOWN_PROBLEMS]:
        say(("- ", "dim"), str(problem), indent=2, hang=2)
    met = report.skipped + report.dropped + report.repaired + report.noted
    if met > SHOWN_PROBLEMS:
        more = met - min(SHOWN_PROBLEMS, len(report.problems))
        say(f"and {more:,} more; `--json` lists up to 1,000", indent=2)
