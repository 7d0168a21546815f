"""Import, export, backup, restore, reembed and scrub, on real files, pipes and interruptions."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cofire_process import Cofire

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I planted a plum tree."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "In the yard?"},
            ],
            "session_2_date_time": "2:00 pm on 9 May, 2023",
        },
        "qa": [],
    }
]


def test_import_tells_what_it_did(cofire: Cofire) -> None:
    (cofire.folder / "chat.json").write_text(json.dumps(LOCOMO))
    done = cofire.ok("import", "chat.json")
    assert "2  imported" in done.out
    assert "session 2" in done.out
    again = cofire.ok("import", "chat.json", "--json").json
    assert (again["imported"], again["known"]) == (0, 2)
    hit = cofire.ok("recall", "plum tree", "--json").json["items"][0]
    assert (hit["speaker"], hit["time"][:10]) == ("Ada", "2023-05-08")


def test_import_of_standard_input_and_its_reasons(cofire: Cofire) -> None:
    done = cofire.ok("import", "-", "--format", "jsonl", stdin='{"text":"hi"}\n{"no":1}\nbroken\n')
    assert "1  imported" in done.out
    assert "2  could not be used" in done.out
    assert "line 3" in done.out
    nothing = cofire.run("import", "-", "--format", "jsonl", "--json", stdin="broken\n")
    assert (nothing.code, nothing.json["dropped"]) == (1, 1)
    assert cofire.ok("import", "-", "--json").json["imported"] == 0


def test_import_of_a_folder_into_a_project(cofire: Cofire) -> None:
    notes = cofire.folder / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Plums\nBottled in September.")
    (notes / "b.txt").write_text("Ferry at nine.")
    assert cofire.ok("import", "notes", "--into", "home", "--json").json["imported"] == 2
    assert cofire.ok("stats", "--json").json["items"] == 0
    assert (
        cofire.ok("recall", "plums", "--project", "home", "--json").json["items"][0]["title"]
        == "Plums"
    )


@pytest.mark.parametrize("piped", [False, True])
def test_export_and_import_are_a_round_trip(cofire: Cofire, piped: bool) -> None:
    for number in range(3):
        cofire.ok("remember", f"note {number}", "--session", "s")
    if piped:
        (cofire.folder / "all.jsonl").write_text(cofire.ok("export", "-").out)
    else:
        done = cofire.ok("export", "all.jsonl")
        assert done.out.startswith("Exported 3 memories to all.jsonl")
    cofire.ok("import", "all.jsonl", "--store", "other.db")
    before = cofire.ok("list", "--json").json
    assert cofire.ok("list", "--json", "--store", "other.db").json == before
    assert cofire.run("export", "-", "--json").code == 2


def test_backup_and_restore(cofire: Cofire) -> None:
    cofire.ok("remember", "before")
    assert cofire.ok("backup", "safe.db", "--json").json["bytes"] > 0
    cofire.ok("remember", "after")
    refused = cofire.run("restore", "safe.db")
    assert refused.code == 2
    assert "--yes" in refused.err
    cofire.ok("restore", "safe.db", "--yes")
    assert [item["content"] for item in cofire.ok("list", "--json").json["items"]] == ["before"]
    fresh = cofire.ok("restore", "safe.db", "--store", "new/place.db", "--json").json
    assert fresh["items"] == 1


def test_reembed_moves_the_store_to_another_model(cofire: Cofire) -> None:
    cofire.ok("remember", "one")
    cofire.ok("remember", "two", "--no-vectors")
    assert "waits for a vector" in cofire.ok("stats").out
    assert cofire.ok("reembed").out == "1 vector made; the model is hashing-v1:64.\n"
    assert cofire.ok("reembed").out.startswith("Nothing to do")
    moved = cofire.ok("reembed", "--embedder", "hashing:32", "--json").json
    assert moved == {"vectors": 2, "model": "hashing-v1:32"}
    cofire.ok("recall", "one", "--embedder", "hashing:32")
    assert cofire.run("reembed", "--no-vectors").code == 2


def test_scrub_clears_what_forget_could_not(cofire: Cofire) -> None:
    text = "the code is xylophone-4711"
    id = cofire.ok("remember", text, "--json").json["ids"][0]
    cofire.ok("remember", "another")
    reader = sqlite3.connect(cofire.store, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()
    forgotten = cofire.ok("forget", id)
    assert forgotten.out.startswith("Forgot 1 memory.\nReceipt ")
    assert "copies may be left in the store's files; `cofire scrub`" in forgotten.out
    assert "traces may stay" in forgotten.err
    busy = cofire.run("scrub", "--json", env={"COFIRE_WRITE_WAIT": "0.2"})
    assert (busy.code, busy.out) == (5, "")
    assert "somebody was reading" in busy.err
    reader.execute("COMMIT")
    assert any(text.encode() in path.read_bytes() for path in cofire.folder.glob("*.db*"))
    done = cofire.ok("scrub", "--json")
    assert done.json.keys() == {"bytes", "freed"}
    assert done.err == ""
    assert not any(text.encode() in path.read_bytes() for path in cofire.folder.glob("*.db*"))
    reader.close()
    assert cofire.ok("scrub").out.startswith("Scrubbed: the store takes ")
    assert cofire.run("scrub", "--store", "none.db").code == 3


def test_a_closed_pipe_is_no_trouble(cofire: Cofire) -> None:
    lines = "".join(f'{{"text":"a long enough line number {n}"}}\n' for n in range(3_000))
    cofire.ok("import", "-", "--format", "jsonl", stdin=lines)
    for arguments in (("list", "--all"), ("list", "--all", "--json"), ("export", "-")):
        process = subprocess.Popen(
            cofire.command(*arguments),
            cwd=cofire.folder,
            env=cofire.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b"", arguments
        process.stderr.close()
        assert process.wait(60) == 141, arguments


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a single process")
def test_ctrl_c_leaves_nothing_half_written(cofire: Cofire) -> None:
    process = subprocess.Popen(
        cofire.command("import", "-", "--format", "jsonl"),
        cwd=cofire.folder,
        env=cofire.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    for number in range(2_500):  # two transactions, and half of a third that never comes
        process.stdin.write(f'{{"text":"line number {number}"}}\n'.encode())
    process.stdin.flush()
    _wait_for_memories(cofire, 2_000)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert err.startswith(b"cofire: stopped;")
    assert b"Traceback" not in err
    assert cofire.ok("stats", "--json").json["items"] == 2_000
    assert cofire.ok("doctor", "--json").json["ok"]


def _wait_for_memories(cofire: Cofire, count: int) -> None:
    for _ in range(60):
        done = cofire.run("stats", "--json")
        if done.code == 0 and done.json["items"] >= count:
            return
    raise AssertionError(f"there are still fewer than {count} memories")


def test_an_export_that_fails_leaves_the_former_file(cofire: Cofire) -> None:
    target: Path = cofire.folder / "all.jsonl"
    target.write_text("what was here")
    assert cofire.run("export", "all.jsonl", "--store", "missing.db").code == 3
    assert target.read_text() == "what was here"
