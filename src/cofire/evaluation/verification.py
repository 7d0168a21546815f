"""How well verification tells true records from false ones, on a set written for it.

`data/verifier.jsonl` has one record a line: `turns` (label, speaker, content; said on Wednesday
2024-03-13 at 10:00 UTC unless a `time` says otherwise), the record (`content`, `subject`, `slot`,
`value`, `happened`, `valid_from`; `quotes` are the turns whole unless given), whether it `holds`,
and its `class`: what is wrong with it, or what kind of true record it is. The rules were written
with the part "develop" in view. Of "held out" the totals were seen, not which records failed; it is
by the same author, and its longer turns are younger than most rules (docs: verification).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from cofire import __version__
from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.verifying import verify
from cofire.types import Kind

PARTS = ("develop", "held out")
_SAID = "2024-03-13T10:00:00+00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of the set: what is proposed on which turns, and whether it holds."""

    id: str
    part: str
    sort: str
    holds: bool
    draft: Draft
    turns: Mapping[str, Turn]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What verification made of a record; `reasons` are empty where it was let through."""

    record: Record
    reasons: tuple[str, ...]
    confidence: float


@cache
def records() -> tuple[Record, ...]:
    """The set that ships with Cofire, in its order."""
    text = files("cofire.evaluation").joinpath("data/verifier.jsonl").read_text(encoding="utf-8")
    return tuple(_record(json.loads(line)) for line in text.splitlines() if line)


def _record(line: dict[str, Any]) -> Record:
    turns = {
        turn["label"]: Turn(
            number=number, version=1, label=turn["label"], content=turn["content"],
            time=_moment(turn.get("time", _SAID)), speaker=turn.get("speaker"),
            role=turn.get("role"), session=turn.get("session"),
            untrusted=turn.get("untrusted", False),
        )
        for number, turn in enumerate(line["turns"], 1)
    }  # fmt: skip
    quotes = line.get("quotes", [[label, turn.content] for label, turn in turns.items()])
    happened = line.get("happened")
    valid_from = line.get("valid_from")
    draft = Draft(
        kind=Kind(line.get("kind", "fact")),
        content=line["content"],
        subject=line["subject"],
        quotes=tuple(Quote(label=label, text=text) for label, text in quotes),
        slot=line.get("slot"),
        value=line.get("value"),
        happened=(_moment(happened[0]), _moment(happened[1])) if happened else None,
        valid_from=_moment(valid_from) if valid_from else None,
        maker="adversary",
    )
    return Record(
        id=line["id"], part=line["part"], sort=line["class"], holds=line["holds"],
        draft=draft, turns=turns,
    )  # fmt: skip


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def outcomes() -> list[Outcome]:
    """Every record of the set, verified."""
    found = []
    for record in records():
        verdict = verify(record.draft, record.turns)
        found.append(Outcome(record=record, reasons=verdict.reasons, confidence=verdict.confidence))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Of `records` of one part and class that hold (or not), how many were `refused`."""

    part: str
    sort: str
    holds: bool
    records: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How verification did on a part. `recall`: share of the false records refused; `precision`:
    share of the refused that are false; `lost`: share of the true ones refused; each 0–1."""

    part: str
    false: int
    true: int
    recall: float
    precision: float
    lost: float


def counts(found: Sequence[Outcome]) -> list[Count]:
    """By part, class and truth, in the order of the set."""
    tally: dict[tuple[str, bool, str], list[bool]] = {}
    for one in found:
        place = (one.record.part, one.record.holds, one.record.sort)
        tally.setdefault(place, []).append(bool(one.reasons))
    return [
        Count(part=part, sort=sort, holds=holds, records=len(refused), refused=sum(refused))
        for (part, holds, sort), refused in sorted(tally.items(), key=lambda item: item[0][:2])
    ]


def score(found: Sequence[Outcome], part: str) -> Score:
    """The figures of one part."""
    own = [count for count in counts(found) if count.part == part]
    false, caught = (sum(getattr(c, f) for c in own if not c.holds) for f in ("records", "refused"))
    true, lost = (sum(getattr(c, f) for c in own if c.holds) for f in ("records", "refused"))
    return Score(
        part=part,
        false=false,
        true=true,
        recall=_share(caught, false),
        precision=_share(caught, caught + lost),
        lost=_share(lost, true),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def render_verification(found: Sequence[Outcome]) -> str:
    """Plain-text tables, 100 columns at most."""
    total = len(found)
    lines = [
        f"Verification: {total} records written for it, no language model. Recall: false records",
        "refused; precision: refused records that are false; lost: true records refused; all in %.",
        "",
        f"{'':12}{'false':>7}{'recall':>8}{'precision':>11}{'true':>7}{'lost':>7}",
        "-" * 52,
    ]
    for part in PARTS:
        row = score(found, part)
        lines.append(
            f"{part:12}{row.false:7}{100 * row.recall:8.1f}{100 * row.precision:11.1f}"
            f"{row.true:7}{100 * row.lost:7.1f}"
        )
    for holds, title in ((False, "False records refused"), (True, "True records refused")):
        own = [count for count in counts(found) if count.holds is holds]
        head = f"{'':16}" + "".join(f"{part:>14}" for part in PARTS)
        lines += ["", f"{title}, of all of their class", "", head, "-" * len(head)]
        for sort in dict.fromkeys(count.sort for count in own):
            cells = {count.part: count for count in own if count.sort == sort}
            row_text = "".join(
                f"{f'{cells[part].refused} of {cells[part].records}' if part in cells else '-':>14}"
                for part in PARTS
            )
            lines.append(f"{sort:16}{row_text}")
    return "\n".join(lines) + "\n"


def verification_figures(found: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, down to each record's reasons."""
    return {
        "benchmark": "verifier",
        "cofire": __version__,
        "scores": [asdict(score(found, part)) for part in PARTS],
        "counts": [asdict(count) for count in counts(found)],
        "records": [
            {
                "id": one.record.id,
                "part": one.record.part,
                "class": one.record.sort,
                "holds": one.record.holds,
                "reasons": list(one.reasons),
                "confidence": one.confidence,
            }
            for one in found
        ],
    }
