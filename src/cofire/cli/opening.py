"""Opening the memory that the options choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cofire.errors import EmbeddingMismatchError, MissingExtraError, NotFoundError

if TYPE_CHECKING:
    from cofire.cli.options import Common
    from cofire.memory import Memory


@contextmanager
def opened(
    common: Common, *, create: bool = False, vectors: bool = True, projects: tuple[str, ...] = ()
) -> Iterator[Memory]:
    """The memory, closed afterwards. `projects` are opened besides those of the options.

    `vectors=False` for commands that embed nothing: they work with any embedding model. Raises
    what `Memory.open` does; a store that is missing is explained.
    """
    from cofire.memory import Memory
    from cofire.settings import load_settings

    settings = load_settings(store=common.store, embedder=common.embedder)
    log_to_standard_error(settings.log_level)
    try:
        memory = Memory.open(
            settings.store,
            common.identity or "default",
            common.user,
            tuple(dict.fromkeys((*common.projects, *projects))),
            tenant=common.tenant or "default",
            create=create,
            vectors=vectors and common.vectors,
            settings=settings,
        )
    except NotFoundError as exc:
        raise NotFoundError(
            f"{exc}. `cofire remember TEXT` makes it, `--store PATH` names another store, and "
            "`cofire demo` shows what it is for"
        ) from exc
    except EmbeddingMismatchError as exc:
        text = str(exc).replace("open with vectors=False", "add --no-vectors")
        raise EmbeddingMismatchError(text) from exc
    with memory:
        yield memory


def log_to_standard_error(level: str) -> None:
    """The library's log must not mix with output."""
    import logging
    import sys

    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
    logging.getLogger("cofire").setLevel(level.upper())


def require_server_extra() -> None:
    """Raises MissingExtraError where what `serve` and `mcp` need is not installed."""
    import importlib

    try:
        for name in ("fastapi", "mcp", "uvicorn"):
            importlib.import_module(name)
    except ImportError as exc:
        raise MissingExtraError(
            'the server needs more packages: pip install "cofire[server]"'
        ) from exc
