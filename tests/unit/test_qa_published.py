"""What papers publish: averages follow from categories, and only like is ranked with like."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cofire.evaluation.qa.published import (
    Measured,
    counts_of,
    grouped,
    published_data,
    published_figures,
    repeated,
    same_model,
    weighted_average,
)
from cofire.evaluation.qa.published_tables import apart_table, group_table, published_tables

COUNTS = {"multi-hop": 282, "temporal": 321, "open-domain": 96, "single-hop": 841}
OURS = Measured(
    source="measured here", method="Cofire: cofire @1000", benchmark="locomo",
    model="openai:gpt-4o-mini", key="published", metric="f1",
    values={"multi-hop": 41.0, "temporal": 46.0, "open-domain": 20.0, "single-hop": 46.0},
    ours=True, asked=COUNTS,
)  # fmt: skip


def of(method: str, *, source: str, model: str = "", metric: str = "f1") -> Measured:
    """The one row of that method there."""
    found = [
        row
        for row in published_figures()
        if (row.method, row.source, row.metric) == (method, source, metric)
        and (not model or row.model == model)
    ]
    assert len(found) == 1
    return found[0]


def test_a_weighted_average_is_of_whole_sets_of_groups() -> None:
    assert weighted_average({"a": 10.0, "b": 40.0}, {"a": 2, "b": 1}) == pytest.approx(20.0)
    assert weighted_average({"a": 10.0}, {"a": 2, "b": 1}) is None
    assert weighted_average({"a": 10.0}, {}) is None


def test_the_counts_are_locomos() -> None:
    assert dict(counts_of("locomo")) == COUNTS
    assert sum(COUNTS.values()) == 1540
    assert sum(counts_of("longmemeval-s").values()) == 500


@pytest.mark.parametrize(
    ("method", "published", "right"),
    [("Synapse", 40.5, 45.3), ("Zep", 39.7, 44.3), ("A-Mem", 33.3, 39.7)],
)
def test_synapses_averages_by_the_right_counts(method: str, published: float, right: float) -> None:
    row = of(method, source="Synapse, table 1")
    assert row.average == published
    assert row.weighted is not None
    assert round(row.weighted, 1) == right


def test_all_averages_of_synapse_come_of_swapped_counts() -> None:
    swapped = published_data()["counts_as_published"]["synapse"]
    unlike = {}
    for row in published_figures():
        if row.source.startswith("Synapse") and row.metric == "f1" and row.average is not None:
            average = weighted_average(row.values, swapped)
            if average is not None and not math.isclose(average, row.average, abs_tol=0.06):
                unlike[row.method] = round(average, 1)
    assert unlike == {"GraphRAG": 18.8}


def test_averages_of_longmemeval_follow_from_the_groups() -> None:
    rows = [row for row in published_figures() if row.benchmark == "longmemeval-s"]
    assert len(rows) == 7
    off = {row.method: abs((row.weighted or 0.0) - (row.average or 0.0)) for row in rows}
    assert off.pop("A-Mem") == pytest.approx(0.6, abs=0.01)
    assert max(off.values()) < 0.2


def test_every_row_is_whole_and_in_percent() -> None:
    rows = published_figures()
    assert len(rows) == 138
    for row in rows:
        assert row.source
        assert row.ran_by
        assert (row.judge is not None) is (row.metric == "judge")
        assert row.values or row.average is not None
        assert all(0.0 < value < 100.0 for value in row.values.values())
    keys = [(row.source, row.method, row.model, row.metric) for row in rows]
    assert len(set(keys)) == len(keys)


def test_one_run_printed_twice_is_known_as_such() -> None:
    again = of("MemGPT", source="Synapse, table 1")
    first = repeated(again, published_figures())
    assert first == of("MemGPT", source="HeLa-Mem, table 1", model="gpt-4o-mini")
    assert repeated(first, published_figures()) is None
    own = of("Synapse", source="Synapse, table 1")
    assert repeated(own, published_figures()) is None


def test_groups_never_mix() -> None:
    groups, apart = grouped(published_figures())
    assert apart == ()
    for group in groups:
        for row in group.rows:
            assert (row.benchmark, row.model, row.key, row.metric, row.judge, row.ablation) == (
                group.benchmark, group.model, group.key, group.metric, group.judge, group.ablation,
            )  # fmt: skip
        known = [row.weighted for row in group.rows if row.weighted is not None]
        assert known == sorted(known, reverse=True)
        assert all(row.weighted is None for row in group.rows[len(known) :])
    assert sum(len(group.rows) for group in groups) == len(published_figures())


def test_ours_is_ranked_where_all_is_the_same() -> None:
    groups, apart = grouped(published_figures(), [OURS])
    assert apart == ()
    (group,) = [group for group in groups if OURS in group.rows]
    assert group.model == "gpt-4o-mini"
    assert [row.method for row in group.rows[:3]] == ["HeLa-Mem", "Synapse", OURS.method]
    assert any(
        line.startswith(f"| **{OURS.method}** | measured here |") for line in group_table(group)
    )


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        (replace(OURS, key="corrected"), "scored by the corrected key, the papers' by"),
        (replace(OURS, model="local:smollm2.gguf"), "no paper here answers with local:"),
        (replace(OURS, model="gpt-4o-mini-2024-07-18"), "no paper here answers with gpt-4o"),
        (replace(OURS, asked={**COUNTS, "temporal": 198}), "1,417 of the 1,540 questions"),
        (replace(OURS, asked={}), "0 of the 1,540 questions"),
        (replace(OURS, benchmark="choices"), "no paper here publishes this measure"),
        (replace(OURS, metric="judge", judge="gpt-4o"), "judged by gpt-4o, the papers' by a model"),
        (
            replace(OURS, benchmark="longmemeval-s", metric="judge", judge="gpt-4o"),
            "judged by gpt-4o, the papers' by gpt-4o-mini",
        ),
    ],
)  # fmt: skip
def test_ours_stands_apart_with_the_reason(ours: Measured, reason: str) -> None:
    groups, (apart,) = grouped(published_figures(), [ours])
    assert apart.figures is ours
    assert apart.reason.startswith(reason)
    assert all(ours not in group.rows for group in groups)
    assert reason in "\n".join(apart_table([apart]))


def test_models_by_any_name() -> None:
    assert same_model("openai:gpt-4o-mini", "GPT-4o-mini")
    assert not same_model("gpt-4o", "gpt-4o-mini")
    assert not same_model("local:gpt-4o", "gpt-4o")
    assert same_model("local:a/b.gguf", "local:A/B.gguf")


def test_tables_have_as_many_cells_as_heads() -> None:
    lines = published_tables(benchmark="locomo", metrics=["f1", "bleu1"], ablations=False)
    width = 0
    for line in lines:
        if line.startswith("|"):
            cells = line.count("|")
            assert cells == (width or cells)
            width = cells
        else:
            width = 0
