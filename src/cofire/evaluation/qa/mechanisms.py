"""What each mechanism gives: the whole system beside itself without one, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cofire.evaluation.intervals import ROUNDS
from cofire.evaluation.qa.charts import ablated, main_measure
from cofire.evaluation.qa.comparing import measured_pairs
from cofire.evaluation.qa.outcomes import Outcome


def mechanism_figures(
    result: Mapping[str, Any], outcomes: Iterable[Outcome], *, rounds: int = ROUNDS
) -> dict[str, Any] | None:
    """As JSON, for a result that has its "arms" and "model": "of", the arm of the whole system at
    the middle one of its bounds; "measure", what the result is about (`charts.main_measure`);
    "arms": the name of each arm beside it → `comparing.measured_pairs`, the difference to the
    whole over the questions of both that are not scored apart (null: none has a value on both
    sides). None for a result without ablations."""
    whole, *others = ablated(result["arms"]).values() or ("",)
    if not others:
        return None
    apart = frozenset(result.get("scored_apart") or ())
    asked: dict[str, dict[tuple[str, int], Outcome]] = {name: {} for name in (whole, *others)}
    for one in outcomes:
        if one.arm in asked and one.group not in apart:
            asked[one.arm][one.task, one.seed] = one
    measure = main_measure(result)
    found = {}
    for name in others:
        both = [key for key in asked[whole] if key in asked[name]]
        pairs = [(asked[whole][key], asked[name][key]) for key in both]
        found[name] = measured_pairs(pairs, measure, rounds=rounds)
    return {"of": whole, "measure": measure, "arms": found}
