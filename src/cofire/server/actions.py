"""What can be asked of a server, and what each takes: the one table that the gate goes by.

A route or a tool names its action; the authorisation matrix of the tests is made of this table.
"""

from __future__ import annotations

import enum

from cofire.server.access import Scope


class Action(enum.StrEnum):
    """A verb of the library, as a caller may ask for it."""

    REMEMBER = "remember"
    RECALL = "recall"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    OPENED = "opened"
    CITED = "cited"
    GET = "get"
    LIST = "list"
    HISTORY = "history"
    UPDATE = "update"
    LINK = "link"
    UNLINK = "unlink"
    LINKS = "links"
    STRENGTHEN = "strengthen"
    STRENGTHS = "strengths"
    WHY = "why"
    PROPOSALS = "proposals"
    REPLAY = "replay"
    LEARN_BY = "learn_by"
    HYDRATE = "hydrate"
    CHECKPOINT = "checkpoint"
    THREADS = "threads"
    ADVANCE = "advance"
    CONCLUDE = "conclude"
    RECORDS = "records"
    QUARANTINE = "quarantine"
    SHAPES = "shapes"
    REPORTS = "reports"
    CONSOLIDATE = "consolidate"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"
    FORGET = "forget"
    RECEIPTS = "receipts"
    VERIFY = "verify"
    STATS = "stats"
    CHECK = "check"
    COUNT_TOKENS = "count_tokens"
    EXPORT = "export"
    IMPORT = "import"
    KEYS = "keys"
    AUDIT = "audit"
    JOBS = "jobs"


_READ, _WRITE, _FORGET, _ADMIN = Scope.READ, Scope.WRITE, Scope.FORGET, Scope.ADMIN

NEEDS: dict[Action, Scope] = {
    Action.REMEMBER: _WRITE,
    Action.RECALL: _READ,
    Action.ANSWER: _READ,  # its citations teach only if the caller may write, too
    Action.FEEDBACK: _WRITE,
    Action.OPENED: _WRITE,
    Action.CITED: _WRITE,
    Action.GET: _READ,
    Action.LIST: _READ,
    Action.HISTORY: _READ,
    Action.UPDATE: _WRITE,
    Action.LINK: _WRITE,
    Action.UNLINK: _WRITE,
    Action.LINKS: _READ,
    Action.STRENGTHEN: _WRITE,
    Action.STRENGTHS: _READ,
    Action.WHY: _READ,
    Action.PROPOSALS: _READ,
    Action.REPLAY: _ADMIN,
    Action.LEARN_BY: _ADMIN,
    Action.HYDRATE: _READ,
    Action.CHECKPOINT: _WRITE,
    Action.THREADS: _READ,
    Action.ADVANCE: _WRITE,
    Action.CONCLUDE: _WRITE,
    Action.RECORDS: _READ,
    Action.QUARANTINE: _READ,
    Action.SHAPES: _READ,
    Action.REPORTS: _READ,
    Action.CONSOLIDATE: _ADMIN,
    Action.ARCHIVE: _WRITE,
    Action.UNARCHIVE: _WRITE,
    Action.FORGET: _FORGET,
    Action.RECEIPTS: _READ,
    Action.VERIFY: _READ,
    Action.STATS: _READ,
    Action.CHECK: _ADMIN,
    Action.COUNT_TOKENS: _READ,
    Action.EXPORT: _READ,
    Action.IMPORT: _WRITE,
    Action.KEYS: _ADMIN,
    Action.AUDIT: _ADMIN,
    Action.JOBS: _ADMIN,
}
"""What each takes."""

WRITES = frozenset(
    action
    for action, scope in NEEDS.items()
    if scope in {_WRITE, _FORGET, _ADMIN} and action not in {Action.CHECK, Action.AUDIT}
)
"""What changes something: audited before it is answered, where the others' entries may wait."""

LONG = frozenset({Action.CONSOLIDATE, Action.EXPORT, Action.IMPORT, Action.CHECK, Action.REPLAY})
"""What may take minutes: half the threads at most, and one at a time for each key."""
