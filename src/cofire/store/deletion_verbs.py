"""The store's verbs for deleting with a receipt; part of `Store`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from cofire.errors import StoreError
from cofire.store import forgetting, receipts, spaces
from cofire.store.receipts import part_of, part_of_all
from cofire.store.records import ReceiptPart, ReceiptRow, SpaceInfo
from cofire.store.session import Scope, Session, of_spaces
from cofire.store.telling import TermsOf, remove_questions
from cofire.store.transacting import Transacting


class _RehearsedError(Exception):
    """Raised to undo what was done only to see what it would do, which `receipt` says."""

    def __init__(self, receipt: ReceiptRow) -> None:
        super().__init__(receipt)
        self.receipt = receipt


class DeletionVerbs(Transacting):
    """Deleting so that it can be proved. What is deleted is gone when a verb returns; the files
    are clear of it once `clear_traces` says so, and then the receipt does."""

    def delete(
        self,
        parts: Sequence[tuple[SpaceInfo, Sequence[int]]],
        uid: bytes,
        *,
        now: int,
        terms_of: TermsOf | None = None,
        beside: Sequence[SpaceInfo] = (),
        rehearse: bool = False,
    ) -> ReceiptRow:
        """Deletes memories from spaces of one tenant as one transaction, and keeps a receipt under
        `uid`. See `forgetting.forget`. In the spaces `beside`, where the same questions were asked,
        go the cues and questions that tell of them. `rehearse`: only says what it would do."""
        tenant = parts[0][0].tenant_id
        scope = of_spaces([*(space for space, _ in parts), *beside])

        def work(session: Session) -> list[ReceiptPart]:
            chosen: list[ReceiptPart] = []
            told: list[ReceiptPart] = []
            for space, numbers in parts:
                for other in beside:
                    if terms_of is not None and other.space_id != space.space_id:
                        gone = forgetting.forget_beside(
                            session, space, numbers, other, now=now, terms_of=terms_of
                        )
                        if gone.cues or gone.recalls:
                            told.append(part_of(session, other, gone))
                forgotten = forgetting.forget(session, space, numbers, now=now, terms_of=terms_of)
                chosen.append(part_of(session, space, forgotten))
            return chosen + told

        return self._delete(scope, uid, work, tenant=tenant, now=now, rehearse=rehearse)

    def delete_space(
        self, space: SpaceInfo, uid: bytes, *, now: int, rehearse: bool = False
    ) -> ReceiptRow:
        """Deletes a whole space, and what projects keep of its questions; keeps a receipt under
        `uid`. `rehearse`: only says what it would do. Raises NotFoundError."""
        tenant = space.tenant_id
        shared = self._backend.glance(Scope(tenant=tenant), receipts.PROJECTS, tenant=tenant)
        scope = Scope(
            tenant=tenant, spaces=tuple(sorted({space.space_id, *(row[0] for row in shared)}))
        )

        def work(session: Session) -> list[ReceiptPart]:
            part = part_of_all(session, space)
            for other, recall in receipts.asked_elsewhere(session, space):
                remove_questions(session, {"tenant": space.tenant_id, "space": other}, (recall,))
            if not rehearse:
                spaces.remove_space(session, space)
            return [part]

        return self._delete(scope, uid, work, tenant=tenant, now=now, rehearse=rehearse)

    def _delete(
        self,
        scope: Scope,
        uid: bytes,
        work: receipts.Work,
        *,
        tenant: int,
        now: int,
        rehearse: bool,
    ) -> ReceiptRow:
        def delete(session: Session) -> ReceiptRow:
            receipt = ReceiptRow(
                tenant_id=tenant, uid=uid, time=now, scrubbed=False, parts=tuple(work(session))
            )
            receipts.add_receipt(session, receipt)
            if rehearse:
                raise _RehearsedError(receipt)
            return receipt

        try:
            return self._backend.write(scope, delete)
        except _RehearsedError as undone:
            return undone.receipt

    def clear_traces(self, *, thorough: bool = False, quietly: bool = False) -> bool:
        """Clears the files of what was deleted, as far as that is quick (`thorough`: however long
        it takes), and notes it on the receipts; whether nothing is left. What is in the way is
        logged, unless `quietly`, and the next call tries again."""
        waiting = self.pending_receipts()
        clear = self._backend.purge_residue(thorough=thorough, quietly=quietly)
        self._note(waiting, clear)
        return clear

    def retry_traces(self, *, thorough: bool = False) -> None:
        """`clear_traces`, quietly, if any receipt waits for it."""
        if self.pending_receipts():
            self.clear_traces(thorough=thorough, quietly=True)

    def _note(self, waiting: Sequence[ReceiptRow], clear: bool) -> None:
        """Marks the receipts of which nothing is left anywhere, each tenant's as one
        transaction."""
        done = [receipt for receipt in waiting if self._copies_dropped(receipt)]
        if not clear:
            return
        with suppress(StoreError):  # what could not be noted now is noted by the next call
            for tenant in dict.fromkeys(receipt.tenant_id for receipt in done):
                self._mark(tenant, [receipt for receipt in done if receipt.tenant_id == tenant])

    def _mark(self, tenant: int, done: Sequence[ReceiptRow]) -> None:
        def mark(session: Session) -> None:
            clear = [receipt for receipt in done if not receipts.traces(session, receipt)]
            receipts.mark_scrubbed(session, clear)

        self._backend.write(Scope(tenant=tenant), mark)

    def _copies_dropped(self, receipt: ReceiptRow) -> bool:
        return self._backend.drop_copies(
            receipt.tenant_id,
            {part.space_id: None if part.whole else part.uids for part in receipt.parts},
        )

    def pending_receipts(self) -> list[ReceiptRow]:
        """The receipts, of all tenants, of deletions of which the files are not clear yet."""
        return self._backend.read(Scope(), receipts.pending)

    def receipts(self, tenant: int) -> list[ReceiptRow]:
        """A tenant's receipts, newest first."""
        return self._backend.read(
            Scope(tenant=tenant), lambda session: receipts.read_receipts(session, tenant)
        )

    def receipt(self, tenant: int, uid: bytes) -> ReceiptRow | None:
        """One receipt."""
        return self._backend.read(
            Scope(tenant=tenant), lambda session: receipts.read_receipt(session, tenant, uid)
        )

    def traces(self, receipt: ReceiptRow) -> dict[str, int]:
        """In which tables there still is how much of what went; see `receipts.traces`."""
        return self._backend.read(
            Scope(tenant=receipt.tenant_id), lambda session: receipts.traces(session, receipt)
        )
