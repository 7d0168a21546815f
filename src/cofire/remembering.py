"""Storing messages, a thousand in one transaction, and changing what was stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from cofire import views
from cofire.arguments import Messages
from cofire.echoes import Echoes
from cofire.errors import ChangedError, InputError
from cofire.lifecycle import reserved, unreserved
from cofire.store.records import ItemRow, SpaceInfo
from cofire.store.updating import ChangedMeanwhileError
from cofire.types import Item, Message, Progress, Receipt, to_micros
from cofire.visible import missing
from cofire.workings import Workings

BATCH = 1_000
"""Messages per transaction when many are remembered at once."""


def remember(
    workings: Workings,
    project: str | None,
    messages: Messages,
    now: datetime,
    *,
    progress: Progress | None,
) -> Receipt:
    """See `Memory.remember`."""
    spaces = workings.spaces
    spaces.target(project)  # an unknown project is refused before anything is read
    receipts = []
    echoes = Echoes(workings.store, spaces.all())
    numbered = echoes.leave_out(messages)
    while batch := list(islice(numbered, BATCH)):
        places, wanted = zip(*batch, strict=True)
        receipts.append(store_batch(workings, project, wanted, now, places))
        if progress is not None:
            progress(messages.read, messages.total)
    told = (*messages.warnings, *echoes.warnings)
    if len(receipts) == 1 and not told:
        return receipts[0]
    return _joined(
        receipts,
        spaces.lasting(lambda: workings.store.revision(spaces.target(project))),
        told,
    )


def store_imported(
    workings: Workings, project: str | None, batch: Sequence[Message], now: datetime, first: int
) -> Receipt:
    """Store messages of a file from elsewhere as one transaction, without what is Cofire's own in
    them; `first` is the place of the first."""
    echoes = Echoes(workings.store, workings.spaces.all())
    kept = list(echoes.leave_out((at, unreserved(one)) for at, one in enumerate(batch, first)))
    messages, places = [one for _, one in kept], [at for at, _ in kept]
    receipt = store_batch(workings, project, messages, now, places)
    return replace(receipt, warnings=(*receipt.warnings, *echoes.warnings))


def store_batch(
    workings: Workings,
    project: str | None,
    batch: Sequence[Message],
    now: datetime,
    places: Iterable[int],
) -> Receipt:
    """Encode and store messages as one transaction; `places` are theirs among all that are being
    stored."""
    spaces = workings.spaces
    with workings.embedding.shared():
        encoded = workings.encoder.encode(batch, now=now, counter=workings.embedder, places=places)
        appended = spaces.lasting(
            lambda: workings.store.append(spaces.with_model(spaces.target(project)), encoded.items)
        )
    return Receipt(
        ids=tuple(views.public_id(uid) for uid in appended.uids),
        created=appended.created,
        revision=appended.revision,
        warnings=encoded.warnings,
    )


Changes = Mapping[str, Any] | Callable[[ItemRow], Mapping[str, Any]]


def update(
    workings: Workings, id: str, changes: Changes, now: datetime, *, seen: Item | None = None
) -> None:
    """Change fields of a memory (what `changes` makes of it as it is) and nothing that somebody
    else changes meanwhile. `seen`: the memory as the caller read it. Raises NotFoundError,
    InputError, ChangedError if it is not as it was `seen`."""
    while True:
        try:
            with workings.embedding.shared():
                _update(workings, id, changes, now, seen)
        except ChangedMeanwhileError:  # by somebody else: that change must stay
            continue
        return


def _update(
    workings: Workings, id: str, changes: Changes, now: datetime, seen: Item | None
) -> None:
    space, number = workings.spaces.locate(id)
    row = workings.store.get(space, number)
    if row is None:
        raise missing(id)
    if seen is not None and (row.version, row.updated) != (seen.version, to_micros(seen.updated)):
        raise ChangedError(f"memory {id} was changed since it was read; read it again")
    fields = changes(row) if callable(changes) else _own(workings, space, row, changes)
    message = replace(views.message(row), **fields)
    encoded = workings.encoder.encode([message], now=now, counter=workings.embedder)
    space = workings.spaces.with_model(space)
    workings.store.update(space, number, encoded.items[0], now=to_micros(now), seen=row.revision)


def _own(
    workings: Workings, space: SpaceInfo, row: ItemRow, changes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A caller's changes: what Cofire keeps in the metadata stays, and so do the words of what it
    derived, which are evidence's and not anybody's to change. Raises InputError."""
    if "content" in changes and workings.store.derived(space, [row.number]):
        raise InputError(
            f"{views.public_id(row.uid)} is a record that consolidation made of what was said: its "
            "words cannot be changed. Remember what is so, and it takes its place, or forget it"
        )
    if not isinstance(changes.get("metadata"), Mapping):
        return changes
    return {**changes, "metadata": {**changes["metadata"], **reserved(row.metadata)}}


def _joined(receipts: Sequence[Receipt], revision: int, warnings: tuple[str, ...]) -> Receipt:
    return Receipt(
        ids=tuple(id for receipt in receipts for id in receipt.ids),
        created=tuple(new for receipt in receipts for new in receipt.created),
        revision=receipts[-1].revision if receipts else revision,
        warnings=(
            *dict.fromkeys(text for receipt in receipts for text in receipt.warnings),
            *warnings,
        ),
    )
