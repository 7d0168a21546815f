"""The store as a whole: restored, scrubbed, moved to another model, examined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cofire.encoding.reembedding import add_vectors, reembed_space
from cofire.errors import ConfigurationError
from cofire.models import Embedder
from cofire.store.records import Finding
from cofire.store.sealing import parse_key
from cofire.types import Progress
from cofire.workings import Workings, chosen_embedder


def restore(workings: Workings, path: str | Path, progress: Progress | None) -> None:
    """See `Memory.restore`."""
    workings.require_whole_store("restoring")
    workings.log.flush()
    workings.store.restore(path, progress)
    workings.spaces.reopen("the restored store")


def scrub(workings: Workings) -> int:
    """See `Memory.scrub`."""
    workings.require_whole_store("scrubbing")
    workings.log.flush()
    before = workings.store.size()
    workings.store.scrub()
    return max(0, before - workings.store.size())


def rotate_key(workings: Workings, new_key: str) -> int:
    """See `Memory.rotate_key`."""
    workings.require_whole_store("changing the master key")
    workings.log.flush()
    return workings.store.rotate_key(parse_key(new_key, "the new key"), workings.named_tenant)


def reembed(workings: Workings, embedder: Embedder | str | None, progress: Progress | None) -> int:
    """See `Memory.reembed`."""
    workings.require_whole_store("re-embedding")
    if embedder is None:
        return _reembed(workings, workings.embedder, progress)
    model = chosen_embedder(embedder, workings.settings)
    try:
        return _reembed(workings, model, progress)
    finally:
        if model is not workings.embedder:  # it came to nothing
            model.close()


def _reembed(workings: Workings, model: Embedder, progress: Progress | None) -> int:
    """Nearly all is done while the other threads go on; they wait for the last few vectors and
    the change from one model to the other, which no call may see half done."""
    workings.spaces.renew()
    made = 0
    for space in workings.every_space():
        made += add_vectors(workings.store, space, model, made, progress)
    with workings.importing.alone("re-embedding"), workings.embedding.alone("re-embedding"):
        for space in workings.every_space():
            made += reembed_space(workings.store, space, model, made, progress)
            workings.recaller.forget(space)
        workings.use(model)
    return made


def embed_missing(workings: Workings, progress: Progress | None) -> int:
    """See `Memory.embed_missing`."""
    if not workings.vectors:
        raise ConfigurationError("vectors are off here: open with vectors=True to make any")
    with workings.embedding.alone("embedding what is missing"):
        pass  # what others began to store while the model could not be reached is stored now
    workings.spaces.renew()
    model = workings.embedder
    made = 0
    for space in workings.spaces.all():
        with workings.embedding.shared():
            if workings.store.pending(space, model.name, model.dimension, limit=1):
                modelled = workings.spaces.with_model(space)
                made += add_vectors(workings.store, modelled, model, made, progress)
    return made


def check(workings: Workings) -> Sequence[Finding]:
    """See `Memory.check`."""
    workings.settle()
    found = list(workings.store.check(workings.named_tenant))
    if any(finding.code in {"integrity", "schema", "sealed"} for finding in found):
        return found  # what such a file says of its rows means nothing
    for space in workings.spaces.all():
        found += workings.recaller.check(space)
    return found
