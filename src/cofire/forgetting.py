"""Deleting memories and spaces, and everything that this process keeps of them; receipts of it."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import islice

from cofire import views
from cofire.encoding.analysis import analyse
from cofire.errors import ConfirmationNeededError, InputError, NotFoundError
from cofire.ids import new_uuid7
from cofire.store.records import ReceiptRow, SpaceInfo
from cofire.types import Deletion, Filters, Verification, to_micros
from cofire.visible import open_space
from cofire.workings import Workings

OWN = "own"
"""The scope of the agent's own space."""
PAGE = 5_000
CONFIRMABLE = timedelta(minutes=10)
"""How long a token confirms."""


def forget(workings: Workings, ids: Sequence[str], *, now: datetime, dry_run: bool) -> Deletion:
    """Delete memories, as one transaction. Raises NotFoundError, and then nothing is deleted."""
    places = [workings.spaces.locate(id) for id in dict.fromkeys(ids)]
    spaces = {space.space_id: space for space, _ in places}
    parts = [
        (space, [number for place, number in places if place.space_id == at])
        for at, space in spaces.items()
    ]
    return _delete(workings, parts, now, dry_run)


def forget_matching(
    workings: Workings, filters: Filters, scope: str, *, now: datetime, dry_run: bool
) -> Deletion:
    """Delete what matches in one space, archived or not. Raises InputError for an unknown scope."""

    def call() -> Deletion:
        space = _space_of(workings, scope)
        return _delete(workings, [(space, _matching(workings, space, filters))], now, dry_run)

    return workings.spaces.lasting(call)


def _space_of(workings: Workings, scope: str) -> SpaceInfo:
    """Raises InputError."""
    if scope != OWN:
        return workings.spaces.target(scope)
    if OWN in workings.spaces.projects:
        raise InputError(
            f"{OWN!r} means the agent's own memories, and this memory has a project of that name; "
            "open one without it to delete by filter from the agent's own, or forget by ids"
        )
    return workings.spaces.own


def _matching(workings: Workings, space: SpaceInfo, filters: Filters) -> list[int]:
    numbers = []
    for archived in (False, True):
        after = None
        while True:
            rows = workings.store.list([space], filters, after=after, limit=PAGE, archived=archived)
            numbers += [row.item.number for row in rows]
            if len(rows) < PAGE:
                break
            after = (rows[-1].item.time, rows[-1].item.uid)
    return numbers


def _delete(
    workings: Workings,
    parts: Sequence[tuple[SpaceInfo, Sequence[int]]],
    now: datetime,
    dry_run: bool,
) -> Deletion:
    workings.log.flush()
    if not dry_run:  # now, too, lest a sidecar outlives a process killed midway
        _let_go(workings, [space for space, _ in parts])
    row = workings.store.delete(
        parts,
        new_uuid7().bytes,
        now=to_micros(now),
        terms_of=_terms,
        beside=workings.spaces.all(),
        rehearse=dry_run,
    )
    if dry_run:
        return views.deletion(row, shared=workings.store.shared, dry_run=True)
    return _cleared(workings, row)


def _terms(text: str) -> bytes:
    return analyse(text).pack()


def _let_go(workings: Workings, spaces: Sequence[SpaceInfo]) -> None:
    for space in spaces:
        workings.recaller.forget(space)
    forget_vectors(workings)


def _cleared(workings: Workings, row: ReceiptRow) -> Deletion:
    """Clears what is left of a deletion in this process and in the files; the receipt."""
    touched = {part.space_id for part in row.parts}
    _let_go(workings, [space for space in workings.spaces.all() if space.space_id in touched])
    workings.store.clear_traces()
    kept = workings.store.receipt(row.tenant_id, row.uid) or row
    return views.deletion(kept, shared=workings.store.shared)


def forget_everything(
    workings: Workings, project: str | None, *, confirm: str | None, now: datetime, dry_run: bool
) -> Deletion:
    """Delete a whole space; an empty one of the same name takes its place. Raises
    ConfirmationNeededError."""
    return workings.spaces.lasting(
        lambda: _forget_space(workings, workings.spaces.target(project), confirm, now, dry_run)
    )


def _forget_space(
    workings: Workings, space: SpaceInfo, confirm: str | None, now: datetime, dry_run: bool
) -> Deletion:
    workings.log.flush()
    uid, moment = new_uuid7().bytes, to_micros(now)
    would = views.deletion(
        workings.store.delete_space(space, uid, now=moment, rehearse=True),
        shared=workings.store.shared,
        dry_run=True,
    )
    if dry_run:
        return would
    if not _confirms(confirm, space, would.memories, moment):
        token = _token(space, would.memories, moment + CONFIRMABLE // timedelta(microseconds=1))
        wrong = "" if confirm is None else "; that token is of another space, number, or too old"
        raise ConfirmationNeededError(
            f"this deletes all that {space.ref} remembers ({would.memories:,} memories) for good"
            f"{wrong}. To do it, pass confirm={token!r} within ten minutes",
            count=would.memories,
            token=token,
        )
    _let_go(workings, [space])
    row = workings.store.delete_space(space, uid, now=moment)
    deletion = _cleared(workings, row)
    workings.spaces.put(open_space(workings.store, space.ref, to_micros(datetime.now(UTC))))
    return deletion


def _token(space: SpaceInfo, count: int, until: int) -> str:
    """What confirms deleting this very space, of so many memories, until then (µs). Against
    accidents, not attacks: who may call `forget` may ask for a token."""
    said = f"{space.tenant_id}/{space.space_id}/{space.created}/{count}/{until}"
    return f"{until:x}-{blake2b(said.encode(), digest_size=8).hexdigest()}"


def _confirms(token: str | None, space: SpaceInfo, count: int, now: int) -> bool:
    until = -1
    if token is not None:
        with suppress(ValueError):
            until = int(token.partition("-")[0], 16)
    return (
        token is not None
        and now <= until <= now + CONFIRMABLE // timedelta(microseconds=1)
        and hmac.compare_digest(
            token.encode(errors="replace"), _token(space, count, until).encode()
        )
    )


def receipts(workings: Workings, limit: int) -> tuple[Deletion, ...]:
    """The receipts of deletions from the spaces of this memory, newest first."""
    return tuple(
        views.deletion(row, shared=workings.store.shared)
        for row in islice(_visible(workings), limit)
    )


def _visible(workings: Workings) -> Iterator[ReceiptRow]:
    own = {space.ref for space in workings.spaces.all()}
    for row in workings.store.receipts(workings.spaces.own.tenant_id):
        if all(part.ref in own for part in row.parts):
            yield row


def verify(workings: Workings, id: str) -> Verification:
    """Whether what a receipt says is still true. Raises NotFoundError."""
    uid = views.read_id(id)
    workings.log.flush()
    row = workings.store.receipt(workings.spaces.own.tenant_id, uid)
    own = {space.ref for space in workings.spaces.all()}
    if row is None or not all(part.ref in own for part in row.parts):
        raise NotFoundError(f"there is no receipt {id} here; `receipts` shows what there is")
    return Verification(
        id=views.public_id(row.uid),
        time=datetime.now(UTC),
        found=workings.store.traces(row),
        scrubbed=views.traces(row, shared=workings.store.shared),
    )


def forget_vectors(workings: Workings) -> None:
    """Empty the embedder's cache, if it has one."""
    clear = getattr(workings.embedder, "clear", None)
    if clear is not None:
        clear()
