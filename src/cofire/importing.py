"""Reading files into memory: what is new is stored, what is known is left, what was edited or
moved is brought up to date, and what cannot be used is reported without stopping the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO

from cofire import exchange
from cofire.encoding.encoder import Encoder
from cofire.errors import InputError, KeyConflictError, NotFoundError
from cofire.filing import Filed, Filing
from cofire.interchange import Format, ImportReport
from cofire.interchange.documents import chosen_folder
from cofire.interchange.report import Places
from cofire.models import Embedder
from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.store.updating import ChangedMeanwhileError
from cofire.types import Message, Progress, Receipt, SpaceRef, to_micros
from cofire.visible import VisibleSpaces

BATCH = 1_000
"""Messages per transaction."""
ATTEMPTS = 5
"""How often a document is looked at again because somebody else changed its memory meanwhile."""

StoreBatch = Callable[[str | None, Sequence[Message], datetime, int], Receipt]
"""Encodes and stores messages of a project (None: the own space); the last argument is the place
of the first among all."""


class Importer:
    """Imports into the spaces of one memory. `vectors` False leaves out what embeds."""

    def __init__(
        self,
        store: Store,
        spaces: VisibleSpaces,
        encoder: Encoder,
        embedder: Embedder,
        store_batch: StoreBatch,
        *,
        vectors: bool,
    ) -> None:
        self._store = store
        self._spaces = spaces
        self._encoder = encoder
        self._embedder = embedder
        self._store_batch = store_batch
        self._vectors = vectors

    def run(
        self,
        source: str | Path | IO[bytes],
        *,
        format: Format | str | None,
        project: str | None,
        root: str | Path | None,
        progress: Progress | None,
    ) -> ImportReport:
        """See `Memory.import_`."""
        filing: Filing | None = None
        if root is not None:
            if not isinstance(source, str | Path):
                raise InputError("a stream lies in no folder; leave root out")
            chosen_folder(source, root)  # refuses what lies outside, before anything is read
        chosen = exchange.format_of(source, format)
        if chosen is Format.COFIRE:
            return self._own(source, project, progress)
        if chosen is Format.TEXT and isinstance(source, str | Path):
            filing = Filing(self._store, self._encoder, chosen_folder(source, root))
        report, messages, places = exchange.messages_of(source, chosen, root)
        self._spaces.target(project)
        clock = datetime.now(UTC)
        done = 0
        while batch := list(islice(messages, BATCH)):
            if filing is None:
                self._messages(project, batch, clock, report, first=done, places=places)
            else:
                self._documents(project, batch, clock, report, filing)
            done += len(batch)
            if progress is not None:
                progress(done, None)
        return report

    def _messages(
        self,
        project: str | None,
        batch: Sequence[Message],
        now: datetime,
        report: ImportReport,
        *,
        first: int,
        places: Places | None = None,
    ) -> None:
        """Store a thousand messages; where one cannot be used, the others are kept, and the report
        says where it is in its file."""
        try:
            receipt = self._store_batch(project, batch, now, first)
        except InputError as exc:
            if len(batch) == 1:
                where = batch[0].metadata.get("path") if places is None else places.of(first)
                # The cause does not say which message of those stored together it is.
                reason = exc.__cause__ if isinstance(exc.__cause__, InputError) else exc
                report.reject(str(where or batch[0].key or "message"), str(reason))
                return
            half = len(batch) // 2
            for part, at in ((batch[:half], first), (batch[half:], first + half)):
                self._messages(project, part, now, report, first=at, places=places)
            return
        _count(receipt, report)

    def _documents(
        self,
        project: str | None,
        batch: Sequence[Message],
        now: datetime,
        report: ImportReport,
        filing: Filing,
    ) -> None:
        """Store the new ones of some documents and update those that were edited or moved."""
        waiting = batch
        for _ in range(ATTEMPTS):
            waiting = self._file(project, waiting, now, report, filing)
            if not waiting:
                return
        for message in waiting:
            report.reject(
                str(message.metadata["path"]),
                "its memory is being changed by somebody else; import again",
            )

    def _file(
        self,
        project: str | None,
        batch: Sequence[Message],
        now: datetime,
        report: ImportReport,
        filing: Filing,
    ) -> list[Message]:
        """One attempt; returns the documents whose memory somebody else changed meanwhile."""
        filed = self._spaces.lasting(lambda: filing.sort(self._spaces.target(project), batch))
        again = []
        for each in filed:
            if not each.changed:
                report.known += 1
            elif each.row is not None and not self._update(project, each, now, report):
                again.append(each)
        new = [each for each in filed if each.row is None]
        if new:
            messages = [each.message for each in new]
            try:
                _count(self._store_batch(project, messages, now, 0), report)
            except KeyConflictError:
                again += new
            except InputError:
                self._messages(project, messages, now, report, first=0)
        for each in again:
            filing.release(each)
        return [each.source for each in again]

    def _update(
        self, project: str | None, filed: Filed, now: datetime, report: ImportReport
    ) -> bool:
        """Bring a memory up to date; False if somebody else changed or deleted it meanwhile."""
        row = filed.row
        if row is None:
            raise TypeError("a new document has no memory to update")
        try:
            encoded = self._encoder.encode([filed.message], now=now, counter=self._embedder)
            space = self._spaces.with_model(self._spaces.target(project))
            self._store.update(
                space,
                row.number,
                encoded.items[0],
                now=to_micros(now),
                seen=row.revision,
                key=encoded.items[0].key,
            )
        except (ChangedMeanwhileError, KeyConflictError, NotFoundError):
            return False
        except InputError as exc:
            report.reject(str(filed.source.metadata["path"]), str(exc))
            return True
        for warning in encoded.warnings:
            report.note(warning)
        report.updated += 1
        return True

    def _own(
        self, source: str | Path | IO[bytes], project: str | None, progress: Progress | None
    ) -> ImportReport:
        """Restore Cofire's own export."""
        self._spaces.renew()
        target = self._spaces.target(project)

        def place(ref: SpaceRef, alone: bool) -> SpaceInfo | None:
            if ref.project is not None and ref.project in self._spaces.projects:
                return self._spaces.with_model(self._spaces.projects[ref.project])
            matches = (ref.identity, ref.user) == (
                self._spaces.own.ref.identity,
                self._spaces.own.ref.user,
            )
            return (
                self._spaces.with_model(target)
                if alone or (ref.project is None and matches)
                else None
            )

        return exchange.import_own(
            self._store,
            source,
            place,
            exchange.Making(
                encoder=self._encoder,
                embedder=self._embedder if self._vectors else None,
                counter=self._embedder,
            ),
            progress,
        )


def _count(receipt: Receipt, report: ImportReport) -> None:
    report.imported += sum(receipt.created)
    report.known += len(receipt.created) - sum(receipt.created)
    for warning in receipt.warnings:
        report.note(warning)
