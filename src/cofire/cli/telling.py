"""What an evaluation found: tables for a reader, and figures to a file."""

from __future__ import annotations

from pathlib import Path

from cofire.cli.output import dumps, note, print_json, visible, write
from cofire.errors import InputError
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


def check_places(json: str | None, report: str | None = None) -> None:
    """That figures can be written where they are to go, and the report: to be asked before a long
    run. Raises InputError."""
    if json is not None and json != "-":
        place = Path(json).expanduser()
        if place.is_dir():
            raise InputError(f"--json takes a file, and {json} is a folder")
        if not place.parent.is_dir():
            raise InputError(f"--json {json}: there is no folder {place.parent}; make it first")
    if report is not None:
        above = Path(report).expanduser()
        while not above.exists() and above != above.parent:
            above = above.parent
        if not above.is_dir():
            raise InputError(f"--report takes a folder, and {above} is a file")


def keep(figures: object, path: Path) -> None:
    """Write the figures beside their place first, so that no half of a file is ever there."""
    partial = path.with_name(f".{path.name}.partial")
    check_places(str(path))
    try:
        partial.write_text(dumps(plain(figures), indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    note(f"Figures written to {path}.")
