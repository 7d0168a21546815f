"""What an answer takes beside the recall it is made from, over the demo's conversation.

    python -m benchmarks.answering [--rounds N] [--processes N] [--json FILE]

Recall and answer go in turns, so that what slows the machine for a while slows both. "Once warm" is
a question whose vector is at hand; "first time asked" one that the local model has to embed. No
language model takes part. Then whole processes: `cofire ask` from start to end, beside
`cofire recall` and `cofire --help`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.recall import kernel, timed
from cofire.answering.context import compose
from cofire.answering.extractive import extract
from cofire.answers import Answer
from cofire.memory import Memory
from cofire.settings import load_settings
from cofire.types import Recall

NOW = "2026-06-11T20:00+02:00"
K, SEMANTIC, TOKENS = 60, 5, 1_000

Figures = dict[str, float]


def demo(name: str) -> str:
    """A file of the demo."""
    return (resources.files("cofire.cli") / "data" / name).read_text(encoding="utf-8")


def in_process(memory: Memory, questions: list[str], rounds: int) -> Figures:
    """Milliseconds of recall, answer and its parts, medians over questions and rounds."""
    took: dict[str, list[float]] = {}
    ratios: list[float] = []

    def measure(name: str, call: Callable[[], Any]) -> float:
        milliseconds = timed(call)
        took.setdefault(name, []).append(milliseconds)
        return milliseconds

    def recall(question: str) -> Recall:
        return memory.recall(question, K, semantic=SEMANTIC, now=NOW)

    def answer(question: str) -> Answer:
        return memory.answer(question, model="none", tokens=TOKENS, now=NOW)

    for question in questions:  # imports and caches
        answer(question)
    for number, question in enumerate(questions):
        for other in range(rounds):
            fresh = f"{question} ({number} {other})"
            if other % 2:
                measure("recall, first time asked", partial(recall, fresh))
            else:
                measure("answer, first time asked", partial(answer, fresh))
    for _ in range(rounds):
        for question in questions:
            alone = measure("recall, once warm", partial(recall, question))
            whole = measure("answer, once warm", partial(answer, question))
            ratios.append(whole / alone)
            found = recall(question)
            context = partial(compose, found, budget=TOKENS, count=memory.count_tokens)
            measure("its context", context)
            measure("its sentence", partial(extract, question, tuple(found)))
    warm = sorted(took["answer, once warm"])
    figures = {f"{name}, p50 [ms]": statistics.median(times) for name, times in took.items()}
    figures["answer, once warm, p95 [ms]"] = warm[int(0.95 * len(warm))]
    figures["answer / recall, median of pairs"] = statistics.median(ratios)
    return figures


def whole_processes(store: Path, question: str, times: int) -> Figures:
    """Milliseconds of `cofire …` from start to end, in turns; medians."""
    commands: Mapping[str, list[str]] = {
        "cofire ask, whole process [ms]": ["ask", question, "--model", "none", "--now", NOW],
        "cofire recall, whole process [ms]": ["recall", question, "--now", NOW],
        "cofire --help, whole process [ms]": ["--help"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    env = {**os.environ, "COFIRE_STORE": str(store)}
    for number in range(times + 1):  # the first fills the page cache
        for name, arguments in commands.items():
            command = [sys.executable, "-m", "cofire", *arguments]
            milliseconds = timed(
                partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL, env=env)
            )
            if number:
                took[name].append(milliseconds)
    return {name: statistics.median(times) for name, times in took.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answering", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=20, help="times each question is asked")
    parser.add_argument("--processes", type=int, default=5, help="whole processes of each kind")
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    given = parser.parse_args()
    questions = [one["question"] for one in json.loads(demo("demo_questions.json"))]
    figures: Figures = {"kernel, before [ms]": kernel()}
    with tempfile.TemporaryDirectory(prefix="cofire-benchmark-") as folder:
        store = Path(folder) / "demo.db"
        with Memory.open(store, settings=load_settings(embedder="minilm")) as memory:
            memory.remember([json.loads(line) for line in demo("demo.jsonl").splitlines()])
            figures |= in_process(memory, questions, given.rounds)
        figures |= whole_processes(store, questions[0], given.processes)
    figures["kernel, after [ms]"] = kernel()
    for name, value in figures.items():
        print(f"{name:<44}{value:>10,.2f}")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
