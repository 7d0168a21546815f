"""Giving a space the vectors of a model: missing ones, or all of another model's.

New vectors are written beside those in use, batch by batch, and taken over in one transaction when
all are there. Stopping at any point loses nothing: the next run goes on with what is missing.
"""

from __future__ import annotations

from cofire.encoding.statements import statements
from cofire.models import Embedder
from cofire.store import Store
from cofire.store.records import NewVector, SpaceInfo
from cofire.types import Kind, Progress

BATCH = 256
"""Texts embedded, and stored, at a time."""


def reembed_space(
    store: Store,
    space: SpaceInfo,
    embedder: Embedder,
    done_before: int = 0,
    progress: Progress | None = None,
) -> int:
    """Embed what has no vector of `embedder`, then make it the space's model; returns how many
    vectors were made. `progress` is told `done_before` more than that.

    Texts for which the model gives nothing usable, and those that change while they are embedded,
    stay without a vector and are tried again the next time. Raises EmbeddingError,
    ConfigurationError, StoreError.
    """
    made = add_vectors(store, space, embedder, done_before, progress)
    current = store.refreshed(space)
    if (current.model, current.dimension) != (embedder.name, embedder.dimension):
        store.switch_model(current, embedder.name, embedder.dimension, allow_missing=True)
        # What was remembered with the former model between the last batch and the switch.
        made += add_vectors(store, space, embedder, done_before + made, progress)
    return made


def add_vectors(
    store: Store,
    space: SpaceInfo,
    embedder: Embedder,
    done_before: int = 0,
    progress: Progress | None = None,
) -> int:
    """The first half of it: the vectors that are missing, beside those in use, which stay in
    use. Returns and raises as `reembed_space`."""
    made = 0
    after = 0
    name, dimension = embedder.name, embedder.dimension
    while rows := store.pending(space, name, dimension, limit=BATCH, after=after):
        after = rows[-1].number
        embedded = embedder.embed_passages(
            [
                row.content if row.kind == Kind.GIST.value else statements(row.content)
                for row in rows
            ]
        )
        stored = embedded.vectors.astype("<f2")
        pairs = [
            NewVector(row.number, row.revision, vector.tobytes())
            for row, vector, good in zip(rows, stored, embedded.ok, strict=True)
            if good
        ]
        if pairs:
            made += store.put_vectors(space, name, dimension, pairs)
        if progress is not None:
            progress(done_before + made, None)
    return made
