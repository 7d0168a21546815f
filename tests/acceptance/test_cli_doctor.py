"""`doctor` says what is wrong and how to mend it, whatever state things are in."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cofire_process import Cofire


def problems(document: Any) -> dict[str, list[dict[str, str]]]:
    return {one["name"]: one["problems"] for one in document["sections"] if one["problems"]}


def test_all_is_well(cofire: Cofire) -> None:
    cofire.ok("remember", "something")
    done = cofire.ok("doctor")
    for word in ("python", "sqlite", "onnxruntime", "config file", str(cofire.store), "free disk",
                 "hashing-v1:64", "1 memory", "All is well."):  # fmt: skip
        assert word in done.out
    document = cofire.ok("doctor", "--json").json
    assert document["ok"] is True
    assert {one["name"] for one in document["sections"]} == {
        "Environment", "Settings", "File", "Model", "Memories"
    }  # fmt: skip


def test_before_there_is_a_store(cofire: Cofire) -> None:
    assert "there is none yet" in cofire.ok("doctor").out
    assert not cofire.store.exists()


def test_with_the_real_model(cofire: Cofire) -> None:
    out = cofire.ok("doctor", "--embedder", "minilm").out
    assert "all-MiniLM-L6-v2" in out
    assert "loaded in" in out


def test_no_secret_is_shown(cofire: Cofire) -> None:
    env = {
        "COFIRE_EMBEDDER": "openai:none",
        "COFIRE_EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1",
        "COFIRE_EMBEDDING_API_KEY": "sk-very-secret",
        "COFIRE_EMBEDDING_TIMEOUT": "0.2",
    }
    done = cofire.run("doctor", env=env)
    assert done.code == 1, "nobody answers at that address"
    assert "sk-very-secret" not in done.out + done.err
    assert "--no-vectors" in done.out


def test_a_setting_that_cannot_be_used(cofire: Cofire) -> None:
    done = cofire.run("doctor", "--json", env={"COFIRE_THREADS": "many"})
    assert done.code == 1
    assert "COFIRE_THREADS" in problems(done.json)["Settings"][0]["what"]


def test_another_model(cofire: Cofire) -> None:
    cofire.ok("remember", "something")
    done = cofire.run("doctor", "--json", "--embedder", "hashing:32")
    assert done.code == 1
    assert "cofire reembed" in problems(done.json)["Memories"][0]["mend"]
    assert cofire.run("doctor", "--no-vectors", "--embedder", "hashing:32").code == 0


def test_a_file_that_is_no_store(cofire: Cofire) -> None:
    cofire.store.write_bytes(b"no database at all " * 400)
    done = cofire.run("doctor", "--json")
    assert done.code == 1
    assert "restore" in problems(done.json)["Memories"][0]["mend"]


def test_content_that_does_not_agree(cofire: Cofire) -> None:
    cofire.ok("remember", "something", "--tag", "one")
    connection = sqlite3.connect(cofire.store)
    with connection:
        connection.execute("DELETE FROM tags")
    connection.close()
    done = cofire.run("doctor", "--json")
    assert done.code == 1
    found = problems(done.json)["Memories"]
    assert any("tags" in problem["what"] for problem in found)
    assert all(problem["mend"] for problem in found)


@pytest.mark.skipif("sys.platform == 'win32'", reason="Windows has other permissions")
def test_permissions_are_looked_at(cofire: Cofire) -> None:
    cofire.ok("remember", "something")
    Path(cofire.store).chmod(0o644)
    assert "others may read it" in cofire.ok("doctor").out
