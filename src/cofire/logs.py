"""The library's log: structured, through the standard `logging` under the name "cofire".

Nothing is printed unless the application configures logging (warnings go to standard error, as
`logging` does by itself). Standard output is never touched: it may carry a protocol.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any


class Log:
    """A structured logger: `log.warning("what happened", detail=value)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, event: str, **details: Any) -> None:
        self._logger.info(event, **details)

    def warning(self, event: str, **details: Any) -> None:
        self._logger.warning(event, **details)

    @cached_property
    def _logger(self) -> Any:
        import structlog  # a tenth of the library's imports; most processes never log

        return structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def get_logger(name: str) -> Log:
    """The log of a module."""
    return Log(name)
