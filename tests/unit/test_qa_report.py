"""A result as a report: all of it, some of it, and none of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from answered_results import (
    ARMS,
    GOLDEN_ARMS,
    Questions,
    made_result,
    outcomes,
)
from cofire.evaluation.qa.charts import ablated, bound_of, charts_of, main_measure
from cofire.evaluation.qa.comparing import Result, compare, sides_of
from cofire.evaluation.qa.figures import figures_of
from cofire.evaluation.qa.markdown import escaped, table
from cofire.evaluation.qa.report import NO_CHARTS, measured_here, render_report
from cofire.evaluation.qa.tables import render_result
from outcomes_of_runs import outcome


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """Eight arms under two seeds."""
    return made_result()


def tables(text: str) -> list[list[str]]:
    """The lines of each table."""
    return [part.splitlines() for part in re.findall(r"(?:^\|.*\n?)+", text, re.M)]


def section(text: str, name: str) -> str:
    """What stands under a heading of the second level."""
    return text.partition(f"## {name}\n")[2].partition("\n## ")[0]


# Markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("hela_mem", "hela_mem"),
        ("_x_", r"\_x\_"),
        ("[a](http://b) <i>", r"\[a\](http://b) \<i\>"),
        ("two\nlines\r\n\x1b[31m", r"two lines \[31m"),
        ("`a` $b$ #c", r"\`a\` \$b\$ \#c"),
        ("half \ud800", "half ?"),
        (5, "5"),
    ],
)
def test_any_text_is_itself_in_a_cell(text: object, shown: str) -> None:
    assert escaped(text) == shown


def test_a_table_of_nothing_is_nothing() -> None:
    assert table(["a", "b"], []) == []
    assert table(["a", "b"], [["x", "1"]]) == ["| a | b |", "| --- | ---: |", "| x | 1 |"]


# Reports


def test_every_table_is_whole(result: dict[str, Any]) -> None:
    text = render_report(result, {})
    found = tables(text)
    assert len(found) > 12
    for lines in found:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(widths) == 1
        assert len(lines) > 2
    assert "None" not in text
    assert "nan" not in text.lower()


def test_all_conditions_are_told(result: dict[str, Any]) -> None:
    told = section(render_report(result, {}), "Conditions")
    for line in (
        "| answered by | openai:gpt-4o-mini |", "| judged by | openai:gpt-4o |",
        "| seeds | 0, 1 |", "| prompts: answer | short@1 |", "| adversarial (apart) | 14 | 446 |",
    ):  # fmt: skip
        assert line in told


def test_refusals_stand_side_by_side(result: dict[str, Any]) -> None:
    text = render_report(result, {})
    assert "cofire @500 refused 50 % of questions that have no answer (asked 28 times)" in text
    assert "7 % of those that have one (112 times)" in text
    row = "| cofire @1000 | 28 | 50 | evidence 29, gate 21 | 112 | 7 | gate 7 | 0.20 |"
    assert row in section(text, "Refusals")


def test_the_first_way_is_summed_up_at_each_budget(result: dict[str, Any]) -> None:
    first = render_report(result, {}).splitlines()[2]
    assert first.startswith("cofire: F1, %, 60 [")
    assert re.findall(r"with (.+?)[;.]", first)[:5] == [
        "500 tokens", "1,000 tokens", "2,000 tokens", "k = 5", "k = 10",
    ]  # fmt: skip
    assert "Answered by openai:gpt-4o-mini, 56 questions under 2 seeds." in first
    assert "not complete" in render_report({**result, "settings": {"complete": False}}, {})


def test_an_oracles_words_are_not_scored() -> None:
    sure = [replace(one, right=one.evidence_found == 2) for one in outcomes(GOLDEN_ARMS)]
    sure[0] = replace(sure[0], right=None)
    text = render_report({**figures_of(sure, Questions(), rounds=10), "model": "oracle"}, {})
    assert text.index("### Right") < text.index("### Evidence in the context")
    assert "### F1" not in text
    assert "nothing published compares with it" in text


def test_malformed_replies_are_counted(result: dict[str, Any]) -> None:
    text = render_report(result, {})
    assert "5 replies were unusable or failed" in text
    (row,) = re.findall(r"^\| vectors only @1000 \|.*\| 5 \| 0 \|$", text, re.M)
    assert "0.0140" in row


def test_ablations_are_against_the_whole_at_the_same_budget(result: dict[str, Any]) -> None:
    assert ablated(result["arms"]) == {
        "cofire": "cofire @1000",
        "without spreading": "cofire without spreading @1000",
        "vectors only": "vectors only @1000",
        "full context": "full context",
    }
    told = section(render_report(result, {}), "What each mechanism gives")
    assert told.lstrip().startswith("cofire at 1,000 tokens, and the same without")
    assert re.search(r"^\| without spreading \|.*\| -20\.0 \[-\d+\.\d, -\d+\.\d\] \|", told, re.M)
    before = {**result, "ablations": None}  # as written by earlier versions
    told = section(render_report(before, {}), "What each mechanism gives")
    assert re.search(r"^\| without spreading \|.*\| -20\.0 \|", told, re.M)
    assert "ablations" not in {chart.name for chart in charts_of(before)}


def test_ablations_are_at_the_middle_bound() -> None:
    sizes = (500, 1000, 2000)
    arms = {f"{base} @{size}": (1, size) for base in ("cofire", "cofire without gate")
            for size in sizes}  # fmt: skip
    assert ablated(arms) == {"cofire": "cofire @1000", "without gate": "cofire without gate @1000"}
    few = {name: arm for name, arm in arms.items() if "@2000" not in name}
    assert ablated(few)["cofire"] == "cofire @1000"
    found = made_result(arms)
    assert found["ablations"]["of"] == "cofire @1000"
    assert found["ablations"]["arms"]["cofire without gate @1000"]["identical"]
    told = section(render_report(found, {}), "What each mechanism gives")
    assert re.search(r"^\| without gate \|.*\| identical \|", told, re.M)


def test_comparisons_are_tabled(result: dict[str, Any]) -> None:
    asked = [one for one in outcomes() if one.arm in GOLDEN_ARMS]
    file = Result(
        name="a.json", benchmark="locomo", key="published", model="m", judge="j", cofire="1",
        outcomes=tuple(asked),
    )  # fmt: skip
    other = replace(file, name="b|.json", model="n")
    found = compare(sides_of([file, other], "cofire @1000"), rounds=50)
    text = section(render_report({**result, "comparisons": found}, {}), "Comparisons")
    assert r"| cofire @1000 (b\|.json) | cofire @1000 (a.json) | F1 | 56 | identical |" in text
    assert (
        r"| cofire without spreading @1000 (b\|.json) | cofire @1000 (a.json) | F1 | 56 | -20.0 ["
        in text
    )
    assert "@500" not in text
    assert "Mind that answers come from different models" in text


def test_commands_are_shown_as_a_shell_takes_them(result: dict[str, Any]) -> None:
    again = section(render_report(result, {}), "How to measure this again")
    assert "```sh\ncofire evaluate locomo 'my file.json' --answer openai:gpt-4o-mini\n```" in again
    sly = render_report({**result, "command": "cofire ```\n# no"}, {})
    assert "````sh\ncofire ``` # no\n````" in sly


def test_names_cannot_break_the_report() -> None:
    name = "a|b\n# [x](y) @1000"
    text = render_report(made_result({name: (1, 700)}, model="m|<b>"), {})
    assert r"a\|b \# \[x\](y) @1000" in text
    assert "\n# [x]" not in text
    for lines in tables(text):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_ours_is_beside_the_papers_only_when_all_was_asked() -> None:
    small = made_result(GOLDEN_ARMS)
    text = section(render_report(small, {}), "Beside what papers publish")
    assert "56 of the 1,540 questions that the papers ask" in text
    assert "| **Cofire" not in text
    assert "without spreading" not in text
    counts = Questions().counts
    for arm in small["arms"].values():
        for group, block in arm["groups"].items():
            block["questions"] = counts[group]
    text = section(render_report(small, {}), "Beside what papers publish")
    assert "| **Cofire: cofire @1000** | measured here |" in text
    corrected = render_report({**small, "key": "corrected"}, {})
    assert "| **Cofire" not in corrected
    assert "scored by the corrected key" in corrected


def test_longmemeval_is_not_taken_for_its_s_file() -> None:
    asked = Questions(name="longmemeval", counts={}, scored_apart=frozenset())
    text = render_report(made_result(GOLDEN_ARMS, asked), {})
    assert text.startswith("# LongMemEval, answered\n")
    assert "No paper whose figures ship with Cofire reports these measures" in text
    variant = list(measured_here(made_result(GOLDEN_ARMS, asked, variant="s")))
    assert {row.benchmark for row in variant} == {"longmemeval-s"}


def test_a_model_may_be_told_as_more_than_a_name(result: dict[str, Any]) -> None:
    told = {**result, "model": {"name": "openai:gpt-4o-mini", "temperature": 0}, "judge": None}
    text = render_report(told, {})
    assert "| answered by | openai:gpt-4o-mini |" in text
    assert "| judged by | nobody |" in text


def test_of_nothing_there_is_a_report() -> None:
    text = render_report({"benchmark": "locomo", "key": "published", "arms": {}})
    assert text.startswith("# LoCoMo, answered\n\nNothing was asked.\n")
    assert NO_CHARTS not in text


def test_figures_may_be_missing() -> None:
    """Only category 5 was asked; neither F1 nor a judge nor a gate."""
    asked = [
        replace(one, confidence=None)
        for one in outcomes({"cofire @1000": (1, 700)})
        if one.group == "adversarial"
    ]
    figures = figures_of(asked, Questions(), rounds=10)
    text = render_report(figures, {})
    assert "| cofire @1000 | 28 | 50 |" in text
    assert "None" not in text
    assert charts_of(figures) == ()
    none = figures_of([], Questions(), rounds=10)
    assert "Nothing was asked." in render_report(none, {})


def test_an_arm_that_failed_has_no_scores() -> None:
    failed = [
        replace(one, text="", abstained=False, reason="", f1=0.0, bleu1=0.0, right=None,
                judged=(False,), failed="503")
        for one in outcomes({"cofire @500": (1, 380)})
    ]  # fmt: skip
    asked = [*failed, *outcomes({"cofire @1000": (1, 760)})]
    figures = {**figures_of(asked, Questions(), rounds=10), "model": "m"}
    for text in (render_result(figures), render_report(figures, {})):
        assert "0 to 0" not in text
        assert "0 [0, 0]" not in text
    assert re.search(r"^cofire @500( +-){5}$", render_result(figures), re.M)
    alone = render_result({**figures_of(failed, Questions(), rounds=10), "model": "m"})
    assert "F1" not in alone
    one = failed[:1] + [replace(each, failed="") for each in asked[-1:]]
    assert "1 reply was unusable or failed" in render_report(
        {**figures_of(one, Questions(), rounds=10), "model": "m"}, {}
    )


def test_questions_of_ones_own() -> None:
    own = Questions(name="choices", key="published", counts={}, scored_apart=frozenset())
    asked = [outcome(f"q{at}", group="all", right=at % 2 == 0) for at in range(4)]
    settings = {
        "answer": "extractive", "temperature": 0.0, "window": 100_000, "max_tokens": 512,
        "prompts": {"short@1": "aa"}, "judge_runs": 0, "source": "own.json",
    }  # fmt: skip
    figures = {**figures_of(asked, own, rounds=10), "model": "extractive", "settings": settings}
    shown, told = render_result(figures), render_report(figures, {})
    assert shown.startswith("choices, own key: 4 questions that count")
    assert re.search(r"^ +all +95 %$", shown, re.M)
    assert "| answer key | own |" in told
    assert "| arm | as asked |" in told
    conditions = section(told, "Conditions")
    assert "own.json" in conditions
    for hidden in ("temperature", "window", "prompts", "max tokens", "judge runs"):
        assert hidden not in conditions
    with_model = {**figures, "settings": {**settings, "answer": "model"}}
    assert "| temperature | 0.0 |" in section(render_report(with_model, {}), "Conditions")
    mixed = [*asked, outcome("z", group="hard", right=True)]
    shown = render_result({**figures_of(mixed, own, rounds=10), "model": "extractive"})
    assert re.search(r"^ +all +hard +together", shown, re.M)
    single = render_result({**figures_of(asked[:1], own, rounds=10), "model": "oracle"})
    assert "1 question that counts" in single


def test_an_oracle_is_not_scored_without_evidence() -> None:
    own = Questions(name="choices", counts={}, scored_apart=frozenset())
    asked = [outcome("a", right=True), outcome("b"), outcome("c")]
    figures = {**figures_of(asked, own, rounds=10), "model": "oracle"}
    for text in (render_result(figures), render_report(figures, {})):
        assert "2 questions name no evidence: the oracle is not scored there." in text
    assert main_measure(figures) == "right"
    none = {**figures_of(asked[1:2], own, rounds=10), "model": "oracle"}
    assert "1 question names no evidence" in render_result(none)


def test_missing_groups_are_named_once() -> None:
    few = [one for one in outcomes(GOLDEN_ARMS) if one.group != "temporal"]
    figures = {**figures_of(few, Questions(), rounds=10), "model": "m"}
    told = render_report(figures, {})
    assert "(groups missing)" not in told
    assert "lack groups of which nothing was asked: temporal." in told
    assert "Nothing was asked of temporal: nothing is weighted." in render_result(figures)


# Charts


def test_names_of_arms_are_taken_apart() -> None:
    assert bound_of("cofire @1000") == ("cofire", 1000, None)
    assert bound_of("cofire without spreading k=5") == ("cofire without spreading", None, 5)
    assert bound_of("full context") == ("full context", None, None)
    assert bound_of("cofire (left out) @500") == ("cofire (left out)", 500, None)


def test_what_is_drawn(result: dict[str, Any]) -> None:
    charts = {chart.name: chart for chart in charts_of(result)}
    assert list(charts) == ["tokens", "k", "ablations", "refusals"]
    assert list(charts["tokens"].lines) == ["cofire", "vectors only", "full context"]
    assert [round(spot.at) for spot in charts["tokens"].lines["cofire"]] == [386, 766, 1456]
    assert [spot.at for spot in charts["k"].lines["cofire"]] == [5, 10]
    assert list(charts["ablations"].lines) == ["without spreading", "vectors only", "full context"]
    assert charts["ablations"].against == "cofire at 1,000 tokens"
    (spot,) = charts["ablations"].lines["without spreading"]
    assert spot.mean == pytest.approx(-20.0)
    assert spot.low < spot.mean < spot.high < 0.0
    assert charts["refusals"].lines["cofire"][-1].mean == 100.0
    assert set(charts["refusals"].marks) == {"cofire", "vectors only", "full context"}


def test_what_a_result_is_about(result: dict[str, Any]) -> None:
    assert main_measure(result) == "f1"
    assert main_measure({**result, "benchmark": "longmemeval"}) == "judge"
    sure = [replace(one, right=one.evidence_found == 2) for one in outcomes(GOLDEN_ARMS)]
    assert main_measure(figures_of(sure, Questions(), rounds=10)) == "right"
    assert main_measure({"arms": {}}) == "f1"


def test_the_report_says_that_charts_are_missing(result: dict[str, Any]) -> None:
    assert NO_CHARTS in render_report(result, None)
    assert NO_CHARTS not in render_report(result, {})
    assert len(ARMS) == len(result["arms"])


LONGMEMEVAL = Questions(
    name="longmemeval", counts={"multi-session": 133, "temporal-reasoning": 133},
    scored_apart=frozenset(),
)  # fmt: skip


def longmemeval(*more: str) -> dict[str, Any]:
    """One right answer of each type, and one wrong to a question without an answer; `more` arms
    are asked one type alone."""
    types = ("multi-session", "temporal-reasoning")
    found = [outcome(kind, group=kind, judged=(True,)) for kind in types]
    found.append(outcome("x_abs", group=types[0], unanswerable=True, judged=(False,)))
    found += [outcome(types[0], group=types[0], judged=(True,), arm=arm) for arm in more]
    return {**figures_of(found, LONGMEMEVAL, rounds=100), "model": "openai:a", "judge": "openai:j"}


def test_questions_without_an_answer_are_told_by_themselves_too() -> None:
    shown = render_result(longmemeval())
    assert "Questions without an answer, which count in their groups, too, in %:" in shown
    assert re.search(r"^cofire +1 +0 +0 to 0 +75 ", shown, re.M)
    told = render_report(longmemeval())
    assert "| cofire | 1 | 0 [0, 0] | 75 [" in told
    without = render_result(made_result(GOLDEN_ARMS))
    assert "mean of groups" not in without  # LoCoMo's stand apart anyway


def test_a_column_of_averages_has_one_kind_of_average() -> None:
    assert re.search(r"^ +multi-s +temporal +weighted", render_result(longmemeval()), re.M)
    assert re.search(r"^ +multi-s +temporal +all", render_result(longmemeval("dense")), re.M)
