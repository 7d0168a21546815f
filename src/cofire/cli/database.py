"""`db`: what concerns a whole database, and stores as a whole."""

from __future__ import annotations

import typer

from cofire.cli import copying, schemas
from cofire.cli.commands import Group


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        name="db",
        help="Make, check and move databases.",
        rich_markup_mode=None,
        cls=Group,
        epilog="cofire db copy memories.db postgresql://app@host/memory --tenant default",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.add_typer(group)
    schemas.register(group)
    copying.register(group)
