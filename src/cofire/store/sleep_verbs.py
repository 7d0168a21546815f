"""The store's verbs for consolidation; part of `Store`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cofire.store import archiving, claims, deriving, ledger, planning, reading
from cofire.store.claims import Claim, Held
from cofire.store.deriving import Filed
from cofire.store.planning import Applied, Plan
from cofire.store.records import DerivedRow, NewDerived, SpaceInfo, StepRow
from cofire.store.session import Scope, Session, of_space
from cofire.store.transacting import Transacting


class SleepVerbs(Transacting):
    """What `Store` can do with what was derived. Each verb is one transaction."""

    def apply(
        self,
        space: SpaceInfo,
        plan: Plan,
        step: StepRow | None = None,
        *,
        before: StepRow | None = None,
        claim: Claim | None = None,
        now: int,
    ) -> Applied:
        """Does what a step of consolidation wants, and notes how far it came, as one
        transaction; see `planning.apply`. With a `claim`, which this renews, nothing is done after
        another worker took the space over: ClaimLostError."""

        def work(session: Session, space: SpaceInfo) -> Applied:
            return claims.under(
                session, space, claim,
                lambda: planning.apply(session, space, plan, step, before=before, now=now),
            )  # fmt: skip

        applied = self._write(work, space)
        if applied.retired:
            self._backend.purge_residue()
        return applied

    def told_since(
        self,
        space: SpaceInfo,
        kinds: Sequence[str],
        *,
        after: int,
        since: int,
        limit: int = 1_000,
    ) -> list[int]:
        """Numbers of memories that somebody told or changed lately; see `reading.told_since`."""
        return self._read(reading.told_since, space, kinds, after=after, since=since, limit=limit)

    # Derived memories

    def file_derived(self, space: SpaceInfo, new: Sequence[NewDerived], *, now: int) -> Filed:
        """Stores what was derived; see `deriving.file_derived`."""
        if not new:
            return Filed(numbers=(), revision=space.revision)
        return self._write(deriving.file_derived, space, new, now=now)

    def set_sources(
        self,
        space: SpaceInfo,
        number: int,
        spans: Sequence[tuple[int, int, int, int]],
        *,
        state: str = "current",
        confidence: float | None,
        reasons: Sequence[str] = (),
        links_to: Sequence[tuple[int, str, float]] = (),
        now: int,
    ) -> int:
        """Gives a derived memory other sources and a state; see `deriving.set_sources`."""
        return self._write(
            deriving.set_sources,
            space,
            number,
            spans,
            state=state,
            confidence=confidence,
            reasons=reasons,
            links_to=links_to,
            now=now,
        )

    def derived(self, space: SpaceInfo, numbers: Sequence[int] | None = None) -> list[DerivedRow]:
        """Derived memories by number (None: all), whatever their state."""
        return self._read(deriving.read_derived, space, numbers)

    def derived_about(self, space: SpaceInfo, subjects: Collection[str]) -> list[DerivedRow]:
        """The derived memories about any of these subjects, whatever their state."""
        return self._read(deriving.derived_of_subjects, space, subjects)

    def closed_after(self, space: SpaceInfo, moment: int) -> tuple[int, ...]:
        """The derived memories whose end of validity was recorded after `moment` (µs)."""
        here = {"tenant": space.tenant_id, "space": space.space_id}
        rows = self._backend.read(
            of_space(space),
            lambda session: session.all(deriving.CLOSED_AFTER, moment=moment, **here),
        )
        return tuple(row[0] for row in rows)

    def resting_on(self, space: SpaceInfo, numbers: Collection[int]) -> dict[int, set[int]]:
        """The derived memories that rest on any of these, each with which of them."""
        here = {"tenant": space.tenant_id, "space": space.space_id}
        return self._backend.read(
            of_space(space), lambda session: deriving.resting_on(session, here, numbers)
        )

    # Archiving

    def archive(self, space: SpaceInfo, numbers: Sequence[int], *, now: int) -> list[int]:
        """Takes memories out of the active graph, reversibly; returns those it did that to."""
        return self._write(archiving.archive, space, numbers, now=now)

    def restore_archived(self, space: SpaceInfo, numbers: Sequence[int]) -> list[int]:
        """Brings archived memories back; see `archiving.restore`."""
        return self._write(archiving.restore, space, numbers)

    def set_importance(self, space: SpaceInfo, wanted: Sequence[tuple[int, int]]) -> int:
        """Gives memories (number, importance) another importance; returns the revision."""
        return self._write(archiving.set_importance, space, wanted)

    # The ledger

    def steps(self, space: SpaceInfo) -> dict[str, StepRow]:
        """How far each step of consolidation has come."""
        return self._read(ledger.read_steps, space)

    def put_step(self, space: SpaceInfo, step: StepRow) -> None:
        """Notes how far a step has come."""
        self._write(ledger.put_step, space, step)

    def add_report(
        self,
        space: SpaceInfo,
        report: Mapping[str, Any],
        *,
        started: int,
        ended: int,
        claim: Claim | None = None,
    ) -> int:
        """Keeps the report of a consolidation; returns its number. `claim` as in `apply`."""

        def work(session: Session, space: SpaceInfo) -> int:
            return claims.under(
                session, space, claim,
                lambda: ledger.add_report(session, space, report, started=started, ended=ended),
            )  # fmt: skip

        return self._write(work, space)

    def reports(self, space: SpaceInfo, limit: int = 30) -> list[dict[str, Any]]:
        """The reports of the last consolidations, newest first."""
        return self._read(ledger.reports, space, limit)

    # Claims

    def claim(self, space: SpaceInfo, holder: str, seconds: float) -> Claim | Held:
        """Claims a space for a worker, for `seconds`, or says who else has it; see `claims.claim`.
        Raises InputError."""
        standing = self.held(space)
        if standing is not None and standing.holder != holder:
            return standing  # without waiting for what the holder is writing
        return self._write(claims.claim, space, holder, seconds)

    def held(self, space: SpaceInfo) -> Held | None:
        """Who has a claim of the space that has not expired; None: nobody."""
        return self._read(claims.held, space)

    def renew_claim(self, space: SpaceInfo, claim: Claim) -> None:
        """Makes a claim last its lease from now on. Raises ClaimLostError."""
        # Not as the space's only writer: a renewal waits for no other writer of the space.
        self._backend.write(
            Scope(tenant=space.tenant_id), lambda session: claims.renew(session, space, claim)
        )

    def release_claim(self, space: SpaceInfo, claim: Claim) -> None:
        """Ends a claim, if it is still held."""
        self._backend.write(
            Scope(tenant=space.tenant_id), lambda session: claims.release(session, space, claim)
        )
