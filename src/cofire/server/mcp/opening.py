"""A service that is opened in the background, while `initialize` is already answered."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from cofire.errors import CofireError
from cofire.logs import get_logger

if TYPE_CHECKING:
    from cofire.server.service import Service

log = get_logger(__name__)

PATIENCE = 5.0
"""Seconds that closing waits for an opening that is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A service, and what is to be closed with it, last first."""

    service: Service
    closing: ExitStack = field(default_factory=ExitStack)


class Opens(Protocol):
    """Opens a service; may take its time. Raises CofireError."""

    def __call__(self) -> Opened: ...


class OpeningService:
    """Opens on a thread, from `begin` on, and is waited for by those who need it. An opening that
    failed is tried again by the next who asks: another process may have held the store."""

    def __init__(self, opens: Opens) -> None:
        self._opens = opens
        self._lock = threading.Lock()
        self._opening: Future[Opened] | None = None

    def begin(self) -> None:
        """Begin, if nobody has yet."""
        with self._lock:
            if self._opening is None:
                self._opening = self._begun()

    async def service(self) -> Service:
        """The service, once it is open. Raises what opening it does."""
        with self._lock:
            opening = self._opening
            if opening is None or (opening.done() and opening.exception() is not None):
                opening = self._opening = self._begun()
        # Waited for without a thread: as many calls as there are may wait.
        while not opening.done():
            await anyio.sleep(0.005)
        return opening.result().service

    def close(self) -> None:
        """Close what is open, or is being opened: what is buffered is written. Raises
        CofireError."""
        with self._lock:
            opening = self._opening
        if opening is None:
            return
        try:
            failed = opening.exception(PATIENCE)
        except TimeoutError:
            return  # it ends with the process; a transaction that is not committed never was
        if failed is None:
            opening.result().closing.close()

    def _begun(self) -> Future[Opened]:
        future: Future[Opened] = Future()

        def work() -> None:
            try:
                opened = self._opens()
            except CofireError as error:
                log.warning("the memory could not be opened", reason=str(error))
                future.set_exception(error)
            except BaseException as error:  # noqa: BLE001  (whoever waits has to be told)
                future.set_exception(error)
            else:
                future.set_result(opened)

        threading.Thread(target=work, name="cofire-opening", daemon=True).start()
        return future
