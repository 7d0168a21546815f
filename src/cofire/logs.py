"""The library's log: structured, through the standard `logging` under the name "cofire".

Nothing is printed unless the application configures logging (warnings go to standard error, as
`logging` does by itself). Standard output is never touched: it may carry a protocol.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePath
from typing import Any


class Log:
    """A structured logger: `log.warning("what happened", detail=value)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, event: str, **details: Any) -> None:
        self._logger.info(event, **details)

    def warning(self, event: str, **details: Any) -> None:
        self._logger.warning(event, **details)

    def error(self, event: str, **details: Any) -> None:
        self._logger.error(event, **details)

    @cached_property
    def _logger(self) -> Any:
        import structlog  # a tenth of the library's imports; most processes never log

        return structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[structlog.stdlib.filter_by_level, _rendered],
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def _rendered(
    logger: Any, method: str, given: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    """One line for whoever reads, and beside it the details for `JsonLines`."""
    event = {"event": given.pop("event"), **given}
    line = " ".join(f"{name}={value!r}" for name, value in event.items())
    return (line,), {"extra": {"details": event}}


class JsonLines(logging.Formatter):
    """One JSON object a line. Of an exception it tells the classes and the places, never the texts,
    which may hold somebody's content."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        details = getattr(record, "details", None)
        line.update(details if isinstance(details, dict) else {"event": record.getMessage()})
        if record.exc_info and record.exc_info[1] is not None:
            line.update(told_error(record.exc_info[1]))
        return json.dumps(line, default=str, ensure_ascii=False)


def told_error(error: BaseException) -> dict[str, str]:
    """Of which class an error and what caused it are, and where it was raised."""
    causes: list[str] = []
    one: BaseException | None = error
    while one is not None and len(causes) < 5:
        causes.append(type(one).__name__)
        one = one.__cause__
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    where = " > ".join(f"{PurePath(f.filename).name}:{f.lineno}:{f.name}" for f in frames)
    return {"error": " from ".join(causes), "where": where}


def get_logger(name: str) -> Log:
    """The log of a module."""
    return Log(name)
