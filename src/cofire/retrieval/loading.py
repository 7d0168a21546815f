"""From the store to the active graph of a space, kept up to date and beside a sidecar file.

The database is the truth. A graph held in memory is asked for its space's revision before every
recall and pulls what is newer; a sidecar file only saves pulling everything when a process starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cofire.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingMismatchError,
    InputError,
)
from cofire.graph.active import ActiveGraph
from cofire.graph.cache import GraphCache
from cofire.graph.comparing import differences
from cofire.graph.freed_memory import keep_freed_memory
from cofire.graph.sidecar import SidecarKey, delete_sidecar, load_sidecar, save_sidecar
from cofire.graph.vectors import COARSE_FROM, Projection, fit_projection
from cofire.logs import get_logger
from cofire.models import Embedder
from cofire.store import Store
from cofire.store.large_spaces import Sought, Standing
from cofire.store.records import Finding, SpaceInfo

SIDECAR_FROM = 2_000
"""Rows from which a sidecar file is worth writing."""
SIDECAR_SHARE = 20
"""A sidecar is written again when more than 1 / SIDECAR_SHARE of the rows are newer."""
FIT_SAMPLE = 10_000
"""Vectors a projection is fitted on, evenly spread over the space."""

_log = get_logger(__name__)

Key = tuple[int, int]
"""Tenant and space: the numbers of spaces count from 1 in every tenant."""


class Graphs:
    """The active graphs of a store's spaces."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        budget: int,
        *,
        most: int | None = None,
    ) -> None:
        """`embedder` None: vectors are off and none is loaded into a ranking. `budget`: bytes of
        graphs kept. `most`: bytes of one graph from which on its space is served by the
        database's indexes, where that is possible (None: no space is)."""
        keep_freed_memory()
        self._store = store
        self._embedder = embedder
        self._cache = GraphCache(budget)
        self._most = most
        self._saved: dict[Key, int] = {}
        self._spaces: dict[Key, SpaceInfo] = {}
        self._unsettled: set[Key] = set()
        """Spaces that were opened while the embedder could not even tell what it is."""

    @property
    def nbytes(self) -> int:
        """Bytes of the graphs held."""
        return self._cache.nbytes

    def get(self, space: SpaceInfo, revision: int | None = None) -> ActiveGraph:
        """The snapshot of a space as it is now (at `revision`, if that is known), all of it even
        where indexes serve it. Raises NotFoundError, EmbeddingMismatchError, StoreError."""
        if revision is None:
            revision = self._store.revision(space)
        return self._cache.get(_place(space), revision, lambda held: self._refreshed(space, held))

    def standing(self, space: SpaceInfo) -> Standing:
        """The space's revision now, and whether indexes serve it. Raises NotFoundError."""
        return self._store.standing(space)

    def part(self, space: SpaceInfo, sought: Sought) -> ActiveGraph:
        """A graph of what a question needs of a space that indexes serve, made for it alone.
        Raises as `get`."""
        self._cache.discard(_place(space))  # it was held until the indexes served it
        graph = ActiveGraph.empty(self._dimension(self._store.refreshed(space)))
        found = self._store.part(space, sought)
        return graph.apply(found.changes).as_part(found.documents, found.frequencies)

    def fitting(
        self, spaces: Sequence[SpaceInfo], graphs: list[ActiveGraph], dimension: int
    ) -> list[ActiveGraph]:
        """`graphs`, or where one was opened before the embedder could say what it is, those of
        now: it has given a vector of `dimension`. Raises as `get`."""
        if not self._unsettled and all(graph.dimension == dimension for graph in graphs):
            return graphs
        for space in spaces:
            if _place(space) in self._unsettled:
                self._cache.discard(_place(space))
        return [self.get(space) for space in spaces]

    def _refreshed(self, space: SpaceInfo, held: ActiveGraph | None) -> ActiveGraph:
        if _place(space) in self._unsettled:
            held = None
        graph = held if held is not None else self._opened(space)
        changes = self._store.changes(space, graph.revision)
        if changes.rebuild:
            space = self._store.refreshed(space)
            graph = ActiveGraph.empty(self._dimension(space), self._projection(space))
        graph = graph.apply(changes)
        if graph.projection is None and graph.items >= COARSE_FROM and space.dimension:
            graph = graph.with_projection(self._fitted(space, graph))
        self._spaces[_place(space)] = space
        if held is None:
            self._weigh(space, graph)
        return graph

    def _weigh(self, space: SpaceInfo, graph: ActiveGraph) -> None:
        """Has the database's indexes serve a space whose graph turned out too large."""
        if self._most is None or graph.nbytes <= self._most or space.indexed:
            return
        if not self._store.shared or space.encrypted or self._embedder is None:
            return
        megabytes = round(graph.nbytes / 1e6)
        _log.info("space goes to the database's indexes", space=str(space.ref), mb=megabytes)
        try:
            self._store.set_indexed(space, True)
        except ConfigurationError as exc:
            _log.warning("space stays in memory", space=str(space.ref), reason=str(exc))

    def _opened(self, space: SpaceInfo) -> ActiveGraph:
        """From the sidecar where it is good, else empty."""
        space = self._store.refreshed(space)
        dimension = self._dimension(space)
        projection = self._projection(space)
        path = _sidecar(self._store, space)
        if path is not None and path.exists():
            loaded = load_sidecar(path, _key(space, dimension), projection)
            if loaded.graph is not None and self._holds(space, loaded.graph):
                self._saved[_place(space)] = loaded.graph.items
                return loaded.graph
            reason = loaded.reason or "of another copy of the store"
            _log.info("sidecar not used", path=str(path), reason=reason)
        return ActiveGraph.empty(dimension, projection)

    def _holds(self, space: SpaceInfo, graph: ActiveGraph) -> bool:
        """Whether the store holds the newest memory of a graph that was saved.

        `restore` leaps ahead of every revision that was ever seen, so a sidecar from before it is
        made anew. Somebody who puts an older copy of the file in the store's place does not: once
        that has been written to, the sidecar would look merely old.
        """
        numbers = graph.column("number")
        if not len(numbers):
            return True
        row = int(numbers.argmax())
        stored = self._store.get(space, int(numbers[row]))
        return stored is not None and stored.uid == graph.uid(row)

    def _dimension(self, space: SpaceInfo) -> int:
        if self._embedder is None:
            return space.dimension or 1
        try:
            name, dimension = self._embedder.name, self._embedder.dimension
        except EmbeddingMismatchError:
            raise
        except (EmbeddingError, ConfigurationError):
            # A server that has to be asked for it and does not answer. It will not embed the
            # question either, and then a recall goes by words and says why.
            self._unsettled.add(_place(space))
            return space.dimension or 1
        self._unsettled.discard(_place(space))
        if space.dimension is None:
            return dimension
        if (space.model, space.dimension) != (name, dimension):
            raise EmbeddingMismatchError(
                f"the vectors of {space.ref} are now {space.model}'s ({space.dimension} "
                f"dimensions), not {name}'s: another process re-embedded the "
                "store. Open it again with that embedder"
            )
        return space.dimension

    def _projection(self, space: SpaceInfo) -> Projection | None:
        stored = self._store.projection(space)
        if stored is None or not space.dimension:
            return None
        version, data = stored
        return Projection(np.frombuffer(data, "<f4").reshape(-1, space.dimension), version)

    def _fitted(self, space: SpaceInfo, graph: ActiveGraph) -> Projection | None:
        """Fit the space's projection once; where another process was first, take its."""
        rows = np.flatnonzero(graph.column("has_vector"))
        sample = rows[:: max(1, len(rows) // FIT_SAMPLE)]
        if len(sample) < COARSE_FROM // 2:
            return None
        matrix = fit_projection(graph.column("vector")[sample])
        with contextlib.suppress(InputError):  # one is kept already
            self._store.put_projection(space, 1, matrix.astype("<f4").tobytes())
        return self._projection(space)

    def check(self, space: SpaceInfo) -> list[Finding]:
        """Compare the graph in use with one built anew from the store."""
        held = self.get(space).compacted()
        space = self._store.refreshed(space)
        fresh = ActiveGraph.empty(held.dimension, held.projection)
        changes = self._store.changes(space, 0)
        fresh = fresh.apply(changes).compacted()
        if fresh.revision != held.revision:  # somebody wrote meanwhile: nothing to compare
            return []
        differing = differences(held, fresh)
        if not differing:
            return []
        return [
            Finding(
                code="graph",
                message=f"{space.ref}: the active graph is not what the store holds; delete the "
                "file that `sidecar` names, it is made anew",
                count=len(differing),
                examples=tuple(differing[:5]),
            )
        ]

    # Sidecars

    def save(self) -> None:
        """Write the sidecars of spaces that grew since theirs was written."""
        for key, space in list(self._spaces.items()):
            graph = self._cache.peek(key)
            path = _sidecar(self._store, space)
            if graph is None or path is None or graph.items < SIDECAR_FROM:
                continue
            if key in self._unsettled:
                continue
            newer = graph.items - self._saved.get(key, 0)
            if newer * SIDECAR_SHARE > graph.items:
                self._save(space, graph, path)

    def _save(self, space: SpaceInfo, graph: ActiveGraph, path: Path) -> None:
        try:
            save_sidecar(path, graph, _key(space, graph.dimension))
        except OSError as exc:
            _log.info("sidecar not written", path=str(path), reason=str(exc))
            return
        self._saved[_place(space)] = graph.items
        # What was forgotten by another process while this was written must not stay in it; what
        # is forgotten from now on deletes the file itself.
        changes = self._store.changes(space, graph.revision)
        if changes.rebuild or changes.removed_items:
            delete_sidecar(path)

    def forget(self, space: SpaceInfo) -> None:
        """After a deletion: the sidecar goes, and the graph in memory with what it reserved."""
        path = self._store.sidecar(space)
        if path is not None:
            delete_sidecar(path)
        self._saved.pop(_place(space), None)
        self._cache.discard(_place(space))

    def close(self) -> None:
        """Write sidecars and let go of the graphs."""
        self.save()
        self._cache.clear()
        self._spaces.clear()


def _place(space: SpaceInfo) -> Key:
    return space.tenant_id, space.space_id


def _sidecar(store: Store, space: SpaceInfo) -> Path | None:
    """Where a space's file is; None for an encrypted one: vectors tell much of a text."""
    return None if space.encrypted else store.sidecar(space)


def _key(space: SpaceInfo, dimension: int) -> SidecarKey:
    return SidecarKey(
        space=f"{space.tenant_id}/{space.space_id}/{space.created}",
        model=space.model or "",
        dimension=dimension,
    )
