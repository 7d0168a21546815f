"""`demo`: a real conversation remembered, questions asked, and the reason for every answer."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli.commands import command
from cofire.cli.explaining import Explainer
from cofire.cli.options import COMMON, Common
from cofire.cli.output import many, print_json, say, shortened, table, width
from cofire.cli.rendering import heading
from cofire.errors import InputError
from cofire.types import Recall

if TYPE_CHECKING:
    from cofire.memory import Memory

SHOWN = 3
"""Recalled turns printed for each question, besides those of the answer."""
REASONS = 3
"""Terms of the score named for the first turn."""
RECALLED = 10
NOW = "2026-06-11T20:00+02:00"
"""The end of the conversation: relative times in the questions count from here."""
COLUMNS = 80
FOUND, OTHER, LOST = "✓", "·", "✗"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of the demo and what came back; `evidence` are the ids that answer it and
    `places` (from 0) where they came, None where they did not."""

    question: str
    shows: str
    recall: Recall
    evidence: tuple[str, ...]
    places: tuple[int | None, ...]
    milliseconds: float

    def found(self, k: int) -> int:
        """How many of the evidence turns are among the first `k`."""
        return sum(place is not None and place < k for place in self.places)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "demo",
        examples=("cofire demo", "cofire demo --keep demo.db", "cofire demo --json"),
        without=set(COMMON) - {"json"},
    )(demo)


def demo(
    common: Common,
    *,
    keep: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Keep the store of the demo in this new file."),
    ] = None,
) -> None:
    """See a conversation remembered, and the right turns recalled.

    Needs no key, no server and no network, and touches nothing of yours: the store is temporary
    unless --keep names a file. Says of each question why the first turn came back.
    """
    messages = [json.loads(line) for line in _data("demo.jsonl").splitlines()]
    questions = json.loads(_data("demo_questions.json"))
    if not common.json:
        _print_beginning(messages)
    with _memory(keep) as memory:
        started = perf_counter()
        receipt = memory.remember(messages)
        seconds = perf_counter() - started
        ids = dict(zip((message["key"] for message in messages), receipt.ids, strict=True))
        if not common.json:
            _print_remembered(seconds)
        asked = []
        for place, question in enumerate(questions):
            asked.append(_ask(memory, question, ids))
            if not common.json:
                _print_asked(place + 1, asked[-1], memory)
        whole = _tokens_of_everything(memory, len(messages))
    if common.json:
        print_json(_as_json(messages, asked, whole))
        return
    _print_summary(asked, len(messages), whole, seconds)
    _print_next(keep)


def _tokens_of_everything(memory: Memory, count: int) -> int:
    """Wordpieces of the whole conversation, rendered as recalled lines are."""
    from cofire.types import line_header

    return sum(
        item.tokens + memory.count_tokens(line_header(item.time, item.offset, item.speaker))
        for item in memory.list(limit=count)
    )


def _data(name: str) -> str:
    return (resources.files("cofire.cli") / "data" / name).read_text(encoding="utf-8")


@contextmanager
def _memory(keep: str | None) -> Iterator[Memory]:
    """A new memory in a temporary folder, or in the file to keep; always with the local model."""
    from cofire.cli.opening import log_to_standard_error
    from cofire.memory import Memory
    from cofire.settings import load_settings

    settings = load_settings(embedder="minilm")
    log_to_standard_error(settings.log_level)
    if keep is not None and Path(keep).expanduser().exists():
        raise InputError(f"{keep} is there already; name a new file to keep the demo in")
    with tempfile.TemporaryDirectory(prefix="cofire-demo-") as folder:
        path = Path(folder) / "demo.db" if keep is None else Path(keep).expanduser()
        with Memory.open(path, settings=settings) as memory:
            yield memory


def _ask(memory: Memory, question: Mapping[str, Any], ids: Mapping[str, str]) -> Asked:
    text = question["question"]
    recall = memory.recall(text, RECALLED, now=NOW, explain=True)
    # Asked again without the trace: the time of a recall as an agent would make it.
    started = perf_counter()
    memory.recall(text, RECALLED, now=NOW)
    milliseconds = 1e3 * (perf_counter() - started)
    evidence = tuple(ids[key] for key in question["evidence"])
    order = {id: place for place, id in enumerate(recall.ids)}
    return Asked(
        question=text,
        shows=question["shows"],
        recall=recall,
        evidence=evidence,
        places=tuple(order.get(id) for id in evidence),
        milliseconds=milliseconds,
    )


def _room() -> int:
    return width() or COLUMNS


def _print_beginning(messages: Sequence[Mapping[str, Any]]) -> None:
    sessions = len({message["session"] for message in messages})
    say(("Cofire demo", "bold"))
    say("")
    say(
        f"Nora and her assistant Juno have talked {sessions} times in four months: about a "
        "theatre, a greyhound, a sister with an allergy, and a move. "
        f"Cofire now reads their {len(messages)} turns and remembers them word for word.",
        wrap=_room(),
    )
    sys.stdout.flush()


