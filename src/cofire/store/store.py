"""The store: one class, the verbs of the domain, each one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cofire.dynamics.plasticity import LinkState, Rule
from cofire.errors import InputError
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
from cofire.store.large_spaces import LargeSpaceVerbs
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
from cofire.store.serving_verbs import ServingVerbs
from cofire.store.session import Backend, Scope, Session, of_space, of_spaces
from cofire.store.sleep_verbs import SleepVerbs
from cofire.store.updating import Updated
from cofire.types import Filters, Progress, SpaceRef


class Store(SleepVerbs, FadingVerbs, DeletionVerbs, LargeSpaceVerbs, ServingVerbs):
    """Memories in a database. Safe for use from many threads and processes at once.

    Every verb is one transaction (`record_recalls` and `check`: one for each tenant or space): it
    happens wholly or not at all, and is on disk when it returns. Verbs raise NotFoundError if the
    space is gone, StoreBusyError if another writer holds the store longer than its wait,
    StoreUnavailableError or StoreCorruptError for what the database reports.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._met: set[str] = set()
        if not backend.shared:
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

    def _meet_spaces(self, tenant: str | None = None) -> None:
        """Which spaces are encrypted has to be known before anything is read or written."""
        self._backend.read(Scope(tenant=tenant), spaces.meet_encrypted)

    def close(self) -> None:
        """Closes every connection; closing again does nothing."""
        self._backend.close()

    # Spaces

    def space(self, ref: SpaceRef, *, create: bool, now: int = 0) -> SpaceInfo | None:
        """The space, made at `now` if need be; None if it does not exist and `create` is false."""
        scope = Scope(tenant=ref.tenant)
        if self.shared and ref.tenant not in self._met:
            self._meet_spaces(ref.tenant)
            self._met.add(ref.tenant)
        found = self._backend.read(scope, lambda session: spaces.find_space(session, ref))
        if found is not None or not create:
            return found
        return self._backend.write(scope, lambda session: spaces.make_space(session, ref, now))

    @property
    def shared(self) -> bool:
        """Whether the database keeps tenants apart, also from whoever asks for all of them: then
        a tenant has to be named, and what deleting leaves in files is its operator's to clear."""
        return self._backend.shared

    def _require_tenant(self, tenant: str | None) -> None:
        if tenant is None and self._backend.shared:
            raise InputError(
                f"{self._backend.description}: tenants are kept apart here, and none is seen "
                "without being named: name one"
            )

    def spaces(self, tenant: str | None = None) -> list[SpaceInfo]:
        """A tenant's spaces, oldest first; None: every tenant's. Raises InputError for that where
        the database keeps tenants apart (`shared`)."""
        self._require_tenant(tenant)
        return self._backend.read(
            Scope(tenant=tenant), lambda session: spaces.list_spaces(session, tenant)
        )

    def refreshed(self, space: SpaceInfo) -> SpaceInfo:
        """The space as it is now. Raises NotFoundError."""
        return self._read(spaces.read_space, space)

    def set_model(self, space: SpaceInfo, model: str, dimension: int) -> SpaceInfo:
        """Fixes the embedding model of a space that has none. Raises EmbeddingMismatchError if
        it has another one."""
        return self._write(spaces.choose_model, space, model, dimension)

    def set_settings(self, space: SpaceInfo, settings: Mapping[str, Any]) -> None:
        """Replaces the space's settings."""
        self._write(spaces.set_settings, space, settings)

    def forget_space(self, space: SpaceInfo) -> None:
        """Deletes a space and everything in it, for good, without a receipt. Raises
        NotFoundError."""
        self._write(spaces.remove_space, space)
        self.clear_traces()

    # Writing

    def append(
        self, space: SpaceInfo, items: Sequence[NewItem], *, link_sessions: bool = True
    ) -> Appended:
        """Stores memories; see `writing.append`."""
        if not items:
            return Appended(numbers=(), uids=(), created=(), revision=self.revision(space))
        return self._write(writing.append, space, items, link_sessions=link_sessions)

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
        return self._write(updating.update_item, space, number, item, now=now, seen=seen, key=key)

    def forget(self, space: SpaceInfo, numbers: Sequence[int], *, now: int = 0) -> Forgotten:
        """Deletes memories for good, at `now`, without a receipt. See `forgetting.forget`."""
        forgotten = self._write(forgetting.forget, space, numbers, now=now)
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
        return self._write(
            linking.link, space, source, target, type=type, strength=strength, now=now
        )

    def unlink(self, space: SpaceInfo, source: int, target: int, *, now: int = 0) -> int:
        """Removes a link; returns the revision. See `linking.unlink`."""
        return self._write(linking.unlink, space, source, target, now=now)

    # Reading

    def revision(self, space: SpaceInfo) -> int:
        """The space's revision now: it rises with every write. Raises NotFoundError."""
        rows = self._backend.glance(
            of_space(space), reading.REVISION, tenant=space.tenant_id, space=space.space_id
        )
        if not rows:
            raise spaces.missing_space(space)
        revision: int = rows[0][0]
        return revision

    def changes(self, space: SpaceInfo, since: int) -> Changes:
        """What changed after revision `since` (0: everything), for the active graph."""
        return self._read(graph_changes.changes, space, since)

    def fetch(self, space: SpaceInfo, numbers: Sequence[int]) -> list[ItemRow]:
        """The items and segments of these numbers that exist, in the order given."""
        rows = self._backend.glance(
            self._scope(space),
            reading.BY_NUMBERS,
            tenant=space.tenant_id,
            space=space.space_id,
            numbers=list(numbers),
        )
        return reading.in_order(rows, numbers)

    def get(self, space: SpaceInfo, item: int | bytes) -> ItemRow | None:
        """One item or segment by number or uid."""
        return self._read(reading.get, space, item)

    def locate(self, among: Sequence[SpaceInfo], uid: bytes) -> tuple[SpaceInfo, int] | None:
        """In which of these spaces of one tenant, and as which number, a uid is stored."""
        return self._backend.read(
            of_spaces(among), lambda session: reading.locate(session, among, uid)
        )

    def find_keys(self, space: SpaceInfo, keys: Sequence[str]) -> dict[str, ItemRow]:
        """The items that have one of the callers' keys, by key."""
        return self._read(reading.find_keys, space, keys)

    def find_metadata(self, space: SpaceInfo, name: str, values: Sequence[str]) -> list[ItemRow]:
        """The items whose metadata have one of the texts `values` under `name`, by number."""
        return self._read(reading.find_metadata, space, name, values)

    def history(self, space: SpaceInfo, number: int) -> list[VersionRow]:
        """An item's former texts, oldest first."""
        return self._read(reading.history, space, number)

    def links(self, space: SpaceInfo, number: int) -> list[LinkRow]:
        """The links from and to an item."""
        return self._read(reading.links_of, space, number)

    def counts(self, space: SpaceInfo) -> SpaceCounts:
        """How much there is of everything in a space."""
        return self._read(reading.counts, space)

    # Vectors

    def pending(
        self, space: SpaceInfo, model: str, dimension: int, *, limit: int = 256, after: int = 0
    ) -> Sequence[ItemRow]:
        """Items and segments above number `after` that lack a vector of this model."""
        return self._read(embedding.pending, space, model, dimension, limit=limit, after=after)

    def put_vectors(
        self, space: SpaceInfo, model: str, dimension: int, rows: Sequence[NewVector]
    ) -> int:
        """Writes vectors of what has not changed since; returns how many. See
        `embedding.put_vectors`."""
        return self._write(embedding.put_vectors, space, model, dimension, rows)

    def switch_model(
        self, space: SpaceInfo, model: str, dimension: int, *, allow_missing: bool = False
    ) -> SpaceInfo:
        """Makes another model the space's own. See `embedding.switch_model`."""
        return self._write(
            embedding.switch_model, space, model, dimension, allow_missing=allow_missing
        )

    def vectors(self, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of those numbers that have one."""
        return self._read(embedding.read_vectors, space, numbers)

    def projection(self, space: SpaceInfo) -> tuple[int, bytes] | None:
        """The version and content of the space's fitted projection."""
        return self._read(embedding.projection, space)

    def put_projection(self, space: SpaceInfo, version: int, data: bytes) -> None:
        """Keeps a newer fitted projection. Raises InputError if one as new is kept."""
        self._write(embedding.put_projection, space, version, data)

    # Use

    def record_recalls(
        self,
        batch: Sequence[tuple[SpaceInfo, RecallRecord]],
        *,
        count_use: bool = True,
        teach: bool = False,
    ) -> int:
        """Keeps recall records, counts the accesses and (`teach`) lets spaces learn from them whose
        rule says so; returns how many were kept. Each tenant's are one transaction; what was kept
        before one fails is passed over if the batch is given again. See
        `recording.record_recalls` and `rehearsal.rehearse`."""
        by_tenant: dict[int, list[tuple[SpaceInfo, RecallRecord]]] = {}
        for space, record in batch:
            by_tenant.setdefault(space.tenant_id, []).append((space, record))
        return sum(
            self._record_recalls(own, count_use=count_use, teach=teach)
            for own in by_tenant.values()
        )

    def _record_recalls(
        self, batch: Sequence[tuple[SpaceInfo, RecallRecord]], *, count_use: bool, teach: bool
    ) -> int:
        def work(session: Session) -> int:
            kept = recording.record_recalls(session, batch, count_use=count_use)
            if teach:
                rehearsal.rehearse(session, kept)
            return len(kept)

        return self._backend.write(of_spaces([space for space, _ in batch]), work)

    def record_access(self, space: SpaceInfo, numbers: Sequence[int], time: int) -> None:
        """Counts one access of each memory."""
        self._write(recording.record_access, space, numbers, time)

    def recall_record(self, space: SpaceInfo, uid: bytes) -> RecallRecord | None:
        """One recall record."""
        return self._read(recording.recall_record, space, uid)

    def purge_recalls(self, space: SpaceInfo, before: int) -> int:
        """Deletes recall records made before `before`, by the clock; returns how many."""
        return self._write(recording.purge_recalls, space, before)

    def append_events(self, space: SpaceInfo, events: Sequence[EventRecord]) -> int:
        """Appends to the learning log; returns the last sequence number."""
        return self._write(recording.append_events, space, events)

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
        return self._write(learning.learn, space, event, rule, trusted=trusted, cue=cue, now=now)

    def rule(self, space: SpaceInfo) -> Rule:
        """The rule that a space learns by. Raises NotFoundError, ConfigurationError."""
        return self._read(rules.read_rule, space)

    def adopt_rule(self, space: SpaceInfo, settings: Mapping[str, Any]) -> bool:
        """Learns by the rule that an imported space's settings name; see `rules.adopt_rule`."""
        return self._write(rules.adopt_rule, space, settings)

    def fold(
        self,
        space: SpaceInfo,
        *,
        up_to_time: int | None = None,
        up_to_seq: int | None = None,
        rule: Rule | None = None,
    ) -> dict[tuple[int, int], LinkState]:
        """The strengths that the log alone says; see `looking_back.fold`."""
        return self._read(
            looking_back.fold, space, up_to_time=up_to_time, up_to_seq=up_to_seq, rule=rule
        )

    def replay(self, space: SpaceInfo, rule: Rule | None = None) -> int:
        """Makes every learned link what the log says; returns how many were not. See
        `looking_back.replay`."""
        return self._write(looking_back.replay, space, rule)

    def why(self, space: SpaceInfo, one: int, other: int) -> Sequence[Movement]:
        """The events that moved the link of two memories, oldest first; see `looking_back.why`."""
        return self._read(looking_back.why, space, one, other)

    def proposals(self, space: SpaceInfo, least: int = 3) -> Sequence[Proposal]:
        """The pairs that may contradict each other; see `looking_back.proposals`."""
        return self._read(looking_back.proposals, space, least)

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
        return self._write(deriving.put_derived, space, rows)

    def amend(self, space: SpaceInfo, amendments: Sequence[Amendment]) -> None:
        """Gives imported items their use counts, versions and former texts."""
        self._write(transfer.amend, space, amendments)

    def put_links(self, space: SpaceInfo, rows: Sequence[LinkRow]) -> int:
        """Writes links with all they carry; returns the revision. See `transfer.put_links`."""
        return self._write(transfer.put_links, space, rows)

    # Upkeep

    def check(self, tenant: str | None = None) -> Sequence[Finding]:
        """Everything of a tenant's that does not agree with everything else; empty if all is well.
        None: of every tenant's. Raises InputError for that where the database keeps tenants apart
        (`shared`)."""
        return checking.check(self._backend, self.spaces(tenant), tenant)

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
        self._met.clear()
        self._meet_spaces()

    def rotate_key(self, master_key: bytes, tenant: str | None = None) -> int:
        """Wraps the keys of a tenant's encrypted spaces (None: of every tenant's) by another master
        key, as one transaction, and uses that from then on; returns how many there are. Their
        content stays as it is. Raises ConfigurationError (and changes nothing) if one of them is
        under a third key, InputError for None where the database keeps tenants apart."""
        self._require_tenant(tenant)
        scope = Scope(tenant=tenant)
        done = self._backend.write(scope, lambda session: spaces.rewrap(session, master_key))
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
        return self._backend.sidecar(space.tenant_id, space.space_id)

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
        """A page of whole items of spaces of one tenant, by (time, uid); the next begins `after`
        the last one's. See `listing.list_items`."""
        return self._backend.read(
            of_spaces(among),
            lambda session: listing.list_items(
                session,
                among,
                filters or Filters(),
                after=after,
                limit=limit,
                newest_first=newest_first,
                archived=archived,
                with_derived=with_derived,
            ),
        )
