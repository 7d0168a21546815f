"""When a worker looks, and how long it waits after a failure."""

from __future__ import annotations

from typing import Any

import pytest

from cofire.errors import InputError
from cofire.server.worker_pace import FAR_US, SECOND_US, Pace
from cofire.settings import load_settings
from cofire.store.serving_records import JobRecord
from cofire.types import SpaceRef

NOW = 1_800_000_000 * SECOND_US
HOUR = 3_600 * SECOND_US
PACE = Pace(jitter=0.0)


def job(
    ran: int | None, *, revision: int = 5, next_at: int | None = None, dead: int | None = None
) -> JobRecord:
    return JobRecord(1, 1, SpaceRef(), revision, ran, 0, next_at, dead, None)


def test_waits_grow_up_to_a_bound_and_are_only_ever_lengthened() -> None:
    waits = [PACE.retry_after(failures) for failures in range(1, 9)]
    assert waits == [60, 180, 540, 1620, 4860, 14580, 21600, 21600]
    assert sum(waits[:7]) > 12 * 3600, "a model may be away for half a day"
    jittered = Pace(jitter=0.5)
    assert all(60 <= jittered.retry_after(1) <= 90 for _ in range(100))
    assert len({jittered.retry_after(1) for _ in range(10)}) > 1
    assert PACE.retry_after(10**9) == 21600


@pytest.mark.parametrize(("asked", "wait"), [(None, 60), (5, 60), (300, 300), (1e9, 21600)])
def test_an_endpoint_may_ask_for_a_longer_wait_within_bounds(asked: float, wait: float) -> None:
    assert PACE.retry_after(1, asked) == wait


@pytest.mark.parametrize(
    ("noted", "revision", "due"),
    [
        (None, 5, True),
        (job(None), 5, True),
        (job(NOW - HOUR), 6, True),
        (job(NOW - HOUR + 1), 6, False),
        (job(NOW - HOUR), 5, False),
        (job(NOW - 24 * HOUR), 5, True),
        (job(NOW - 24 * HOUR, next_at=NOW + 1), 6, False),
        (job(NOW - 24 * HOUR, next_at=NOW), 6, True),
        (job(NOW - 24 * HOUR, dead=NOW - 1), 6, False),
        (job(NOW + 1_000 * FAR_US), 5, True),
        (job(NOW - 24 * HOUR, next_at=NOW + 1_000 * FAR_US), 6, True),
    ],
)
def test_what_is_due(noted: JobRecord | None, revision: int, due: bool) -> None:
    assert PACE.is_due(noted, revision, NOW) is due


def test_the_settings_choose_it() -> None:
    pace = Pace.of(load_settings(worker_every=40.0, worker_idle=50.0, worker_attempts=3))
    assert (pace.every, pace.idle, pace.attempts, pace.jitter, pace.poll) == (40, 50, 3, 0.1, 10)
    assert Pace.of(load_settings()).poll == 30


@pytest.mark.parametrize("wrong", [{"every": 0}, {"attempts": 0}, {"jitter": 2}, {"factor": 0.5}])
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Pace(**wrong)
