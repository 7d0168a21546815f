"""Outcomes of questions as a run writes them, and a data set that they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cofire.evaluation.qa.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What figures have to know of a data set."""

    name: str = "locomo"
    key: str = "corrected"
    counts: Mapping[str, int] = field(default_factory=dict)
    scored_apart: frozenset[str] = frozenset()


def outcome(task: str, **values: Any) -> Outcome:
    """One outcome: an answer of the arm "cofire" under seed 0, nothing measured."""
    given = {
        "arm": "cofire", "material": "a", "group": "single-hop", "seed": 0, "question": task,
        "gold": "gold", "text": "text", "abstained": False, "reason": "", "unanswerable": False,
        **values,
    }  # fmt: skip
    return Outcome(task=task, **given)


def result(*outcomes: Outcome, **values: Any) -> dict[str, Any]:
    """A result file."""
    return {
        "benchmark": "locomo", "key": "corrected", "model": "openai:a", "judge": "openai:j",
        "cofire": "1", "settings": {}, "arms": {}, "outcomes": [asdict(one) for one in outcomes],
        **values,
    }  # fmt: skip
