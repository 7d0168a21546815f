"""`Memory`: remember, recall and look after what an agent knows.

Thin: each verb checks its arguments, asks the layer that does the work, and turns the store's
records into public values (`cofire.views`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, Unpack

from cofire import exchange, views
from cofire.arguments import (
    as_messages,
    as_moment,
    as_name,
    as_tags,
    clean_changes,
    make_filters,
)
from cofire.dynamics.arrays import F64
from cofire.encoding.encoder import Encoder, Redact
from cofire.encoding.reembedding import reembed_space
from cofire.errors import InputError
from cofire.importing import Importer
from cofire.interchange import Format, ImportReport
from cofire.models import Embedder, make_embedder
from cofire.models.verifying import VerifiedEmbedder
from cofire.retrieval.engine import Recaller
from cofire.retrieval.profiles import Profile, profile_named
from cofire.store import Store, open_store
from cofire.store.recall_log import RecallLog
from cofire.store.records import Finding, SpaceInfo
from cofire.store.updating import ChangedMeanwhileError
from cofire.types import (
    Item,
    Kind,
    Link,
    LinkType,
    Message,
    MessageChanges,
    Page,
    Progress,
    Recall,
    Receipt,
    SpaceRef,
    Stats,
    TimeLike,
    Version,
    to_micros,
)
from cofire.visible import VisibleSpaces, missing, open_space, require_model

if TYPE_CHECKING:
    from cofire.settings import Settings

BATCH = 1_000
"""Messages per transaction when many are remembered at once."""


class Memory:
    """What one agent remembers: its own space and the projects it shares.

    Open it with `Memory.open` and close it (or use it as a context manager). Safe to use from
    several threads; several processes may open the same store.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        own: SpaceInfo,
        projects: Mapping[str, SpaceInfo],
        *,
        vectors: bool = True,
        redact: Redact | None = None,
        graph_bytes: int = 1 << 30,
    ) -> None:
        """For `Memory.open`; takes over `store` and `embedder` and closes them."""
        self._store = store
        self._embedder = embedder
        self._vectors = vectors
        used = embedder if vectors else None
        self._encoder = Encoder(used, redact=redact)
        self._recaller = Recaller(store, used, embedder, graph_bytes)
        self._spaces = VisibleSpaces(store, own, projects, used, self._recaller.forget)
        self._log = RecallLog(store)

    @classmethod
    def open(
        cls,
        url_or_path: str | Path | None = None,
        identity: str = "default",
        user: str | None = None,
        projects: Sequence[str] | str = (),
        *,
        tenant: str = "default",
        create: bool = True,
        vectors: bool = True,
        embedder: Embedder | str | None = None,
        redact: Redact | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """Open or make a memory.

        `url_or_path` is an SQLite file or URL (default: a file in the platform's data folder).
        `identity` names the agent, `user` whom it serves, `projects` the spaces it shares: recall
        reads all of them, `remember` writes to the agent's own unless told otherwise.
        `vectors=False` searches by words only and needs no model; what is remembered meanwhile
        gets its vectors from `reembed`. `embedder` overrides the settings' choice. `redact` is
        called on every text before it is stored, embedded or logged.

        Raises EmbeddingMismatchError where the store's vectors are another model's (the message
        names the command that re-embeds), NotFoundError where it is missing and `create` is
        False, ConfigurationError, InputError, and StoreError for what the back end refuses.
        """
        from cofire.settings import default_store, load_settings

        if settings is None:
            choice = embedder if isinstance(embedder, str) else None
            settings = load_settings(embedder=choice)
        model = (
            make_embedder(settings)
            if embedder is None or isinstance(embedder, str)
            else VerifiedEmbedder(embedder)
        )
        shared = (projects,) if isinstance(projects, str) else tuple(projects)
        where = url_or_path if url_or_path is not None else settings.store or default_store()
        store = open_store(
            where, create=create, busy_timeout=settings.write_wait, durability=settings.durability
        )
        try:
            now = to_micros(datetime.now(UTC))
            tenant = as_name("tenant", tenant)
            refs = [
                SpaceRef(
                    tenant=tenant,
                    identity=as_name("identity", identity),
                    user=None if user is None else as_name("user", user),
                )
            ]
            refs += [SpaceRef(tenant=tenant, project=as_name("project", name)) for name in shared]
            spaces = [open_space(store, ref, now) for ref in refs]
            if vectors:
                for space in spaces:
                    require_model(space, model, where)
        except BaseException:
            store.close()
            raise
        named = dict(zip(shared, spaces[1:], strict=True))
        return cls(
            store,
            model,
            spaces[0],
            named,
            vectors=vectors,
            redact=redact,
            graph_bytes=settings.graph_cache_mb * 1_000_000,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is still buffered and let go of files; closing again does nothing."""
        with ExitStack() as closing:  # each is closed, whatever those before it raise
            closing.callback(self._embedder.close)
            closing.callback(self._store.close)
            closing.callback(self._recaller.close)
            closing.callback(self._log.close)

    # Remembering

    def remember(
        self,
        content: str | Message | Mapping[str, Any] | Iterable[str | Message | Mapping[str, Any]],
        *,
        title: str | None = None,
        kind: Kind | str | None = None,
        speaker: str | None = None,
        role: str | None = None,
        time: TimeLike | None = None,
        session: str | None = None,
        tags: Sequence[str] | str | None = None,
        importance: int | None = None,
        pinned: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires: TimeLike | None = None,
        key: str | None = None,
        project: str | None = None,
        now: TimeLike | None = None,
        progress: Progress | None = None,
    ) -> Receipt:
        """Remember one text, one message, or many.

        A message is a `Message` or a mapping with its fields, `content` at least (of a chat
        message, `name` is the speaker and tool calls are passed over). The keyword arguments are
        `Message`'s fields and apply to every message that does not set its own. `project` writes
        to a shared space. `now` replaces the clock. Up to 1,000 messages are one transaction;
        more are stored a thousand at a time, and `progress` is told.

        When this returns, everything is on disk. Raises InputError (the message says which one;
        of its thousand nothing is stored), KeyConflictError, StoreBusyError, StoreError.
        """
        defaults = {
            "title": title, "kind": kind, "speaker": speaker, "role": role, "time": time,
            "session": session, "tags": None if tags is None else as_tags(tags),
            "importance": importance, "pinned": pinned, "metadata": metadata,
            "expires": expires, "key": key,
        }  # fmt: skip
        given = {name: value for name, value in defaults.items() if value is not None}
        messages, total = as_messages(content, given)
        if key is not None and total != 1:
            raise InputError("one key cannot stand for many messages; give each its own")
        clock = as_moment(now)
        self._spaces.target(project)  # an unknown project is refused before anything is read
        receipts = []
        done = 0
        while batch := list(islice(messages, BATCH)):
            receipts.append(self._store_batch(project, batch, clock, first=done))
            done += len(batch)
            if progress is not None:
                progress(done, total)
        if len(receipts) == 1:
            return receipts[0]
        return _joined(
            receipts,
            self._spaces.lasting(lambda: self._store.revision(self._spaces.target(project))),
        )

    def _store_batch(
        self, project: str | None, batch: Sequence[Message], now: datetime, *, first: int
    ) -> Receipt:
        encoded = self._encoder.encode(batch, now=now, counter=self._embedder, first=first)
        appended = self._spaces.lasting(
            lambda: self._store.append(
                self._spaces.with_model(self._spaces.target(project)), encoded.items
            )
        )
        return Receipt(
            ids=tuple(views.public_id(uid) for uid in appended.uids),
            created=appended.created,
            revision=appended.revision,
            warnings=encoded.warnings,
        )

    # Recalling

    def recall(
        self,
        query: str,
        k: int = 10,
        *,
        token_budget: int | None = None,
        profile: str | Profile = "cofire",
        now: TimeLike | None = None,
        kinds: Sequence[Kind | str] | Kind | str = (),
        speakers: Sequence[str] | str = (),
        sessions: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        metadata: Mapping[str, Any] | None = None,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        explain: bool = False,
    ) -> Recall:
        """The memories that bear on `query`, best first.

        At most `k`, and fewer where the rest is far less likely to matter than the best
        (`Profile.cutoff`; never fewer than ten for that reason); with `token_budget` only as many
        whole ones as fit into so many wordpieces of rendered lines. The filters decide what may
        be ranked at all: `kinds`, `speakers`, `sessions` any of these, `tags` all of these,
        `metadata` equal at each given key, `since` ≤ time < `until`. `now` is the moment relative
        times in the question count from (default: the clock); what has expired by then is left
        out. `explain` adds the trace.

        Same memories, same question, same `now`: same answer. Raises InputError, StoreError.
        """
        chosen = profile if isinstance(profile, Profile) else profile_named(profile)
        filters = make_filters(
            kinds=kinds, speakers=speakers, sessions=sessions, tags=tags,
            metadata=metadata, since=since, until=until,
        )  # fmt: skip
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k must be a whole number of at least 1, not {k!r}")
        if token_budget is not None and (
            isinstance(token_budget, bool) or not isinstance(token_budget, int) or token_budget < 1
        ):
            raise InputError(
                f"token_budget must be a whole number of at least 1, not {token_budget!r}"
            )
        question, clock = self._question(query), as_moment(now)
        recall, records = self._spaces.lasting(
            lambda: self._recaller.recall(
                self._spaces.all(), question, k,
                profile=chosen, now=clock, filters=filters, token_budget=token_budget,
                explain=explain,
            )
        )  # fmt: skip
        self._log.add(records)
        return recall

    def candidates(
        self, query: str, *, profile: str | Profile = "cofire", now: TimeLike | None = None
    ) -> tuple[tuple[str, ...], F64]:
        """Every candidate of a recall, best first, as ids (n,) and the terms of their scores
        (n, len(cofire.retrieval.features.TERMS)): what a profile's weights are fitted on."""
        chosen = profile if isinstance(profile, Profile) else profile_named(profile)
        question, clock = self._question(query), as_moment(now)
        return self._spaces.lasting(
            lambda: self._recaller.candidates(
                self._spaces.all(), question, profile=chosen, now=clock
            )
        )

    def _question(self, query: str) -> str:
        if not isinstance(query, str):
            raise InputError(f"a question must be text, not {type(query).__name__}")
        return self._encoder.clean(query)

    def count_tokens(self, text: str) -> int:
        """Wordpieces of a text by this memory's model: the unit of token budgets."""
        return self._embedder.count_tokens(text)

    def similarity(self, query: str, texts: Sequence[str]) -> float:
        """Cosine of a question to the most similar of some texts, in [-1, 1]; 0 without texts.
        Raises EmbeddingError."""
        if not texts:
            return 0.0
        vector, _ = self._embedder.embed_query(query)
        return float((self._embedder.embed_passages(list(texts)).vectors @ vector).max())

    # Looking after

    def get(self, id: str) -> Item:
        """The whole memory. Raises NotFoundError."""
        space, number = self._spaces.locate(id)
        row = self._store.get(space, number)
        if row is None:
            raise missing(id)
        return views.item(space, row)

    def list(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        newest_first: bool = True,
        kinds: Sequence[Kind | str] | Kind | str = (),
        speakers: Sequence[str] | str = (),
        sessions: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        metadata: Mapping[str, Any] | None = None,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
    ) -> Page:
        """A page of memories by time. `after` is the former page's `next`. Filters as in
        `recall`. Raises InputError."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 10_000:
            raise InputError(f"limit must be a whole number from 1 to 10,000, not {limit!r}")
        filters = make_filters(
            kinds=kinds, speakers=speakers, sessions=sessions, tags=tags,
            metadata=metadata, since=since, until=until,
        )  # fmt: skip
        cursor = None if after is None else views.read_cursor(after)
        self._spaces.renew()
        rows = self._store.list(
            self._spaces.all(), filters, after=cursor, limit=limit + 1, newest_first=newest_first
        )
        items = tuple(views.item(row.space, row.item) for row in rows[:limit])
        last = rows[limit - 1].item if len(rows) > limit else None
        return Page(items=items, next=None if last is None else views.cursor(last))

    def update(
        self,
        id: str,
        *,
        content: str | None = None,
        now: TimeLike | None = None,
        **changes: Unpack[MessageChanges],
    ) -> Item:
        """Change a memory and keep its former text in its history.

        `changes` are fields of `Message` other than `key`; None clears what can be empty.
        Raises NotFoundError, InputError.
        """
        wanted: dict[str, Any] = dict(changes)
        if content is not None:
            wanted["content"] = content
        clock = as_moment(now)
        cleaned = clean_changes(wanted)
        while True:
            try:
                self._update(id, cleaned, clock)
            except ChangedMeanwhileError:  # by somebody else: that change must stay
                continue
            return self.get(id)

    def _update(self, id: str, changes: Mapping[str, Any], now: datetime) -> None:
        space, number = self._spaces.locate(id)
        row = self._store.get(space, number)
        if row is None:
            raise missing(id)
        message = replace(views.message(row), **changes)
        encoded = self._encoder.encode([message], now=now, counter=self._embedder)
        space = self._spaces.with_model(space)
        self._store.update(space, number, encoded.items[0], now=to_micros(now), seen=row.revision)

    def history(self, id: str) -> tuple[Version, ...]:
        """A memory's former texts, oldest first. Raises NotFoundError."""
        space, number = self._spaces.locate(id)
        return tuple(views.version(row) for row in self._store.history(space, number))

    def forget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        everything: bool = False,
        project: str | None = None,
    ) -> int:
        """Delete memories for good, with their segments, links, postings, history and caches.

        `ids` are one id or several; all must exist, or nothing is deleted. `everything=True`
        in place of ids deletes the agent's own space (or the named project's). Returns how many
        were deleted. Raises NotFoundError, and InputError where neither is given: nothing is
        ever deleted by leaving something out.
        """
        if not isinstance(everything, bool):
            raise InputError(f"everything must be True or False, not {everything!r}")
        if everything:
            if ids is not None:
                raise InputError("give ids or everything=True, not both")
            return self._spaces.lasting(lambda: self._forget_space(self._spaces.target(project)))
        if ids is not None and not isinstance(ids, Iterable):
            raise InputError(f"ids must be texts, not {type(ids).__name__}")
        wanted = [ids] if isinstance(ids, str) else list(ids or ())
        if not wanted:
            raise InputError("name what to forget: ids, or everything=True for the whole space")
        places = [self._spaces.locate(id) for id in dict.fromkeys(wanted)]
        self._log.flush()
        gone = 0
        for space in {space.space_id: space for space, _ in places}.values():
            numbers = [number for place, number in places if place.space_id == space.space_id]
            gone += self._store.forget(space, numbers)
            self._recaller.forget(space)
        self.forget_vectors()
        return gone

    def _forget_space(self, space: SpaceInfo) -> int:
        self._log.flush()
        count = self._store.counts(space).items
        self._store.forget_space(space)
        self._recaller.forget(space)
        self.forget_vectors()
        self._spaces.put(open_space(self._store, space.ref, to_micros(datetime.now(UTC))))
        return count

    def forget_vectors(self) -> None:
        """Empty the embedder's cache: it may hold vectors of what was deleted."""
        clear = getattr(self._embedder, "clear", None)
        if clear is not None:
            clear()

    def link(
        self,
        source: str,
        target: str,
        type: LinkType | str = LinkType.RELATED,
        *,
        strength: float = 0.5,
        now: TimeLike | None = None,
    ) -> Link:
        """Link two memories of one space. Raises NotFoundError where either is missing or they
        lie in different spaces, InputError for a second link of the pair or a strength outside
        [0, 1]."""
        try:
            kind = LinkType(type)
        except ValueError as exc:
            raise InputError(
                f"there is no link type {type!r}; use one of {', '.join(LinkType)}"
            ) from exc
        if isinstance(strength, bool) or not isinstance(strength, int | float):
            raise InputError(f"a link's strength is a number in [0, 1], not {strength!r}")
        from_space, from_number = self._spaces.end(source)
        to_space, to_number = self._spaces.end(target)
        if from_space.space_id != to_space.space_id:
            raise missing(target)
        self._store.link(
            from_space, from_number, to_number, kind.value, strength, now=to_micros(as_moment(now))
        )
        return Link(source=source, target=target, type=kind, strength=strength)

    def links(self, id: str) -> tuple[Link, ...]:
        """The links from and to a memory. Raises NotFoundError."""
        space, number = self._spaces.locate(id)
        return tuple(views.link(row) for row in self._store.links(space, number))

    def stats(self) -> Stats:
        """Counts and sizes of every space this memory reads."""
        self._log.flush()
        self._spaces.renew()
        return Stats(
            spaces=tuple(
                views.stats(space, self._store.counts(space)) for space in self._spaces.all()
            ),
            store_bytes=self._store.size(),
            graph_bytes=self._recaller.nbytes,
        )

    # Moving and mending

    def export(
        self, target: str | Path | IO[bytes], *, progress: Progress | None = None
    ) -> Mapping[str, int]:
        """Write everything in this memory's spaces to a file or binary stream, as Cofire's own
        versioned JSONL, vectors and history included. A file appears whole or not at all.
        Returns how many records of each type there are. Raises StoreError, OSError."""
        self._log.flush()
        self._spaces.renew()
        return exchange.export(self._store, self._spaces.all(), target, progress)

    def import_(
        self,
        source: str | Path | IO[bytes],
        *,
        format: Format | str | None = None,
        project: str | None = None,
        root: str | Path | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Read a file, folder or binary stream into memory: Cofire's own export, LoCoMo,
        LongMemEval, JSONL of messages, plain text or Markdown (`format`; default: guessed).

        Importing again adds nothing. A document that was edited since updates its memory (the
        former text stays in its history), one whose file was moved or renamed is known by what it
        says, and a file that was deleted deletes nothing. `root` is the folder that `source` must
        lie in, links followed, and within which documents are known by their path (default: the
        folder itself, or that of the file).

        Cofire's own export is verified first and then restored as it was, ids, vectors and
        history included: its space that matches this memory's (or the only one) goes into the
        agent's own, projects into the projects of the same name. The report says what was read,
        imported, updated, known before, and what could not be used and why. Raises NotFoundError,
        FormatError, InputError, StoreError.
        """
        importer = Importer(
            self._store,
            self._spaces,
            self._encoder,
            self._embedder,
            lambda project, batch, now, first: self._store_batch(project, batch, now, first=first),
            vectors=self._vectors,
        )
        return importer.run(source, format=format, project=project, root=root, progress=progress)

    def backup(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Copy the whole store to a file while it is in use. Raises StoreUnavailableError."""
        self._log.flush()
        self._store.backup(path, progress)

    def restore(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Replace the whole store by a backup. Raises NotFoundError, FormatError,
        SchemaVersionError, EmbeddingMismatchError (the backup is then in place all the same)."""
        self._log.flush()
        self._store.restore(path, progress)
        self._spaces.reopen("the restored store")

    def reembed(
        self, embedder: Embedder | str | None = None, *, progress: Progress | None = None
    ) -> int:
        """Give every memory a vector of `embedder` (default: the one this was opened with).

        Adds what is missing, and moves the whole store to another model: new vectors are written
        beside the old ones, which stay in use until all are there, so it can be interrupted and
        goes on where it stopped. Afterwards this memory uses `embedder`. Returns how many
        vectors were made. Raises EmbeddingError, ConfigurationError, StoreError.
        """
        from cofire.settings import load_settings

        if isinstance(embedder, str):
            embedder = make_embedder(load_settings(embedder=embedder))
        elif embedder is not None:
            embedder = VerifiedEmbedder(embedder)
        model = self._embedder if embedder is None else embedder
        self._spaces.renew()
        made = 0
        spaces = self._store.spaces()
        for space in spaces:
            made += reembed_space(self._store, space, model, made, progress)
            self._recaller.forget(space)
        self._use(model)
        return made

    def _use(self, model: Embedder) -> None:
        """From now on embed with `model`."""
        if model is not self._embedder:
            self._embedder.close()
        self._embedder = model
        self._vectors = True
        self._encoder = self._encoder.with_embedder(model)
        self._recaller.use(model)
        self._spaces.use(model)

    def check(self) -> Sequence[Finding]:
        """What does not agree with everything else: rows, segments, tags, links, vectors,
        postings and active graphs. Empty if all is well."""
        self._log.flush()
        self._spaces.renew()
        found = list(self._store.check())
        for space in self._spaces.all():
            found += self._recaller.check(space)
        return found


def _joined(receipts: Sequence[Receipt], revision: int) -> Receipt:
    return Receipt(
        ids=tuple(id for receipt in receipts for id in receipt.ids),
        created=tuple(new for receipt in receipts for new in receipt.created),
        revision=receipts[-1].revision if receipts else revision,
        warnings=tuple(dict.fromkeys(text for receipt in receipts for text in receipt.warnings)),
    )
