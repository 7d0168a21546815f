"""The command line. `main` is the installed command `cofire`.

Exit codes: 0 success, 1 failure, 2 usage, 3 not found, 4 configuration, 5 back end unavailable;
130 after Ctrl-C and 141 when the reader of a pipe has gone, as shells have it.

Nothing heavy is imported here or in any module of this package at its top: `cofire --help` has to
be quick. Commands import what they need when they run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cofire.errors import (
    CofireError,
    ConfigurationError,
    InputError,
    NotFoundError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
)

__all__ = ["exit_code", "main"]

SUCCESS, FAILURE, USAGE, NOT_FOUND, CONFIGURATION, UNAVAILABLE = range(6)
INTERRUPTED, BROKEN_PIPE = 130, 141

_CODES: tuple[tuple[type[CofireError], int], ...] = (
    (InputError, USAGE),
    (NotFoundError, NOT_FOUND),
    (ConfigurationError, CONFIGURATION),
    (SchemaVersionError, CONFIGURATION),
    (StoreUnavailableError, UNAVAILABLE),
    (StoreBusyError, UNAVAILABLE),
)

LONGEST_REPEATED = 200
"""Characters of an argument that an error repeats whole."""

_REPORT = "COFIRE_DEBUG=1 shows where it happened, which helps to report it"


def exit_code(error: Exception) -> int:
    """The exit code that says what kind of error it was."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return int(getattr(error, "exit_code", FAILURE))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    import typer

    from cofire.cli.app import run
    from cofire.cli.commands import ReaderHasGoneError
    from cofire.cli.output import prepare_streams, report_error

    # ONNX Runtime would note and send what it does; it reads this when it is first imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    as_json = _wants_json(given)
    try:
        code = run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted(as_json)
    except (BrokenPipeError, ReaderHasGoneError):
        return _reader_has_gone()
    except typer.Abort:
        report_error("Aborted", "nothing was changed", FAILURE, as_json=as_json)
        return FAILURE
    except (CofireError, typer.TyperException, OSError) as error:
        if os.environ.get("COFIRE_DEBUG"):
            raise
        code = exit_code(error)
        message = _not_whole(_message(error), given)
        report_error(type(error).__name__, message, code, as_json=as_json)
    except Exception as error:  # the edge of the program: a bug is told, not dumped
        if os.environ.get("COFIRE_DEBUG"):
            raise
        code = FAILURE
        message = (
            f"an unexpected {type(error).__name__}: {error}. This is a bug in Cofire; {_REPORT}"
        )
        report_error(type(error).__name__, message, code, as_json=as_json)
    return _interrupted(as_json) if code == INTERRUPTED else code


def _message(error: Exception) -> str:
    """What happened and what to do, in one paragraph."""
    import typer

    if isinstance(error, typer.TyperException):
        text = error.format_message()
        context = getattr(error, "ctx", None)
        if context is None:
            return text
        stop = "" if text.endswith((".", "?", "!")) else "."
        return f"{text}{stop} See `{context.command_path} --help`."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _not_whole(message: str, given: Sequence[str]) -> str:
    """The message, where it repeats something long that was given with the middle left out."""
    for text in sorted({*given, *(one.partition("=")[2] for one in given)}, key=len, reverse=True):
        if len(text) <= LONGEST_REPEATED:
            break
        short = f"{text[:60]}…{text[-20:]}"
        message = message.replace(repr(text), repr(short)).replace(text, short)
    return message


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are to be JSON too. Asked of the words themselves, because they may not
    have been understood."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given = list(arguments[:end])
    if "evaluate" not in given:
        return "--json" in given
    # Behind `evaluate` it names a file, where `-` is standard output.
    at = given.index("evaluate")
    file = given[at:][given[at:].index("--json") + 1 :] if "--json" in given[at:] else []
    return "--json" in given[:at] or file[:1] == ["-"]


def _interrupted(as_json: bool) -> int:
    from cofire.cli.output import report_error

    report_error(
        "Interrupted",
        "stopped; what was stored before stays, and nothing is half-written",
        INTERRUPTED,
        as_json=as_json,
    )
    return INTERRUPTED


def _reader_has_gone() -> int:
    """`cofire list | head`: no message, and none from Python when it flushes at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return BROKEN_PIPE