def _print_remembered(seconds: float) -> None:
    say(
        f"Done in {seconds:.1f} s, on this machine, with no language model.",
        wrap=_room(),
    )
    say("")
    say(
        "Now for questions. Of each: the best turns that come back, ",
        (FOUND, "bold green"),
        " before those that hold the answer, and why the first one came.",
        wrap=_room(),
    )


def _print_asked(number: int, asked: Asked, memory: Memory) -> None:
    room = _room()
    say("")
    say((f"{number:>2}. {asked.question}", "bold cyan"), wrap=room, hang=4)
    say((f"({asked.shows})", "dim"), wrap=room, indent=4, hang=1)
    for place, hit in enumerate(asked.recall):
        if hit.id in asked.evidence:
            text = (f"{place + 1:>2} {FOUND} ", "bold green")
            say(
                text, (f"{heading(hit.item)}: ", "bold"), hit.content,
                wrap=room, indent=4, hang=5,
            )  # fmt: skip
        elif place < SHOWN:
            head = f"{place + 1:>2} {OTHER} {heading(hit.item)}: "
            say((head + shortened(hit.content, room - 4 - len(head)), "dim"), indent=4)
    missing = asked.places.count(None)
    if missing:
        turns = many(missing, "turn")
        say((f"{LOST} {turns} of the answer not among the first {RECALLED}", "red"), indent=7)
    if asked.recall:
        _print_why(asked.recall, memory)


def _print_why(recall: Recall, memory: Memory) -> None:
    """Why the first one came back."""
    explainer = Explainer(recall, memory)
    room = _room()
    say(
        ("Why the first? ", "bold"), f"{explainer.found(0)}. Of its {recall[0].score:.2f} points:",
        wrap=room, indent=4, hang=2,
    )  # fmt: skip
    for points, reason in explainer.reasons(0, REASONS):
        say(f"{points:+.2f} {reason}", wrap=room, indent=6, hang=6)
    for sentence in explainer.passed_on(0, limit=1):
        say(f"{sentence}.", wrap=room, indent=6, hang=6)


def _figures(asked: Sequence[Asked], whole: int) -> dict[str, float]:
    turns = sum(len(one.evidence) for one in asked)
    tokens = [one.recall.tokens for one in asked]
    times = sorted(one.milliseconds for one in asked)
    return {
        "evidence_turns": turns,
        "in_first_5": sum(one.found(5) for one in asked),
        "in_first_10": sum(one.found(10) for one in asked),
        "tokens_per_recall": round(sum(tokens) / len(tokens)),
        "tokens_of_everything": whole,
        "milliseconds_per_recall": round(times[len(times) // 2], 2),
    }


def _print_summary(asked: Sequence[Asked], turns: int, whole: int, seconds: float) -> None:
    figures = _figures(asked, whole)
    evidence = figures["evidence_turns"]
    share = figures["tokens_per_recall"] / whole
    say("")
    say(("In all", "bold"))
    table(
        [
            ("answers found", f"{figures['in_first_5']} of {evidence} turns in the first 5, "
             f"{figures['in_first_10']} in the first 10"),
            ("tokens used", f"{figures['tokens_per_recall']:,} for 10 turns, "
             f"instead of {whole:,} for everything ({share:.0%})"),
            ("time", f"{figures['milliseconds_per_recall']:.1f} ms per recall; "
             f"{1e3 * seconds / turns:.1f} ms to remember a turn"),
        ],
        indent=2,
    )  # fmt: skip


def _print_next(keep: str | None) -> None:
    room = _room()
    say("")
    if keep is not None:
        say(f"The store is kept in {keep}. Ask it something of your own:", wrap=room)
        say(f'cofire recall "Who may not eat nuts?" --explain --store {keep}', indent=2)
        say("")
    say(("Try next", "bold"))
    say('cofire remember "The shed key is in the blue tin." --speaker Ada', indent=2)
    say('cofire recall "How do I get into the shed?" --explain', indent=2)
    say('cofire ask "How do I get into the shed?"', indent=2)
    say("cofire import notes/       # or a chat export; cofire import --help", indent=2)


def _as_json(
    messages: Sequence[Mapping[str, Any]], asked: Sequence[Asked], whole: int
) -> dict[str, Any]:
    return {
        "turns": len(messages),
        "questions": [
            {
                "question": one.question,
                "evidence": one.evidence,
                "places": [None if place is None else place + 1 for place in one.places],
                "milliseconds": round(one.milliseconds, 2),
                "recalled": [{"id": hit.id, "line": hit.line} for hit in one.recall],
            }
            for one in asked
        ],
        "summary": _figures(asked, whole),
    }
