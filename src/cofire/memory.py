"""`Memory`: remember, recall and look after what an agent knows.

Thin: each verb checks its arguments, asks the module that does the work (`remembering`,
`forgetting`, `upkeep`, `importing`, `exchange`, or the recaller and the store themselves), and
turns the store's records into public values (`views`). What they all work with is `Workings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, Unpack

from cofire import exchange, learning, recalling, remembering, sleeping, upkeep, views
from cofire.arguments import (
    Messages,
    as_count,
    as_credits,
    as_link_type,
    as_moment,
    as_name,
    as_outcome,
    as_past,
    as_principal,
    as_profile,
    as_question,
    as_rule,
    as_strength,
    as_tags,
    clean_changes,
    make_filters,
)
from cofire.dynamics.arrays import F64
from cofire.dynamics.plasticity import Rule
from cofire.encoding.encoder import Redact
from cofire.errors import InputError, LinkExistsError, NotFoundError
from cofire.importing import Importer
from cofire.interchange import Format, ImportReport
from cofire.memory_answer import AnswerVerbs
from cofire.memory_deletion import DeletionVerbs
from cofire.memory_session import SessionVerbs
from cofire.memory_sleep import SleepVerbs
from cofire.models import Embedder
from cofire.retrieval.engine import Moments
from cofire.retrieval.profiles import Profile
from cofire.store.records import Finding
from cofire.types import (
    VISIBLE_KINDS,
    Evidence,
    Hydration,
    Item,
    Kind,
    Learned,
    Link,
    LinkType,
    Message,
    MessageChanges,
    Page,
    Progress,
    Proposal,
    Recall,
    Receipt,
    Stats,
    Strength,
    TimeLike,
    Version,
    to_micros,
)
from cofire.visible import missing, no_link
from cofire.workings import Workings, open_workings

if TYPE_CHECKING:
    from cofire.settings import Settings


class Memory(AnswerVerbs, DeletionVerbs, SessionVerbs, SleepVerbs):
    """What one agent remembers: its own space and the projects it shares.

    Open it with `Memory.open` and close it (or use it as a context manager). Safe to use from
    several threads; several processes may open the same store.
    """

    def __init__(self, workings: Workings) -> None:
        """For `Memory.open`; takes over what it is given and closes it."""
        self._workings = workings

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
        trusted: Sequence[str] | str = (),
        settings: Settings | None = None,
        encrypt: bool | None = None,
    ) -> Self:
        """Open or make a memory.

        `url_or_path` is an SQLite file or URL (default: a file in the platform's data folder).
        `identity` names the agent, `user` whom it serves, `projects` the spaces it shares: recall
        reads all of them, `remember` writes to the agent's own unless told otherwise.
        `vectors=False` searches by words only and needs no model; what is remembered meanwhile
        gets its vectors from `reembed`. `embedder` (a name, or an object of your own) overrides
        the choice of `settings`, which default to what the environment says; memories with the
        same choice share one embedder. `redact` is called on every text before it is stored,
        embedded or logged, and returns the text that may be kept; what it raises reaches you.
        `trusted` are principals whose feedback moves a link as far as it goes, not by at most 0.2
        a day. `encrypt` says whether spaces that this makes are encrypted (default: as the settings
        say); one that exists stays as it is, and True refuses one that is not encrypted.

        Raises EmbeddingMismatchError where the store's vectors are another model's (the message
        names the command that re-embeds), NotFoundError where it is missing and `create` is
        False, ConfigurationError, InputError, and StoreError for what the back end refuses.
        """
        return cls(
            open_workings(
                url_or_path, identity, user, projects,
                tenant=tenant, create=create, vectors=vectors, embedder=embedder, redact=redact,
                settings=settings, trusted=trusted, encrypt=encrypt,
            )
        )  # fmt: skip

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
        self._workings.close()

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
        untrusted: bool | None = None,
        project: str | None = None,
        now: TimeLike | None = None,
        progress: Progress | None = None,
    ) -> Receipt:
        """Remember one text, one message, or many.

        A message is a `Message` or a mapping with its fields, `content` at least. Of a chat
        message, `name` is the speaker, parts of text are put one below the other, and what is no
        text (tool calls, pictures) is left out; one that has no text beside them is passed over,
        as a warning of the receipt says. The keyword arguments are `Message`'s fields and apply
        to every message that does not set its own; `tags` is one tag or several. `project` writes
        to a shared space. What comes from a tool or a web page is `untrusted` (by itself if its
        role is "tool"): it teaches nothing, is fenced in a prompt, and no session opens with it.
        What Cofire rendered itself and a message only repeats is cut out of it, as a warning says.
        `now` replaces the clock. Up to 1,000 messages are one transaction;
        more are stored a thousand at a time, and `progress` is told.

        When this returns, everything is on disk. Raises InputError (the message says which one;
        of its thousand nothing is stored), KeyConflictError, StoreBusyError, StoreError.
        """
        defaults = {
            "title": title, "kind": kind, "speaker": speaker, "role": role, "time": time,
            "session": session, "tags": None if tags is None else as_tags(tags),
            "importance": importance, "pinned": pinned, "metadata": metadata,
            "expires": expires, "key": key, "untrusted": untrusted,
        }  # fmt: skip
        given = {name: value for name, value in defaults.items() if value is not None}
        messages = Messages(content, given)
        if key is not None and messages.total != 1:
            raise InputError("one key cannot stand for many messages; give each its own")
        return remembering.remember(
            self._workings, project, messages, as_moment(now), progress=progress
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
        trusted_only: bool = False,
        semantic: int = 5,
        as_of: TimeLike | None = None,
        known_at: TimeLike | None = None,
        explain: bool = False,
    ) -> Recall:
        """The memories that bear on `query`, best first (a profile may put them oldest first).

        At most `k`, and fewer where the rest is far less likely to matter than the best
        (`Profile.cutoff`; never fewer than ten for that reason); with `token_budget` only as many
        whole ones as fit into so many wordpieces of `Recall.text`. The filters decide what may
        be ranked at all: `kinds`, `speakers`, `sessions` any of these, `tags` all of these,
        `metadata` equal at each given key, `since` ≤ time < `until`, `trusted_only` nothing that
        comes from outside (see `remember`). `now` is the moment relative
        times in the question count from (default: the clock); what has expired by then is left
        out. `explain` adds the trace.

        Beside what was said come up to `semantic` records of what consolidation made of it (of a
        `token_budget` at most a quarter). `as_of` asks what held at a moment: facts that held
        then, and what had been said by then. `known_at` asks with what had been recorded by then.
        (A text that was edited since is shown as it is now; `history` has the former ones.)

        Same memories, same question, same `now`: same answer. Raises InputError, StoreError.
        """
        chosen = as_profile(profile)
        filters = make_filters(
            kinds=kinds, speakers=speakers, sessions=sessions, tags=tags,
            metadata=metadata, since=since, until=until, trusted_only=trusted_only,
        )  # fmt: skip
        most = as_count("k", k)
        budget = None if token_budget is None else as_count("token_budget", token_budget)
        most_records = as_count("semantic", semantic, least=0)
        question = recalling.Question(
            text=self._question(query),
            now=as_moment(now),
            filters=filters,
            moments=Moments(as_of=as_past(as_of), known_at=as_past(known_at)),
        )
        return recalling.recall(
            self._workings, question, most,
            profile=chosen, token_budget=budget, semantic=most_records, explain=explain,
        )  # fmt: skip

    def candidates(
        self, query: str, *, profile: str | Profile = "cofire", now: TimeLike | None = None
    ) -> tuple[tuple[str, ...], F64]:
        """Every candidate of a recall, best first, as ids (n,) and the terms of their scores
        (n, len(cofire.retrieval.features.TERMS)): what a profile's weights are fitted on."""
        chosen = as_profile(profile)
        question, clock = self._question(query), as_moment(now)
        recaller, spaces = self._workings.recaller, self._workings.spaces
        with self._workings.embedding.shared():
            return spaces.lasting(
                lambda: recaller.candidates(spaces.all(), question, profile=chosen, now=clock)
            )

    def _question(self, query: str) -> str:
        return self._workings.encoder.clean(as_question("a question", query))

    def count_tokens(self, text: str) -> int:
        """Wordpieces of a text by this memory's model: the unit of token budgets."""
        return self._workings.embedder.count_tokens(text)

    def similarity(self, query: str, texts: Sequence[str]) -> float:
        """Cosine of a question to the most similar of some texts, in [-1, 1]; 0 without texts.
        Raises EmbeddingError."""
        if not texts:
            return 0.0
        with self._workings.embedding.shared():
            embedder = self._workings.embedder
            vector, _ = embedder.embed_query(query)
            return float((embedder.embed_passages(list(texts)).vectors @ vector).max())

    # Learning

    def feedback(
        self,
        recall: Recall | Hydration | str,
        used: Sequence[str] | str = (),
        rejected: Sequence[str] | str = (),
        *,
        outcome: float = 1.0,
        by: str | None = None,
        interaction: str | None = None,
        now: TimeLike | None = None,
    ) -> Learned:
        """Say which memories of a recall were `used` (ids) and which were `rejected`, and how it
        went: this is what Cofire learns from.

        `outcome` in [-1, 1]: 1 helped, 0 is no evidence either way, -1 did harm. What was used
        together is linked (asymptotically: S ← S + (1 - S)·α·credit, credit divided by how many
        were used), and the question is kept as a cue of it; what was rejected where something
        else was used is weakened. `by` is the principal who says so: one that is not `trusted`
        moves a link by at most 0.2 a day, and the same about the same question counts once.
        `interaction` names a conversation: what is used soon after each other in one counts, a
        little, as used together.

        Raises InputError (an id that this recall did not return), NotFoundError (a recall unknown
        or older than 30 days), StoreError.
        """
        credits = as_credits(used, rejected)
        return learning.feedback(
            self._workings, recall,
            credits=credits, outcome=as_outcome(outcome), by=as_principal(by), signal="used",
            interaction=None if interaction is None else as_name("interaction", interaction),
            now=as_moment(now),
        )  # fmt: skip

    def opened(
        self,
        recall: Recall | Hydration | str,
        ids: Sequence[str] | str,
        *,
        by: str | None = None,
        now: TimeLike | None = None,
    ) -> Learned:
        """Say that an agent looked at these results of one recall: a weaker signal than
        `feedback`. Raises as `feedback` does."""
        return learning.feedback(
            self._workings, recall,
            credits=as_credits(ids, ()), outcome=1.0, by=as_principal(by), signal="opened",
            interaction=None, now=as_moment(now),
        )  # fmt: skip

    def cited(
        self,
        recall: Recall | str,
        answer: str,
        *,
        by: str | None = None,
        now: TimeLike | None = None,
    ) -> Learned:
        """Learn from a generated answer what it cites of a recall (or of the one of this id): `[1]`
        or `[2, 3]` by place, or ids. A weaker signal than `feedback`; an answer that cites nothing
        teaches nothing. Raises as `feedback` does."""
        if not isinstance(recall, Recall | str) or not isinstance(answer, str):
            raise InputError("cited takes a Recall and the text of the answer made from it")
        ids = learning.cited_ids(learning.returned(self._workings, recall), answer)
        if not ids:
            return Learned(counted=False, links=())
        return learning.feedback(
            self._workings, recall,
            credits=dict.fromkeys(ids, 1.0), outcome=1.0, by=as_principal(by), signal="cited",
            interaction=None, now=as_moment(now),
        )  # fmt: skip

    def strengthen(
        self, a: str, b: str, *, by: str | None = None, now: TimeLike | None = None
    ) -> Learned:
        """Say that two memories belong together. Each call counts, within the principal's 0.2 a
        day. Raises NotFoundError, InputError."""
        return learning.strengthen(self._workings, a, b, by=as_principal(by), now=as_moment(now))

    def strengths(
        self, *, as_of: TimeLike | None = None, now: TimeLike | None = None
    ) -> tuple[Strength, ...]:
        """Every learned link, strongest first, recomputed from the log; `as_of` a past moment."""
        past = None if as_of is None else as_moment(as_of)
        return learning.strengths(self._workings, as_of=past, now=as_moment(now))

    def why(self, a: str, b: str) -> tuple[Evidence, ...]:
        """The events behind the link of two memories, oldest first. Raises NotFoundError."""
        return learning.why(self._workings, a, b)

    def proposals(self, least: int = 3) -> tuple[Proposal, ...]:
        """Pairs that may contradict each other: at least so often one was rejected where the
        other was used."""
        return learning.proposals(self._workings, as_count("least", least))

    def replay(self) -> int:
        """Recompute every strength from the log and mend what differs; returns how many did (0
        unless somebody changed the file by other means)."""
        return learning.replay(self._workings)

    def learn_by(self, rule: str | Rule, *, project: str | None = None) -> int:
        """From now on learn by another rule, in the agent's own space or a project's, and make
        what was learned there what the log says by it; returns how many links that changed.

        `rule` is `cofire` (the default), `hela_mem`, `atamaia`, `echomcp`, or a
        `cofire.dynamics.plasticity.Rule` of your own. Where the rule gives the signal `retrieved` a
        rate above 0, as the papers' do, every recall links the 15 best of what it returned, within
        a second and without delaying it. The log stays: going back to a rule brings back what it
        had learned. `stats` tells a space's rule. Raises InputError, StoreError.
        """
        return learning.learn_by(self._workings, as_rule(rule), project)

    # Looking after

    def get(self, id: str | int, *, accessed: bool = False) -> Item:
        """The whole memory, by its id or its 64-bit number (`Item.number`). `accessed`: this is a
        use of it, which its `access_count` is to count. Raises NotFoundError."""
        spaces, store = self._workings.spaces, self._workings.store
        space, number = spaces.numbered(id) if isinstance(id, int) else spaces.locate(id)
        if accessed:
            store.record_access(space, [number], to_micros(as_moment(None)))
        row = store.get(space, number)
        if row is None or row.parent:
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
        trusted_only: bool = False,
        archived: bool = False,
    ) -> Page:
        """A page of memories by time. `after` is the former page's `next`. Filters as in
        `recall`; what Cofire makes itself (cues, concepts, shapes) is listed only where `kinds`
        names it. `archived`: what is archived, instead of what is not. Raises InputError."""
        most = as_count("limit", limit, most=10_000)
        filters = make_filters(
            kinds=kinds or VISIBLE_KINDS, speakers=speakers, sessions=sessions, tags=tags,
            metadata=metadata, since=since, until=until, trusted_only=trusted_only,
        )  # fmt: skip
        cursor = None if after is None else views.read_cursor(after)
        spaces = self._workings.spaces
        spaces.renew()
        rows = self._workings.store.list(
            spaces.all(), filters,
            after=cursor, limit=most + 1, newest_first=newest_first, archived=bool(archived),
        )  # fmt: skip
        items = tuple(views.item(row.space, row.item) for row in rows[:most])
        last = rows[most - 1].item if len(rows) > most else None
        return Page(items=items, next=None if last is None else views.cursor(last))

    def update(
        self,
        id: str,
        *,
        content: str | None = None,
        seen: Item | None = None,
        now: TimeLike | None = None,
        **changes: Unpack[MessageChanges],
    ) -> Item:
        """Change a memory and keep its former text in its history.

        `changes` are fields of `Message` other than `key`; None clears what can be empty. `seen` is
        the memory as you read it: if it was changed since, this changes nothing. Raises
        NotFoundError, ChangedError (only with `seen`), InputError.
        """
        wanted: dict[str, Any] = dict(changes)
        if content is not None:
            wanted["content"] = content
        clock = as_moment(now)
        remembering.update(self._workings, id, clean_changes(wanted), clock, seen=seen)
        return self.get(id)

    def history(self, id: str) -> tuple[Version, ...]:
        """A memory's former texts, oldest first; of a semantic record also those that it, or one
        after it, took the place of. Raises NotFoundError."""
        return sleeping.history(self._workings, id)

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
        lie in different spaces, LinkExistsError for a second link from one to the other,
        InputError for a strength outside [0, 1]."""
        kind, weight = as_link_type(type), as_strength(strength)
        spaces = self._workings.spaces
        from_space, from_number = spaces.end(source)
        to_space, to_number = spaces.end(target)
        if from_space.space_id != to_space.space_id:
            raise missing(target)
        moment = to_micros(as_moment(now))
        try:
            self._workings.store.link(
                from_space, from_number, to_number, kind.value, weight, now=moment
            )
        except LinkExistsError as exc:
            raise LinkExistsError(
                f"{source} is already linked to {target}; a link's type is fixed, its strength "
                "changes by feedback"
            ) from exc
        return Link(source=source, target=target, type=kind, strength=weight)

    def unlink(self, source: str, target: str, *, now: TimeLike | None = None) -> None:
        """Remove the link from one memory to another, made by hand or learned (which is noted in
        the log as an event, so that replaying it removes the link too). Raises NotFoundError."""
        clock = as_moment(now)
        spaces = self._workings.spaces
        from_space, from_number = spaces.end(source)
        to_space, to_number = spaces.end(target)
        if (from_space.tenant_id, from_space.space_id) != (to_space.tenant_id, to_space.space_id):
            raise no_link(source, target)
        try:
            self._workings.store.unlink(from_space, from_number, to_number, now=to_micros(clock))
        except NotFoundError as exc:
            raise no_link(source, target) from exc

    def links(self, id: str) -> tuple[Link, ...]:
        """The links from and to a memory. Raises NotFoundError."""
        space, number = self._workings.spaces.locate(id)
        return tuple(views.link(row) for row in self._workings.store.links(space, number))

    def stats(self) -> Stats:
        """Counts and sizes of every space this memory reads."""
        workings = self._workings
        workings.settle()
        return Stats(
            spaces=tuple(
                views.stats(workings.store.refreshed(space), workings.store.counts(space))
                for space in workings.spaces.all()
            ),
            store_bytes=workings.store.size(),
            graph_bytes=workings.recaller.nbytes,
        )

    # Moving and mending

    def export(
        self, target: str | Path | IO[bytes], *, progress: Progress | None = None
    ) -> Mapping[str, int]:
        """Write everything in this memory's spaces to a file or binary stream, as Cofire's own
        versioned JSONL, vectors and history included. A file appears whole or not at all, in
        place of an older export. Returns how many records of each type there are. Raises
        StoreError, OSError, and InputError for a file of anything else, the store's own included.
        """
        workings = self._workings
        workings.settle()
        return exchange.export(workings.store, workings.spaces.all(), target, progress)

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
        workings = self._workings
        with workings.importing.shared():
            importer = Importer(
                workings.store, workings.spaces, workings.encoder, workings.embedder,
                lambda project, batch, now, first: remembering.store_imported(
                    workings, project, batch, now, first
                ),
                vectors=workings.vectors,
            )  # fmt: skip
            return importer.run(
                source, format=format, project=project, root=root, progress=progress
            )

    def backup(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Copy the whole store to a file while it is in use, in place of an older backup.

        Raises StoreUnavailableError, and InputError for a file of anything else: a store (also
        one that was a backup until it was opened as a store), and the store itself."""
        self._workings.log.flush()
        self._workings.store.backup(path, progress)

    def restore(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Replace the whole store by a backup. Raises NotFoundError, FormatError,
        SchemaVersionError, EmbeddingMismatchError (the backup is then in place all the same)."""
        upkeep.restore(self._workings, path, progress)

    def scrub(self) -> int:
        """Clear whatever traces of deleted text are left in the store's files.

        `forget` does so by itself in a file of up to 8 MB while nobody reads; this rebuilds a file
        of any size, in memory as large as itself, while others may read but not write. Returns
        how many bytes smaller the store is. Raises StoreBusyError if others read or write for
        longer than the wait (traces may then be left), StoreUnavailableError.
        """
        return upkeep.scrub(self._workings)

    def rotate_key(self, new_key: str) -> int:
        """Put the keys of all encrypted spaces of the store under another master key: 32 random
        bytes in base64. One transaction; what is stored stays as it is. Processes that have the
        store open go on; whoever opens it from now on needs the new key. Returns how many spaces
        there are. Raises ConfigurationError (a space is under a third key: nothing is changed),
        StoreError.
        """
        return upkeep.rotate_key(self._workings, new_key)

    def reembed(
        self, embedder: Embedder | str | None = None, *, progress: Progress | None = None
    ) -> int:
        """Give every memory a vector of `embedder` (default: the one this was opened with).

        Adds what is missing, and moves the whole store to another model: new vectors are written
        beside the old ones, which stay in use until all are there, so it can be interrupted and
        goes on where it stopped. Other threads may go on using this memory; they wait only for
        the change itself (which waits for imports under way). Afterwards this memory uses
        `embedder`. Returns how many vectors were made. Raises EmbeddingError, ConfigurationError,
        InputError, StoreError.
        """
        return upkeep.reembed(self._workings, embedder, progress)

    def embed_missing(self, *, progress: Progress | None = None) -> int:
        """Give the memories in this memory's spaces that have no vector one of the model in use,
        such as those that were remembered while it could not be reached; returns how many vectors
        were made. Unlike `reembed` it changes no model and no other space. Raises EmbeddingError,
        ConfigurationError, StoreError.
        """
        return upkeep.embed_missing(self._workings, progress)

    def check(self) -> Sequence[Finding]:
        """What does not agree with everything else: rows, segments, tags, links, vectors,
        postings and active graphs. Empty if all is well."""
        return upkeep.check(self._workings)
