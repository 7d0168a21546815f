"""A proxy before a PostgreSQL server that cuts a connection at its COMMIT: what a network does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from postgres_server import Address

PORT = 6000


class CuttingProxy:
    """Passes everything on; once armed, the next COMMIT's connection comes to an end, by `cut`:

    lost: the server never gets it, and sees the connection end.
    kept: the server gets it, and its answer is lost.
    late: as lost, but the server gets it after `pause` seconds.
    dead: as lost, but the server sees the connection end after `pause` seconds.

    `meanwhile` is called when it is cut, before anybody may connect again. Only COMMITs that were
    not prepared are noticed: use `pooler=transaction`.
    """

    def __init__(self, server: Address, folder: Path) -> None:
        self.address = Address(folder=folder, port=PORT)
        self.cuts = 0
        self.pause = 0.0
        self._server = str(server.folder / f".s.PGSQL.{server.port}")
        self._armed: str | None = None
        self._meanwhile: Callable[[], object] | None = None
        self._open = threading.Event()
        self._open.set()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listening.listen(50)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def arm(
        self, cut: str, *, pause: float = 0.0, meanwhile: Callable[[], object] | None = None
    ) -> None:
        self._meanwhile, self.pause = meanwhile, pause
        self._armed = cut

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in list(self._threads):
            thread.join(10.0)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        self._open.wait(60.0)
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            back = threading.Thread(target=_pass_on, args=(server, client))
            back.start()
            try:
                self._forth(client, server, back)
            finally:
                for end in (client, server):
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                back.join(10.0)

    def _forth(self, client: socket.socket, server: socket.socket, back: threading.Thread) -> None:
        while data := client.recv(65536):
            if self._armed is not None and b"COMMIT\0" in data:
                self._cut(data, client, server, back)
                return
            server.sendall(data)

    def _cut(
        self, data: bytes, client: socket.socket, server: socket.socket, back: threading.Thread
    ) -> None:
        cut, self._armed = self._armed, None
        self._open.clear()
        client.shutdown(socket.SHUT_RDWR)
        if cut == "kept":
            server.sendall(data)
            time.sleep(0.1)
        if cut == "lost":
            server.shutdown(socket.SHUT_RDWR)
        if self._meanwhile is not None:
            self._meanwhile()
        self.cuts += 1
        self._open.set()
        if cut in {"late", "dead"}:
            time.sleep(self.pause)
        if cut == "late":
            server.sendall(data)
            time.sleep(0.1)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting_proxy(server: Address, folder: Path) -> Iterator[CuttingProxy]:
    """A proxy whose socket is in `folder`."""
    proxy = CuttingProxy(server, folder)
    try:
        yield proxy
    finally:
        proxy.close()
