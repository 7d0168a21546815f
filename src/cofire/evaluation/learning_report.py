"""The figures of learning as plain-text tables, 100 columns at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cofire.evaluation.grounds import ground_named

BLOCKS = (
    "all",
    "single evidence",
    "multi evidence",
    "evidence shared with training",
    "no evidence shared",
    "earlier half, later half",
)
CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop")
AT = 1
"""Which of the ks single columns are of: R@10."""
Figures = Mapping[str, Any]


def render_learning(figures: Figures) -> str:
    """Every table."""
    key = "corrected key" if figures["corrected_key"] else "published key"
    lines = [
        f"LoCoMo, {key}, learning from use: {figures['questions']} questions of "
        f"{figures['conversations']} conversations.",
        f"{figures['splits']} random halves and the earlier half against the later one; "
        f"{figures['near_identical_dropped']} test questions near-identical",
        "to a training question left out. No language model.",
        f"Learning builds on the recall {figures['ground']!r}: "
        f"{ground_named(figures['ground']).says}.",
        "",
        "First row of a table: evidence recall@k, %, of a memory that learned nothing. Below: what",
        "each way of learning adds, in points, with the 95 % interval of a paired bootstrap over",
        "questions. HeLa-Mem's rows are against its own profile having learned nothing.",
    ]
    arms = figures["arms"]
    for block in BLOCKS:
        if block in arms["frozen"]["subsets"]:
            lines += ["", *_block(figures, block)]
    lines += ["", *_categories(arms), "", *_levels(arms), "", *_flips(arms)]
    if figures["curve"]:
        lines += ["", *_curve(figures)]
    if figures["strengths"]:
        lines += ["", *_strengths(figures["strengths"])]
    if figures["sweeps"]:
        lines += ["", *_sweeps(figures)]
    lines += ["", *_legend(figures)]
    return "\n".join(lines) + "\n"


def _learned(arms: Figures) -> list[str]:
    """Arms that learned something, in order."""
    return [name for name, arm in arms.items() if arm["base"] != name]


def _block(figures: Figures, block: str) -> list[str]:
    arms = figures["arms"]
    frozen = arms["frozen"]["subsets"][block]
    tests = frozen["tests"]
    head = f"{'':20}" + "".join(f"{f'R@{k}':>24}" for k in figures["ks"])
    level = "".join(f"{value:24.1f}" for value in frozen["recall"])
    lines = [f"{block}: {tests} tests", head, "-" * len(head), f"{'frozen':20}{level}"]
    for name in _learned(arms):
        found = arms[name]["subsets"][block]["difference"]
        lines.append(f"{name:20}" + "".join(_interval(one) for one in found))
    return lines


def _interval(one: Figures) -> str:
    return f"{one['mean']:+8.2f} [{one['low']:+.1f}, {one['high']:+.1f}]".rjust(24)


def _categories(arms: Figures) -> list[str]:
    head = f"{'by category, R@10':24}" + "".join(f"{name:>14}" for name in CATEGORIES)
    lines = [head, "-" * len(head)]
    present = [name for name in CATEGORIES if name in arms["frozen"]["subsets"]]
    for name in ("frozen", *_learned(arms)):
        cells = []
        for category in CATEGORIES:
            if category not in present:
                cells.append(f"{'':14}")
                continue
            found = arms[name]["subsets"][category]
            value = found["recall"][AT] if name == "frozen" else found["difference"][AT]["mean"]
            cells.append(f"{value:14.1f}" if name == "frozen" else f"{value:+14.2f}")
        lines.append(f"{name:24}" + "".join(cells))
    return lines


def _levels(arms: Figures) -> list[str]:
    names = ("all", "multi evidence", "no evidence shared")
    kept = [name for name in names if name in arms["frozen"]["subsets"]]
    head = f"{'recall, %':26}" + "".join(f"{name + ' @10':>24}" for name in kept)
    lines = [head, "-" * len(head)]
    for name, arm in arms.items():
        cells = "".join(f"{arm['subsets'][one]['recall'][AT]:24.1f}" for one in kept)
        lines.append(f"{name:26}{cells}")
    return lines


def _flips(arms: Figures) -> list[str]:
    head = f"{'first ten, % of tests':26}{'evidence lost':>16}{'evidence gained':>18}"
    lines = [head, "-" * len(head)]
    for name in _learned(arms):
        flips = arms[name]["flips"]
        lines.append(f"{name:26}{flips['lost']:16.1f}{flips['gained']:18.1f}")
    return lines


def _curve(figures: Figures) -> list[str]:
    head = f"{'questions learned from':24}{'tests':>7}{'R@10':>8}"
    head += f"{'adds, all':>24}{'adds, multi evidence':>24}"
    lines = [head, "-" * len(head)]
    for point in figures["curve"]:
        every = point["subsets"].get("all")
        if every is None:
            continue
        several = point["subsets"].get("multi evidence")
        share = f"{100 * point['share']:.0f} %"
        line = f"{share:24}{every['tests']:7}{every['recall'][AT]:8.1f}"
        line += _interval(every["difference"][AT])
        line += _interval(several["difference"][AT]) if several else ""
        lines.append(line)
    return lines


def _strengths(bins: Sequence[Figures]) -> list[str]:
    head = f"{'strength of a link':22}{'pairs':>9}{'mean':>8}{'used together, %':>20}"
    lines = [head, "-" * len(head)]
    lines += [
        f"{one['strength']:22}{one['pairs']:9}{one['mean_strength']:8.2f}"
        f"{100 * one['frequency']:20.1f}"
        for one in bins
    ]
    lines.append("Of the held-out questions that use one of the two, how many use both.")
    return lines


def _sweeps(figures: Figures) -> list[str]:
    ks = figures["swept_ks"]
    head = f"{'':8}{'constant':21}{'value':>29}" + "".join(f"{f'R@{k}':>7}" for k in ks)
    head += f"{'multi':>7}{'none':>7}"
    lines = [head, "-" * len(head)]
    for one in figures["sweeps"]:
        value = one["value"] + (" †" if one["default"] else "")
        recalls = (*one["recall"], one["multi"][AT], one["unshared"][AT])
        lines.append(
            f"{one['profile']:8}{one['constant']:21}{value:>29}"
            + "".join(f"{recall:7.1f}" for recall in recalls)
        )
    lines += [
        "† ships. Rows of cofire: test questions, after learning from the others. multi: R@10,",
        "several pieces of evidence; none: R@10, no evidence shared with training.",
    ]
    return lines


def _legend(figures: Figures) -> list[str]:
    lines = [f"{name:26}{arm['says']}" for name, arm in figures["arms"].items()]
    if "popularity" in figures["arms"]:
        boost = figures["popularity_boost"]
        lines.append(f"Popularity's boost, {boost:g}, is the best of several on these very tests.")
    return lines
