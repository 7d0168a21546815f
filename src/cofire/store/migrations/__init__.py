"""The schema's history: an Alembic environment that runs inside a transaction given to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

REVISIONS: tuple[str, ...] = ("0001", "0002", "0003", "0004", "0005")
"""Every revision, oldest first. Listed so that opening a current store need not load Alembic."""
HEAD = REVISIONS[-1]
NEW_STORE = Path(__file__).with_name("new_store.json")
"""What they make of an empty SQLite file; made by scripts/make_new_store.py."""


def configuration() -> Config:
    """An Alembic configuration that needs no .ini file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("path_separator", "os")
    # ConfigParser expands %: a checkout may well lie in a folder with one in its name.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def upgrade(connection: Connection, *, partitions: int = 16) -> None:
    """Brings the schema to `HEAD` within the connection's transaction. `partitions`: how many each
    table has that PostgreSQL makes now."""
    from alembic import command

    config = configuration()
    config.attributes.update(connection=connection, partitions=partitions)
    command.upgrade(config, "head")
