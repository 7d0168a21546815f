"""`Memories`: the memories of many agents and users in one opened store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cofire.arguments import as_names
from cofire.consolidation.budgets import Budget
from cofire.consolidation.night import SLEEP
from cofire.encoding.encoder import Redact
from cofire.memory import Memory
from cofire.models import Embedder, Generator
from cofire.sleeping import consolidate_claimed
from cofire.store import Store
from cofire.store.claims import Claim
from cofire.store.records import SpaceInfo
from cofire.types import SleepReport
from cofire.workings import OpenedStore, hosted_workings, open_opened, space_workings

if TYPE_CHECKING:
    from cofire.settings import Settings

HELD = 10_000
"""Memories kept open, least recently used first to go: a few hundred bytes each, beside their
active graphs, which have a budget of their own."""

Name = tuple[str, str, str | None, tuple[str, ...]]


class Memories:
    """A store opened once for everybody it is served to: one pool of connections, one model, one
    budget of active graphs, one log of recalls, whoever asks.

    `of` gives the memory of one agent and user. Safe to use from many threads, and after a fork.
    """

    def __init__(self, opened: OpenedStore) -> None:
        """For `Memories.open`; takes over what it is given and closes it."""
        self._opened = opened
        self._held: OrderedDict[Name, Memory] = OrderedDict()
        self._lock = Lock()

    @classmethod
    def open(
        cls,
        url_or_path: str | Path | None = None,
        *,
        create: bool = True,
        vectors: bool = True,
        embedder: Embedder | str | None = None,
        redact: Redact | None = None,
        trusted: Sequence[str] | str = (),
        settings: Settings | None = None,
    ) -> Self:
        """Open or make a store, as `Memory.open` does. Raises what that raises."""
        opened = open_opened(
            url_or_path, create=create, vectors=vectors, embedder=embedder, redact=redact,
            settings=settings, trusted=as_names("trusted", trusted), encrypt=None,
            met=lambda _: None, hosting=True,
        )  # fmt: skip
        opened.retry_traces()
        return cls(opened)

    def of(
        self,
        identity: str = "default",
        user: str | None = None,
        projects: Sequence[str] | str = (),
        *,
        tenant: str = "default",
        create: bool = True,
    ) -> Memory:
        """The memory of an agent, as `Memory.open` opens it, its spaces made if need be (`create`
        False: they must exist). It shares everything else with the others, so closing it does
        nothing, and what is done to a whole store (restoring, scrubbing, re-embedding, changing the
        master key) it refuses. Raises NotFoundError, EmbeddingMismatchError, InputError,
        StoreError."""
        shared = as_names("projects", projects)
        name = (tenant, identity, user, shared)
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
                return held
        made = Memory(hosted_workings(self._opened, identity, user, shared, tenant, create=create))
        with self._lock:
            held = self._held.setdefault(name, made)
            while len(self._held) > HELD:
                self._held.popitem(last=False)
        return held

    def consolidate_claimed(
        self,
        space: SpaceInfo,
        claim: Claim,
        *,
        generator: Generator | None,
        now: datetime,
        stopped: Callable[[], bool],
    ) -> SleepReport:
        """A worker's night of one space, whoever it belongs to (an agent, a user, a project),
        which the worker has claimed in the store and holds. It ends at the next part of a step
        when `stopped`. Makes no space: raises NotFoundError for one that is gone, besides
        EmbeddingMismatchError, StoreError."""
        self._opened.log.flush()
        self._opened.retry_traces(thorough=True)
        return consolidate_claimed(
            space_workings(self._opened, space), space, claim,
            only=(), rule=SLEEP, generator=generator, budget=self._budget(), now=now, told=None,
            stopped=stopped,
        )  # fmt: skip

    def _budget(self) -> Budget:
        """Counts what a language model costs; no limit."""
        prices = self.settings.generator_input_price, self.settings.generator_output_price
        return Budget(input_price=prices[0], output_price=prices[1])

    @property
    def store(self) -> Store:
        """The opened store."""
        return self._opened.store

    @property
    def settings(self) -> Settings:
        """What it was opened with."""
        return self._opened.settings

    @property
    def graph_bytes(self) -> int:
        """Bytes of active graphs in memory."""
        return self._opened.recaller.nbytes

    def watch_recalls(self, watcher: Callable[[Mapping[str, float]], None] | None) -> None:
        """Have `watcher` told of every recall how long its stages took (ms), on its own thread,
        before it is answered; None: nobody."""
        self._opened.recaller.watcher = watcher

    def warm(self) -> None:
        """Load the embedding model, which the first question would wait for. Raises
        EmbeddingError, ConfigurationError."""
        if self._opened.vectors:
            self._opened.embedder.embed_query("warm")

    def flush(self) -> None:
        """Write the recall records that are buffered now. Raises StoreError."""
        self._opened.log.flush()

    def close(self) -> None:
        """Write what is still buffered and let go of files; closing again does nothing."""
        with self._lock:
            self._held.clear()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
