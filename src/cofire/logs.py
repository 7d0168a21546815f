"""The library's log: structured, through the standard `logging` under the name "cofire".

Nothing is printed unless the application configures logging (warnings go to standard error, as
`logging` does by itself). Standard output is never touched: it may carry a protocol.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog


def get_logger(name: str) -> Any:
    """A structured logger: `log.warning("what happened", detail=value)`."""
    return structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
