"""How far a judge agrees with people, on a labelled sample that ships with Cofire.

`data/judged.jsonl` has one answer a line: `question`, `gold`, `answer`, whether it is `right`,
`why`, and the `kind` of case it is; `unanswerable` and `trap` as in a task. Questions, answers and
labels are our own, written for this, and no benchmark's. Most are near misses, such as partial
lists, dates a day off, hedges, and answers that tell the judge how to mark them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cofire import __version__
from cofire.errors import GenerationError
from cofire.evaluation.intervals import paired_intervals
from cofire.evaluation.metrics import mean
from cofire.evaluation.qa.agreement import cohen_kappa, fleiss_kappa
from cofire.evaluation.qa.figures import percent
from cofire.evaluation.qa.judging import Judgement, judge, verdict_of
from cofire.evaluation.qa.tasks import Task
from cofire.models.generator import Generator
from cofire.types import Progress

GIVEN_UP = 3
"""Rows in succession for which the endpoint has no answer: then it is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A labelled answer: to what task, whether it is `right`, and `why`; `kind` is what sort of
    case it is."""

    task: Task
    kind: str
    answer: str
    right: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A sample with what a judge said of it; no judgements where the endpoint failed."""

    sample: Sample
    judgements: tuple[Judgement, ...]

    @property
    def right(self) -> bool | None:
        """The judge's verdict."""
        return verdict_of(self.judgements)


