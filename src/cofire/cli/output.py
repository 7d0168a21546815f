"""Writing to the terminal, to pipes and as JSON.

Texts of memories are data: they are never read as markup, and what a terminal would act upon
(control characters, bidirectional overrides) is shown as an escape such as \\x1b or \\u202e.
Without a terminal, or with NO_COLOR, there is plain text and not one escape code.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import unicodedata
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from cofire.plain import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDEST = 100
"""Columns of running text on a wide terminal; longer lines are tiring to read."""
NARROWEST = 40

_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls other than tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of text
    "\u2028\u2029\ufeff\u206a-\u206f\ufff9-\ufffb"  # line breaks and marks nobody sees
    "\U000e0000-\U000e007f"  # letters nobody sees
    "\ud800-\udfff"  # halves of characters
)
_SHOWN = re.compile(f"[{_UNSAFE}]")


def visible(text: str) -> str:
    """The text with everything a terminal would act upon shown as an escape."""
    return _SHOWN.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The visible text on one line."""
    return " ".join(visible(text).split())


def shortened(text: str, width: int) -> str:
    """The visible text on one line of at most `width` columns."""
    line = one_line(text)
    if columns(line) <= width:
        return line
    kept, room = [], width - 1
    for character in line:
        room -= columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def columns(text: str) -> int:
    """How many columns a terminal gives the text: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def prepare_streams() -> None:
    """UTF-8 whatever the locale; what it cannot say is escaped, never an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def is_terminal(stream: IO[Any]) -> bool:
    """Whether a person reads (or types into) the stream."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def asks() -> bool:
    """Whether there is somebody to answer a question."""
    return sys.stdin.isatty() and is_terminal(sys.stderr)


def styled() -> bool:
    """Whether standard output takes colours."""
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def width(default: int | None = None) -> int | None:
    """Columns to fill with running text; without a terminal `default` (None: do not wrap)."""
    if not is_terminal(sys.stdout):
        return default
    import shutil

    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


@cache
def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, force_terminal=True)


def write(line: str) -> None:
    """Print a line on standard output as it is."""
    sys.stdout.write(line + "\n")


def say(
    *parts: str | tuple[str, str], indent: int = 0, hang: int = 0, wrap: int | None = None
) -> None:
    """Print a paragraph on standard output: texts, or (text, style) pairs, made visible.

    It is wrapped to `wrap` columns (default: the terminal's, in a pipe not at all); `indent`
    spaces stand before every line, and `hang` more before all but a paragraph's first.
    """
    room = wrap if wrap is not None else width()
    pieces = [(part, "") if isinstance(part, str) else part for part in parts]
    pieces = [(visible(text), style) for text, style in pieces]
    margin = " " * indent
    if not styled():
        for line in "".join(text for text, _ in pieces).split("\n"):
            write(_filled(line, room, margin, hang))
        return
    from rich.text import Text

    for text in Text.assemble(*pieces).split("\n", allow_blank=True):
        _print_styled(text, room, indent, hang)


def _filled(line: str, room: int | None, margin: str, hang: int) -> str:
    if room is None or len(margin) + columns(line) <= room:
        return (margin + line).rstrip()
    if not line.isascii() and columns(line) != len(line):
        return _filled_wide(line, room, margin, hang)
    return textwrap.fill(
        line,
        room,
        initial_indent=margin,
        subsequent_indent=margin + " " * hang,
        break_on_hyphens=False,
    )


def _filled_wide(line: str, room: int, margin: str, hang: int) -> str:
    """As textwrap, for scripts whose characters take two columns."""
    from rich.console import Console
    from rich.text import Text

    lines = Text(line).wrap(Console(width=room), room - len(margin) - hang)
    pieces = [piece.plain.rstrip() for piece in lines]
    return "\n".join(margin + (" " * hang if at else "") + one for at, one in enumerate(pieces))


def _print_styled(line: Text, room: int | None, indent: int, hang: int) -> None:
    from rich.text import Text

    if room is None or not line.plain:
        lines = [line]
    else:
        lines = list(line.wrap(_console(), room - indent - hang))
    for at, piece in enumerate(lines):
        piece.rstrip()
        before = " " * (indent + (hang if at else 0))
        _console().print(Text(before) + piece, soft_wrap=True)


def table(
    rows: list[tuple[str, ...]], *, indent: int = 0, right: frozenset[int] = frozenset()
) -> None:
    """Print rows of short texts in columns; `right` names those that are aligned on the right."""
    cells = [tuple(visible(cell) for cell in row) for row in rows]
    widths = (
        [max(columns(row[at]) for row in cells) for at in range(len(cells[0]))] if cells else []
    )
    for row in cells:
        padded = [
            " " * (widths[at] - columns(cell)) + cell
            if at in right
            else cell + " " * (widths[at] - columns(cell))
            for at, cell in enumerate(row)
        ]
        write((" " * indent + "  ".join(padded)).rstrip())


def note(text: str) -> None:
    """Print a remark on standard error, where it disturbs no reader of the output."""
    for line in visible(text).split("\n"):
        room = width_of_errors()
        sys.stderr.write((line if room is None else textwrap.fill(line, room)) + "\n")


def width_of_errors() -> int | None:
    """Columns for running text on standard error; None: do not wrap."""
    if not is_terminal(sys.stderr):
        return None
    import shutil

    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST))


def report_error(kind: str, message: str, code: int, *, as_json: bool) -> None:
    """One paragraph, or one JSON object, on standard error."""
    if as_json:
        error = {"error": {"type": kind, "message": message, "exit_code": code}}
        sys.stderr.write(dumps(error) + "\n")
    else:
        note(f"cofire: {one_line(message)}")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    write(dumps(plain(value), indent=2))


def print_json_line(value: Any) -> None:
    """One line of JSON lines."""
    write(dumps(plain(value)))


def dumps(value: Any, indent: int | None = None) -> str:
    """JSON in UTF-8, with what a terminal would act upon escaped as JSON does it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _SHOWN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def size_text(count: int) -> str:
    """ "3.2 MB" """
    for factor, unit in ((1_000_000_000, "GB"), (1_000_000, "MB")):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count / 1_000:,.0f} kB"


def many(count: int, one: str, several: str | None = None) -> str:
    """ "1 memory", "2,000 memories" """
    return f"{count:,} {one if count == 1 else several or one + 's'}"
