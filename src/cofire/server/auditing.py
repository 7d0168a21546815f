"""The audit trail: who did what, when, and how it ended; never what it was about.

What changes something, and what was denied, is in the store before it is answered. What only reads
is written within a second, or when the trail is closed: a server that is killed loses up to a
second of reads. An entry that cannot be written is kept and tried again. If that happens to a
change that was made, whoever asked is told so by an error: there is no change that both succeeded
without a word and is missing from the trail.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from cofire.errors import InputError, StoreError, StoreUnavailableError
from cofire.logs import get_logger
from cofire.server.actions import WRITES
from cofire.server.keys import key_id, time_text
from cofire.store import Store
from cofire.store.serving_records import AuditEntry, KeyRecord

if TYPE_CHECKING:
    from cofire.server.service import Answered, Asked

EVERY = 1.0
"""Seconds after which buffered entries are written."""
HELD = 10_000
"""Entries that wait at most, while the store takes none; the oldest go first."""
BATCH = 1_000
"""Entries of one write."""
PURGED = 3_600.0
"""Seconds between deletions of what is older than is kept."""
DAY = 86_400_000_000
"""Microseconds."""

_REQUEST = re.compile(r"[A-Za-z0-9._-]{1,64}")

_log = get_logger(__name__)


class AuditTrail:
    """Tells the store of every request; a `service.Witness`. One for each process, safe to use
    from many threads.

    `days`: how long entries are kept; 0: for ever. `reads`: whether what only reads is entered.
    """

    def __init__(
        self,
        store: Store,
        *,
        days: int = 0,
        reads: bool = True,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._store, self._days, self._reads, self._now = store, days, reads, now
        self._waiting: deque[AuditEntry] = deque()
        self._lost = 0
        self._tenants: set[str] = set()
        self._purged = time.monotonic() - PURGED
        self._lock = Lock()
        self._writing = Lock()
        self._closing = Event()
        self._writer: Thread | None = None

    def told(self, asked: Asked, answered: Answered, result: object) -> None:
        """Enters a request. Raises StoreUnavailableError for a change that was made and could not
        be entered."""
        del result  # nothing of it is ever entered
        changes = asked.action in WRITES or answered.changed
        if not (changes or answered.outcome == "denied" or self._reads):
            return
        entry = AuditEntry(
            tenant=asked.caller.tenant,
            time=self._now(),
            surface=asked.surface,
            action=asked.action.value,
            outcome=answered.outcome,
            principal=asked.caller.name,
            key=asked.caller.key,
            code=answered.code,
            count=answered.count if answered.outcome == "ok" else None,
            request=_request(asked.request),
        )
        self.note(entry)
        if not (changes or answered.outcome == "denied"):
            return
        try:
            self.flush()
        except StoreError as error:
            if changes and answered.outcome == "ok":
                raise StoreUnavailableError(
                    f"{entry.action} was done, and could not be entered in the audit trail "
                    f"({type(error).__name__}); look before you ask again"
                ) from error
            _log.warning("the audit trail could not be written", error=type(error).__name__)

    def refused(self, record: KeyRecord) -> None:
        """Enters that a key was used that is revoked or expired."""
        self.note(
            AuditEntry(
                tenant=record.tenant, time=self._now(), surface="rest", action="authenticate",
                outcome="denied", principal=record.principal, key=record.uid,
                code="UnauthorizedError",
            )
        )  # fmt: skip

    def note(self, entry: AuditEntry) -> None:
        """Enters something within a second."""
        with self._lock:
            self._waiting.append(entry)
            self._tenants.add(entry.tenant)
            while len(self._waiting) > HELD:
                self._waiting.popleft()
                self._lost += 1
            if self._writer is None and not self._closing.is_set():
                self._writer = Thread(target=self._write, name="cofire-audit", daemon=True)
                self._writer.start()

    def flush(self) -> None:
        """Writes what waits. Raises StoreError; what could not be written goes on waiting."""
        with self._writing:
            while batch := self._taken():
                try:
                    self._store.write_audit(batch)
                except StoreError:
                    with self._lock:
                        self._waiting.extendleft(reversed(batch))
                    raise
                except InputError:
                    self._write_singly(batch)

    def purge(self) -> int:
        """Deletes what is older than is kept, of the tenants that asked for something since the
        last time; returns how many entries. Raises StoreError."""
        if self._days <= 0:
            return 0
        before = self._now() - self._days * DAY
        with self._lock:
            tenants, self._tenants = self._tenants, set()
        return sum(self._store.purge_audit(tenant, before) for tenant in sorted(tenants))

    def close(self) -> None:
        """Writes what waits, and stops. Raises StoreError."""
        self._closing.set()
        if self._writer is not None:
            self._writer.join()
        self.flush()

    def _taken(self) -> list[AuditEntry]:
        with self._lock:
            if self._lost:
                _log.warning("entries of the audit trail were lost", count=self._lost)
                self._lost = 0
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _write_singly(self, batch: list[AuditEntry]) -> None:
        """Of a batch that was refused, all but those that would be refused for ever."""
        for entry in batch:
            try:
                self._store.write_audit([entry])
            except InputError as error:
                _log.warning("an entry of the audit trail was refused", error=str(error))

    def _write(self) -> None:
        """Every second, until the trail is closed."""
        while not self._closing.wait(EVERY):
            try:
                self.flush()
                if time.monotonic() - self._purged >= PURGED:
                    self._purged = time.monotonic()
                    self.purge()
            except StoreError as error:
                _log.warning("the audit trail could not be written", error=type(error).__name__)


def entry_json(entry: AuditEntry) -> dict[str, Any]:
    """An entry as JSON has it."""
    return {
        "id": key_id(entry.uid),
        "time": time_text(entry.time),
        "principal": entry.principal,
        "key": None if entry.key is None else key_id(entry.key),
        "surface": entry.surface,
        "action": entry.action,
        "outcome": entry.outcome,
        "code": entry.code,
        "count": entry.count,
        "request": entry.request,
    }


def _request(id: str | None) -> str | None:
    """The id of a request, if it is one: a text that somebody sent in its place is not entered."""
    return id if id is not None and _REQUEST.fullmatch(id) is not None else None
