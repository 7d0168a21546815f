"""What an evaluation found: tables for a reader, and figures to a file."""

from __future__ import annotations

from pathlib import Path

from cofire.cli.output import dumps, note, print_json, visible, write
from cofire.plain import plain


def tell(text: str, figures: object, json: str | None) -> None:
    """Print the tables and keep the figures in the file `json`, or for "-" print the figures
    alone."""
    if json == "-":
        print_json(figures)
        return
    write(visible(text.rstrip()))
    if json is not None:
        keep(figures, Path(json).expanduser())


def keep(figures: object, path: Path) -> None:
    """Write the figures beside their place first, so that no half of a file is ever there."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(dumps(plain(figures), indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    note(f"Figures written to {path}.")
