"""How does verification do on records that others wrote? Run `python benchmarks/verifier.py PATH`.

PATH is LoCoMo's JSON file. Its `observation` annotations are records that a language model wrote,
each with the turns it names as evidence: they are verified against those turns, quoted whole. Those
that hold are then made false in ways that a program can, and verified again. The annotations are
not all true of their turns, so that the share refused is no error rate.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.verifying import verify
from cofire.types import Kind

Case = tuple[Draft, dict[str, Turn]]
_SESSION = re.compile(r"session_\d+")
_NUMBER = re.compile(r"\b(\d+|two|three|four|five|six|seven|eight|nine|ten)\b")
_SMALL = re.compile(r"\b(a|the|my|and|is|to)\b")


def annotated(sample: dict[str, Any]) -> Iterator[Case]:
    """The annotated records of a conversation with its turns."""
    talk = sample["conversation"]
    turns: dict[str, Turn] = {}
    for name in (name for name in talk if _SESSION.fullmatch(name)):
        said = datetime.strptime(f"{talk[f'{name}_date_time']} +0000", "%I:%M %p on %d %B, %Y %z")
        for turn in talk[name]:
            turns[turn["dia_id"]] = Turn(
                number=len(turns) + 1, version=1, label=turn["dia_id"], content=turn["text"],
                time=said.astimezone(UTC), speaker=turn["speaker"], session=name,
            )  # fmt: skip
    for session in sample["observation"].values():
        for subject, records in session.items():
            for content, evidence in records:
                given = evidence if isinstance(evidence, list) else [evidence]
                labels = [label.strip() for one in given for label in re.split("[,;]", one)]
                if all(label in turns for label in labels):
                    quotes = tuple(Quote(label=one, text=turns[one].content) for one in labels)
                    yield (
                        Draft(kind=Kind.FACT, content=content, subject=subject, quotes=quotes),
                        turns,
                    )


def falsified(draft: Draft, turns: dict[str, Turn], chance: random.Random) -> Iterator[Any]:
    """(what is wrong, the record made wrong that way)."""
    content, subject = draft.content, draft.subject
    other = next(turn.speaker for turn in turns.values() if turn.speaker != subject) or ""
    exchanged = content.replace(subject, "\0").replace(other, subject).replace("\0", other)
    yield "persons exchanged", replace(draft, content=exchanged, subject=other)
    quoted = {quote.label for quote in draft.quotes}
    rest = [
        turn
        for label, turn in turns.items()
        if label not in quoted and turn.speaker == subject and len(turn.content) > 40
    ]
    turn = chance.choice(rest)
    elsewhere = (Quote(label=turn.label, text=turn.content),)
    yield "evidence of something else", replace(draft, quotes=elsewhere)
    yield "a place invented", replace(draft, content=content.rstrip(". ") + " in Zelmovar.")
    label, text = draft.quotes[0].label, draft.quotes[0].text
    altered = _SMALL.sub("very", text, count=1) + " ok"
    yield "a quote altered", replace(draft, quotes=(Quote(label=label, text=altered),))
    verb = re.match(rf"{subject} (?!is|was|has|are)(\w+(?:s|ed)) ", content)
    if verb:
        denied = f"{subject} never {verb.group(1)} {content[verb.end() :]}"
        yield "denied", replace(draft, content=denied)
    if number := _NUMBER.search(content):
        changed = content[: number.start()] + "17" + content[number.end() :]
        yield "another number", replace(draft, content=changed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="LoCoMo's JSON file")
    parser.add_argument("--samples", default="", help="conversations by place, as in 3,4,5")
    given = parser.parse_args()
    samples = json.loads(given.path.read_text(encoding="utf-8"))
    wanted = [int(place) for place in given.samples.split(",") if place] or range(len(samples))
    chance = random.Random(0)
    refused: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for draft, turns in (case for place in wanted for case in annotated(samples[place])):
        total["as annotated"] += 1
        if not verify(draft, turns).holds:
            refused["as annotated"] += 1
            continue
        for fault, record in falsified(draft, turns, chance):
            total[fault] += 1
            refused[fault] += not verify(record, turns).holds
    for name, number in total.items():
        share = 100 * refused[name] / number
        print(f"{name:28}{number:6}{refused[name]:8} refused{share:8.1f} %")


if __name__ == "__main__":
    main()
