"""The tables of a report, each from the figures of a result's arms. Cells of nothing are dashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cofire.evaluation.qa.charts import MEASURES, ablated, main_measure, size_of
from cofire.evaluation.qa.comparing import COMPARED
from cofire.evaluation.qa.figures import percent
from cofire.evaluation.qa.markdown import NONE, escaped, plain, table

SCORES = ("f1", "bleu1", "judge", "right", "evidence_share", "evidence_whole")
"""Measures that have a table of their own, where they were taken."""
SAYS: Mapping[str, str] = {
    "f1": "Overlap of words with the right answer, as LoCoMo's evaluation defines it.",
    "bleu1": "Share of the answer's words that the right one has, shorter answers penalised.",
    "judge": "A language model says whether the answer means the same as the right one; what most "
    "of its runs say counts.",
    "right": "Where that is plain: of a choice; of the oracle, which answers right exactly if the "
    "context has all of the evidence; of a question without an answer, right is a refusal.",
    "evidence_share": "Share of a question's evidence that stands in its context.",
    "evidence_whole": "Questions whose evidence stands in the context whole.",
}
Result = Mapping[str, Any]
Arm = Mapping[str, Any]


def interval(found: Mapping[str, Any] | None) -> str:
    """A mean with its interval, in percent, with no more places than its questions bear."""
    if found is None:
        return NONE
    asked = found.get("questions", found["n"])
    mean, low, high = (percent(found[name], asked) for name in ("mean", "low", "high"))
    return f"{escaped(mean)} [{escaped(low)}, {escaped(high)}]"


def refused_share(kind: Mapping[str, Any]) -> str:
    return escaped(percent(kind["refused"], kind.get("questions", kind["n"])))


def totals(arm: Arm) -> Mapping[str, Any]:
    """What an arm took and what went wrong, over everything it was asked."""
    blocks = [block for block in (arm.get("all"), arm.get("apart")) if block]
    return {kind: sum(block[kind] for block in blocks) for kind in ("malformed", "failed", "cost")}


def scores(result: Result, measure: str) -> list[str]:
    arms: Mapping[str, Arm] = result["arms"]
    groups = dict.fromkeys(
        name
        for arm in arms.values()
        for name, block in arm["groups"].items()
        if block["measures"].get(measure)
    )
    if not any(_as_asked(arm, measure) for arm in arms.values()):
        return []
    # With one group alone it is what was asked; without published counts nothing is weighted.
    groups = groups if len(groups) > 1 else {}
    averages = {name: _weighted(arm, measure) for name, arm in arms.items()}
    whole = any(averages.values())
    rows = [
        [
            escaped(name),
            *(interval(_of(arm, group, measure)) for group in groups),
            interval(_as_asked(arm, measure)),
            *([interval(averages[name])] if whole else []),
        ]
        for name, arm in arms.items()
    ]
    head = ["arm", *map(escaped, groups), "as asked", *(["weighted"] if whole else [])]
    missing = _missing(arm for name, arm in arms.items() if averages[name])
    return [*table(head, rows), *(["", missing] if missing else [])]


def _of(arm: Arm, group: str, measure: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (arm["groups"].get(group) or {"measures": {}})[
        "measures"
    ].get(measure)
    return found


def _weighted(arm: Arm, measure: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = ((arm.get("weighted") or {}).get("measures") or {}).get(
        measure
    )
    return found


def _missing(arms: Iterable[Arm]) -> str:
    """Groups of which some arm was asked nothing, so that a weighted average is of the rest."""
    names = dict.fromkeys(name for arm in arms for name in arm["weighted"]["missing"])
    if not names:
        return ""
    return f"Weighted averages lack groups of which nothing was asked: {escaped(', '.join(names))}."


def refusals(result: Result) -> list[str]:
    """Both kinds side by side: a gate that refuses all is right on every unanswerable question."""
    rows = []
    for name, arm in result["arms"].items():
        both = arm.get("refusals") or {}
        refused, falsely = both.get("unanswerable"), both.get("answerable")
        if not refused and not falsely:
            continue
        rows.append(
            [
                escaped(name),
                *(cell for kind in (refused, falsely) for cell in _refused(kind)),
                NONE if both.get("threshold") is None else f"{both['threshold']:.2f}",
                NONE if both.get("auc") is None else f"{both['auc']:.3f}",
            ]
        )
    if not rows:
        return []
    head = [
        "arm", "no answer", "refused, %", "by reason, %", "answerable", "refused, %",
        "by reason, %", "threshold", "area under ROC",
    ]  # fmt: skip
    return [
        "Questions without an answer that were refused, beside those with one that were refused "
        'too. "Gate": before a model was asked; "evidence": by the model, which found none. '
        "The area is that of the gate's confidence; 0.5 is chance.",
        "",
        *table(head, rows),
    ]


def _refused(kind: Mapping[str, Any] | None) -> list[str]:
    if not kind:
        return [NONE, NONE, NONE]
    asked = kind.get("questions", kind["n"])
    reasons = ", ".join(
        f"{escaped(name)} {escaped(percent(share, asked))}"
        for name, share in kind["reasons"].items()
    )
    return [plain(kind["n"], 0), refused_share(kind), reasons or NONE]


def costs(result: Result) -> list[str]:
    rows = []
    for name, arm in result["arms"].items():
        block = arm.get("all") or arm.get("apart")
        if not block:
            continue
        tokens, whole = block["tokens"], totals(arm)
        rows.append(
            [
                escaped(name),
                *(
                    " / ".join(plain(tokens[kind][of], 0) for of in ("mean", "p95"))
                    for kind in ("context", "input", "output")
                ),
                " / ".join(plain(block["recall_ms"][of], 0) for of in ("median", "p95")),
                " / ".join(plain(block["seconds"][of], 2) for of in ("median", "p95")),
                plain(whole["cost"], 4),
                plain(whole["malformed"], 0),
                plain(whole["failed"], 0),
            ]
        )
    if not rows:
        return []
    head = [
        "arm", "context", "input", "output", "recall, ms", "generation, s", "cost",
        "malformed", "failed",
    ]  # fmt: skip
    return [
        "Tokens per question, mean / 95th percentile: of the context in wordpieces, of input and "
        "output as the endpoint counts them. Time: median / 95th percentile. Cost: of all answers "
        "of the arm, by the prices in the settings; a judge's tokens have prices of their own and "
        "are not in it. Malformed: replies that could not be read; failed: questions without a "
        "reply.",
        "",
        *table(head, rows),
    ]


def abstentions(result: Result, measure: str) -> list[str]:
    """Questions without an answer that count under their group, by themselves, and the mean of the
    groups: what LongMemEval's evaluation tells besides its types."""
    rows = []
    for name, arm in result["arms"].items():
        apart = (arm.get("abstention") or {"measures": {}})["measures"].get(measure)
        if apart:
            macro = (arm.get("macro") or {"measures": {}})["measures"].get(measure)
            asked = plain(apart["questions"], 0)
            rows.append([escaped(name), asked, interval(apart), interval(macro)])
    if not rows:
        return []
    return [
        "Questions without an answer count in their groups; here they are once more by themselves, "
        "beside the mean of the groups, in which each weighs the same.",
        "",
        *table(["arm", "questions", "without an answer", "mean of the groups"], rows),
    ]


