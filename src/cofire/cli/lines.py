"""Lines that a person types, or that come from a pipe."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Protocol

from cofire.cli.output import is_terminal, note, say, styled, visible

PROMPT = "> "


class Lines(Protocol):
    """Where lines come from."""

    def read(self, prompt: str = PROMPT) -> str | None:
        """The next line without its break; None: there are no more. Raises KeyboardInterrupt."""


def standard_input(*, shown: bool = True) -> Lines:
    """Typed lines, which can be edited, where a terminal is at both ends; else those of a pipe.
    `shown`: the output is for people, and is to have what was asked, too."""
    if shown and sys.stdin.isatty() and is_terminal(sys.stdout):
        return Typed()
    return Piped(shown=shown)


class Typed:
    """Lines that are typed at a prompt."""

    def __init__(self) -> None:
        with suppress(ImportError):  # Windows has none
            import readline  # noqa: F401  with it, `input` lets lines be edited and called back
        reconfigure = getattr(sys.stdin, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")

    def read(self, prompt: str = PROMPT) -> str | None:
        # What readline is to leave out when it counts columns stands between \x01 and \x02.
        shown = f"\x01\x1b[1;36m\x02{prompt}\x01\x1b[0m\x02" if styled() else prompt
        try:
            return input(shown)
        except EOFError:
            sys.stdout.write("\n")
            return None


class Piped:
    """Lines of a pipe or a file; each is `shown`, so that the output is the whole conversation."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown

    def read(self, prompt: str = PROMPT) -> str | None:
        typed = sys.stdin.isatty()
        if typed:
            sys.stderr.write(prompt)
            sys.stderr.flush()
        while data := sys.stdin.buffer.readline():
            try:
                line = data.decode("utf-8").removeprefix("\ufeff").rstrip("\r\n")
            except UnicodeDecodeError as exc:
                note(
                    f"Note: a line is no UTF-8 (byte {data[exc.start]:#04x} at offset "
                    f"{exc.start}) and was passed over"
                )
                continue
            if self._shown and not typed:
                say(f"{prompt}{visible(line)}")
            return line
        return None
