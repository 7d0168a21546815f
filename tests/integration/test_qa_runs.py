"""Runs against a real endpoint over HTTP: killed and gone on with, limited, refused, lied to."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cofire.cli import main
from endpoint import Answer, Endpoint, completes, endpoint, fails
from forked_interpreter import Process, start_python
from made_locomo import write_locomo
from scripts_of_models import BREAKAGES

__all__ = ["endpoint"]

SAYS = {"What did Ada buy?": "a green canoe [1]", "Where did Clara move?": "Bergen [1]"}


def answering(body: dict[str, Any]) -> Answer:
    """A model that knows some answers, and a judge that is content."""
    asked = body["messages"][-1]["content"]
    usage = {"prompt_tokens": 100, "completion_tokens": 5}
    if "response_format" in body or "gold" in asked:
        return completes('{"why": "it is", "right": true}', usage=usage)(body)
    said = next((text for question, text in SAYS.items() if question in asked), "Not mentioned")
    return completes(said, usage=usage)(body)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    errors: str


class Command:
    """`cofire evaluate locomo` with a model behind HTTP, here or in another process."""

    def __init__(
        self,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        conversations: int,
    ) -> None:
        self.data = write_locomo(folder, conversations)
        self.run = folder / "run"
        self.result = folder / "result.json"
        self.capsys = capsys

    def arguments(self, more: Sequence[str]) -> list[str]:
        return [
            "evaluate", "locomo", str(self.data), "--no-slept", "--model", "openai:answers",
            "--run", str(self.run), "--json", str(self.result), *more,
        ]  # fmt: skip

    def start(self, *more: str) -> Process:
        return start_python(
            ["-m", "cofire", *self.arguments(more)], env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def done(self, *more: str) -> Ended:
        code = main(self.arguments(more))
        return Ended(code, " ".join(self.capsys.readouterr().err.split()))

    def outcomes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.result.read_text())["outcomes"]
        return found


Start = Callable[..., Command]


@pytest.fixture
def start(
    tmp_path: Path,
    endpoint: Endpoint,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    monkeypatch.setenv("COFIRE_GENERATOR_BASE_URL", endpoint.url)
    monkeypatch.setenv("COFIRE_GENERATOR_INPUT_PRICE", "1")
    monkeypatch.setenv("COFIRE_GENERATOR_OUTPUT_PRICE", "2")
    monkeypatch.setenv("COFIRE_EMBEDDER", "hashing:64")

    def made(conversations: int = 2) -> Command:
        return Command(tmp_path, capsys, conversations)

    return made


def answered(endpoint: Endpoint) -> Counter[str]:
    """How often each request was answered."""
    return Counter(json.dumps(body, sort_keys=True) for body in endpoint.requests)


def test_a_run_killed_at_any_point_goes_on_without_paying_twice(
    start: Start, endpoint: Endpoint
) -> None:
    def slowly(body: dict[str, Any]) -> Answer:
        time.sleep(0.03)
        return answering(body)

    endpoint.scripts = [slowly]
    command = start()
    options = ("--seeds", "0,1", "--judge", "openai:judge", "--parallel", "2")
    dice = random.Random(7)
    kills = 0
    for _ in range(2):
        before = len(endpoint.requests)
        process = command.start(*options)
        while process.poll() is None and len(endpoint.requests) < before + dice.randint(3, 9):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills == 2
    ended = command.done(*options)
    assert ended.code == 0, ended.errors
    # What a kill met between the model's reply and the disk has to be asked again: of each kill
    # at most what was under way in its two threads.
    repeated = sum(count - 1 for count in answered(endpoint).values())
    assert repeated <= 2 * kills
    asked = len(endpoint.requests)
    again = command.done(*options)
    assert again.code == 0, again.errors
    assert len(endpoint.requests) == asked
    outcomes = command.outcomes()
    assert len(outcomes) == 2 * 6 * 2
    assert all(one["judged"] == [True] for one in outcomes if one["group"] != "adversarial")
    assert sum(one["f1"] == 1.0 for one in outcomes if one["question"] in SAYS) == 8


def test_an_interrupted_run_asks_nothing_more(start: Start, endpoint: Endpoint) -> None:
    """All its questions are queued when the signal comes; what is under way is waited for."""

    def slowly(body: dict[str, Any]) -> Answer:
        time.sleep(1.0)
        return answering(body)

    endpoint.scripts = [slowly]
    command = start(1)
    process = command.start("--parallel", "2", "--limit", "6")
    while process.poll() is None and not endpoint.requests:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert len(endpoint.requests) <= 2
    endpoint.scripts = [answering]
    ended = command.done("--parallel", "2", "--limit", "6")
    assert ended.code == 0, ended.errors
    assert set(answered(endpoint).values()) == {1}


def test_what_was_on_the_disk_before_a_kill_is_never_asked_again(
    start: Start, endpoint: Endpoint
) -> None:
    endpoint.scripts = [answering]
    command = start()
    assert command.done().code == 0
    asked = len(endpoint.requests)
    (command.run / "outcomes.jsonl").unlink()  # killed before any outcome was written
    replies = (command.run / "replies.jsonl").read_bytes()
    (command.run / "replies.jsonl").write_bytes(replies[:-7])  # and while one was
    ended = command.done("--parallel", "1")
    assert ended.code == 0, ended.errors
    assert len(endpoint.requests) == asked + 1


def test_two_processes_in_one_folder_and_another_run_in_it_are_refused(
    start: Start, endpoint: Endpoint
) -> None:
    def very_slowly(body: dict[str, Any]) -> Answer:
        time.sleep(1.0)
        return answering(body)

    endpoint.scripts = [very_slowly]
    command = start(1)
    first = command.start("--limit", "2")
    while not endpoint.requests:
        time.sleep(0.01)
        assert first.poll() is None
    second = command.done("--limit", "2")
    assert second.code == 5
    assert "another process works in" in second.errors
    first.communicate()
    other = command.done("--temperature", "1")
    assert other.code == 2
    assert "is of a run with another temperature" in other.errors


def test_a_rate_limit_is_waited_for_and_failures_in_passing_are_tried_again(
    start: Start, endpoint: Endpoint
) -> None:
    slow_down = fails(429, "slow down", retry_after="0.2")
    endpoint.scripts = [slow_down, answering, slow_down, fails(500), answering]
    command = start(1)
    ended = command.done()
    assert ended.code == 0, ended.errors
    outcomes = command.outcomes()
    assert [one["failed"] for one in outcomes] == [""] * 6
    distinct = {json.dumps(body, sort_keys=True) for body in endpoint.requests}
    assert len(endpoint.requests) == len(distinct) + 3


def test_a_refused_key_stops_at_once_and_nothing_is_lost(start: Start, endpoint: Endpoint) -> None:
    endpoint.scripts = [answering, answering, fails(401, "wrong key")]
    command = start()
    ended = command.done("--parallel", "1")
    assert ended.code == 4
    assert "COFIRE_GENERATOR_API_KEY" in ended.errors
    assert len(command.outcomes()) == 2
    asked = len(endpoint.requests)
    endpoint.scripts = [answering]
    assert command.done("--parallel", "1").code == 0
    assert asked == 3
    assert len(answered(endpoint)) == len(endpoint.requests) - 1


def test_a_question_that_fails_is_counted_and_asked_again_by_the_next_run(
    start: Start, endpoint: Endpoint
) -> None:
    def refuses_one(body: dict[str, Any]) -> Answer:
        if "What did Ada buy?" in body["messages"][-1]["content"]:
            return fails(400, "I do not like this one")(body)
        return answering(body)

    endpoint.scripts = [refuses_one]
    command = start(1)
    ended = command.done()
    assert ended.code == 1
    assert "1 question still to be answered" in ended.errors
    failed = [one for one in command.outcomes() if one["failed"]]
    assert [(one["question"], one["f1"]) for one in failed] == [("What did Ada buy?", 0.0)]
    endpoint.scripts = [answering]
    assert command.done().code == 0
    assert not any(one["failed"] for one in command.outcomes())


def test_a_budget_ends_a_run_before_it_is_exceeded_and_holds_for_the_folder(
    start: Start, endpoint: Endpoint
) -> None:
    endpoint.scripts = [answering]
    command = start()
    for _ in range(2):
        ended = command.done("--max-calls", "4")
        assert ended.code == 1
        assert "the budget is used up" in ended.errors
        assert len(endpoint.requests) == 4
    dear = command.done("--max-cost", "0.0001")
    assert dear.code == 1
    assert len(endpoint.requests) == 4


MALFORMED = {
    **{name: text for name, (text, _) in BREAKAGES.items()},
    "megabyte": "canoe " * 200_000,
    "control": "\x00\x1b[2J\u202e a canoe",
    "citations": "[1][99][0][-3] [1-9999] canoe [²]",
}


def test_whatever_a_model_writes_the_run_ends_and_counts_it(
    start: Start, endpoint: Endpoint
) -> None:
    texts = list(MALFORMED.values())
    served: list[str] = []

    def anything(body: dict[str, Any]) -> Answer:
        served.append(texts[len(served) % len(texts)])
        return completes(served[-1], "length" if len(served) % 7 == 0 else "stop")(body)

    endpoint.scripts = [anything]
    command = start()
    judged = ("--judge", "openai:judge", "--judge-runs", "2", "--seeds", "0,1,2,3")
    ended = command.done(*judged)
    assert ended.code == 0, ended.errors
    assert len(served) > len(texts)
    outcomes = command.outcomes()
    assert len(outcomes) == 2 * 6 * 4
    assert any(one["malformed"] for one in outcomes)
    assert all(one["text"] == "" for one in outcomes if one["malformed"] in {"empty", "thinking"})
    assert any(None in one["judged"] for one in outcomes)


@pytest.mark.parametrize("learn", [False, True])
def test_learning_goes_on_where_it_was(start: Start, endpoint: Endpoint, learn: bool) -> None:
    endpoint.scripts = [answering]
    command = start()
    options = ("--learn",) if learn else ()
    assert command.done(*options, "--limit", "3").code == 0
    ended = command.done(*options)
    assert ended.code == 0, ended.errors
    assert max(answered(endpoint).values()) == 1
    lines = (command.run / "outcomes.jsonl").read_text().splitlines()
    assert len(lines) == 12
