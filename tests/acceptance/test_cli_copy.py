"""`cofire db copy`: what it prints, what it refuses, how it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from cofire_process import Cofire

from postgres_server import Database

STOPPED = """
import os, signal, sys
from cofire.store import copied_rows, copier
written = copier.Copier._write
def write(self, *given):
    written(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)
copied_rows.PAGE = 2
copier.Copier._write = write
from cofire.cli import main
main(sys.argv[1:])
"""
"""The command, killed after the first rows that it wrote."""


@pytest.fixture
def told(cofire: Cofire) -> Cofire:
    cofire.ok("remember", "The shed key is in the blue tin.", "--speaker", "Ada")
    cofire.ok("remember", "The ferry leaves at nine.", "--tenant", "harbour")
    return cofire


def test_between_a_file_and_postgresql(told: Cofire, postgres_store: Database) -> None:
    url = postgres_store.app_url
    done = told.ok("db", "copy", "memory.db", url)
    lines = done.out.splitlines()
    assert lines[0] == "Copied 2 spaces: 10 rows, read back and found equal."
    assert lines[1].split() == ["table", "rows", "digest"]
    items = next(line.split() for line in lines if line.split()[0] == "items")
    assert items[1] == "2"

    back = ("db", "copy", url, "back.db", "--json")
    unnamed = told.run(*back)
    assert (unnamed.code, unnamed.error["type"]) == (2, "InputError")
    assert "--tenant NAME" in unnamed.error["message"]
    report = told.ok(*back, "--tenant", "default", "--tenant", "harbour").json
    assert [one["space"] for one in report["spaces"]] == ["default/default", "harbour/default"]
    digests = {one["table"]: one["digest"] for one in report["tables"]}
    assert digests["items"].startswith(items[2])
    assert len(digests["items"]) == 64
    assert report["rows"] == 10
    assert told.ok("list", "--store", "back.db").out == told.ok("list").out


def test_what_is_there_is_refused(told: Cofire) -> None:
    told.ok("db", "copy", "memory.db", "copy.db", "--tenant", "harbour")
    again = told.run("db", "copy", "memory.db", "copy.db", "--json")
    assert (again.code, again.error["type"]) == (2, "InputError")
    assert "harbour/default: this space is in" in again.error["message"]
    missing = told.run("db", "copy", "memory.db", "new.db", "--tenant", "nobody")
    assert missing.code == 3
    assert "there is no tenant 'nobody'" in missing.err
    assert told.run("db", "copy", "nothing.db", "new.db").code == 3
    assert not (told.folder / "new.db").exists()


def test_a_killed_copy_is_finished_or_removed(told: Cofire) -> None:
    command = ("db", "copy", "memory.db", "copy.db")
    kill = [sys.executable, "-c", STOPPED, *command]
    for go_on in (False, True):
        done = subprocess.run(kill, env=told.env, cwd=told.folder, check=False)
        assert done.returncode == -signal.SIGKILL
        if go_on:
            used = told.run("list", "--store", "copy.db", "--json")
            assert (used.code, used.error["type"]) == (5, "StoreUnavailableError")
            assert "with --discard" in used.error["message"]
            assert "Copied 2 spaces, 2 of them begun before: 10 rows" in told.ok(*command).out
        else:
            assert told.ok(*command, "--discard").out == "Removed 2 unfinished copies.\n"
    assert told.ok(*command, "--discard", "--json").json == {"discarded": []}
