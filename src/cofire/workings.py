"""What the verbs of a memory work with: an opened store (its model, active graphs and log of
recalls with it, which many memories may share) and the spaces that the memory sees.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cofire.arguments import as_hook, as_name, as_names
from cofire.encoding.encoder import Encoder, Redact
from cofire.errors import ConfigurationError, InputError, NotFoundError, StoreError
from cofire.interactions import Interactions
from cofire.models import Embedder, make_embedder
from cofire.models.forking import SharedLock
from cofire.models.verifying import VerifiedEmbedder
from cofire.retrieval.engine import Recaller
from cofire.store import Store, open_store
from cofire.store.recall_log import RecallLog
from cofire.store.records import SpaceInfo
from cofire.store.sealing import parse_key
from cofire.types import SpaceRef, to_micros
from cofire.visible import VisibleSpaces, open_space, require_model

if TYPE_CHECKING:
    from cofire.settings import Settings


WAITERS, HOSTED_WAITERS = 64, 2
"""Threads that may wait at once for another process, in a program and in a server (whose threads
are few, and who asks it may make up ids)."""


class OpenedStore:
    """A store, opened, and all that the memories in it share: the model, the active graphs, the
    log of recalls. Takes over `store` and `embedder` and closes them.

    `vectors` False: nothing is embedded, and the embedder only counts wordpieces. `hosting`: it is
    more than one memory's, so none of them may close it, replace it or move it to another model.

    `embedding` is held shared by whoever embeds and reads or writes what was embedded, and alone
    while the model changes; `importing`, in the same way, by an import for as long as it takes.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        settings: Settings,
        *,
        vectors: bool,
        redact: Redact | None,
        trusted: Sequence[str] = (),
        hosting: bool = False,
    ) -> None:
        used = embedder if vectors else None
        self.store = store
        self.embedder = embedder
        self.settings = settings
        self.vectors = vectors
        self.encoder = Encoder(used, redact=redact)
        self.trusted = frozenset(trusted)
        self.interactions = Interactions()
        self.recaller = Recaller(
            store,
            used,
            embedder,
            settings.graph_cache_mb * 1_000_000,
            space_bytes=settings.space_budget_mb * 1_000_000,
        )
        self.log = RecallLog(store)
        self.embedding = SharedLock()
        self.importing = SharedLock()
        self.hosting = hosting
        self._waiters = threading.Semaphore(HOSTED_WAITERS if hosting else WAITERS)

    @contextmanager
    def patient(self) -> Iterator[bool]:
        """Whether this thread may wait for what another process has not written yet."""
        may = self._waiters.acquire(blocking=False)
        try:
            yield may
        finally:
            if may:
                self._waiters.release()

    def retry_traces(self, *, thorough: bool = False) -> None:
        """Clear the files of what was deleted where that could not be done at once; what still is
        in the way is left for the next time."""
        with suppress(StoreError):
            self.store.retry_traces(thorough=thorough)

    def use(self, model: Embedder) -> None:
        """From now on embed with `model`."""
        if model is not self.embedder:
            self.embedder.close()
        self.embedder = model
        self.vectors = True
        self.encoder = self.encoder.with_embedder(model)
        self.recaller.use(model)

    def close(self) -> None:
        """Write what is buffered and let go of files; closing again does nothing."""
        with ExitStack() as closing:  # each is closed, whatever those before it raise
            closing.callback(self.embedder.close)
            closing.callback(self.store.close)
            closing.callback(self.retry_traces)
            closing.callback(self.recaller.close)
            closing.callback(self.log.close)


