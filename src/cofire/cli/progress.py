"""Progress of long work: a bar on standard error, when somebody is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from cofire.cli.output import is_terminal
from cofire.types import Progress

PATIENCE = 0.4
"""Seconds of silence before a bar appears: short work shows none."""


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """Yields the function to call with (done, total), or None where nobody would see it."""
    if quiet or not is_terminal(sys.stderr):
        yield None
        return
    bar = _Bar(what)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def stages(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], Progress] | None]:
    """Yields what makes the function to call from the name of a stage; as `progress`."""
    with progress(what, quiet=quiet) as bar:
        yield bar.stage if isinstance(bar, _Bar) else None


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Shows that work goes on which cannot tell how far it is, where somebody would see it."""
    if quiet or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(what)):
        yield


class _Bar:
    """A bar that appears at the first report after a moment, and goes when the work is done."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bars.add_task(what, total=None)
        self._started = monotonic()
        self._shown = False

    def __call__(self, done: int, total: int | None, /) -> None:
        if not self._shown and monotonic() - self._started > PATIENCE:
            self._bars.start()
            self._shown = True
        self._bars.update(self._task, completed=done, total=total)

    def stage(self, name: str) -> Progress:
        """From now on this part of the work is done."""
        self._bars.reset(self._task, description=name, total=None)
        return self

    def close(self) -> None:
        if self._shown:
            self._bars.stop()
