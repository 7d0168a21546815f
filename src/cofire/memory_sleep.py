"""The verbs of sleep; part of `Memory`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cofire import sleeping
from cofire.arguments import as_cost, as_count, as_ids, as_kinds, as_moment, as_names
from cofire.consolidation.night import SLEEP, SleepRule
from cofire.models import Generator
from cofire.types import (
    Kind,
    SemanticRecord,
    Shape,
    SleepReport,
    StepReport,
    TimeLike,
)
from cofire.workings import Workings


class SleepVerbs:
    """Consolidation and what it made."""

    _workings: Workings

    def consolidate(
        self,
        steps: Sequence[str] | str = (),
        *,
        rule: SleepRule = SLEEP,
        generator: Generator | str | None = None,
        most_calls: int | None = None,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        now: TimeLike | None = None,
        told: Callable[[StepReport], None] | None = None,
    ) -> tuple[SleepReport, ...]:
        """Make what is remembered smaller, more general and still true, space by space.

        Runs every step in order, or those named. A step applies once per period however often it
        is called, works on what changed since its last run, and commits by itself: whatever stops
        it, nothing is lost and nothing is done twice. `told` hears of each step when it is done.
        `now` replaces the clock. The reports are kept in the store (`reports`), without content.
        A step that fails (`SleepReport.failed`) keeps no other from running and goes on next time.
        A space that another worker is consolidating is left to it (`SleepReport.claimed_by`).

        `generator` is a language model ("openai:MODEL", "local", "local:FILE", "none", or
        an object of your own; default: what the settings say, which is none): with one, facts,
        traits, persona, procedures and concepts are distilled from turns; without, by rules alone.
        It is asked no more than `most_calls` times, for no more than `most_tokens` or `most_cost`
        (by the prices in the settings).

        Raises InputError for an unknown step, ConfigurationError, StoreError.
        """
        return sleeping.consolidate(
            self._workings,
            only=as_names("steps", steps), rule=rule, generator=generator,
            limits=sleeping.Limits(
                calls=_limit("most_calls", most_calls),
                tokens=_limit("most_tokens", most_tokens),
                cost=None if most_cost is None else as_cost(most_cost),
            ),
            now=as_moment(now), told=told,
        )  # fmt: skip

    def records(
        self, subject: str | None = None, *, kinds: Sequence[Kind | str] | Kind | str = ()
    ) -> tuple[SemanticRecord, ...]:
        """The semantic records (of one subject), oldest first, those that no longer hold included
        (`valid_to`). Concepts, gists, words and shapes only if `kinds` names them:
        `records("Ada", kinds="concept")`."""
        return sleeping.records(
            self._workings, states=("current",), subject=subject, kinds=_kinds(kinds)
        )

    def quarantine(self) -> tuple[SemanticRecord, ...]:
        """The records that are not trusted and never recalled, with the reasons: they failed
        verification, or a part of their evidence was edited or deleted."""
        return sleeping.records(
            self._workings, states=("quarantined", "stale"), subject=None, kinds=_kinds(())
        )

    def shapes(self) -> tuple[Shape, ...]:
        """What is left of what was archived by consolidation, oldest first."""
        return sleeping.shapes(self._workings)

    def archive(self, ids: Sequence[str] | str, *, now: TimeLike | None = None) -> int:
        """Take memories out of recall without deleting them; returns how many were not archived
        before. `unarchive` brings them back. Raises NotFoundError, and then nothing is done."""
        return sleeping.archive(self._workings, as_ids(ids), as_moment(now))

    def unarchive(self, ids: Sequence[str] | str) -> int:
        """Bring archived memories back as they were; for a shape, all that it stands for. Returns
        how many. Raises NotFoundError, and InputError for a record that is not trusted."""
        return sleeping.unarchive(self._workings, as_ids(ids))

    def reports(self, limit: int = 30) -> tuple[SleepReport, ...]:
        """What the last consolidations did, newest first."""
        return sleeping.reports(self._workings, as_count("limit", limit))


_UNTOLD = (Kind.SHAPE, Kind.CUE, Kind.GIST, Kind.WORD, Kind.CONCEPT)
"""Kinds that are no records unless they are asked for."""


def _limit(name: str, value: int | None) -> int | None:
    return None if value is None else as_count(name, value, least=0)


def _kinds(kinds: Sequence[Kind | str] | Kind | str) -> tuple[Kind, ...]:
    return as_kinds(kinds) or tuple(kind for kind in Kind if kind not in _UNTOLD)