class Workings:
    """What the verbs of one memory work with: an opened store, and the `spaces` in it that this
    memory sees, the agent's own first and then those of `projects`."""

    def __init__(
        self, opened: OpenedStore, spaces: Sequence[SpaceInfo], projects: Sequence[str]
    ) -> None:
        own, *shared = spaces
        named = dict(zip(projects, shared, strict=True))
        self.opened = opened
        used = opened.embedder if opened.vectors else None
        self.spaces = VisibleSpaces(opened.store, own, named, used, opened.recaller.forget)

    @property
    def store(self) -> Store:
        return self.opened.store

    @property
    def embedder(self) -> Embedder:
        return self.opened.embedder

    @property
    def settings(self) -> Settings:
        return self.opened.settings

    @property
    def vectors(self) -> bool:
        return self.opened.vectors

    @property
    def encoder(self) -> Encoder:
        return self.opened.encoder

    @property
    def trusted(self) -> frozenset[str]:
        return self.opened.trusted

    @property
    def interactions(self) -> Interactions:
        return self.opened.interactions

    @property
    def recaller(self) -> Recaller:
        return self.opened.recaller

    @property
    def log(self) -> RecallLog:
        return self.opened.log

    @property
    def embedding(self) -> SharedLock:
        return self.opened.embedding

    @property
    def importing(self) -> SharedLock:
        return self.opened.importing

    @property
    def named_tenant(self) -> str | None:
        """What is done to a whole store is done to this tenant where the database, or who hosts
        this memory, keeps tenants apart; None: to all of them."""
        apart = self.store.shared or self.opened.hosting
        return self.spaces.own.ref.tenant if apart else None

    def every_space(self) -> list[SpaceInfo]:
        """The spaces of the whole store, or of its part that this memory may see."""
        return self.store.spaces(self.named_tenant)

    def settle(self) -> None:
        """Write what is buffered, and take the spaces as they are now: before counting, copying
        or comparing everything. Raises StoreError, EmbeddingMismatchError."""
        self.log.flush()
        self.spaces.renew()

    def require_whole_store(self, doing: str) -> None:
        """Raises ConfigurationError where others use the same opened store: what is done to all of
        it is not one memory's to do."""
        if self.opened.hosting:
            raise ConfigurationError(
                f"{doing} is done to the whole store, which this memory shares with others here; "
                "open it by `Memory.open`, or use the command line"
            )

    def retry_traces(self, *, thorough: bool = False) -> None:
        """See `OpenedStore.retry_traces`."""
        self.opened.retry_traces(thorough=thorough)

    def use(self, model: Embedder) -> None:
        """From now on embed with `model`."""
        self.opened.use(model)
        self.spaces.use(model)

    def close(self) -> None:
        """Close the store if it is this memory's alone; closing again does nothing."""
        if not self.opened.hosting:
            self.opened.close()


def open_workings(
    url_or_path: str | Path | None,
    identity: str,
    user: str | None,
    projects: Sequence[str] | str,
    *,
    tenant: str,
    create: bool,
    vectors: bool,
    embedder: Embedder | str | None,
    redact: Redact | None,
    settings: Settings | None,
    trusted: Sequence[str] | str = (),
    encrypt: bool | None = None,
) -> Workings:
    """See `Memory.open`."""
    exempt = as_names("trusted", trusted)
    shared = as_names("projects", projects)
    refs = _named_spaces(tenant, identity, user, shared)
    spaces: list[SpaceInfo] = []

    def met(store: Store) -> tuple[str, int] | None:
        spaces.extend(_open_spaces(store, refs, encrypt=encrypt))
        return _stored_model(spaces) if vectors else None

    opened = open_opened(
        url_or_path, create=create, vectors=vectors, embedder=embedder, redact=redact,
        settings=settings, trusted=exempt, encrypt=encrypt, met=met,
    )  # fmt: skip
    with ExitStack() as opening:
        opening.callback(opened.close)
        workings = _workings(opened, spaces, shared, _place(url_or_path, opened.settings))
        opening.pop_all()  # its own to close from now on
    workings.retry_traces()
    return workings


def open_opened(
    url_or_path: str | Path | None,
    *,
    create: bool,
    vectors: bool,
    embedder: Embedder | str | None,
    redact: Redact | None,
    settings: Settings | None,
    trusted: Sequence[str],
    encrypt: bool | None,
    met: Callable[[Store], tuple[str, int] | None],
    hosting: bool = False,
) -> OpenedStore:
    """Open a store and its model. `met` is given the store, and tells the name and dimension of
    the vectors in it, if any. Raises as `Memory.open`."""
    hook = as_hook(redact)
    settings = _chosen_settings(settings, embedder)
    own = None if embedder is None or isinstance(embedder, str) else VerifiedEmbedder(embedder)
    store = open_store(
        _place(url_or_path, settings), create=create, busy_timeout=settings.write_wait,
        durability=settings.durability, statement_timeout=settings.statement_timeout,
        pool_size=settings.pool_size, master_key=master_key(settings),
        encrypt_new=settings.encrypt_new_spaces if encrypt is None else encrypt,
    )  # fmt: skip
    with ExitStack() as opening:
        opening.callback(store.close)
        stored = met(store)
        model = own if own is not None else make_embedder(settings, stored)
        if own is None:
            opening.callback(model.close)
        opened = OpenedStore(
            store, model, settings,
            vectors=vectors, redact=hook, trusted=trusted, hosting=hosting,
        )  # fmt: skip
        opening.pop_all()
    return opened


