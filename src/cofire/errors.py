"""One error tree. Every message says what happened, to which thing, and what to do.

    CofireError
    ├── InputError (ValueError)            the caller's value cannot be used
    │   ├── KeyConflictError               the same key was remembered with another text
    │   ├── LinkExistsError                the two memories are linked already
    │   ├── ChangedError                   the memory was changed since it was read
    │   └── ConfirmationNeededError        deleting everything has to be confirmed
    ├── NotFoundError (KeyError)           no such memory, space or file
    ├── ConfigurationError                 settings, model or file do not fit together
    │   ├── EmbeddingMismatchError         the store was made with another embedding model
    │   └── MissingExtraError              an optional package is not installed
    ├── EmbeddingError                     the embedder failed or gave unusable vectors
    ├── GenerationError                    the language model failed or gave no usable answer
    │   └── PromptTooLongError             it takes less text than it was given
    ├── AccessError                        who asks a server may not do this
    │   ├── UnauthorizedError              no key or token, or one that does not count (any more)
    │   ├── ForbiddenError                 the key is not for this
    │   └── LimitedError                   too many requests; `retry_after` seconds help
    ├── FormatError                        a file to import or restore is not what it should be
    └── StoreError                         the back end refused
        ├── StoreUnavailableError          it cannot be opened, or is read-only
        ├── StoreBusyError                 another writer held it longer than the stated wait
        │   └── ClaimLostError             another worker took over what this one worked on
        ├── StoreCorruptError              its content contradicts itself
        └── SchemaVersionError             it was made by another version of Cofire

Foreign exceptions are translated at the seam where they arise (``raise … from exc``).
"""

from __future__ import annotations


class CofireError(Exception):
    """Base of every error that Cofire raises on purpose."""


class InputError(CofireError, ValueError):
    """A value given by the caller cannot be used."""


class KeyConflictError(InputError):
    """The same caller's key was already used for a different text."""


class LinkExistsError(InputError):
    """The two memories are linked already; a link's type is fixed."""


class ChangedError(InputError):
    """The memory was changed since it was read; read it again, then change it."""


class ConfirmationNeededError(InputError):
    """Deleting everything of a space has to be confirmed.

    `count`: memories that would go. `token`: passed as `confirm` within ten minutes, it confirms
    for this space.
    """

    def __init__(self, message: str, *, count: int = 0, token: str = "") -> None:
        super().__init__(message)
        self.count = count
        self.token = token


class NotFoundError(CofireError, KeyError):
    """No such memory, space or file."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConfigurationError(CofireError):
    """Settings, model or file do not fit together."""


class EmbeddingMismatchError(ConfigurationError):
    """The store's vectors were made by another embedding model or dimension."""


class MissingExtraError(ConfigurationError):
    """An optional package is needed; the message names the extra to install."""


class EmbeddingError(CofireError):
    """The embedder failed, or returned vectors of the wrong shape or content."""


class GenerationError(CofireError):
    """The language model failed, or its endpoint answered something that is no answer.

    `retryable`: the same request may succeed later (a time-out, a rate limit, a server's failure).
    `retry_after`: seconds the endpoint asks to wait, None where it says nothing. `attempts`: how
    often it was asked.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.attempts = attempts


class PromptTooLongError(GenerationError):
    """The model takes less text than it was given; give it fewer turns."""


class AccessError(CofireError):
    """Who asks a server may not do this."""


class UnauthorizedError(AccessError):
    """There is no key or token, or it does not count, or not any more."""


class ForbiddenError(AccessError):
    """The key or token is good, and not for this."""


class LimitedError(AccessError):
    """Too many requests, of one key or altogether (`overloaded`). `retry_after`: seconds to
    wait."""

    def __init__(self, message: str, *, retry_after: float = 1.0, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overloaded = overloaded


class FormatError(CofireError):
    """A file is not in the format it should be in."""


class StoreError(CofireError):
    """The back end refused an operation."""


class StoreUnavailableError(StoreError):
    """The store cannot be opened, reached or written."""


class StoreBusyError(StoreError):
    """Another writer held the store for longer than the stated wait."""


class ClaimLostError(StoreBusyError):
    """Another worker took over the space that this one was consolidating; it must stop.

    `holder`: which worker claimed it last. `until`: when that claim expires, µs by the database's
    clock; 0 if it was released.
    """

    def __init__(self, message: str, *, holder: str = "", until: int = 0) -> None:
        super().__init__(message)
        self.holder = holder
        self.until = until


class StoreCorruptError(StoreError):
    """The store's content contradicts itself; `cofire doctor` says where."""


class SchemaVersionError(StoreError):
    """The store was made by a version of Cofire this one cannot read."""
