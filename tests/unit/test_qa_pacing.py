"""Calls within limits: in every window of a minute, through pauses, budgets and failures."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation.budgets import Budget
from cofire.errors import ConfigurationError, GenerationError, PromptTooLongError
from cofire.evaluation.qa.pacing import MINUTE, PacedGenerator, Pacer, Stop, StoppedError
from cofire.models import Generated, Generation

REQUEST = Generation(system="You answer.", user="What is it?", max_tokens=10)
Step = Generated | Exception


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


class Scripted:
    """Gives one step after another; the last one stays."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.calls = 0

    def generate(self, request: Generation, /) -> Generated:
        self.calls += 1
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        pass


GOOD = Generated(text="a boat", input_tokens=20, output_tokens=3)


def paced(
    inner: Scripted, clock: Clock, *, stop: Stop | None = None, budget: Budget | None = None
) -> PacedGenerator:
    pacer = Pacer(clock=clock, wait=clock.wait)
    return PacedGenerator(inner, pacer=pacer, budget=budget or Budget(), stop=stop or Stop())


@given(
    requests=st.none() | st.integers(1, 5),
    tokens=st.none() | st.integers(1, 300),
    calls=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400), st.floats(0, 30))),
)
def test_no_window_of_a_minute_has_more_than_the_limits(
    requests: int | None, tokens: int | None, calls: list[tuple[int, int, float]]
) -> None:
    clock = Clock()
    pacer = Pacer(requests=requests, tokens=tokens, clock=clock, wait=clock.wait)
    sent: list[tuple[float, int]] = []
    for estimated, counted, idle in calls:
        clock.now += idle
        call = pacer.acquire(estimated)
        taken = min(estimated, counted)
        pacer.settle(call, taken)
        sent.append((clock.now, taken))
    for start, _ in sent:
        window = [count for when, count in sent if start <= when < start + MINUTE]
        assert requests is None or len(window) <= requests
        assert tokens is None or sum(window) <= max(tokens, *window)


def test_a_call_larger_than_the_limit_of_a_minute_waits_for_a_minute_of_its_own() -> None:
    clock = Clock()
    pacer = Pacer(tokens=100, clock=clock, wait=clock.wait)
    pacer.acquire(60)
    pacer.acquire(500)
    assert clock.now == MINUTE


def test_tokens_that_were_not_taken_are_given_back() -> None:
    clock = Clock()
    pacer = Pacer(tokens=100, clock=clock, wait=clock.wait)
    pacer.settle(pacer.acquire(90), 10)
    pacer.acquire(90)
    assert clock.now == 0.0


def test_everybody_waits_where_the_endpoint_asks_for_a_pause() -> None:
    clock = Clock()
    limited = GenerationError("slow down", retryable=True, retry_after=17.0)
    pacer = Pacer(clock=clock, wait=clock.wait)
    one = PacedGenerator(Scripted(limited, GOOD), pacer=pacer, budget=Budget(), stop=Stop())
    reply = one.generate(REQUEST)
    assert (reply.text, reply.attempts, clock.now) == ("a boat", 2, 17.0)
    pacer.pause(5.0)
    other = PacedGenerator(Scripted(GOOD), pacer=pacer, budget=Budget(), stop=Stop())
    other.generate(REQUEST)
    assert clock.now == 22.0


def test_pauses_double_where_the_endpoint_says_nothing() -> None:
    clock = Clock()
    lost = GenerationError("no connection", retryable=True)
    inner = Scripted(lost)
    with pytest.raises(GenerationError):
        paced(inner, clock).generate(REQUEST)
    assert inner.calls == 4
    assert clock.waited == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("error", "calls"),
    [(GenerationError("no such parameter"), 1), (PromptTooLongError("too long"), 1)],
)
def test_what_would_fail_again_is_not_tried_again(error: GenerationError, calls: int) -> None:
    inner = Scripted(error)
    with pytest.raises(type(error)):
        paced(inner, Clock()).generate(REQUEST)
    assert inner.calls == calls


def stopped_by(*steps: Step, times: int = 1, **given: Budget) -> str:
    stop = Stop()
    generator = paced(Scripted(*steps), Clock(), stop=stop, **given)
    for _ in range(times - 1):
        with pytest.raises(GenerationError):
            generator.generate(REQUEST)
    with pytest.raises((StoppedError, GenerationError)):
        generator.generate(REQUEST)
    assert stop.ended
    with pytest.raises(StoppedError):
        generator.generate(REQUEST)
    return stop.reason


def test_a_refused_key_ends_the_run() -> None:
    assert "key" in stopped_by(ConfigurationError("refuses the key (HTTP 401)"))


def test_many_failures_in_a_row_end_the_run() -> None:
    reason = stopped_by(GenerationError("the server is gone"), times=10)
    assert "10 calls failed in a row" in reason
    assert "the server is gone" in reason


def test_failures_that_are_not_in_a_row_do_not() -> None:
    lost = GenerationError("lost")
    steps: list[Step] = [lost, lost, GOOD] * 10
    stop = Stop()
    generator = paced(Scripted(*steps), Clock(), stop=stop)
    for step in steps:
        if step is lost:
            with pytest.raises(GenerationError):
                generator.generate(REQUEST)
        else:
            generator.generate(REQUEST)
    assert not stop.ended


def test_a_pause_of_hours_ends_the_run() -> None:
    reason = stopped_by(GenerationError("daily limit", retryable=True, retry_after=7200.0))
    assert "daily limit" in reason


@pytest.mark.parametrize(
    "budget",
    [Budget(calls=1), Budget(tokens=40), Budget(cost=0.00005, input_price=1.0, output_price=1.0)],
)
def test_a_budget_that_is_used_up_ends_the_run(budget: Budget) -> None:
    stop = Stop()
    generator = paced(Scripted(GOOD), Clock(), stop=stop, budget=budget)
    while not stop.ended:
        try:
            generator.generate(REQUEST)
        except StoppedError:
            break
    assert stop.reason == "the budget is used up"
    spent = budget.spent
    assert 1 <= spent.calls <= 2
    assert spent.input_tokens + spent.output_tokens <= 50


def test_whoever_waits_is_let_go_when_the_run_ends() -> None:
    stop = Stop()
    pacer = Pacer(requests=1, wait=stop.wait)
    generator = PacedGenerator(Scripted(GOOD), pacer=pacer, budget=Budget(), stop=stop)
    generator.generate(REQUEST)
    ended: list[bool] = []

    def waits(call: Callable[[Generation], Generated]) -> None:
        try:
            call(REQUEST)
        except StoppedError:
            ended.append(True)

    thread = threading.Thread(target=waits, args=(generator.generate,))
    thread.start()
    stop.because("somebody pressed Ctrl-C")
    thread.join(5)
    assert ended == [True]
