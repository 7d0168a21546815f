"""Fixtures around every test: no network, and nobody's settings."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest


class NetworkTouched(BaseException):
    """Not an Exception, so that no handler of the code under test can hide it."""


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):  # a Unix socket's path
        return True
    host = str(address[0])
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _guarded(name: str) -> Any:
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[-1]
        if not _is_local(address):
            raise NetworkTouched(f"a test wants to reach {address}: use a fake through the seam")
        return original(self, *arguments)

    return guarded


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Any connection other than to this machine fails the test."""
    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host is not None and not _is_local((os.fsdecode(host),)):
            raise NetworkTouched(f"a test wants to look up {host!r}: use a fake through the seam")
        return look_up(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, _guarded(name))
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The developer's own COFIRE_ variables and configuration file play no part (COFIRE_SHARED is
    no setting: it says where tests find files)."""
    for name in list(os.environ):
        if name.startswith("COFIRE_") and name != "COFIRE_SHARED":
            monkeypatch.delenv(name)
    monkeypatch.setenv("COFIRE_CONFIG", str(tmp_path_factory.getbasetemp() / "no-config.toml"))
