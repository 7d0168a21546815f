"""Clearing what deleting leaves in an SQLite file and its log.

Deleted rows are overwritten, but pages that were split or merged keep copies of rows in their
unused space, which only rebuilding the file clears, and the log keeps what it said before until
its content is copied into the file, which waits for whoever reads an older state.
"""

from __future__ import annotations

import sqlite3

from cofire.errors import StoreBusyError, StoreError
from cofire.logs import get_logger
from cofire.store.sqlite_connections import Connections, attempts
from cofire.store.sqlite_errors import BUSY, primary

REBUILT_AT_ONCE = 8_000_000  # bytes of a file that is rebuilt after each deletion (some 50 ms)
PATIENCE = 0.5  # seconds that a deletion waits for readers, most of which are gone in some ms

_log = get_logger(__name__)


def clear_after_deletion(
    connections: Connections, *, thorough: bool = False, quietly: bool = False
) -> bool:
    """Rebuilds a small file (`thorough`: of any size) and empties the log; returns whether nothing
    of what was deleted before is left in either. The deletion itself has happened, so what goes
    wrong here is logged, unless it is to be done `quietly`, and not raised."""
    reasons: list[str] = []
    rebuilt = False
    try:
        with connections.alone() as connection:
            connection.execute("ROLLBACK")  # both happen outside of transactions
            if thorough or connections.path.stat().st_size <= REBUILT_AT_ONCE:
                try:
                    _rebuild(connection, connections.wait if thorough else PATIENCE)
                    rebuilt = True
                except sqlite3.Error as exc:
                    reasons.append(f"the file could not be rebuilt: {exc}")
            if not _empty_log(connection, PATIENCE):
                reasons.append("somebody was reading, so the log could not be emptied")
    except (sqlite3.Error, StoreError, OSError) as exc:
        reasons.append(str(exc))
    if reasons and not quietly:
        _log.warning(
            "deleted, but traces may stay in the files until the next deletion, `cofire scrub`, "
            "or the last process closes the store",
            store=str(connections.path),
            reason="; ".join(reasons),
        )
    return rebuilt and not reasons


def scrub(connections: Connections) -> None:
    """Rebuilds the file without any unused space, in memory as large as itself, and empties the
    log. Raises StoreBusyError, StoreUnavailableError."""
    with connections.alone() as connection:
        connection.execute("ROLLBACK")
        try:
            _rebuild(connection, connections.wait)
            emptied = _empty_log(connection, connections.wait)
        except sqlite3.Error as exc:
            raise connections.translate(exc) from exc
    if not emptied:
        raise StoreBusyError(
            f"{connections.path}: rebuilt, but somebody was reading for longer than the wait of "
            f"{connections.wait:g} s, so the log could not be emptied and traces stay in the files "
            "until the last process closes the store; end the reader and scrub again, or raise "
            "the wait (COFIRE_WRITE_WAIT, in seconds)"
        )


def _rebuild(connection: sqlite3.Connection, wait: float) -> None:
    for attempt in attempts(wait):
        try:
            connection.execute("VACUUM")
        except sqlite3.Error as exc:
            if primary(exc) not in BUSY or attempt is None:
                raise
        else:
            return


def _empty_log(connection: sqlite3.Connection, wait: float) -> bool:
    """Copies the log into the file and cuts it to nothing; False where a reader is in the way."""
    for _ in attempts(wait):
        try:
            blocked = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        except sqlite3.Error as exc:
            if primary(exc) not in BUSY:
                raise
            blocked = True
        if not blocked:
            return True
    return False
