"""What goes wrong is one clear paragraph (or one JSON object) and an exit code with a meaning."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from cofire_process import Cofire

NOWHERE = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"

USAGE = [
    ("bogus",),
    ("recall",),
    ("recall", "x", "--bogus"),
    ("recall", "x", "-k", "zero"),
    ("recall", "x", "-k", "0"),
    ("recall", "x", "--profile", "none"),
    ("recall", "x", "--kind", "none"),
    ("recall", "x", "--since", "soonish"),
    ("recall", "x", "--meta", "novalue"),
    ("list", "--after", "???"),
    ("show", "123"),
    ("recall", "x", "--as-of", "soonish"),
    ("recall", "x", "--semantic", "-1"),
    ("records", "--kind", "none"),
    ("consolidate", "--now", "soonish"),
    ("reports", "-n", "0"),
    ("remember", "x", "--importance", "11"),
    ("remember", "x", "--kind", "cue"),
    ("remember", ""),
    ("import", "here.txt", "--format", "none"),
    ("evaluate", "locomo", "here.txt", "--k", "0"),
]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Cofire:
    """A filled store for commands that change nothing, because they are refused."""
    return fill(Cofire(tmp_path_factory.mktemp("unchanged")))


@pytest.fixture
def filled(cofire: Cofire) -> Cofire:
    return fill(cofire)


def fill(cofire: Cofire) -> Cofire:
    cofire.ok("remember", "something")
    (cofire.folder / "here.txt").write_text("words")
    return cofire


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_usage(unchanged: Cofire, arguments: tuple[str, ...]) -> None:
    as_json = unchanged.run("--json", *arguments)
    assert (as_json.code, as_json.out) == (2, "")
    assert as_json.error["exit_code"] == 2
    assert as_json.error["message"]


def test_an_error_is_one_paragraph(unchanged: Cofire) -> None:
    done = unchanged.run("recall", "x", "--kind", "none")
    assert done.out == ""
    assert done.err.startswith("cofire: 'none' is not")
    assert done.err.count("\n") == 1
    help = unchanged.run("recal", "x").err
    assert help == "cofire: No such command 'recal'. Did you mean 'recall'? See `cofire --help`.\n"


@pytest.mark.parametrize("command", ["show", "history", "unarchive", "forget"])
def test_a_huge_id_is_not_repeated_whole(unchanged: Cofire, command: str) -> None:
    done = unchanged.run(command, "ab" * 5_000)
    assert done.code == 2
    assert "abab…abab" in done.err
    assert len(done.err) < 250


@pytest.mark.parametrize(
    "arguments",
    [("show", NOWHERE), ("history", NOWHERE), ("forget", NOWHERE), ("update", NOWHERE, "--pin"),
     ("import", "nothing"), ("restore", "nothing.db", "--yes")],
    ids=" ".join,
)  # fmt: skip
def test_not_found(unchanged: Cofire, arguments: tuple[str, ...]) -> None:
    done = unchanged.run(*arguments, "--json")
    assert (done.code, done.error["type"]) == (3, "NotFoundError")


@pytest.mark.parametrize("command", ["recall x", "list", "stats", "export x.jsonl", "reembed"])
def test_no_store_yet(cofire: Cofire, command: str) -> None:
    done = cofire.run(*command.split())
    assert done.code == 3
    assert "cofire remember TEXT" in done.err
    assert not cofire.store.exists()


def test_configuration(filled: Cofire) -> None:
    wrong = filled.run("list", env={"COFIRE_EMBEDDER": "psychic"})
    assert (wrong.code, "COFIRE_EMBEDDER" in wrong.err) == (4, True)
    other = filled.run("recall", "x", "--embedder", "hashing:32")
    assert other.code == 4
    assert "cofire reembed" in other.err
    assert "--no-vectors" in other.err
    assert filled.run("recall", "x", "--embedder", "hashing:32", "--no-vectors").code == 0
    assert filled.run("list", "--embedder", "hashing:32").code == 0, "listing embeds nothing"
    assert filled.run("list", "--store", "mysql://host/db").code == 4


def test_a_newer_store_is_refused(filled: Cofire) -> None:
    with sqlite3.connect(filled.store) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from-the-future'")
    connection.close()
    assert filled.run("list").code == 4


def test_unavailable(filled: Cofire) -> None:
    assert filled.run("remember", "x", "--store", str(filled.folder)).code == 5
    assert filled.run("remember", "x", "--store", os.devnull).code == 5


def test_busy(filled: Cofire) -> None:
    with sqlite3.connect(filled.store, isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        done = filled.run("remember", "x", env={"COFIRE_WRITE_WAIT": "0.2"})
        assert done.code == 5
        connection.execute("ROLLBACK")
    connection.close()
    filled.ok("remember", "x")


def test_failure(filled: Cofire) -> None:
    broken = filled.folder / "broken.db"
    broken.write_bytes(b"no database at all " * 400)
    assert filled.run("list", "--store", str(broken)).code == 1
    assert filled.run("restore", str(broken), "--yes").code == 1
    (filled.folder / "odd.json").write_text(json.dumps([{"neither": "nor"}]))
    assert filled.run("import", "odd.json").code == 1


def test_a_bug_is_told_and_not_dumped(filled: Cofire, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import cofire.cli.browsing as module\n"
        "def broken(*_): raise RuntimeError('oh')\n"
        "module.plain = broken\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{filled.env['PYTHONPATH']}"}
    done = filled.run("stats", "--json", env=env)
    assert (done.code, done.error["type"]) == (1, "RuntimeError")
    assert "bug" in done.error["message"]
    assert "Traceback" in filled.run("stats", "--json", env=env | {"COFIRE_DEBUG": "1"}).err
