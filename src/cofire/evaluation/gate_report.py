"""The gate's figures as plain-text tables, 100 columns at most."""

from __future__ import annotations

from cofire.evaluation.gate import FALSE_REFUSALS, Gated, Gating


def render_gate(name: str, gating: Gating) -> list[str]:
    """What one profile's gate knows."""
    head = f"{'':30}{'AUC cat. 5':>11}{'AUC other':>11}{'ECE':>7}{'threshold':>11}"
    head += f"{'refused':>10}{'cat. 5':>9}{'other':>9}"
    lines = [
        f"{name}: does it know what it does not know? {gating.answerable} questions with an",
        f"answer, {gating.category_5} of category 5, {gating.other} of other conversations.",
        "Refused: % of each, at the profile's threshold and where "
        f"{100 * FALSE_REFUSALS:g} % of those with an answer are.",
        "",
        head,
        "-" * len(head),
    ]
    for label, gated in gating.gates.items():
        for at, refused in enumerate((gated.at_default, gated.at_bound)):
            start = f"{label:30}{_quality(gated)}" if not at else f"{'':59}"
            shares = (refused.answerable, refused.category_5, refused.other)
            lines.append(
                f"{start}{refused.threshold:11.3f}{100 * shares[0]:10.1f}"
                + "".join(f"{100 * share:9.1f}" for share in shares[1:])
            )
    lines += ["", *_risk(gating)]
    if gating.weights:
        constants = ", ".join(f"{term} {value:.2f}" for term, value in gating.weights.items())
        lines += [
            "",
            f"Fitted to all conversations: {constants},",
            f"bias {gating.bias:.2f}, threshold {gating.threshold:.2f}.",
        ]
    return lines


def _quality(gated: Gated) -> str:
    return f"{gated.auc_category_5:11.3f}{gated.auc_other:11.3f}{gated.calibration_error:7.3f}"


def _risk(gating: Gating) -> list[str]:
    """% of answers that should not be given, when only the most confident are; half of what is
    asked has an answer."""
    first = next(iter(gating.gates.values()))
    head = f"{'answered, %':30}" + "".join(
        f"{100 * point.coverage:7.0f}" for point in first.risk_coverage
    )
    lines = [head, "-" * len(head)]
    for label, gated in gating.gates.items():
        cells = "".join(f"{100 * point.risk:7.1f}" for point in gated.risk_coverage)
        lines.append(f"{label:30}{cells}")
    lines.append("% of answers given to questions without one; half of what is asked has none.")
    return lines
