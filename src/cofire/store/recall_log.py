"""Recall records, buffered: a recall never waits for the disk, and writes come in batches.

What is buffered is lost if the process is killed; it is a log of questions, not a memory. Deleting
flushes first, so that no record of a deleted memory can follow its deletion. Where a space's rule
learns from recalls as such, it learns here: in the background, in the transaction that keeps them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from cofire.errors import StoreError
from cofire.logs import get_logger
from cofire.store.records import RecallRecord, SpaceInfo
from cofire.store.store import Store

INTERVAL = 1.0
"""Seconds after which a record is written at the latest."""
KEEP = 30 * 86_400 * 1_000_000
"""µs for which a recall record is kept, by the clock and whatever `now` its caller gave."""
PURGE_EVERY = 3_600.0
"""Seconds between two looks for records that are older."""
MOST = 10_000
"""Records kept in memory while the store cannot be written; older ones are dropped."""

Entry = tuple[SpaceInfo, RecallRecord]
_log = get_logger(__name__)


class RecallLog:
    """Writes recall records from one background thread, started with the first record.

    `teaching` False: nothing is learned from them, whatever a space's rule says (an evaluation that
    asks must not teach).
    """

    def __init__(self, store: Store, interval: float = INTERVAL) -> None:
        self.teaching = True
        self._store = store
        self._interval = interval
        self._start()

    def _start(self) -> None:
        self._waiting: list[Entry] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()
        self._purged: dict[tuple[int, int], float] = {}

    def add(self, entries: Sequence[Entry]) -> None:
        """Keep records for writing soon."""
        if not entries:
            return
        if self._process != os.getpid():  # forked: the parent writes what it had
            self._start()
        with self._lock:
            if self._closed:
                return
            self._waiting.extend(entries)
            del self._waiting[:-MOST]
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="cofire-recall-log", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while not self._wake.wait(self._interval):
            try:
                self.flush()
            except StoreError as exc:
                _log.warning("recall records not written yet", reason=str(exc))

    def flush(self) -> None:
        """Write what is waiting now. Raises StoreError; the records are then kept."""
        if self._process != os.getpid():  # forked: what waits is the parent's to write
            self._start()
        with self._writing:
            with self._lock:
                batch, self._waiting = self._waiting, []
            if not batch:
                return
            try:
                self._store.record_recalls(batch, teach=self.teaching)
            except StoreError:
                with self._lock:
                    self._waiting[:0] = batch
                raise
            self._purge(batch)

    def _purge(self, batch: Sequence[Entry]) -> None:
        """Delete records past their time, of the spaces just written to, now and then."""
        clock = time.monotonic()
        before = time.time_ns() // 1_000 - KEEP
        written = {(space.tenant_id, space.space_id): space for space, _ in batch}
        for place, space in written.items():
            if clock - self._purged.get(place, -PURGE_EVERY) >= PURGE_EVERY:
                self._purged[place] = clock
                self._store.purge_recalls(space, before)

    def close(self) -> None:
        """Write what is waiting and end the thread; closing again does nothing."""
        if self._process != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join()
        try:
            self.flush()
        except StoreError as exc:
            _log.warning("recall records lost", count=len(self._waiting), reason=str(exc))
