"""A small result of questions answered, made by rule: what reports and charts are tested with.

`python tests/answered_results.py` writes it, rounded and without outcomes, and its report to
tests/acceptance/data/, for the test that compares the report word by word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cofire.evaluation.qa.figures import figures_of
from cofire.evaluation.qa.mechanisms import mechanism_figures
from cofire.evaluation.qa.outcomes import Outcome
from cofire.evaluation.qa.report import render_report

FOLDER = Path(__file__).parent / "acceptance" / "data"
GOLDEN_RESULT = FOLDER / "answered.json"
GOLDEN_REPORT = FOLDER / "answered.md"
GROUPS = ("multi-hop", "temporal", "open-domain", "single-hop")
ARMS = {
    "cofire @500": (2, 380), "cofire @1000": (1, 760), "cofire @2000": (0, 1450),
    "cofire k=5": (3, 190), "cofire k=10": (1, 400),
    "cofire without spreading @1000": (3, 770), "vectors only @1000": (5, 800),
    "full context": (0, 19_000),
}  # fmt: skip
"""Arm → of every seven questions so many are missed; tokens of context."""


@dataclass(frozen=True)
class Questions:
    """What figures have to know of a data set."""

    name: str = "locomo"
    key: str = "published"
    counts: Mapping[str, int] = field(
        default_factory=lambda: {
            "multi-hop": 282,
            "temporal": 321,
            "open-domain": 96,
            "single-hop": 841,
            "adversarial": 446,
        }
    )
    scored_apart: frozenset[str] = frozenset({"adversarial"})


def outcomes(arms: Mapping[str, tuple[int, int]] = ARMS) -> list[Outcome]:
    """Fourteen questions of each group and of category 5, under two seeds."""
    return [
        _outcome(arm, reach, group, number, seed)
        for arm, reach in arms.items()
        for group in (*GROUPS, "adversarial")
        for number in range(14)
        for seed in (0, 1)
    ]


def _outcome(arm: str, reach: tuple[int, int], group: str, number: int, seed: int) -> Outcome:
    missed, tokens = reach
    apart = group == "adversarial"
    found = (number + seed) % 7 >= missed
    unusable = number == 13 and seed == 1 and "vectors" in arm
    refused = number % 2 == 0 if apart else number == 5
    return Outcome(
        arm=arm, task=f"{group}/{number}", material="conv-1", group=group, seed=seed,
        question="Who?", gold=None if apart else "Ada", text="Ada", unanswerable=apart,
        abstained=refused, reason=("gate" if number % 4 else "evidence") if refused else "",
        f1=None if apart else (0.8 if found else 0.1),
        bleu1=None if apart else (0.7 if found else 0.05),
        right=refused if apart else None,
        judged=() if apart else (found, found, None if number == 3 else found),
        judge_input_tokens=0 if apart else 900, judge_output_tokens=0 if apart else 60,
        evidence=0 if apart else 2, evidence_found=0 if apart else (2 if found else 1),
        confidence=(0.02 + number / 20.0) if apart else (0.3 + number / 20.0),
        context_tokens=tokens + number, input_tokens=tokens + 150, output_tokens=12,
        cost=0.0001, recall_ms=4.0 + number, seconds=0.5 + seed / 4.0,
        malformed="no JSON" if unusable else "",
    )  # fmt: skip


def made_result(
    arms: Mapping[str, tuple[int, int]] = ARMS, data: Questions | None = None, **members: Any
) -> dict[str, Any]:
    """A result as `cofire evaluate … --answer --json FILE` writes it; `members` replace its own."""
    figures = figures_of(
        outcomes(arms), data or Questions(), thresholds=dict.fromkeys(arms, 0.2), rounds=100
    )
    figures["model"] = "openai:gpt-4o-mini"
    figures["ablations"] = mechanism_figures(figures, outcomes(arms), rounds=100)
    return {
        **figures,
        "judge": "openai:gpt-4o",
        "cofire": "0.6.0",
        "settings": {
            "seeds": [0, 1],
            "profile": "cofire",
            "temperature": 0.0,
            "prompts": {"answer": "short@1", "judge": "judge@1"},
        },
        "command": [
            "cofire",
            "evaluate",
            "locomo",
            "my file.json",
            "--answer",
            "openai:gpt-4o-mini",
        ],
        **members,
    }


def rounded(value: Any) -> Any:
    """The value with its numbers to four places."""
    if isinstance(value, Mapping):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


GOLDEN_ARMS = {
    name: ARMS[name] for name in ("cofire @1000", "cofire @500", "cofire without spreading @1000")
}
PICTURES = {name: (f"{name}.svg", f"{name}.png") for name in ("tokens", "refusals", "ablations")}


def main() -> None:
    result = rounded(made_result(GOLDEN_ARMS))
    for arm in result["arms"].values():
        arm["refusals"]["curve"] = arm["refusals"]["curve"][::10]
    GOLDEN_RESULT.write_text(json.dumps(result) + "\n", encoding="utf-8")
    GOLDEN_REPORT.write_text(render_report(result, PICTURES), encoding="utf-8")


if __name__ == "__main__":
    main()
