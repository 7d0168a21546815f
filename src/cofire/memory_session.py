"""The verbs of a session's start and end, and of what is being worked on; part of `Memory`."""

from __future__ import annotations

from collections.abc import Sequence

from cofire import hydrating
from cofire import threads as working
from cofire.arguments import (
    as_count,
    as_kinds,
    as_moment,
    as_name,
    as_names,
    as_question,
)
from cofire.errors import InputError
from cofire.lifecycle import OPEN, WORKING
from cofire.types import Checkpoint, Hydration, Kind, Thread, ThreadState, TimeLike
from cofire.workings import Workings


class SessionVerbs:
    """What a session opens with, what it leaves open, and what became of it."""

    _workings: Workings

    def hydrate(
        self,
        cue: str | None = None,
        *,
        token_budget: int = 1500,
        now: TimeLike | None = None,
        seed: int | None = None,
        untrusted: bool = False,
    ) -> Hydration:
        """A session's opening context: what an agent should have in mind before the first word.

        In this order, nothing twice: what is pinned (at most 0.30 of the budget), traits and
        persona that hold now (0.15), how the last session ended with the goals and threads that are
        open (0.20), what was said last (0.10; without a cue 0.25), what bears on the opening `cue`
        (0.15), what links of more than 0.7 join with some of it (0.05), and one or two old memories
        that come up by chance, the more likely the stronger their links (0.05). What one section
        leaves of its share the later ones may use. What comes from outside is left out unless
        `untrusted`, and then stands last, in a fence. Only whole memories, and `token_budget` is
        kept: `Hydration.left_out` says what did not fit.

        It is recorded as a recall: say by `feedback(hydration, used=[…])` what helped. To have been
        shown is no use. Where a memory that came up by chance was used, its strongest links each
        get a weak signal, too (Atamaia, section 6.4). `seed` makes the chance repeatable; the one
        that was drawn is in `Hydration.seed`. Raises InputError, StoreError.
        """
        budget = as_count("token_budget", token_budget)
        chosen = None if seed is None else as_count("seed", seed, least=0)
        told = "" if cue is None else as_question("an opening cue", cue)
        workings = self._workings
        asked = workings.encoder.clean(told).strip() or None
        moment = as_moment(now)
        with workings.embedding.shared():
            hydration, records = workings.spaces.lasting(
                lambda: hydrating.hydrate(
                    workings,
                    asked,
                    token_budget=budget,
                    now=moment,
                    seed=chosen,
                    untrusted=bool(untrusted),
                )
            )
        workings.log.add(records)
        return hydration

    def checkpoint(
        self,
        summary: str | None = None,
        *,
        goals: Sequence[str] | str = (),
        threads: Sequence[str] | str = (),
        session: str | None = None,
        project: str | None = None,
        now: TimeLike | None = None,
    ) -> Checkpoint:
        """Capture at a session's end what is open, so that `hydrate` gives it back at the next
        one's start.

        `summary` is kept as a memory (without one, only that the session ended, and with how much
        open). Each of `goals` and `threads` is opened, or, if there is one of the same words,
        kept open. What was open before stays so. Raises InputError, StoreError.
        """
        told = None if summary is None else as_name("summary", summary)
        return working.checkpoint(
            self._workings, told,
            goals=_texts("goals", goals), threads=_texts("threads", threads),
            session=None if session is None else as_name("session", session),
            project=project, now=as_moment(now),
        )  # fmt: skip

    def threads(
        self,
        state: Sequence[ThreadState | str] | ThreadState | str = OPEN,
        *,
        kinds: Sequence[Kind | str] | Kind | str = (),
        now: TimeLike | None = None,
    ) -> tuple[Thread, ...]:
        """Goals and threads in these states (default: those that are open), the last one touched
        first. `remember(…, kind="goal")` opens one, and so does `kind="thread"`."""
        wanted = as_kinds(kinds) or WORKING
        if not set(wanted) <= set(WORKING):
            raise InputError("goals and threads alone have a state: kinds are goal, thread or both")
        return working.threads(self._workings, _states(state), wanted, as_moment(now))

    def advance(self, id: str, note: str, *, now: TimeLike | None = None) -> Thread:
        """Note how far a goal or thread has come. One that was closed or stale is open again. The
        text keeps the latest note, `history` the former ones. Raises NotFoundError, InputError."""
        said = as_name("note", note)
        return working.change(self._workings, id, ThreadState.ADVANCED, said, as_moment(now))

    def conclude(
        self, id: str, outcome: str | None = None, *, now: TimeLike | None = None
    ) -> Thread:
        """Close a goal or thread, with what came of it. It is still recalled, but no session opens
        with it. Raises NotFoundError, InputError."""
        said = None if outcome is None else as_name("outcome", outcome)
        return working.change(self._workings, id, ThreadState.CLOSED, said, as_moment(now))


def _texts(name: str, given: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(as_name(f"each of {name}", text) for text in as_names(name, given))


def _states(given: Sequence[ThreadState | str] | ThreadState | str) -> frozenset[ThreadState]:
    try:
        states = frozenset(ThreadState(state) for state in as_names("state", given))
    except ValueError as exc:
        raise InputError(f"{exc}; use {', '.join(ThreadState)}") from exc
    if not states:
        raise InputError(f"name a state: {', '.join(ThreadState)}")
    return states
