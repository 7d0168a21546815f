"""Holding the claim of a space for as long as its steps run."""

from __future__ import annotations

import os
import platform
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cofire.errors import ClaimLostError, NotFoundError, StoreError
from cofire.logs import get_logger
from cofire.store import Store
from cofire.store.claims import Claim
from cofire.store.records import SpaceInfo

_log = get_logger(__name__)


def new_holder() -> str:
    """A name for one worker, as in "host:4711:9f3a6c0b": the machine and the process, for whoever
    looks for it, and a random part, since two threads or containers may share both."""
    return f"{platform.node() or 'host'}:{os.getpid()}:{secrets.token_hex(4)}"


@contextmanager
def holding(store: Store, space: SpaceInfo, claim: Claim) -> Iterator[None]:
    """Renews a claim three times in each lease, from a thread of its own, and releases it in the
    end. That the claim was lost is told by the next write that is made under it."""
    over = threading.Event()
    thread = threading.Thread(
        target=_renew, args=(store, space, claim, over), name="cofire-claim", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        try:
            store.release_claim(space, claim)
        except StoreError as exc:  # it expires by itself
            _log.warning("a claim was not released", space=str(space.ref), reason=str(exc))


def _renew(store: Store, space: SpaceInfo, claim: Claim, over: threading.Event) -> None:
    while not over.wait(claim.lease / 3e6):
        try:
            store.renew_claim(space, claim)
        except (ClaimLostError, NotFoundError):
            return
        except StoreError as exc:
            _log.warning("a claim was not renewed", space=str(space.ref), reason=str(exc))
