"""The verbs of deletion; part of `Memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from cofire import forgetting
from cofire.arguments import as_count, as_ids, as_moment, as_name, as_selectors
from cofire.errors import InputError
from cofire.types import Deletion, Selectors, TimeLike, Verification
from cofire.workings import Workings


class DeletionVerbs:
    """Deleting, and what proves it."""

    _workings: Workings

    def forget(
        self,
        ids: str | Sequence[str] | None = None,
        *,
        scope: str | None = None,
        everything: bool = False,
        project: str | None = None,
        confirm: str | None = None,
        dry_run: bool = False,
        now: TimeLike | None = None,
        **selectors: Unpack[Selectors],
    ) -> Deletion:
        """Delete memories for good, with everything that is derived from them or repeats them.

        Say what in one of three ways. `ids`: one id or several; all must exist, or nothing is
        deleted. `selectors` (those of `recall`: kinds, speakers, sessions, tags, metadata, since,
        until): all that match every one, archived or not, in `scope`, which is "own" (the agent's
        own space) or the name of a project. `everything=True`: the agent's own space as a whole,
        or that of the `project`; without `confirm` this raises ConfirmationNeededError with the
        count and a `token` that confirms for ten minutes. Nothing is ever deleted by leaving
        something out: a selector that is empty or None is an InputError. `dry_run=True` deletes
        nothing and says what would go.

        Segments, vectors, links, postings, former texts, parts in recall records and in the
        learning log go with a memory. So do records that rested on it alone, quote it or have a
        word that nobody else said; other records that rested on it too are out of recall until
        they are verified again (`Deletion.doubtful`), and what one of those that go had ended holds
        again (`reopened`). In a session the turns before and after are linked anew.

        Returns a receipt without content, kept in the store (`receipts`, `verify`). It says
        "scrubbed" if the files are clear of copies as well; "pending" where somebody who reads at
        that moment, a full disk, or a file above 8 MB is in the way: then it is tried again at the
        next deletion, consolidation, opening or closing, and `scrub` does it at once; "operator" on
        PostgreSQL, whose files, log and backups are its operator's. Raises
        NotFoundError, InputError, StoreError.
        """
        _require_one_way(
            ids, selectors, everything=everything, scope=scope, project=project, confirm=confirm
        )
        if not isinstance(dry_run, bool):
            raise InputError(f"dry_run must be True or False, not {dry_run!r}")
        moment = as_moment(now)
        if everything:
            return forgetting.forget_everything(
                self._workings, project, confirm=confirm, now=moment, dry_run=dry_run
            )
        if selectors:
            return forgetting.forget_matching(
                self._workings,
                as_selectors(selectors), as_name("scope", scope or ""), now=moment, dry_run=dry_run,
            )  # fmt: skip
        return forgetting.forget(self._workings, as_ids(ids), now=moment, dry_run=dry_run)

    def receipts(self, *, limit: int = 50) -> tuple[Deletion, ...]:
        """The receipts of what was deleted from this memory's spaces, newest first."""
        return forgetting.receipts(self._workings, as_count("limit", limit))

    def verify(self, receipt: Deletion | str) -> Verification:
        """Look again whether all that a receipt (or its id) names is gone: from memories, former
        texts, vectors, links, the learning log, recall records and what was derived; and whether
        the files are clear. Raises NotFoundError, and InputError for a dry run's."""
        id = receipt.id if isinstance(receipt, Deletion) else receipt
        if id is None:
            raise InputError("a dry run deletes nothing, so there is nothing to verify")
        return forgetting.verify(self._workings, id)

    def forget_vectors(self) -> None:
        """Empty the embedder's cache: it may hold vectors of what was deleted."""
        forgetting.forget_vectors(self._workings)


def _require_one_way(
    ids: str | Sequence[str] | None,
    selectors: Selectors,
    *,
    everything: bool,
    scope: str | None,
    project: str | None,
    confirm: str | None,
) -> None:
    """Raises InputError unless what to delete is said in one way, and all that goes with it."""
    if not isinstance(everything, bool):
        raise InputError(f"everything must be True or False, not {everything!r}")
    ways = [ids is not None, bool(selectors), everything]
    if ways.count(True) > 1:
        raise InputError("say what to forget in one way: ids, selectors or everything=True")
    if not any(ways):
        raise InputError("name what to forget: ids, selectors, or everything=True for all there is")
    if not everything and (project is not None or confirm is not None):
        raise InputError("project and confirm go with everything=True")
    if confirm is not None and not isinstance(confirm, str):
        raise InputError(f"confirm is the token of a ConfirmationNeededError, not {confirm!r}")
    if selectors and scope is None:
        raise InputError(
            "deleting by selectors needs a scope: 'own' for the agent's own memories, or the name "
            "of a project"
        )
    if scope is not None and not selectors:
        raise InputError("scope goes with selectors such as tags or sessions")
