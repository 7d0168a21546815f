"""The store: one class, the verbs of the domain, each one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cofire.dynamics.plasticity import LinkState, Rule
from cofire.store import (
    checking,
    deriving,
    embedding,
    forgetting,
    graph_changes,
    learning,
    linking,
    listing,
    looking_back,
    reading,
    recording,
    rehearsal,
    rules,
    spaces,
    transfer,
    updating,
    writing,
)
from cofire.store.cues import NewCue
from cofire.store.deletion_verbs import DeletionVerbs
from cofire.store.fading_verbs import FadingVerbs
from cofire.store.folding import Movement
from cofire.store.learning import Learned, NewEvent
from cofire.store.looking_back import Proposal
from cofire.store.records import (
    Amendment,
    Appended,
    Changes,
    DerivedFields,
    EventRecord,
    Finding,
    Forgotten,
    ItemRow,
    LinkRow,
    ListedRow,
    NewItem,
    NewVector,
    RecallRecord,
    SpaceCounts,
    SpaceInfo,
    VersionRow,
)
from cofire.store.session import Backend
from cofire.store.sleep_verbs import SleepVerbs
from cofire.store.updating import Updated
from cofire.types import Filters, Progress, SpaceRef


class Store(SleepVerbs, FadingVerbs, DeletionVerbs):
    """Memories in a database. Safe for use from many threads and processes at once.

    Every verb is one transaction: it happens wholly or not at all, and is on disk when it
    returns. Verbs raise NotFoundError if the space is gone, StoreBusyError if another writer
    holds the store longer than its wait, StoreUnavailableError or StoreCorruptError for what the
    database reports.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._meet_spaces()

    def __repr__(self) -> str:
        return f"Store({self._backend.description!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _meet_spaces(self) -> None:
        """Which spaces are encrypted has to be known before anything is read or written."""
        with self._backend.reading() as session:
            spaces.meet_encrypted(session)

    def close(self) -> None:
        """Closes every connection; closing again does nothing."""
        self._backend.close()

    # Spaces

    def space(self, ref: SpaceRef, *, create: bool, now: int = 0) -> SpaceInfo | None:
        """The space, made at `now` if need be; None if it does not exist and `create` is false."""
        with self._backend.reading() as session:
            found = spaces.find_space(session, ref)
        if found is not None or not create:
            return found
        with self._backend.writing() as session:
            return spaces.make_space(session, ref, now)

    def spaces(self, tenant: str | None = None) -> list[SpaceInfo]:
        """A tenant's spaces (None: every tenant's), oldest first."""
        with self._backend.reading() as session:
            return spaces.list_spaces(session, tenant)

    def refreshed(self, space: SpaceInfo) -> SpaceInfo:
        """The space as it is now. Raises NotFoundError."""
        with self._backend.reading() as session:
            return spaces.read_space(session, space)

    def set_model(self, space: SpaceInfo, model: str, dimension: int) -> SpaceInfo:
        """Fixes the embedding model of a space that has none. Raises EmbeddingMismatchError if
        it has another one."""
        with self._backend.writing() as session:
            return spaces.choose_model(session, space, model, dimension)

    def set_settings(self, space: SpaceInfo, settings: Mapping[str, Any]) -> None:
        """Replaces the space's settings."""
        with self._backend.writing() as session:
            spaces.set_settings(session, space, settings)

    def forget_space(self, space: SpaceInfo) -> None:
        """Deletes a space and everything in it, for good, without a receipt. Raises
        NotFoundError."""
        with self._backend.writing() as session:
            spaces.remove_space(session, space)
        self.clear_traces()

    # Writing

    def append(
        self, space: SpaceInfo, items: Sequence[NewItem], *, link_sessions: bool = True
    ) -> Appended:
        """Stores memories; see `writing.append`."""
        if not items:
            return Appended(numbers=(), uids=(), created=(), revision=self.revision(space))
        with self._backend.writing() as session:
            return writing.append(session, space, items, link_sessions=link_sessions)

    def update(
        self,
        space: SpaceInfo,
        number: int,
        item: NewItem,
        *,
        now: int,
        seen: int | None = None,
        key: str | None = None,
    ) -> Updated:
        """Gives a memory new fields, and a new `key` if one is given, keeping its former text;
        see `updating.update_item`."""
        with self._backend.writing() as session:
            return updating.update_item(session, space, number, item, now=now, seen=seen, key=key)

    def forget(self, space: SpaceInfo, numbers: Sequence[int], *, now: int = 0) -> Forgotten:
        """Deletes memories for good, at `now`, without a receipt. See `forgetting.forget`."""
        with self._backend.writing() as session:
            forgotten = forgetting.forget(session, space, numbers, now=now)
        if forgotten.memories:
            self.clear_traces()
        return forgotten

    def link(
        self,
        space: SpaceInfo,
        source: int,
        target: int,
        type: str,
        strength: float = 0.5,
        *,
        now: int = 0,
    ) -> int:
        """Links two items; returns the revision. See `linking.link`."""
        with self._backend.writing() as session:
            return linking.link(
                session, space, source, target, type=type, strength=strength, now=now
            )

    def unlink(self, space: SpaceInfo, source: int, target: int, *, now: int = 0) -> int:
        """Removes a link; returns the revision. See `linking.unlink`."""
        with self._backend.writing() as session:
            return linking.unlink(session, space, source, target, now=now)

    # Reading

    def revision(self, space: SpaceInfo) -> int:
        """The space's revision now: it rises with every write. Raises NotFoundError."""
        rows = self._backend.glance(reading.REVISION, tenant=space.tenant_id, space=space.space_id)
        if not rows:
            raise spaces.missing_space(space)
        revision: int = rows[0][0]
        return revision

    def changes(self, space: SpaceInfo, since: int) -> Changes:
        """What changed after revision `since` (0: everything), for the active graph."""
        with self._backend.reading() as session:
            return graph_changes.changes(session, space, since)

    def fetch(self, space: SpaceInfo, numbers: Sequence[int]) -> list[ItemRow]:
        """The items and segments of these numbers that exist, in the order given."""
        rows = self._backend.glance(
            reading.BY_NUMBERS,
            tenant=space.tenant_id,
            space=space.space_id,
            numbers=list(numbers),
        )
        return reading.in_order(rows, numbers)

    def get(self, space: SpaceInfo, item: int | bytes) -> ItemRow | None:
        """One item or segment by number or uid."""
        with self._backend.reading() as session:
            return reading.get(session, space, item)

    def locate(self, among: Sequence[SpaceInfo], uid: bytes) -> tuple[SpaceInfo, int] | None:
        """In which of the spaces, and as which number, a uid is stored."""
        with self._backend.reading() as session:
            return reading.locate(session, among, uid)

    def find_keys(self, space: SpaceInfo, keys: Sequence[str]) -> dict[str, ItemRow]:
        """The items that have one of the callers' keys, by key."""
        with self._backend.reading() as session:
            return reading.find_keys(session, space, keys)

    def find_metadata(self, space: SpaceInfo, name: str, values: Sequence[str]) -> list[ItemRow]:
        """The items whose metadata have one of the texts `values` under `name`, by number."""
        with self._backend.reading() as session:
            return reading.find_metadata(session, space, name, values)

    def history(self, space: SpaceInfo, number: int) -> list[VersionRow]:
        """An item's former texts, oldest first."""
        with self._backend.reading() as session:
            return reading.history(session, space, number)

    def links(self, space: SpaceInfo, number: int) -> list[LinkRow]:
        """The links from and to an item."""
        with self._backend.reading() as session:
            return reading.links_of(session, space, number)

    def counts(self, space: SpaceInfo) -> SpaceCounts:
        """How much there is of everything in a space."""
        with self._backend.reading() as session:
            return reading.counts(session, space)

    # Vectors

    def pending(
        self, space: SpaceInfo, model: str, dimension: int, *, limit: int = 256, after: int = 0
    ) -> Sequence[ItemRow]:
        """Items and segments above number `after` that lack a vector of this model."""
        with self._backend.reading() as session:
            return embedding.pending(session, space, model, dimension, limit=limit, after=after)

    def put_vectors(
        self, space: SpaceInfo, model: str, dimension: int, rows: Sequence[NewVector]
    ) -> int:
        """Writes vectors of what has not changed since; returns how many. See
        `embedding.put_vectors`."""
        with self._backend.writing() as session:
            return embedding.put_vectors(session, space, model, dimension, rows)

    def switch_model(
        self, space: SpaceInfo, model: str, dimension: int, *, allow_missing: bool = False
    ) -> SpaceInfo:
        """Makes another model the space's own. See `embedding.switch_model`."""
        with self._backend.writing() as session:
            return embedding.switch_model(
                session, space, model, dimension, allow_missing=allow_missing
            )

    def vectors(self, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of those numbers that have one."""
        with self._backend.reading() as session:
            return embedding.read_vectors(session, space, numbers)

    def projection(self, space: SpaceInfo) -> tuple[int, bytes] | None:
        """The version and content of the space's fitted projection."""
        with self._backend.reading() as session:
            return embedding.projection(session, space)

    def put_projection(self, space: SpaceInfo, version: int, data: bytes) -> None:
        """Keeps a newer fitted projection. Raises InputError if one as new is kept."""
        with self._backend.writing() as session:
            embedding.put_projection(session, space, version, data)

    # Use

    def record_recalls(
        self,
        batch: Sequence[tuple[SpaceInfo, RecallRecord]],
        *,
        count_use: bool = True,
        teach: bool = False,
    ) -> int:
        """Keeps recall records, counts the accesses and (`teach`) lets spaces learn from them whose
        rule says so; returns how many were kept. See `recording.record_recalls` and
        `rehearsal.rehearse`."""
        with self._backend.writing() as session:
            kept = recording.record_recalls(session, batch, count_use=count_use)
            if teach:
                rehearsal.rehearse(session, kept)
            return len(kept)

    def record_access(self, space: SpaceInfo, numbers: Sequence[int], time: int) -> None:
        """Counts one access of each memory."""
        with self._backend.writing() as session:
            recording.record_access(session, space, numbers, time)

    def recall_record(self, space: SpaceInfo, uid: bytes) -> RecallRecord | None:
        """One recall record."""
        with self._backend.reading() as session:
            return recording.recall_record(session, space, uid)

    def purge_recalls(self, space: SpaceInfo, before: int) -> int:
        """Deletes recall records made before `before`, by the clock; returns how many."""
        with self._backend.writing() as session:
            return recording.purge_recalls(session, space, before)

    def append_events(self, space: SpaceInfo, events: Sequence[EventRecord]) -> int:
        """Appends to the learning log; returns the last sequence number."""
        with self._backend.writing() as session:
            return recording.append_events(session, space, events)

    # Learning

    def learn(
        self,
        space: SpaceInfo,
        event: NewEvent,
        rule: Rule,
        *,
        trusted: bool = False,
        cue: NewCue | None = None,
        now: int,
    ) -> Learned:
        """Appends a piece of evidence and moves the links it speaks of; see `learning.learn`."""
        with self._backend.writing() as session:
            return learning.learn(session, space, event, rule, trusted=trusted, cue=cue, now=now)

    def rule(self, space: SpaceInfo) -> Rule:
        """The rule that a space learns by. Raises NotFoundError, ConfigurationError."""
        with self._backend.reading() as session:
            return rules.read_rule(session, space)

    def adopt_rule(self, space: SpaceInfo, settings: Mapping[str, Any]) -> bool:
        """Learns by the rule that an imported space's settings name; see `rules.adopt_rule`."""
        with self._backend.writing() as session:
            return rules.adopt_rule(session, space, settings)

    def fold(
        self,
        space: SpaceInfo,
        *,
        up_to_time: int | None = None,
        up_to_seq: int | None = None,
        rule: Rule | None = None,
    ) -> dict[tuple[int, int], LinkState]:
        """The strengths that the log alone says; see `looking_back.fold`."""
        with self._backend.reading() as session:
            return looking_back.fold(
                session, space, up_to_time=up_to_time, up_to_seq=up_to_seq, rule=rule
            )

    def replay(self, space: SpaceInfo, rule: Rule | None = None) -> int:
        """Makes every learned link what the log says; returns how many were not. See
        `looking_back.replay`."""
        with self._backend.writing() as session:
            return looking_back.replay(session, space, rule)

    def why(self, space: SpaceInfo, one: int, other: int) -> Sequence[Movement]:
        """The events that moved the link of two memories, oldest first; see `looking_back.why`."""
        with self._backend.reading() as session:
            return looking_back.why(session, space, one, other)

    def proposals(self, space: SpaceInfo, least: int = 3) -> Sequence[Proposal]:
        """The pairs that may contradict each other; see `looking_back.proposals`."""
        with self._backend.reading() as session:
            return looking_back.proposals(session, space, least)

    # Export and import

    def last_number(self, space: SpaceInfo) -> int:
        """The highest number in use: the `last` of an export that begins now."""
        return transfer.last_number(self._backend, space)

    def iterate_items(
        self, space: SpaceInfo, *, last: int | None = None, segments: bool = False
    ) -> Iterator[ItemRow]:
        """Every whole item up to number `last`, in order; also segments if wanted.

        The iterators read a page per transaction. Given one `last`, items and links agree even
        while others write: what is newer is left out, what is forgotten meanwhile is absent.
        """
        last = self.last_number(space) if last is None else last
        return transfer.iterate_items(self._backend, space, last=last, segments=segments)

    def iterate_links(self, space: SpaceInfo, *, last: int | None = None) -> Iterator[LinkRow]:
        """Every link between items up to `last`, by source and target."""
        last = self.last_number(space) if last is None else last
        return transfer.iterate_links(self._backend, space, last=last)

    def iterate_versions(
        self, space: SpaceInfo, *, last: int | None = None
    ) -> Iterator[VersionRow]:
        """Every former text of items up to `last`, by number and version."""
        last = self.last_number(space) if last is None else last
        return transfer.iterate_versions(self._backend, space, last=last)

    def iterate_recalls(self, space: SpaceInfo) -> Iterator[RecallRecord]:
        """Every recall record, by uid."""
        return transfer.iterate_recalls(self._backend, space)

    def iterate_events(self, space: SpaceInfo) -> Iterator[EventRecord]:
        """The learning log, by sequence number."""
        return transfer.iterate_events(self._backend, space)

    def iterate_derived(
        self, space: SpaceInfo, *, last: int | None = None
    ) -> Iterator[DerivedFields]:
        """How every derived memory up to `last` was made, by number."""
        last = self.last_number(space) if last is None else last
        return transfer.iterate_derived(self._backend, space, last=last)

    def put_derived(self, space: SpaceInfo, rows: Sequence[DerivedFields]) -> int:
        """Says of imported items how they were made; see `deriving.put_derived`."""
        with self._backend.writing() as session:
            return deriving.put_derived(session, space, rows)

    def amend(self, space: SpaceInfo, amendments: Sequence[Amendment]) -> None:
        """Gives imported items their use counts, versions and former texts."""
        with self._backend.writing() as session:
            transfer.amend(session, space, amendments)

    def put_links(self, space: SpaceInfo, rows: Sequence[LinkRow]) -> int:
        """Writes links with all they carry; returns the revision. See `transfer.put_links`."""
        with self._backend.writing() as session:
            return transfer.put_links(session, space, rows)

    # Upkeep

    def check(self) -> Sequence[Finding]:
        """Everything that does not agree with everything else; empty if all is well."""
        return checking.check(self._backend, self.spaces())

    def backup(self, target: str | Path, progress: Progress | None = None) -> None:
        """Writes a consistent copy to `target` while others read and write; it appears whole or
        not at all. An older backup is replaced. Raises StoreUnavailableError, and InputError for
        a target that is the store itself, or a file of anything else."""
        self._backend.backup(Path(target), progress)

    def restore(self, source: str | Path, progress: Progress | None = None) -> None:
        """Replaces everything by the content of a backup, as one transaction that other
        processes see. Raises NotFoundError, FormatError, SchemaVersionError."""
        self._backend.restore(Path(source), progress)
        self._backend.vault.clear()
        self._meet_spaces()

    def rotate_key(self, master_key: bytes) -> int:
        """Wraps the keys of all encrypted spaces by another master key, as one transaction, and
        uses that from then on; returns how many there are. Their content stays as it is. Raises
        ConfigurationError (and changes nothing) if one of them is under a third key."""
        with self._backend.writing() as session:
            done = spaces.rewrap(session, master_key)
        self._backend.vault.use(master_key)
        self._backend.purge_residue()  # nobody should find the former wrapping in the log
        return done

    def scrub(self) -> None:
        """Removes whatever traces of deleted text are left in unused parts of the database.

        Deleting overwrites the rows and clears the log at once; in a large file a copy may stay
        in a page's unused space until it is used again. Rebuilds the file: seconds for each
        100,000 memories, during which others cannot write. Raises StoreBusyError.
        """
        waiting = self.pending_receipts()
        self._backend.scrub()
        self._note(waiting, clear=True)

    def sidecar(self, space: SpaceInfo) -> Path | None:
        """Where a rebuildable file of a space's active graph may lie; None if nowhere."""
        return self._backend.sidecar(space.space_id)

    def owns(self, place: Path) -> bool:
        """Whether a file is part of the store, so that nothing else may be written there."""
        return self._backend.owns(place)

    def size(self) -> int:
        """Bytes on disk."""
        return self._backend.size()

    def list(
        self,
        among: Sequence[SpaceInfo],
        filters: Filters | None = None,
        *,
        after: listing.Cursor | None = None,
        limit: int = 100,
        newest_first: bool = True,
        archived: bool = False,
        with_derived: bool = True,
    ) -> list[ListedRow]:
        """A page of whole items by (time, uid); the next begins `after` the last one's. See
        `listing.list_items`."""
        with self._backend.reading() as session:
            return listing.list_items(
                session,
                among,
                filters or Filters(),
                after=after,
                limit=limit,
                newest_first=newest_first,
                archived=archived,
                with_derived=with_derived,
            )
