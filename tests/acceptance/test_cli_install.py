"""`cofire install`: the client's file gets an entry and keeps everything else; --undo takes it
back."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cofire_process import Cofire, Done

from forked_interpreter import run_python

COMMENTED = """{
  // what our team uses
  "servers": {
    "files": {"type": "stdio", "command": "npx"}, /* keep */
  },
  "inputs": [],
}
"""

PLACES = {
    ("claude-code", "user"): ".claude.json",
    ("claude-code", "project"): "work/.mcp.json",
    ("claude-desktop", "user"): ".config/Claude/claude_desktop_config.json",
    ("cursor", "user"): ".cursor/mcp.json",
    ("cursor", "project"): "work/.cursor/mcp.json",
    ("vscode", "user"): ".config/Code/User/mcp.json",
    ("vscode", "project"): "work/.vscode/mcp.json",
}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="places differ by platform")


def install(cofire: Cofire, *arguments: str, **env: str) -> Done:
    folder = cofire.folder / "work"
    folder.mkdir(exist_ok=True)
    ended = run_python(
        ["-m", "cofire", "install", *arguments],
        cwd=folder, env={**cofire.env, **env}, input=b"", timeout=60,
    )  # fmt: skip
    done = Done(code=ended.returncode, out=ended.stdout.decode(), err=ended.stderr.decode())
    assert "Traceback" not in done.err
    return done


@LINUX
@pytest.mark.parametrize(("client", "scope"), PLACES)
def test_each_client_has_its_place_and_form(cofire: Cofire, client: str, scope: str) -> None:
    done = install(
        cofire, client, "--scope", scope, "--yes", "--identity", "coder", "--project", "billing"
    )
    assert done.code == 0, done.err
    place = cofire.folder / PLACES[client, scope]
    servers = json.loads(place.read_text())["servers" if client == "vscode" else "mcpServers"]
    entry = servers["cofire"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["mcp", "--identity", "coder", "--project", "billing"]
    assert entry["env"]["COFIRE_STORE"] == str(cofire.store)
    assert entry["env"]["COFIRE_EMBEDDER"] == "hashing:64"
    assert entry.get("type") == (None if client == "claude-desktop" else "stdio")
    assert f"+++ {place}" in done.out
    assert '+    "cofire": {' in done.out
    assert install(cofire, client, "--scope", scope, "--undo", "--yes").code == 0
    assert not place.exists()
    assert [one.name for one in place.parent.iterdir() if "cofire" in one.name] == []


def test_what_is_written_starts_a_server(cofire: Cofire) -> None:
    place = cofire.folder / "mcp.json"
    install(cofire, "cursor", "--file", str(place), "--yes")
    entry = json.loads(place.read_text())["mcpServers"]["cofire"]
    line = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }  # fmt: skip
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(cofire.folder)}  # as editors start it
    kept = {name: cofire.env[name] for name in ("PYTHONPATH", "SYSTEMROOT") if name in cofire.env}
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(line) + "\n", env={**bare, **kept, **entry["env"]},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "cofire"


def test_comments_and_other_servers_stay_and_undo_gives_back_every_byte(cofire: Cofire) -> None:
    place = cofire.folder / "mcp.json"
    place.write_text(COMMENTED)
    place.chmod(0o600)
    assert install(cofire, "vscode", "--file", str(place), "--yes").code == 0
    text = place.read_text()
    assert "// what our team uses" in text
    assert '"files": {"type": "stdio", "command": "npx"}, /* keep */\n    "cofire": {' in text
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    kept = place.with_name("mcp.json.before-cofire")
    assert kept.read_text() == COMMENTED
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = install(cofire, "vscode", "--file", str(place), "--yes")
    assert "already" in again.out
    install(cofire, "vscode", "--file", str(place), "--yes", "--identity", "other")
    assert kept.read_text() == COMMENTED
    assert install(cofire, "vscode", "--file", str(place), "--undo", "--yes").code == 0
    assert place.read_text() == COMMENTED
    assert not kept.exists()
    assert "nothing to undo" in install(cofire, "vscode", "--file", str(place), "--undo").out


def test_undo_keeps_what_was_changed_since_and_puts_back_what_was_replaced(cofire: Cofire) -> None:
    place = cofire.folder / "mcp.json"
    place.write_text('{"mcpServers": {"cofire": {"command": "old"}}}')
    install(cofire, "cursor", "--file", str(place), "--yes")
    changed = json.loads(place.read_text())
    changed["mcpServers"]["later"] = {"command": "new"}
    place.write_text(json.dumps(changed, indent=2))
    install(cofire, "cursor", "--file", str(place), "--undo", "--yes")
    assert json.loads(place.read_text()) == {
        "mcpServers": {"cofire": {"command": "old"}, "later": {"command": "new"}}
    }


def test_what_cannot_be_read_is_left_alone(cofire: Cofire) -> None:
    place = cofire.folder / "mcp.json"
    for content in (b'{"mcpServers": ', b"\xff\xfe{}", b"[]", b'{"mcpServers": 5}'):
        place.write_bytes(content)
        done = install(cofire, "cursor", "--file", str(place), "--yes")
        assert done.code == 1
        assert str(place) in done.err
        assert place.read_bytes() == content
    assert [one.name for one in cofire.folder.iterdir() if "mcp.json" in one.name] == ["mcp.json"]


def test_a_linked_file_stays_a_link(cofire: Cofire) -> None:
    real = cofire.folder / "dotfiles.json"
    real.write_text("{}")
    place = cofire.folder / "mcp.json"
    place.symlink_to(real)
    install(cofire, "cursor", "--file", str(place), "--yes")
    assert place.is_symlink()
    assert "cofire" in json.loads(real.read_text())["mcpServers"]


def test_it_asks_and_prints_and_writes_no_secrets(cofire: Cofire) -> None:
    place = cofire.folder / "mcp.json"
    done = install(cofire, "cursor", "--file", str(place))
    assert done.code == 2
    assert "--yes" in done.err
    assert not place.exists()
    shown = install(cofire, "vscode", "--print", "--no-vectors")
    assert json.loads(shown.out)["servers"]["cofire"]["args"][-2:] == ["mcp", "--no-vectors"]
    secrets = {
        "COFIRE_EMBEDDING_API_KEY": "sk-hidden",
        "COFIRE_STORE": "postgresql://me:hidden@db/cofire",
        "COFIRE_LOG_LEVEL": "info",
    }
    done = install(cofire, "cursor", "--file", str(place), "--yes", **secrets)
    assert "hidden" not in place.read_text()
    assert "COFIRE_STORE is not written" in done.err
    env = json.loads(place.read_text())["mcpServers"]["cofire"]["env"]
    assert env["COFIRE_LOG_LEVEL"] == "info"
    assert install(cofire, "zed").code == 2
    assert install(cofire, "claude-desktop", "--scope", "project", "--yes").code == 2
