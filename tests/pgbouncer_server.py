"""A real pgbouncer before a PostgreSQL server; the operating system brings it."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import APPLICATION, OWNER, SUPERUSER, Address
from watched import Watched

PORT = 6432
"""Names the socket; nothing listens on the network."""


def program() -> str | None:
    """pgbouncer's path; None where it is not installed."""
    everywhere = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    return shutil.which("pgbouncer", path=everywhere)


@contextmanager
def pgbouncer(
    server: Address,
    folder: Path | None = None,
    mode: str = "transaction",
    **settings: str | int,
) -> Iterator[Address]:
    """A pooler before `server`; its address makes the URLs, as the server's own does.

    `mode` is "session", "transaction" or "statement"; `settings` are further ones of pgbouncer's
    own. A new folder for it is made under `folder`, in memory unless said.

    Raises: RuntimeError if pgbouncer is missing or does not start.
    """
    found = program()
    if found is None:
        raise RuntimeError("no pgbouncer: install it with the system's packages")
    watched = Watched(folder, ending="TERM")
    try:
        roles = (SUPERUSER, OWNER, APPLICATION)
        (watched.folder / "roles").write_text("".join(f'"{role}" ""\n' for role in roles))
        configuration = watched.folder / "pgbouncer.ini"
        configuration.write_text(_configuration(server, watched.folder, mode, settings))
        log = watched.folder / "log"
        watched.begin([found, str(configuration)], log=log)
        _wait(watched, log)
        yield Address(folder=watched.folder, port=PORT)
    finally:
        watched.close()


def _configuration(server: Address, folder: Path, mode: str, settings: dict[str, str | int]) -> str:
    every_setting = {
        "listen_addr": "",
        "listen_port": PORT,
        "unix_socket_dir": folder,
        "auth_type": "trust",
        "auth_file": folder / "roles",
        "admin_users": SUPERUSER,  # asks the database "pgbouncer" for SHOW POOLS and the like
        "pool_mode": mode,
        "max_client_conn": 500,
        "default_pool_size": 20,
        **settings,
    }
    lines = [f"{name} = {value}" for name, value in every_setting.items()]
    database = f"* = host={server.folder} port={server.port}"
    return "\n".join(["[databases]", database, "[pgbouncer]", *lines, ""])


def _wait(watched: Watched, log: Path) -> None:
    deadline = time.monotonic() + 10.0
    while watched.pid is not None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(watched.folder / f".s.PGSQL.{PORT}")) == 0:
                return
        time.sleep(0.01)
    raise RuntimeError(f"pgbouncer did not start: {log.read_text()}")
