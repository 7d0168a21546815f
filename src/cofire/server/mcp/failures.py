"""What went wrong, as a text that a model can act on."""

from __future__ import annotations

from cofire.errors import (
    AccessError,
    CofireError,
    ConfigurationError,
    EmbeddingError,
    GenerationError,
    InputError,
    LimitedError,
    NotFoundError,
    StoreBusyError,
    StoreError,
)
from cofire.logs import get_logger, told_error

log = get_logger(__name__)

UNEXPECTED = "something went wrong in Cofire itself; it is logged as request {request}"


def told(error: CofireError, request: str, *, operator: bool) -> str:
    """The error's own words where they are the caller's business. Those of the store and of the
    settings may name files and addresses of the server: only its `operator` sees them."""
    if isinstance(error, LimitedError):
        return f"{error} (in about {error.retry_after:.0f} s)"
    if isinstance(error, InputError | NotFoundError | AccessError):
        return str(error)
    log.warning("a tool failed", request=request, error=type(error).__name__)
    if operator:
        return str(error)
    fixed = (text for kinds, text in _FIXED if isinstance(error, kinds))
    return next(fixed, UNEXPECTED.format(request=request))


_FIXED: tuple[tuple[type[CofireError], str], ...] = (
    (StoreBusyError, "the store is busy; try again in a few seconds"),
    (StoreError, "the store cannot be used just now; try again later, or tell the user"),
    (
        GenerationError,
        "the language model failed; `recall` works without it, or try again later",
    ),
    (EmbeddingError, "the embedding model cannot be reached; try again later"),
    (ConfigurationError, "the server is not set up for this; its operator's log has the reason"),
)


def unexpected(error: Exception, request: str) -> str:
    """A fault of Cofire's own: logged with its kind and place, told without."""
    log.error("a tool raised what it should not", request=request, **told_error(error))
    return UNEXPECTED.format(request=request)
