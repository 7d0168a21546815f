"""Locks that stay usable in a forked child.

A lock that another thread of the parent held at the moment of `os.fork` would stay locked in
the child for ever. Objects registered here get their locks renewed in the child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


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
