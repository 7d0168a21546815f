"""PostgreSQL's errors as Cofire's, and which of them go away by trying again."""

from __future__ import annotations

import re

import psycopg

from cofire.errors import (
    ConfigurationError,
    InputError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)

REFUSED = (psycopg.Error, UnicodeEncodeError, OverflowError)
"""What a statement may raise: psycopg's errors, and Python's for values it cannot hand over."""

_AGAIN = frozenset(("40001", "40P01"))  # serialisation failure, deadlock
# Shut down, crashed, starting, idle for too long (in a transaction).
_LOST = frozenset(("57P01", "57P02", "57P03", "57P05", "25P03"))
_FOR_GOOD = frozenset(("28P01", "28000", "3D000", "42501", "08P01"))
"""Why no connection is made, where waiting does not help."""
_AT_CONNECTING = (
    ("too many clients", "53300"),
    ("remaining connection slots are reserved", "53300"),
    ("too many connections", "53300"),
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("authentication failed", "28000"),
    ("no such user", "28000"),
    ("is not permitted to log in", "28000"),
    ("permission denied for database", "42501"),
    ("no such database", "3D000"),
    ("unsupported startup parameter", "08P01"),
)
"""What servers and poolers say when they refuse a connection, for which libpq has no code."""
_NO_SUCH = re.compile(r'(role|database) "[^"]*" does not exist')
_MADE = frozenset(
    ("tenants", "spaces", "models", "counters", "interactions", "jobs", "idempotency")
)
"""Tables that two may add the same row to at the same moment: the second finds it next time."""

_INPUT = {
    "22021": "a text cannot be stored (it has a NUL character?)",
    "22003": "a number is too large to be stored",
    "22P02": "a value cannot be stored",
    "22001": "a value is too long to be stored",
    "54000": "a value is too long to be stored",
    "23505": "something with this id is there already",
}
_UNAVAILABLE = {
    "53100": "its disk is full; nothing of this write was kept: free some space and repeat it",
    "53200": "it is out of memory; nothing of this write was kept: repeat it",
    "53300": "it has no connection left; raise its max_connections, or put a pooler before it",
    "25006": "it is read-only (a replica?); name the primary",
    "28P01": "it refuses the password; check the user and the password in the URL",
    "28000": "it refuses this user; check the user in the URL and pg_hba.conf",
    "3D000": "there is no such database; make it, then run `cofire db upgrade`",
    "57P03": "it is starting up, or shutting down",
}
_POOLER = (
    "a pooler in between gives each transaction another session; add pooler=transaction to the "
    "URL's parameters"
)
_OTHERS: dict[str, tuple[type[Exception], str]] = {
    "57014": (
        StoreBusyError,
        "a statement took longer than is allowed, and was stopped; nothing of it was kept. Try "
        "again, or raise COFIRE_STATEMENT_TIMEOUT",
    ),
    "42501": (
        ConfigurationError,
        "this role may not do that; grant it what `cofire db upgrade --app-role` grants",
    ),
    "25P03": (
        StoreBusyError,
        "this process let a transaction wait for longer than is allowed; nothing of it was kept. "
        "Try again, or raise COFIRE_STATEMENT_TIMEOUT",
    ),
    "26000": (ConfigurationError, _POOLER),
    "42P05": (ConfigurationError, _POOLER),
    "08P01": (
        ConfigurationError,
        "it refuses what is asked when connecting; behind a pooler, leave the parameter away",
    ),
    "XX001": (StoreCorruptError, "the database is damaged; restore a backup"),
    "XX002": (StoreCorruptError, "the database is damaged; restore a backup"),
}


def is_lost(exc: BaseException, *, broken: bool) -> bool:
    """Whether an error means that the connection is gone; `broken`: as psycopg sees it."""
    if not isinstance(exc, psycopg.Error):
        return False
    code = exc.sqlstate or ""
    return broken or code in _LOST or code.startswith("08")


def may_pass(exc: BaseException) -> bool:
    """Whether a connection that could not be made may be had later."""
    return isinstance(exc, psycopg.OperationalError) and _code(exc) not in _FOR_GOOD


def _code(exc: BaseException) -> str:
    """PostgreSQL's code for an error; "" if it has none."""
    if not isinstance(exc, psycopg.Error):
        return ""
    if exc.sqlstate:
        return exc.sqlstate
    said = str(exc)
    if found := _NO_SUCH.search(said):
        return "28000" if found[1] == "role" else "3D000"
    if isinstance(exc, psycopg.OperationalError) and "the database system is" in said:
        return "57P03"
    return next((code for words, code in _AT_CONNECTING if words in said), "")


def is_transient(exc: BaseException) -> bool:
    """Whether the same transaction may succeed if it is run again."""
    if not isinstance(exc, psycopg.Error):
        return False
    if exc.sqlstate == "23505":
        table = exc.diag.table_name or ""
        return table.partition("_p")[0] in _MADE
    return (exc.sqlstate or "") in _AGAIN


def translated(exc: Exception, where: str, wait: float) -> Exception:
    """Our error for one of PostgreSQL's, or for a value that it cannot take. Messages name the
    place without its password, and never a value."""
    code = _code(exc)
    kind, said = _by_code(code)
    unsent = isinstance(exc, psycopg.DataError) and not code
    if unsent or isinstance(exc, UnicodeEncodeError | OverflowError):
        kind, said = InputError, "a value cannot be stored"
    elif code == "55P03" or code in _AGAIN:
        return busy(where, wait)
    elif kind is StoreError and isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        kind, said = StoreUnavailableError, "the server cannot be reached"
    return kind(f"{where}: {said} ({_first(exc)})")


def _by_code(code: str) -> tuple[type[Exception], str]:
    if code in _INPUT:
        return InputError, _INPUT[code]
    if code in _UNAVAILABLE:
        return StoreUnavailableError, _UNAVAILABLE[code]
    if code.startswith("22"):  # data exceptions, such as a vector with NaN
        return InputError, "a value cannot be stored"
    return _OTHERS.get(code, (StoreError, "PostgreSQL refused"))


def busy(where: str, wait: float) -> StoreBusyError:
    """The error for a write that waited `wait` seconds in vain."""
    return StoreBusyError(
        f"{where}: other writers held this space for longer than the wait of {wait:g} s; try "
        "again, or raise the wait (COFIRE_WRITE_WAIT, in seconds)"
    )


def _first(exc: BaseException) -> str:
    """The first line of a message: what follows may quote values."""
    return str(exc).strip().partition("\n")[0] or type(exc).__name__