def hosted_workings(
    opened: OpenedStore,
    identity: str,
    user: str | None,
    projects: Sequence[str] | str,
    tenant: str,
    *,
    create: bool,
) -> Workings:
    """One memory's part of a store that is opened for many. Raises as `Memory.open`."""
    shared = as_names("projects", projects)
    refs = _named_spaces(tenant, identity, user, shared)
    if not create:
        for ref in refs:
            if opened.store.space(ref, create=False) is None:
                raise NotFoundError(f"nothing has been remembered for {_told(ref)} yet")
    spaces = _open_spaces(opened.store, refs)
    return _workings(opened, spaces, shared, "this store")


def _told(ref: SpaceRef) -> str:
    """Whose a space is, to whoever named it."""
    if ref.project is not None:
        return f"the project {ref.project!r}"
    of = "" if ref.user is None else f" of the user {ref.user!r}"
    return f"the identity {ref.identity!r}{of}"


def space_workings(opened: OpenedStore, space: SpaceInfo) -> Workings:
    """What works on one space of a store that is opened for many, be it an agent's own or a
    project's. Raises EmbeddingMismatchError."""
    return _workings(opened, [space], (), "this store")


def _workings(
    opened: OpenedStore, spaces: Sequence[SpaceInfo], projects: Sequence[str], where: object
) -> Workings:
    """Raises EmbeddingMismatchError."""
    if opened.vectors:
        for space in spaces:
            require_model(space, opened.embedder, where)
    return Workings(opened, spaces, projects)


def _open_spaces(
    store: Store, refs: Sequence[SpaceRef], *, encrypt: bool | None = None
) -> list[SpaceInfo]:
    now = to_micros(datetime.now(UTC))
    spaces = [open_space(store, ref, now) for ref in refs]
    if encrypt:
        _require_encrypted(spaces)
    return spaces


def chosen_embedder(embedder: Embedder | str, settings: Settings) -> Embedder:
    """Another embedder for a memory that was opened with `settings`. Raises ConfigurationError,
    InputError."""
    if isinstance(embedder, str):
        return make_embedder(_chosen_settings(settings, embedder))
    return VerifiedEmbedder(embedder)


def _chosen_settings(settings: Settings | None, embedder: Embedder | str | None) -> Settings:
    """The settings, with the embedder that is named. Raises ConfigurationError, InputError."""
    from cofire.settings import Settings, load_settings, with_embedder

    name = embedder if isinstance(embedder, str) else None
    if settings is None:
        return load_settings(embedder=name)
    if not isinstance(settings, Settings):
        raise InputError(
            f"settings must be what load_settings() returns, not {type(settings).__name__}"
        )
    return settings if name is None else with_embedder(settings, name)


def master_key(settings: Settings) -> bytes | None:
    """The key in the settings, or in the file that they name. Raises ConfigurationError."""
    key, file = settings.encryption_key, settings.encryption_key_file
    if key is not None and file is not None:
        raise ConfigurationError(
            "COFIRE_ENCRYPTION_KEY and COFIRE_ENCRYPTION_KEY_FILE are both set; set one of them"
        )
    if file is not None:
        return read_key_file(file)
    return None if key is None else parse_key(key.get_secret_value(), "COFIRE_ENCRYPTION_KEY")


def read_key_file(path: str | Path) -> bytes:
    """The master key in a file. Raises ConfigurationError."""
    place = Path(path).expanduser()
    try:
        text = place.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{place}: the key file cannot be read: {exc}") from exc
    return parse_key(text, str(place))


def _require_encrypted(spaces: Sequence[SpaceInfo]) -> None:
    for space in spaces:
        if not space.encrypted:
            raise ConfigurationError(
                f"{space.ref}: this space is not encrypted, and `encrypt` decides for new spaces "
                "only; export it, and import it into a new store"
            )


def _place(url_or_path: str | Path | None, settings: Settings) -> str | Path:
    """Which store. Raises InputError."""
    if url_or_path is None:
        return settings.store
    if isinstance(url_or_path, str | Path):
        return url_or_path
    if isinstance(url_or_path, os.PathLike):
        return Path(url_or_path)
    raise InputError(f"a store is the path of a file or a URL, not {type(url_or_path).__name__}")


def _stored_model(spaces: Sequence[SpaceInfo]) -> tuple[str, int] | None:
    """Name and dimension of the vectors in the first of the spaces that has any."""
    for space in spaces:
        if space.model is not None and space.dimension is not None:
            return space.model, space.dimension
    return None


def _named_spaces(
    tenant: str, identity: str, user: str | None, projects: Sequence[str]
) -> list[SpaceRef]:
    """The agent's own space, then those of its projects. Raises InputError."""
    tenant = as_name("tenant", tenant)
    own = SpaceRef(
        tenant=tenant,
        identity=as_name("identity", identity),
        user=None if user is None else as_name("user", user),
    )
    shared = [SpaceRef(tenant=tenant, project=as_name("project", name)) for name in projects]
    return [own, *shared]
