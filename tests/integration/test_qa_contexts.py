"""A material's stores: what is shown of its evidence, what is cut, and who sees what was taught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cofire.answering.answer import Prepared
from cofire.evaluation.qa.answerers import Answerer, Asking, put, teach
from cofire.evaluation.qa.arms import Arm, arm_named
from cofire.evaluation.qa.contexts import MaterialBench, Shown
from cofire.evaluation.qa.locomo_set import locomo_set
from cofire.evaluation.qa.tasks import Task
from made_locomo import TURNS, write_locomo

AWAKE = arm_named("cofire", slept=False)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MaterialBench]:
    path = write_locomo(tmp_path_factory.mktemp("made"), 1)
    material = next(locomo_set(path).materials())
    with MaterialBench(material, "hashing:64") as opened:
        opened.workings(AWAKE)
        yield opened


def task(bench: MaterialBench, question: str) -> Task:
    return next(one for one in bench.material.tasks if one.question == question)


def prepared(bench: MaterialBench, arm: Arm, one: Task, asking: Asking | None = None) -> Prepared:
    return put(bench, one, arm, asking or Asking(), workings=bench.workings(arm), with_model=False)


def oracle(bench: MaterialBench, arm: Arm, one: Task, kind: str = "oracle") -> tuple[str, str]:
    asked = prepared(bench, arm, one)
    evidence = Shown.by(asked.context).of(bench.evidence(one))
    answerer = Answerer(kind=kind)  # type: ignore[arg-type]
    answer = answerer.answer(bench.workings(arm), asked, one, evidence)
    return answer.text, answer.reason


def test_the_oracle_is_right_if_and_only_if_all_the_evidence_is_shown(
    bench: MaterialBench,
) -> None:
    one = task(bench, "Which cake suits Ada, and who bakes it?")
    whole, single = replace(AWAKE, gate=False), replace(AWAKE, gate=False, tokens=None, k=1)
    assert oracle(bench, whole, one) == (one.answer, "")
    assert oracle(bench, single, one) == ("Not mentioned.", "evidence")
    assert oracle(bench, single, one, "oracle-any") == (one.answer, "")
    nothing = replace(one, evidence=())
    assert oracle(bench, whole, nothing)[1] == "evidence"


def test_where_there_is_no_answer_only_the_gate_refuses(bench: MaterialBench) -> None:
    one = task(bench, "What did Ada repair?")
    assert oracle(bench, replace(AWAKE, gate=False), one) == (one.trap, "")


def test_a_memory_counts_as_shown_if_its_line_stands_in_the_text(bench: MaterialBench) -> None:
    one = task(bench, "What did Ada buy?")
    context = prepared(bench, AWAKE, one).context
    wanted = bench.evidence(one)
    assert Shown.by(context).of(wanted).all
    line = next(entry for entry in context.entries if entry.id == wanted[0])
    torn = replace(context, text=context.text.replace(line.text[10:], ""))
    assert not Shown.by(torn).of(wanted).any
    gone = replace(context, entries=tuple(e for e in context.entries if e is not line))
    assert not Shown.by(gone).of(wanted).any


def test_a_full_context_is_everything_in_order_or_the_newest_that_fits(
    bench: MaterialBench,
) -> None:
    full = arm_named("full context")
    recall, context = bench.whole(full, 100_000)
    texts = [entry.quote for entry in context.entries]
    assert texts == [f"{text} (week 1)" for _, text in TURNS]
    assert (context.left_out, len(recall)) == (0, len(TURNS))
    recall, context = bench.whole(full, 70)
    assert 0 < context.tokens <= 70
    assert [entry.quote for entry in context.entries] == texts[context.left_out :]
    assert 0 < context.left_out < len(TURNS)
    asked = prepared(bench, full, bench.material.tasks[0], Asking(window=70))
    assert asked.context == context
    assert not bench.whole(full, 1)[1]


def test_what_one_arm_and_seed_learns_no_other_sees(bench: MaterialBench) -> None:
    pupil = replace(AWAKE, name="pupil", learn=True, gate=False)
    one = task(bench, "Which cake suits Ada, and who bakes it?")
    workings = bench.workings(pupil, 0)
    asked = put(bench, one, pupil, Asking(), workings=workings, with_model=False)
    evidence = Shown.by(asked.context).of(bench.evidence(one))
    answer = Answerer(kind="oracle").answer(workings, asked, one, evidence)
    teach(workings, answer, bench.now(one))
    now = bench.material.now
    assert bench.memory(pupil, 0).strengths(now=now)
    assert not bench.memory(pupil, 1).strengths(now=now)
    assert not bench.memory(AWAKE).strengths(now=now)
    assert bench.memory(AWAKE, 0) is bench.memory(AWAKE, 1)


def test_stores_are_gone_when_the_bench_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = tmp_path / "stores"
    stores.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(stores))
    material = next(locomo_set(write_locomo(tmp_path, 1)).materials())
    bench = MaterialBench(material, "hashing:64")
    bench.workings(AWAKE)
    assert list(stores.rglob("*.db"))
    bench.close()
    assert not list(stores.iterdir())
