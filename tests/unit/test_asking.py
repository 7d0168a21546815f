"""Asking a model about turns: what is asked again and how, what it costs, what is left over."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest

from cofire.consolidation.asking import NONSENSE, Asked, Room, ask
from cofire.consolidation.budgets import Budget
from cofire.consolidation.prompts import load
from cofire.errors import ConfigurationError, GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generation
from cofire.testing import ScriptedGenerator
from scripts_of_models import CANOE, GOOD, TURNS, concepts, record, reply, turn

FOUR = tuple(turn(f"T{n}", f"Sentence number {n}.") for n in range(1, 5))
CUT = Generated(text=GOOD[:50], finish="length", input_tokens=100, output_tokens=50)


def asked(
    generator: ScriptedGenerator, turns: Any = TURNS, budget: Budget | None = None, /, **room: int
) -> Asked:
    return ask(generator, load("distil"), turns, budget or Budget(), room=Room(**room))


def labels(request: Generation) -> list[str]:
    return re.findall(r'"turn": "(T\d+)"', request.user)


def about_each(request: Generation) -> str:
    """A record about every turn offered; the last is an effect of the first."""
    offered = labels(request)
    records = [
        record(
            content=f"About {label}.",
            quotes=[{"turn": label, "text": f"Sentence number {label[1:]}."}],
            causes=["D1"] if label == offered[-1] and len(offered) > 1 else [],
        )
        for label in offered
    ]
    return reply(*records)


def test_one_call_where_all_is_well() -> None:
    generator = ScriptedGenerator([GOOD])
    result = asked(generator)
    assert [draft.content for draft in result.drafts] == ["Robin owns a canoe."]
    assert (result.drafts[0].maker, result.drafts[0].prompt) == ("scripted", "distil@2")
    assert (result.calls, result.retries, result.failures) == (1, 0, {})
    assert (result.unanswered, result.stopped, result.error) == ((), None, None)
    (request,) = generator.requests
    assert request.temperature == 0.0
    assert request.schema_name == "distil"
    assert labels(request) == ["T1", "T2"]
    assert "keep the language of the message" in request.system


def test_no_turns_no_call() -> None:
    assert asked(ScriptedGenerator(), ()) == Asked()


def test_concepts_are_asked_alike() -> None:
    text = concepts([{"name": "Bergen", "aliases": [], "turns": ["T2"]}])
    result = ask(ScriptedGenerator([text]), load("concepts"), TURNS, Budget())
    assert [concept.name for concept in result.concepts] == ["Bergen"]


@pytest.mark.parametrize(
    "first",
    [CUT, "", '{"records": [', PromptTooLongError("too long")],
    ids=["cut", "", "[", "long"],
)
def test_an_answer_that_fails_is_not_the_end(first: Any) -> None:
    generator = ScriptedGenerator([first], then=about_each)
    result = asked(generator, FOUR)
    assert [draft.content for draft in result.drafts] == [f"About T{n}." for n in range(1, 5)]
    assert result.unanswered == ()
    assert sum(result.failures.values()) == 1


def test_a_cut_answer_is_asked_for_in_halves() -> None:
    generator = ScriptedGenerator([CUT, CUT, about_each, about_each], then=about_each)
    result = asked(generator, FOUR)
    assert [labels(request) for request in generator.requests] == [
        ["T1", "T2", "T3", "T4"], ["T1", "T2"], ["T1"], ["T2"], ["T3", "T4"],
    ]  # fmt: skip
    assert len({request.user for request in generator.requests}) == 5  # never the same again
    assert [draft.causes for draft in result.drafts] == [(), (), (), ("D3",)]
    assert (result.calls, result.retries, result.failures) == (5, 4, {"cut": 2})


def test_a_cut_answer_about_one_turn_gets_more_room_once() -> None:
    generator = ScriptedGenerator(then=CUT)
    result = asked(generator, [CANOE], answer=100, longest_answer=300)
    assert [request.max_tokens for request in generator.requests] == [100, 300]
    assert [request.temperature for request in generator.requests] == [0.0, 0.3]
    assert (result.drafts, result.unanswered, result.failures) == ((), ("T1",), {"cut": 2})


def test_nonsense_is_asked_for_twice_more_and_warmer() -> None:
    generator = ScriptedGenerator(["what?", "I'm sorry"], then="[1, 2]")
    result = asked(generator)
    assert [request.temperature for request in generator.requests] == [0.0, 0.3, 0.6]
    assert result.retries == NONSENSE == 2
    assert result.failures == {"prose": 2, "unusable": 1}
    assert result.dropped == {"record": 2}
    assert (result.drafts, result.unanswered, result.stopped) == ((), ("T1", "T2"), None)


def test_what_is_declined_is_narrowed_down() -> None:
    def declines(request: Generation) -> str | Generated:
        if "T3" in labels(request):
            return Generated(text="I can't.", finish="refusal")
        return about_each(request)

    generator = ScriptedGenerator(then=declines)
    result = asked(generator, FOUR)
    assert [draft.content for draft in result.drafts] == ["About T1.", "About T2.", "About T4."]
    assert (result.unanswered, result.calls) == (("T3",), 5)


def test_an_error_ends_the_asking_and_keeps_what_there_is() -> None:
    error = GenerationError("HTTP 429", retryable=True, retry_after=30.0)
    generator = ScriptedGenerator([CUT, about_each, error])
    result = asked(generator, FOUR)
    assert [draft.content for draft in result.drafts] == ["About T1.", "About T2."]
    assert (result.stopped, result.error, result.unanswered) == ("error", error, ("T3", "T4"))
    with pytest.raises(ConfigurationError):
        asked(ScriptedGenerator([ConfigurationError("the key is refused")]))


def test_invented_labels_of_other_calls_are_dropped() -> None:
    """A label that was offered, but not in this call, is as foreign as any other."""
    first = reply(record(quotes=[{"turn": "T3", "text": "Sentence number 3."}]))
    generator = ScriptedGenerator([CUT, first, first, first], then=about_each)
    result = asked(generator, FOUR)
    assert [draft.content for draft in result.drafts] == ["About T3.", "About T4."]
    assert result.dropped == {"evidence": 3, "label": 3}
    assert result.unanswered == ("T1", "T2")


def test_many_turns_are_asked_about_in_several_requests() -> None:
    generator = ScriptedGenerator(then=about_each)
    result = asked(generator, FOUR, turns=15)
    assert [labels(request) for request in generator.requests] == [["T1", "T2"], ["T3", "T4"]]
    assert [draft.causes for draft in result.drafts] == [(), ("D1",), (), ("D3",)]
    assert (result.retries, result.calls) == (0, 2)


def test_long_turns_are_cut_by_whole_sentences() -> None:
    long = turn("T1", "The first sentence. " + "And then some more words. " * 500)
    generator = ScriptedGenerator(['{"records": []}'])
    asked(generator, [long], turn=60)
    line = json.loads(generator.requests[0].user.splitlines()[1])
    assert line["text"].startswith("The first sentence. And then some more words.")
    assert line["text"].endswith("And then some more words.")
    assert line["text"].count(".") + line["sentences_left_out"] == 501


@pytest.mark.parametrize(
    "budget",
    [Budget(calls=2), Budget(tokens=2_500), Budget(cost=0.003, input_price=1, output_price=2)],
)
def test_a_budget_is_never_exceeded(budget: Budget) -> None:
    answer = Generated(text='{"records": []}', input_tokens=1_000, output_tokens=20)
    result = asked(ScriptedGenerator(then=answer), FOUR, budget, turns=5, answer=300)
    assert result.stopped == "budget"
    assert 0 < result.calls <= 2
    assert result.unanswered[-1] == "T4"
    assert len(result.unanswered) == 4 - result.calls
    assert budget.spent == result.spent
    assert budget.spent.cost <= 0.003
    assert budget.spent.input_tokens + budget.spent.output_tokens <= 2_500


def test_no_call_without_means() -> None:
    result = asked(ScriptedGenerator(), TURNS, Budget(calls=0))
    assert (result.stopped, result.calls, result.unanswered) == ("budget", 0, ("T1", "T2"))


def test_what_calls_are_counted_as() -> None:
    budget = Budget(input_price=2.0, output_price=10.0)
    held = budget.hold(1_000, 500)
    assert held is not None
    taken = budget.settle(held, Generated(text="x", input_tokens=900, output_tokens=100))
    assert (taken.calls, taken.input_tokens, taken.output_tokens) == (1, 900, 100)
    assert taken.cost == pytest.approx(0.0028)
    silent = budget.hold(1_000, 500)
    assert silent is not None
    assert budget.settle(silent, Generated(text="x")).output_tokens == 500  # the most it may be
    failed = budget.hold(1_000, 500)
    assert failed is not None
    taken = budget.settle(failed, None)
    assert (taken.calls, taken.input_tokens, taken.output_tokens) == (1, 1_000, 0)
    assert taken.cost == pytest.approx(0.002)
    assert budget.spent.calls == 3
    assert budget.spent.input_tokens == 2_900


def test_calls_at_once_share_a_budget() -> None:
    budget = Budget(calls=5)
    together = threading.Barrier(8)
    results: list[Asked] = []

    def one() -> None:
        together.wait(5)
        results.append(asked(ScriptedGenerator(then=GOOD, delay=0.01), [CANOE], budget))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.spent.calls == 5
    assert sorted(result.stopped or "" for result in results) == [""] * 5 + ["budget"] * 3