@cache
def samples() -> tuple[Sample, ...]:
    """The sample that ships with Cofire, in its order."""
    file = files("cofire.evaluation.qa").joinpath("data/judged.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(_sample(json.loads(line)) for line in lines if line)


def _sample(line: dict[str, Any]) -> Sample:
    task = Task(
        id=line["id"], material="judged", group=line["group"], question=line["question"],
        answer=line["gold"], unanswerable=line.get("unanswerable", False), trap=line.get("trap"),
    )  # fmt: skip
    return Sample(
        task=task, kind=line["kind"], answer=line["answer"], right=line["right"], why=line["why"]
    )


def mark(
    generator: Generator,
    chosen: Sequence[Sample],
    *,
    runs: int = 1,
    seed: int = 0,
    temperature: float = 0.0,
    progress: Progress | None = None,
) -> list[Marked]:
    """Every sample as a judge marks it.

    A row for which the endpoint has no answer is left unmarked. Raises GenerationError where that
    will not pass, or has happened `GIVEN_UP` times in succession.
    """
    marked: list[Marked] = []
    failed = 0
    for done, sample in enumerate(chosen, 1):
        judgements: tuple[Judgement, ...] = ()
        try:
            judgements = judge(
                generator, sample.task, sample.answer,
                runs=runs, seed=seed, temperature=temperature,
            )  # fmt: skip
            failed = 0
        except GenerationError as exc:
            failed += 1
            if not exc.retryable or failed == GIVEN_UP:
                raise
        marked.append(Marked(sample=sample, judgements=judgements))
        if progress is not None:
            progress(done, len(chosen))
    return marked


def agreement_figures(
    marked: Sequence[Marked], *, input_price: float = 0.0, output_price: float = 0.0
) -> dict[str, Any]:
    """Every figure as JSON; prices are for a million tokens. Shares are in [0, 1].

    "all", and for each of "groups" and "kinds": "n" samples, "marked" of them with a verdict,
    "accuracy" of these, Cohen's "kappa" between judge and label (null where it is not defined),
    "too_kind" and "too_strict": how many wrong answers were held right, and right ones wrong.
    """
    replies = [reply for one in marked for reply in one.judgements]
    tokens = {
        "input": sum(reply.input_tokens for reply in replies),
        "output": sum(reply.output_tokens for reply in replies),
    }
    unusable = Counter(reply.unusable for reply in replies if reply.right is None)
    groups = dict.fromkeys(one.sample.task.group for one in marked)
    kinds = sorted({one.sample.kind for one in marked})
    return {
        "cofire": __version__,
        "judge": replies[0].model if replies else None,
        "prompts": sorted({reply.prompt for reply in replies}),
        "runs": max((len(one.judgements) for one in marked), default=0),
        "replies": len(replies),
        "unusable": dict(sorted(unusable.items())),
        "failed": sum(not one.judgements for one in marked),
        "all": {**_agreed(marked), "interval": _interval(marked)},
        "groups": {
            name: _agreed([one for one in marked if one.sample.task.group == name])
            for name in groups
        },
        "kinds": {
            name: _agreed([one for one in marked if one.sample.kind == name]) for name in kinds
        },
        "between_runs": _between_runs(marked),
        "tokens": tokens,
        "cost": (tokens["input"] * input_price + tokens["output"] * output_price) / 1e6,
        "seconds": sum(reply.seconds for reply in replies),
        "disagreements": [
            _disagreement(one) for one in marked if one.right not in {None, one.sample.right}
        ],
    }


def _agreed(marked: Sequence[Marked]) -> dict[str, Any]:
    pairs = [(one.sample.right, one.right) for one in marked if one.right is not None]
    return {
        "n": len(marked),
        "marked": len(pairs),
        "accuracy": mean([float(label == said) for label, said in pairs]) if pairs else None,
        "kappa": cohen_kappa([label for label, _ in pairs], [said for _, said in pairs]),
        "too_kind": sum(bool(said) and not label for label, said in pairs),
        "too_strict": sum(label and not said for label, said in pairs),
    }


def _interval(marked: Sequence[Marked]) -> dict[str, float] | None:
    """The 95 % bootstrap interval of the accuracy."""
    found = [float(one.right == one.sample.right) for one in marked if one.right is not None]
    if not found:
        return None
    values = np.array(found)[:, None]
    interval = paired_intervals(values, np.arange(len(found)))[0]
    return {"low": interval.low, "high": interval.high}


def _between_runs(marked: Sequence[Marked]) -> dict[str, Any] | None:
    """Of samples marked usably by every one of several runs: how many there are, the share on which
    all runs agree, and Fleiss' kappa. None with one run."""
    runs = max((len(one.judgements) for one in marked), default=0)
    if runs < 2:
        return None
    rows = [[reply.right for reply in one.judgements] for one in marked]
    whole = [row for row in rows if len(row) == runs and None not in row]
    return {
        "n": len(whole),
        "agreement": mean([float(len(set(row)) == 1) for row in whole]) if whole else None,
        "kappa": fleiss_kappa(whole),
    }


def _disagreement(one: Marked) -> dict[str, Any]:
    reasons = [reply.why for reply in one.judgements if reply.right == one.right]
    return {
        "id": one.sample.task.id,
        "kind": one.sample.kind,
        "label": one.sample.right,
        "why": one.sample.why,
        "judged": one.right,
        "judge_why": reasons[0],
    }


def render_agreement(figures: dict[str, Any]) -> str:
    """Plain-text tables, 100 columns at most (a judge's reasons apart)."""
    whole = figures["all"]
    lines = [
        f"Judge {figures['judge']}, {figures['runs']} run(s) over {whole['n']} labelled answers.",
        "Accuracy: verdicts that agree with the label, in %; kappa: beyond chance, at most 1;",
        "too kind: wrong answers held right; too strict: right answers held wrong.",
        "",
        f"{'':28}{'n':>5}{'marked':>8}{'accuracy':>10}{'kappa':>8}{'too kind':>10}"
        f"{'too strict':>12}",
        "-" * 81,
        _row("all", whole),
        *(_row(name, group) for name, group in figures["groups"].items()),
        "",
    ]
    interval, between = whole["interval"], figures["between_runs"]
    if interval is not None:
        low, high = (percent(interval[end], whole["marked"]) for end in ("low", "high"))
        lines.append(f"Accuracy, 95 % interval: {low} to {high}.")
    if between is not None:
        agreed = "-" if between["agreement"] is None else percent(between["agreement"], whole["n"])
        lines.append(f"Runs agree with each other on {agreed} %, kappa {_kappa(between['kappa'])}.")
    unusable = ", ".join(f"{count} {name}" for name, count in figures["unusable"].items())
    lines += [
        f"Unusable replies: {unusable or 'none'}, of {figures['replies']}; answers that the "
        f"endpoint failed on: {figures['failed']}.",
        f"Tokens: {figures['tokens']['input']:,} sent, {figures['tokens']['output']:,} received; "
        f"cost {figures['cost']:.4f}; {figures['seconds']:.1f} s of waiting.",
    ]
    if figures["disagreements"]:
        lines += ["", "Where it disagrees:"]
    for one in figures["disagreements"]:
        held, label = ("right" if said else "wrong" for said in (one["judged"], one["label"]))
        lines.append(f"  {one['id']} ({one['kind']}): held {held}, is {label}: {one['why']}")
        if one["judge_why"]:
            lines.append(f"    the judge: {one['judge_why']}")
    return "\n".join(lines) + "\n"


def _row(name: str, figures: dict[str, Any]) -> str:
    accuracy = figures["accuracy"]
    share = "-" if accuracy is None else percent(accuracy, figures["marked"])
    return (
        f"{name:28}{figures['n']:5}{figures['marked']:8}{share:>10}{_kappa(figures['kappa']):>8}"
        f"{figures['too_kind']:10}{figures['too_strict']:12}"
    )


def _kappa(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
