"""One PostgreSQL server for all processes of a test run.

The first process that needs it starts a keeper, which has the server and a Unix socket; every user
holds a connection to that socket. When the last one is gone, however it went, the keeper ends the
server. Users that leave in order wait for that end if they are the last.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import Address, private_server

_FIRST_USER = 30.0
"""Seconds that the keeper waits for its first user."""
_WELCOME = b"welcome"


@contextmanager
def shared_server(session: Path) -> Iterator[Address]:
    """The server of everybody who names the same folder `session`.

    Raises: RuntimeError if it does not start.
    """
    with (session / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed
        place = session / "postgres.place"
        user = _joined(Path(place.read_text())) if place.exists() else None
        if user is None:
            place.write_text(_start_keeper())
            user = _joined(Path(place.read_text()))
        folder = Path(place.read_text())
    if user is None:
        raise RuntimeError(f"the keeper of {folder} is gone")
    with user:
        yield Address(folder=folder)
        user.shutdown(socket.SHUT_WR)
        user.recv(1)


def _joined(folder: Path) -> socket.socket | None:
    """A connection to the keeper, held while the server is used; None if it is gone or going."""
    user = socket.socket(socket.AF_UNIX)
    try:
        user.connect(str(folder / "door"))
        if user.recv(len(_WELCOME)) == _WELCOME:
            return user
    except OSError:
        pass
    user.close()
    return None


def _start_keeper() -> str:
    """The folder of a new server, once it runs."""
    # Ends when the keeper closes its output, not when the keeper ends.
    done = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not done.stdout:
        raise RuntimeError(f"PostgreSQL did not start: {done.stderr}")
    return done.stdout.strip()


def _leave_starter() -> None:
    """Whoever started this need not wait for it, nor be its parent."""
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def _tell(folder: Path) -> None:
    """Say where the server is, and close the output."""
    os.write(1, str(folder).encode())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _last_user(door: socket.socket) -> socket.socket | None:
    """The connection of the user who was left alone and left; None if nobody came."""
    waiting = selectors.DefaultSelector()
    waiting.register(door, selectors.EVENT_READ)
    users = 0
    while events := waiting.select(None if users else _FIRST_USER):
        for key, _ in events:
            if key.fileobj is door:
                user, _ = door.accept()
                user.sendall(_WELCOME)
                waiting.register(user, selectors.EVENT_READ, user)
                users += 1
                continue
            waiting.unregister(key.fileobj)
            users -= 1
            if not users:
                return key.data  # type: ignore[no-any-return]
            key.data.close()
    return None


def _keep() -> None:
    _leave_starter()
    last: socket.socket | None = None
    with private_server() as server, socket.socket(socket.AF_UNIX) as door:
        door.bind(str(server.folder / "door"))
        door.listen(1024)
        _tell(server.folder)
        last = _last_user(door)
    if last is not None:
        last.close()  # only now: it waits until the server is gone


if __name__ == "__main__":
    _keep()
