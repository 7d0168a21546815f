"""Turns of a language model: how many there are, whose they are, and who is told to come again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.errors import GenerationError, LimitedError
from cofire.server.model_turns import WAITING, ModelTurns
from cofire.testing import ScriptedGenerator


def held(models: ModelTurns, who: str | None, over: asyncio.Event) -> Coroutine[Any, Any, None]:
    async def hold() -> None:
        async with models.turn(who):
            await over.wait()

    return hold()


async def settled(tasks: int = 20) -> None:
    for _ in range(tasks):
        await asyncio.sleep(0)


def test_one_caller_leaves_turns_and_places_to_others() -> None:
    async def run() -> None:
        models = ModelTurns(lambda: None, turns=4, patience=5.0)
        over = asyncio.Event()
        mine = [asyncio.create_task(held(models, "me", over)) for _ in range(3 + 12)]
        await settled()
        assert (models.running, models.waiting) == (3, 12)
        with pytest.raises(LimitedError) as caught:
            await held(models, "me", over)
        assert (caught.value.retry_after, caught.value.overloaded) == (5.0, False)
        other = asyncio.create_task(held(models, "you", over))
        await settled()
        assert models.running == 4
        over.set()
        await asyncio.gather(other, *mine)
        assert (models.running, models.waiting) == (0, 0)

    asyncio.run(run())


def test_without_keys_there_are_no_others() -> None:
    async def run() -> None:
        models = ModelTurns(lambda: None, turns=2, patience=0.01)
        over = asyncio.Event()
        tasks = [asyncio.create_task(held(models, None, over)) for _ in range(2)]
        await settled()
        with pytest.raises(LimitedError):
            await held(models, None, over)
        waiting = [asyncio.create_task(held(models, None, over)) for _ in range(2 * WAITING)]
        await settled()
        assert models.waiting == 2 * WAITING
        with pytest.raises(LimitedError):
            await held(models, None, over)
        over.set()
        await asyncio.gather(*tasks)
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (models.running, models.waiting) == (0, 0)

    asyncio.run(run())


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.booleans()), max_size=30),
)
def test_whoever_goes_and_whenever_no_turn_is_lost(
    turns: int, steps: list[tuple[str | None, bool]]
) -> None:
    """Some give up while they wait, in the very moment too in which a turn is theirs."""

    async def run() -> None:
        models = ModelTurns(lambda: None, turns=turns, patience=30.0)
        events: list[asyncio.Event] = []
        tasks: list[asyncio.Task[None]] = []
        for number, (who, goes) in enumerate(steps):
            events.append(asyncio.Event())
            tasks.append(asyncio.create_task(held(models, who, events[-1])))
            await settled(3)
            assert models.running <= turns
            if goes and number:
                events[number // 2].set()
                tasks[number - 1].cancel()
        for event in events:
            event.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(
            one is None or isinstance(one, LimitedError | asyncio.CancelledError) for one in ended
        )
        assert (models.running, models.waiting) == (0, 0)

    asyncio.run(run())


def test_work_that_nobody_waits_for_keeps_its_turn_until_it_ends() -> None:
    async def run() -> None:
        models = ModelTurns(lambda: None, turns=1, seconds=0.05)
        told: list[bool] = []

        def work(stopped: threading.Event) -> None:
            told.append(stopped.wait(5))
            threading.Event().wait(0.05)

        async def turn(work: Callable[[threading.Event], Any]) -> Any:
            async with models.turn("me") as turn:
                return await turn.run(work)

        with pytest.raises(GenerationError, match="took longer") as caught:
            await turn(work)
        assert caught.value.retryable
        assert models.running == 1
        assert await turn(lambda stopped: 7) == 7
        assert told == [True]
        with pytest.raises(ZeroDivisionError):
            await turn(lambda stopped: 1 // 0)
        assert models.running == 0

    asyncio.run(run())


def test_the_model_is_made_once_and_closed() -> None:
    made = ScriptedGenerator(), ScriptedGenerator()
    left = list(made)
    models = ModelTurns(left.pop)
    models.close()
    assert left == list(made)
    assert models.model() is models.model() is made[1]
    models.close()
    assert (made[0].closed, made[1].closed) == (0, 1)
