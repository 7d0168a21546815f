"""What forgetting reads of a space, as verbs; part of `Store`. They only read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cofire.store import fading
from cofire.store.folding import Pair
from cofire.store.records import DerivedRow, EventRecord, SpaceInfo
from cofire.store.transacting import Transacting


class FadingVerbs(Transacting):
    """What forgetting looks at. Each verb is one transaction."""

    def accesses(self, space: SpaceInfo) -> list[tuple[int, int, int]]:
        """(number, how often, last at µs) of every memory that was ever accessed."""
        return self._read(fading.read_accesses, space)

    def idle_links(
        self, space: SpaceInfo, before: int, *, now: int
    ) -> list[tuple[int, int, float, int]]:
        """Learned links that nothing moved since `before`; see `fading.idle_links`."""
        return self._read(fading.idle_links, space, before, now)

    def strengths_of(
        self, space: SpaceInfo, numbers: Iterable[int], *, now: int
    ) -> dict[Pair, float]:
        """The strength now of every learned link of these memories, by pair."""
        return self._read(fading.strengths_of, space, list(numbers), now)

    def recorded_before(self, space: SpaceInfo, position: int) -> int | None:
        """When the memory was stored that so many came after; None if there are not so many."""
        return self._read(fading.recorded_before, space, position)

    def events_after(self, space: SpaceInfo, seq: int, *, limit: int = 10_000) -> list[EventRecord]:
        """Entries of the learning log after a sequence number, in order."""
        return self._read(fading.events_after, space, seq, limit)

    def events_naming(self, space: SpaceInfo, numbers: Iterable[int]) -> list[EventRecord]:
        """Entries of the learning log that name one of these memories, in order."""
        return self._read(fading.events_naming, space, list(numbers))

    def archived_wholes(self, space: SpaceInfo) -> list[tuple[int, str | None, int]]:
        """(number, session, time) of every archived memory that was not derived, by time."""
        return self._read(fading.archived_wholes, space)

    def shapes(self, space: SpaceInfo) -> list[DerivedRow]:
        """Every forgotten shape, whatever its state."""
        return self._read(fading.read_shapes, space)

    def vectors_of_wholes(self, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, list[bytes]]:
        """The vectors of memories, or of their segments, by memory."""
        return self._read(fading.vectors_of_wholes, space, numbers)
