"""Clients of MCP: where each keeps its configuration, and what an entry looks like there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cofire.errors import InputError

NAME = "cofire"
"""What the entry is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client. `servers`: the member of its file that has the servers; `user` and `project` give
    the file (None: it has none of the kind). `typed`: entries say that they are `stdio`. `after`:
    what is to be done for the change to count."""

    name: str
    title: str
    servers: str
    user: Callable[[], Path]
    project: Callable[[Path], Path] | None
    typed: bool
    after: str

    def file(self, scope: str, folder: Path) -> Path:
        """The file of a scope. Raises InputError."""
        if scope == "user":
            return self.user()
        if scope != "project":
            raise InputError(f"--scope is user or project, not {scope!r}")
        if self.project is None:
            raise InputError(f"{self.title} has one configuration for everything: --scope user")
        return self.project(folder)

    def entry(self, command: list[str], env: Mapping[str, str]) -> dict[str, Any]:
        """What starts the server."""
        made: dict[str, Any] = {"type": "stdio"} if self.typed else {}
        made |= {"command": command[0], "args": command[1:]}
        return made | ({"env": dict(env)} if env else {})


def _claude_code() -> Path:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(folder) if folder else Path.home()) / ".claude.json"


def _settings_folder() -> Path:
    """Where programs keep their settings on this platform."""
    if sys.platform == "win32":
        roaming = os.environ.get("APPDATA")
        return Path(roaming) if roaming else Path.home() / "AppData" / "Roaming"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    chosen = os.environ.get("XDG_CONFIG_HOME")
    return Path(chosen) if chosen else Path.home() / ".config"


CLIENTS: Mapping[str, Client] = {
    one.name: one
    for one in (
        Client(
            name="claude-code",
            title="Claude Code",
            servers="mcpServers",
            user=_claude_code,
            project=lambda folder: folder / ".mcp.json",
            typed=True,
            after="start a new session; /mcp shows it",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            servers="mcpServers",
            user=lambda: _settings_folder() / "Claude" / "claude_desktop_config.json",
            project=None,
            typed=False,
            after="quit Claude Desktop and start it again",
        ),
        Client(
            name="cursor",
            title="Cursor",
            servers="mcpServers",
            user=lambda: Path.home() / ".cursor" / "mcp.json",
            project=lambda folder: folder / ".cursor" / "mcp.json",
            typed=True,
            after="restart Cursor, and see that it is switched on under MCP in its settings",
        ),
        Client(
            name="vscode",
            title="VS Code",
            servers="servers",
            user=lambda: _settings_folder() / "Code" / "User" / "mcp.json",
            project=lambda folder: folder / ".vscode" / "mcp.json",
            typed=True,
            after="run `MCP: List Servers` and start it",
        ),
    )
}


def client_named(name: str) -> Client:
    """Raises InputError."""
    client = CLIENTS.get(name)
    if client is None:
        raise InputError(f"there is no client {name!r}; there are {', '.join(CLIENTS)}")
    return client


def program() -> list[str]:
    """What starts Cofire, by absolute paths: clients have a PATH of their own, and a working
    directory whose modules are not to be imported (-P)."""
    python = Path(sys.executable)
    script = python.with_name("cofire.exe" if sys.platform == "win32" else "cofire")
    return [str(script)] if script.is_file() else [str(python), "-P", "-m", "cofire"]


def is_secret(name: str) -> bool:
    """Whether a variable must not be copied into a file of somebody else's."""
    return name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))