def judging(result: Result) -> list[str]:
    rows = []
    for name, arm in result["arms"].items():
        found = (arm.get("all") or {}).get("judge")
        if found:
            rows.append(
                [
                    escaped(name),
                    plain(found["runs"], 0),
                    plain(found["replies"], 0),
                    plain(found["unusable"], 0),
                    plain(found["unjudged"], 0),
                    NONE if found["agreement"] is None else f"{100 * found['agreement']:.1f}",
                    NONE if found["kappa"] is None else f"{found['kappa']:.2f}",
                    *(plain(found.get(f"{kind}_tokens"), 0) for kind in ("input", "output")),
                ]
            )
    head = [
        "arm", "runs", "replies", "unusable", "answers unjudged", "all runs agree, %", "kappa",
        "tokens sent", "received",
    ]  # fmt: skip
    return table(head, rows)


def ablations(result: Result) -> list[str]:
    """Points lost or won without each mechanism, as all questions were asked: paired where the
    result has the figures for it."""
    arms, measure = result["arms"], main_measure(result)
    labels = ablated(arms)
    if not labels:
        return []
    first = next(iter(labels.values()))
    whole = _as_asked(arms[first], measure)
    if whole is None:
        return []
    paired = (result.get("ablations") or {"arms": {}})["arms"]
    rows = []
    for label, name in labels.items():
        found = _as_asked(arms[name], measure)
        tokens = (arms[name].get("all") or {"tokens": {"context": {"mean": None}}})["tokens"]
        change = NONE if found is None else f"{100 * (found['mean'] - whole['mean']):+.1f}"
        if paired.get(name):
            change = _change(paired[name])
        rows.append(
            [
                escaped(label),
                interval(found),
                NONE if name == first else change,
                plain(tokens["context"]["mean"], 0),
            ]
        )
    size = size_of(first)
    head = ["", f"{MEASURES[measure]}, %", "points", "tokens of context"]
    return [
        f"{escaped(next(iter(labels)))}{f' {size}' if size else ''}, and the same without one of "
        "its mechanisms at a time. The points are differences to the first row"
        f"{', question by question, with 95 % intervals of their own' if paired else ''}; every "
        "question that counts weighs the same. Weights are not fitted anew without a mechanism, so "
        "a difference may overstate it.",
        "",
        *table(head, rows),
    ]


def _as_asked(arm: Arm, measure: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (arm.get("all") or {"measures": {}})["measures"].get(measure)
    return found


def _change(measure: Mapping[str, Any]) -> str:
    """A difference with its interval, in points."""
    if measure.get("identical"):
        return "identical"
    low, middle, high = (
        f"{100 * measure['difference'][part]:+.1f}" for part in ("low", "mean", "high")
    )
    return f"{middle} [{low}, {high}]"


def comparisons(result: Result) -> list[str]:
    """What stands in "comparisons": the value of `comparing.compare`."""
    found = result.get("comparisons") or {}
    rows = [
        [
            _side(one["b"], one["a"]),
            _side(one["a"], one["b"]),
            MEASURES[name],
            plain(measure["questions"], 0),
            _change(measure),
            NONE if measure.get("identical") else measure["test"],
            *(
                _chance(None if measure.get("identical") else measure.get(p))
                for p in ("p", "p_holm")
            ),
        ]
        for name in COMPARED
        for one in found.get("comparisons", ())
        if (measure := one["measures"].get(name)) is not None
    ]
    if not rows:
        return []
    head = ["", "against", "measure", "questions", "points", "test", "p", "p, adjusted"]
    warned = dict.fromkeys(
        warning for one in found["comparisons"] for warning in one.get("warnings", ())
    )
    return [
        "Question by question, over those that both were asked; intervals as above. p is adjusted "
        "for the number of comparisons of a measure (Holm). Identical answers are no comparison.",
        "",
        *[line for warning in warned for line in (f"Mind that {escaped(warning)}.", "")],
        *table(head, rows, left=3),
    ]


def _side(side: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The arm, with its file where the files differ."""
    name = escaped(side["arm"])
    return name if side["result"] == other["result"] else f"{name} ({escaped(side['result'])})"


def _chance(p: float | None) -> str:
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
