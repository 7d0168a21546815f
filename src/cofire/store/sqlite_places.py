"""Where a copy may be written: never over a store, never over what is not ours."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cofire.errors import InputError

APPLICATION_ID = 0x436F4669  # "CoFi": tells our files from other SQLite databases

_SIDE = re.compile(r"-(wal|shm|journal|graph-.+)")
_LIVE = ("-wal", "-shm", "-journal")
_MAGIC = b"SQLite format 3\0"
_HEADER = 100


def owns(store: Path, place: Path) -> bool:
    """Whether `place` is, links followed, the file of a store or one that lies beside it (its log,
    its index, a sidecar), be it there now or not."""
    real = Path(os.path.realpath(place))
    for base in {store.absolute(), Path(os.path.realpath(store))}:
        if any(_same(place, own) for own in _own_files(base)):
            return True
        beside = real.parent == Path(os.path.realpath(base.parent))
        rest = real.name.removeprefix(base.name)
        if beside and real.name.startswith(base.name) and (not rest or _SIDE.fullmatch(rest)):
            return True
    return False


def _own_files(base: Path) -> Iterator[Path]:
    yield base
    for found in base.parent.iterdir():
        if found.name.startswith(base.name) and _SIDE.fullmatch(found.name[len(base.name) :]):
            yield found


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def require_backup_place(store: Path, target: Path) -> None:
    """Refuses a target that a backup would harm: the store itself, a file that is not an older
    backup, or one beside which another store's log lies. Raises InputError."""
    if owns(store, target):
        raise InputError(
            f"{target}: this belongs to the store that is being backed up; name another file"
        )
    for suffix in _LIVE:
        beside = Path(f"{target}{suffix}")
        if os.path.lexists(beside):
            raise InputError(
                f"{target}: {beside.name} lies beside it, so it is in use as a store, or was when "
                "its process ended, and a backup in its place could not be read. Name another "
                "file; or open and close it as a store, then move it away"
            )
    if not os.path.lexists(target):
        return
    if not target.is_file():
        raise InputError(f"{target}: this is not a regular file; name another for the backup")
    with target.open("rb") as file:
        header = file.read(_HEADER)
    if not header:
        return
    ours = header.startswith(_MAGIC) and _number(header, 68) == APPLICATION_ID
    if not ours:
        raise InputError(
            f"{target}: this file is not a backup and was left as it is; name another, or delete it"
        )
    if header[18] != 1:  # a backup is in rollback mode until somebody opens it as a store
        raise InputError(
            f"{target}: this file has been opened as a store and may hold what the backup does not;"
            " it was left as it is. Name another, or delete it"
        )


def _number(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4], "big")


def sidecars(store: Path) -> list[Path]:
    """The files beside a store that are made anew when they are missing."""
    start = f"{store.name}-graph-"
    found = (path for path in store.parent.iterdir() if path.name.startswith(start))
    return [path for path in found if path.name[len(start) :].isdecimal() and path.is_file()]
