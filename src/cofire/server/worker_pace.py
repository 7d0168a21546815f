"""When a worker consolidates a space, and when it tries again after a failure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cofire.errors import InputError
from cofire.store.serving_records import JobRecord

if TYPE_CHECKING:
    from cofire.settings import Settings

SECOND_US = 1_000_000
POLL = 30.0
FAR_US = 86_400 * SECOND_US
"""As `store.jobs.FAR_US`: no clock that is right notes a time so far ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Times in seconds, all above 0.

    every: between consolidations of a space that changed (Atamaia's daemon: an hour). idle: of one
    that did not. attempts: failures in a row after which a space is given up, ≥ 1. jitter: a wait
    is longer by up to this part of itself, in [0, 1], so that workers that failed together do not
    come back together. first, factor, longest: how long a space waits after its first failure, by
    how much that grows with each, up to when. With the defaults the eighth failure comes after half
    a day. poll: how often a worker that has nothing to do looks.
    """

    every: float = 3_600.0
    idle: float = 86_400.0
    attempts: int = 8
    jitter: float = 0.1
    first: float = 60.0
    factor: float = 3.0
    longest: float = 21_600.0
    poll: float = POLL

    def __post_init__(self) -> None:
        """Raises InputError for what is out of range."""
        for name in ("every", "idle", "first", "longest", "poll", "attempts"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.jitter <= 1 or not self.factor >= 1:
            raise InputError("jitter is in [0, 1], and factor at least 1")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the settings say."""
        return cls(
            every=settings.worker_every,
            idle=settings.worker_idle,
            attempts=settings.worker_attempts,
            jitter=settings.worker_jitter,
            poll=min(POLL, settings.worker_every / 4),
        )

    @property
    def every_us(self) -> int:
        return round(self.every * SECOND_US)

    @property
    def idle_us(self) -> int:
        return round(self.idle * SECOND_US)

    def retry_after(self, failures: int, asked: float | None = None) -> float:
        """Seconds until a space is tried again that failed so often in a row (≥ 1); `asked`: what
        an endpoint asks for at least."""
        grown = self.factor ** min(failures - 1, 64)
        return self.jittered(min(max(self.first * grown, asked or 0.0), self.longest))

    def jittered(self, seconds: float) -> float:
        """At least as long as that, and longer by `jitter` of it at most."""
        return seconds * (1 + self.jitter * random.random())  # noqa: S311 - no secret

    def is_due(self, job: JobRecord | None, revision: int, now: int) -> bool:
        """Whether a space at `revision` is due at `now` (µs), as `Store.due_spaces` has it: asked
        again once the space is claimed, because another worker may have seen to it meanwhile."""
        if job is None:
            return True
        if job.dead is not None or now < (job.next_at or 0) <= now + FAR_US:
            return False
        if job.ran is None or job.ran > now + FAR_US:
            return True
        wait = min(self.every_us, self.idle_us) if revision > job.revision else self.idle_us
        return job.ran + wait <= now
