"""Locks that stay usable in a forked child.

A lock that another thread of the parent held at the moment of `os.fork` would stay locked in
the child for ever. Objects registered here get their locks renewed in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cofire.errors import InputError


class RenewedAfterFork(Protocol):
    """Something that has locks (or sessions) to renew in a forked child."""

    def renew_after_fork(self) -> None:
        """Called in the child before any other code of the child runs."""


_registered: weakref.WeakSet[RenewedAfterFork] = weakref.WeakSet()


def renew_after_fork(instance: RenewedAfterFork) -> None:
    """Have `instance.renew_after_fork` called in every forked child, while it lives."""
    _registered.add(instance)


def _renew_all() -> None:
    for instance in list(_registered):
        instance.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class SharedLock:
    """Held by many threads at once, or by one alone. Who wants it alone goes before who comes
    later; who holds it already may take it shared once more."""

    def __init__(self) -> None:
        self.renew_after_fork()
        renew_after_fork(self)

    def renew_after_fork(self) -> None:
        self._state = _Holders()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it with others."""
        state, me = self._state, threading.get_ident()
        with state.changed:
            if me not in state.shared and me != state.alone:
                state.changed.wait_for(lambda: state.alone is None and not state.waiting)
            state.shared[me] = state.shared.get(me, 0) + 1
        try:
            yield
        finally:
            if state is self._state:  # not in a child that was forked meanwhile
                with state.changed:
                    state.shared[me] -= 1
                    if not state.shared[me]:
                        del state.shared[me]
                        state.changed.notify_all()

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Hold it when nobody else does. Raises InputError where this thread holds it already:
        it would wait for itself."""
        state, me = self._state, threading.get_ident()
        with state.changed:
            if me in state.shared or me == state.alone:
                raise InputError(
                    f"{purpose} cannot be started from within another call of the same memory "
                    "(a hook or a progress function of it); start it afterwards"
                )
            state.waiting += 1
            try:
                state.changed.wait_for(lambda: state.alone is None and not state.shared)
                state.alone = me
            finally:
                state.waiting -= 1
                state.changed.notify_all()
        try:
            yield
        finally:
            if state is self._state:
                with state.changed:
                    state.alone = None
                    state.changed.notify_all()


class _Holders:
    """Thread → how often it holds a lock shared; who holds it alone; how many wait for that."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.shared: dict[int, int] = {}
        self.alone: int | None = None
        self.waiting = 0
