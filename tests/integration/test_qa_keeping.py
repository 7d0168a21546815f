"""Replies that were paid for: kept by content, whole after a kill, one process at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cofire.errors import GenerationError, InputError, StoreBusyError
from cofire.evaluation.qa.keeping import (
    REPLIES,
    KeptGenerator,
    KeptReplies,
    Lines,
    RunFolder,
    reply_key,
)
from cofire.evaluation.qa.outcomes import Outcome, outcome_line, read_outcomes
from cofire.models import Generated, Generation

REQUEST = Generation(system="You answer.", user="What is it?", max_tokens=10, seed=1)
REPLY = Generated(text="a boat", input_tokens=20, output_tokens=3, seconds=0.5)


class Counting:
    """Says how often it was asked; fails where it is told to."""

    name = "openai:counting"

    def __init__(self, fails: int = 0) -> None:
        self.asked = 0
        self.fails = fails

    def generate(self, request: Generation, /) -> Generated:
        self.asked += 1
        if self.asked <= self.fails:
            raise GenerationError("lost", retryable=True)
        return replace(REPLY, text=f"{request.user} {self.asked}")

    def close(self) -> None:
        pass


def test_the_same_request_is_paid_for_once_even_by_another_process(tmp_path: Path) -> None:
    first = Counting()
    kept = KeptReplies(tmp_path)
    asked = [KeptGenerator(first, kept).generate(REQUEST) for _ in range(3)]
    kept.close()
    again = KeptReplies(tmp_path)
    later = Counting()
    asked.append(KeptGenerator(later, again).generate(REQUEST))
    again.close()
    assert (first.asked, later.asked) == (1, 0)
    assert len({reply.text for reply in asked}) == 1
    assert again.input_tokens == 20


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, system="You judge."), replace(REQUEST, user="Who is it?"),
        replace(REQUEST, max_tokens=11), replace(REQUEST, temperature=0.5),
        replace(REQUEST, seed=2), replace(REQUEST, seed=None),
        replace(REQUEST, schema={"type": "object"}),
    ],
)  # fmt: skip
def test_whatever_a_reply_depends_on_makes_another_request(other: Generation) -> None:
    assert reply_key("m", other) != reply_key("m", REQUEST)
    assert reply_key("n", REQUEST) != reply_key("m", REQUEST)


def test_the_timeout_and_the_order_of_a_schema_do_not() -> None:
    one = replace(REQUEST, schema={"a": 1, "b": 2}, timeout=3.0)
    other = replace(REQUEST, schema={"b": 2, "a": 1})
    assert reply_key("m", one) == reply_key("m", other)


def test_a_call_that_fails_is_not_kept(tmp_path: Path) -> None:
    inner = Counting(fails=1)
    kept = KeptReplies(tmp_path)
    generator = KeptGenerator(inner, kept)
    with pytest.raises(GenerationError):
        generator.generate(REQUEST)
    assert len(kept) == 0
    assert generator.generate(REQUEST).text == "What is it? 2"
    kept.close()


def test_threads_that_ask_the_same_at_once_pay_once(tmp_path: Path) -> None:
    inner = Counting()
    kept = KeptReplies(tmp_path)
    generator = KeptGenerator(inner, kept)
    threads = [threading.Thread(target=generator.generate, args=(REQUEST,)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.close()
    assert inner.asked == 1


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)  # every example waits for the disk
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=())), max_size=5),
    cut=st.integers(0, 400),
)
def test_whatever_a_kill_leaves_of_the_last_line_the_others_are_read(
    tmp_path: Path, texts: list[str], cut: int
) -> None:
    (tmp_path / REPLIES).unlink(missing_ok=True)
    kept = KeptReplies(tmp_path)
    for at, text in enumerate(texts):
        kept.put(f"key-{at}", "m", replace(REPLY, text=text))
    kept.close()
    content = (tmp_path / REPLIES).read_bytes()
    shortened = content[: max(0, len(content) - cut)]
    (tmp_path / REPLIES).write_bytes(shortened)
    whole = shortened.count(b"\n")
    again = KeptReplies(tmp_path)
    again.put("new", "m", REPLY)
    found = [again.get(f"key-{at}") for at in range(len(texts))]
    again.close()
    assert [one.text for one in found if one is not None] == texts[:whole]
    assert again.damaged == 0
    last = KeptReplies(tmp_path)
    last.close()
    assert len(last) == whole + 1


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    kept = KeptReplies(tmp_path)
    for at in range(3):
        kept.put(f"key-{at}", "m", REPLY)
    kept.close()
    lines = (tmp_path / REPLIES).read_bytes().splitlines(keepends=True)
    lines[1] = b"\x00\xff{]\n"
    (tmp_path / REPLIES).write_bytes(b"".join(lines))
    again = KeptReplies(tmp_path)
    again.close()
    assert (len(again), again.damaged, "key-1" in again) == (2, 1, False)


def test_a_reply_of_a_megabyte_comes_back_whole(tmp_path: Path) -> None:
    kept = KeptReplies(tmp_path)
    kept.put("large", "m", replace(REPLY, text="\ud83d\n" * 500_000))
    kept.close()
    again = KeptReplies(tmp_path)
    found = again.get("large")
    again.close()
    assert found is not None
    assert len(found.text) == 1_000_000


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    code = (
        "import sys; from cofire.evaluation.qa.keeping import RunFolder\n"
        "folder = RunFolder(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"held"
        with pytest.raises(StoreBusyError, match="another process works in"):
            RunFolder(tmp_path)
        other.kill()
    with RunFolder(tmp_path):
        pass


def test_a_folder_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(InputError, match="takes a folder"):
        RunFolder(tmp_path / "file")


def outcome(text: str, **values: object) -> Outcome:
    given = {
        "arm": "cofire @1000", "task": "c/1", "material": "c", "group": "g", "seed": 0,
        "question": "Who?", "gold": "Ada", "text": text, "abstained": False, "reason": "",
        "unanswerable": False, **values,
    }  # fmt: skip
    return Outcome(**given)  # type: ignore[arg-type]


def test_the_last_outcome_of_a_question_counts(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    lines = Lines(path, durable=False)
    failed = outcome("", failed="lost", judged=(False,))
    other = outcome("Bea", task="c/2", judged=(True, None))
    for one in (failed, other, outcome("Ada")):
        lines.add(outcome_line(one))
    lines.close()
    with path.open("a") as file:
        file.write(json.dumps({"arm": "cofire"}))
    assert read_outcomes(path) == (outcome("Ada"), other)
