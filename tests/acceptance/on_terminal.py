"""A command on a pseudo-terminal, and somebody who types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from typing import Self

from cofire_process import Cofire

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """`cofire` with these arguments, a new interpreter, on a terminal of `columns`. Use it as a
    context manager: what still runs at its end is killed."""

    def __init__(self, cofire: Cofire, *arguments: str, columns: int = 80) -> None:
        command = cofire.command(*arguments)
        env = {**cofire.env, "TERM": "xterm-256color"}
        self._pid, self._screen = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.chdir(cofire.folder)
            os.execvpe(command[0], command, env)  # noqa: S606 - the command under test
        self._sent = b""
        self._seen = 0
        self._code: int | None = None

    @property
    def text(self) -> str:
        """What the terminal was sent, without styles and carriage returns."""
        return _STYLE.sub("", self._sent.decode("utf-8", "replace")).replace("\r", "")

    def wait(self, words: str, seconds: float = 30.0) -> None:
        """Until these words come, after those that were waited for before."""
        end = time.monotonic() + seconds
        while (at := self.text.find(words, self._seen)) < 0:
            alive = self._read(end - time.monotonic())
            assert alive or words in self.text[self._seen :], f"no {words!r}:\n{self.text}"
        self._seen = at + len(words)

    def type(self, line: str) -> None:
        """A line, and the Enter key."""
        os.write(self._screen, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Ctrl-C, once nothing more comes: between a prompt and the wait for keys behind it,
        readline lets a signal lie until the next key."""
        while self._read(0.3):
            pass
        os.write(self._screen, b"\x03")

    def end_of_input(self) -> None:
        """Ctrl-D."""
        os.write(self._screen, b"\x04")

    def ended(self, seconds: float = 30.0) -> int:
        """The exit code, once all was read."""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        assert time.monotonic() < end, f"it goes on:\n{self.text}"
        self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def _read(self, seconds: float) -> bool:
        """Whether anything came: False at the end, or when the time is over."""
        if seconds > 0 and select.select([self._screen], [], [], seconds)[0]:
            with contextlib.suppress(OSError):  # how Linux says that the other side is gone
                piece = os.read(self._screen, 65_536)
                self._sent += piece
                return bool(piece)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._screen)
