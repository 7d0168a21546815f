"""What consolidation made (semantic records, shapes) and did (reports), as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cofire.cli.output import many, say, shortened
from cofire.types import (
    Quoted,
    Recall,
    SemanticRecord,
    Shape,
    SleepReport,
    StepReport,
    line_header,
)

QUOTED = 300
"""Columns of the words that a record rests on."""


def repeated(recall: Recall) -> Mapping[str, SemanticRecord]:
    """The records that say word for word what a memory of the same recall does, by its text."""
    said = {hit.content.strip() for hit in recall}
    texts = ((record.content.strip(), record) for record in reversed(recall.semantic))
    return {text: record for text, record in texts if text in said}


def as_record(record: SemanticRecord) -> str:
    """ "known: fact", "known: fact, until 3 June 2024": of a memory that says the same."""
    ended = "" if record.valid_to is None else f", until {day(record.valid_to)}"
    return f"known: {record.item.kind}{ended}"


def print_known(record: SemanticRecord, *, evidence: bool) -> None:
    """A recalled record: its text; its kind, when it holds and what it rests on."""
    say(("Known: ", "bold"), record.content.strip("\n"), hang=4)
    held = held_text(record.valid_from, record.valid_to)
    quotes = many(len(record.evidence), "quote")
    outside = "untrusted" if record.untrusted else ""
    told = ", ".join(filter(None, (str(record.item.kind), outside, held, quotes)))
    say((f"{told}  {record.id}", "dim"), indent=4)
    if evidence:
        print_evidence(record.evidence, indent=4)


def print_listed_record(record: SemanticRecord) -> None:
    """A record in a listing: id, kind, whom it is about, when it holds; its text; why it is not
    trusted, if so."""
    held = held_text(record.valid_from, record.valid_to)
    outside = "untrusted" if record.untrusted else ""
    quotes = many(len(record.evidence), "quote")
    told = (str(record.item.kind), outside, record.subject, held, quotes)
    say((record.id, "dim"), "  ", (", ".join(filter(None, told)), "bold"), hang=2)
    say(shortened(record.content, QUOTED), indent=2)
    if record.state != "current":
        reasons = "; ".join(record.reasons)
        say(f"{record.state}: {reasons}" if reasons else record.state, indent=2, hang=2)


def print_evidence(evidence: tuple[Quoted, ...], *, indent: int) -> None:
    """The words that a record rests on, with who said them, when, and in which memory."""
    for quoted in evidence:
        who = line_header(quoted.time, None, quoted.speaker).rstrip(":")
        text = shortened(quoted.text, QUOTED)
        say(f"“{text}” ({who})  ", (quoted.id, "dim"), indent=indent, hang=2)


def print_once_here(shape: Shape) -> None:
    """That something was once here, and how it comes back."""
    said = shape.content.rstrip(".")
    say(("Once here: ", "bold"), f"{said}; `cofire unarchive {shape.id}` brings it back", hang=4)


def record_fields(record: SemanticRecord) -> list[tuple[str, str]]:
    """What is known of a record beside its text and evidence, as names and values."""
    rows: list[tuple[str, str | None]] = [
        ("about", record.subject),
        ("slot", record.slot),
        ("value", record.value),
        ("holds", held_text(record.valid_from, record.valid_to)),
        ("ended", None if record.closed is None else f"as recorded {minute(record.closed)}"),
        ("confidence", None if record.confidence is None else f"{record.confidence:.2f}"),
        ("made by", record.maker + (f", prompt {record.prompt}" if record.prompt else "")),
        ("state", record.state),
        ("reasons", "; ".join(record.reasons)),
    ]
    return [(name, value) for name, value in rows if value]


def held_text(since: datetime | None, until: datetime | None) -> str:
    """ "since 8 May 2023 until 3 June 2024"; empty where neither is known."""
    first = "" if since is None else f"since {day(since)}"
    last = "" if until is None else f"until {day(until)}"
    return " ".join(filter(None, (first, last)))


def day(time: datetime) -> str:
    """ "8 May 2023" """
    return line_header(time, None, None).rstrip(":")


def minute(time: datetime) -> str:
    """ "2023-05-08 19:55 UTC" """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def tell_step(step: StepReport, *, indent: int = 0) -> None:
    """What a step of a consolidation did, or why it did nothing."""
    done = ", ".join(f"{name} {count:,}" for name, count in step.counts.items())
    said = step.error or step.skipped or done or "nothing to do"
    line = f"{step.name:<14} {'failed: ' if step.error else ''}{said}"
    say(line, indent=indent, hang=15)


def summed_up(report: SleepReport) -> str:
    """ "default/default: done in 1.2 s, 3 model calls, 1,200 tokens" """
    if report.claimed_by is not None:
        return f"{report.space}: {_left(report)}"
    calls = many(report.calls, "model call")
    model = f", {calls}, {report.tokens:,} tokens" if report.calls else ""
    cost = f", cost {report.cost:.4f}" if report.cost else ""
    return f"{report.space}: {report.status} in {report.seconds:.1f} s{model}{cost}"


def _left(report: SleepReport) -> str:
    """Why a space was left to another worker."""
    until = report.claimed_until
    claim = (
        "" if until is None else f", whose claim lasts until {until:%H:%M:%S} UTC if not renewed"
    )
    if report.steps:
        return f"taken over after {report.seconds:.1f} s by {report.claimed_by}{claim}"
    return f"skipped; it is being consolidated by {report.claimed_by}{claim}"


def print_sleep(report: SleepReport) -> None:
    """A consolidation of the past: when, where, and the steps that did something or failed."""
    say((minute(report.started), "bold"), f"  {summed_up(report)}")
    told = [step for step in report.steps if step.error or any(step.counts.values())]
    for step in told:
        tell_step(step, indent=2)
    if idle := len(report.steps) - len(told):
        say((f"{many(idle, 'step')} with nothing to do", "dim"), indent=2)
