"""What a run of `benchmarks.soak` came to: what its processes wrote down, beside what is there."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cofire.errors import NotFoundError
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.types import Item

TENANTS = ("acme", "globex")
PROJECTS = ("north", "south")
LEASE = 3.0
"""Seconds after which a killed worker's space may be taken over."""
MARK = re.compile(r"\bmark\d+x\d+\b")


def open_memory(url: str, tenant: str) -> Memory:
    settings = load_settings(pool_size=2, claim_seconds=LEASE, embedder="hashing:256")
    return Memory.open(url, "agent", projects=PROJECTS, tenant=tenant, settings=settings)


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What the whole run came to. All but the first block has to be empty or 0."""

    minutes: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    updated: int = 0
    forgotten: int = 0
    spaces: int = 0
    links: int = 0
    milliseconds: dict[str, dict[str, float]] = field(default_factory=dict)
    consolidations: dict[str, int] = field(default_factory=dict)
    consolidated: dict[str, int] = field(default_factory=dict)
    kills: list[dict[str, Any]] = field(default_factory=list)
    gone_meanwhile: int = 0
    archived_meanwhile: int = 0
    resident_mb: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    undead: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    mended: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong, and something was done."""
        wrong = (
            self.errors, self.missing, self.twice, self.changed, self.undead, self.findings,
            self.mended,
        )  # fmt: skip
        return self.acknowledged > 0 and not any(wrong)


Notes = Mapping[str, list[dict[str, Any]]]


def read_notes(folder: Path) -> Notes:
    """What each process wrote down, by its name. A line that a killed worker left unfinished is
    left out."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        found[path.stem] = [json.loads(line) for line in lines if line.endswith("}")]
    return found


def summarise(outcome: Outcome, notes: Notes) -> None:
    calls, nights, counts = Counter[str](), Counter[str](), Counter[str]()
    taken: defaultdict[str, list[float]] = defaultdict(list)
    for name, lines in notes.items():
        for line in lines:
            calls[line["verb"]] += 1
            if "ms" in line:
                taken[line["verb"]] += line["ms"]
            if line["verb"] == "error":
                outcome.errors.append(f"{name}, {line['during']}: {line['error']}")
            elif line["verb"] == "archived":
                outcome.archived_meanwhile += 1
            elif line["verb"] == "consolidate":
                nights[line["status"]] += 1
                counts.update(line["counts"])
                outcome.errors += [f"{name}, step {failed}" for failed in line["failed"]]
        sizes = [line["megabytes"] for line in lines if line["verb"] == "resident"]
        if sizes:
            middle = sizes[len(sizes) // 2]
            outcome.resident_mb[name] = [round(size) for size in (sizes[0], middle, sizes[-1])]
    for verb in ("error", "resident", "consolidate", "gone", "archived"):
        calls.pop(verb, None)
    outcome.calls, outcome.consolidations = dict(calls), dict(nights)
    outcome.consolidated = {name: count for name, count in sorted(counts.items()) if count}
    for verb, times in taken.items():
        ordered = sorted(times)
        outcome.milliseconds[verb] = {
            "p50": round(statistics.median(ordered), 2),
            "p99": round(ordered[int(len(ordered) * 0.99)], 2),
            "most": round(ordered[-1], 2),
        }


def look_at(outcome: Outcome, url: str, notes: Notes) -> None:
    """Compare what is there with what was acknowledged."""
    lines = [line for part in notes.values() for line in part]
    gone = {line["id"] for line in lines if line["verb"] == "forget"}
    for line in lines:
        if line["verb"] == "gone":
            outcome.gone_meanwhile += 1
            if not gone.intersection(line["ids"]):
                outcome.errors.append(f"feedback: {line['error']}")
    outcome.forgotten = len(gone)
    for tenant in TENANTS:
        wanted: dict[str, str] = {}
        for line in lines:  # of one memory in order: only its own client changes it
            if line.get("tenant") != tenant:
                continue
            if line["verb"] == "remember":
                wanted.update(line["kept"])
                outcome.acknowledged += len(line["kept"])
            elif line["verb"] == "update":
                wanted[line["id"]] = line["text"]
                outcome.updated += 1
        with open_memory(url, tenant) as memory:
            compare(outcome, memory, {id: text for id, text in wanted.items() if id not in gone})
            outcome.undead += [id for id in sorted(gone & wanted.keys()) if is_there(memory, id)]
            outcome.mended += memory.replay()
            outcome.findings += [f"{tenant}: {finding}" for finding in memory.check()]
            stats = memory.stats()
            outcome.spaces += len(stats.spaces)
            outcome.links += sum(space.links for space in stats.spaces)


def compare(outcome: Outcome, memory: Memory, wanted: Mapping[str, str]) -> None:
    """What should be there, with what is: archived or not, and said once only."""
    there = {item.id: item.content for item in every_episode(memory)}
    outcome.missing += [id for id in wanted if id not in there]
    outcome.changed += [id for id, text in wanted.items() if there.get(id, text) != text]
    marks = Counter(mark for text in there.values() for mark in MARK.findall(text))
    outcome.twice += [mark for mark, count in marks.items() if count > 1]
    known = {mark for text in wanted.values() for mark in MARK.findall(text)}
    outcome.undead += sorted(marks.keys() - known)


def every_episode(memory: Memory) -> Iterator[Item]:
    for archived in (False, True):
        after = None
        while True:
            page = memory.list(limit=5000, after=after, kinds="episode", archived=archived)
            yield from page.items
            after = page.next
            if after is None:
                break


def is_archived(memory: Memory, id: str) -> bool:
    return memory.get(id).archived is not None


def is_there(memory: Memory, id: str) -> bool:
    try:
        memory.get(id)
    except NotFoundError:
        return False
    return True
