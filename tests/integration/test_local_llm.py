"""A real small language model on this machine: it writes something, and nothing goes unseen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cofire.consolidation.asking import Room, ask
from cofire.consolidation.budgets import Budget
from cofire.consolidation.drafts import DISTILLED
from cofire.consolidation.prompts import load
from cofire.errors import ConfigurationError, PromptTooLongError
from cofire.models import Generated, Generation, make_generator
from cofire.models.local_generator import LocalGenerator
from cofire.models.local_serving import SERVERS, Served
from cofire.models.streaming import streamed
from cofire.settings import load_settings
from local_model import local_model as local_model  # noqa: PLC0414 - a fixture
from scripts_of_models import turn

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
TURNS = [turn("T1", "I own a green canoe. My sister Ada lives in Bergen.", time=MAY)]


def test_distilling_with_a_real_model(local_model: str) -> None:
    generator = make_generator(
        load_settings(generator=local_model, threads=1, generator_timeout=300)
    )
    assert generator is not None
    budget = Budget(calls=2, tokens=6_000)
    room = Room(answer=100, longest_answer=400)
    result = ask(generator, load("distil"), TURNS, budget, room=room)
    generator.close()
    assert result.error is None
    assert 1 <= result.calls <= 2
    assert result.spent == budget.spent
    assert result.spent.input_tokens > 300 * result.calls
    assert result.spent.output_tokens > 10
    assert sum(result.failures.values()) == result.calls - (result.unanswered == ())
    for draft in result.drafts:
        assert draft.kind in DISTILLED
        assert draft.maker == "local:SmolLM2-135M-Instruct.Q4_1"
        assert {quote.label for quote in draft.quotes} == {"T1"}


def test_the_schema_holds_a_real_model(local_model: str) -> None:
    generator = make_generator(load_settings(generator=local_model, threads=1))
    assert generator is not None
    schema = {
        "type": "object",
        "properties": {"animal": {"type": "string", "enum": ["cat", "dog"]}},
        "required": ["animal"],
        "additionalProperties": False,
    }
    request = Generation(
        system="Answer with JSON.", user="Which one barks?", schema=schema, max_tokens=40
    )
    answer = generator.generate(request)
    generator.close()
    assert answer.finish == "stop"
    assert answer.text.replace(" ", "").replace("\n", "") in (
        '{"animal":"cat"}',
        '{"animal":"dog"}',
    )


CANOE = Generation(system="Be brief.", user="What is a canoe?", max_tokens=24, seed=5)


def served(local_model: str) -> Served:
    """What the session's server serves."""
    return Served(Path(local_model.removeprefix("local:")), 4096, 1)


def of(served: Served) -> LocalGenerator:
    return LocalGenerator(served.path, context=served.context, threads=served.threads)


def test_the_same_request_brings_the_same_answer(
    local_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole or in pieces, after others or not, through no proxy, and of one server."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server = SERVERS.take(served(local_model))
    before = server.holders  # other files of the session may hold it, too
    one, two = of(served(local_model)), of(served(local_model))
    for request in (CANOE, Generation(system="", user="Hi", max_tokens=12, seed=1, temperature=1)):
        whole = one.generate(request)
        *pieces, last = two.stream(request)
        assert isinstance(last, Generated)
        assert "".join(str(piece) for piece in pieces) == last.text == whole.text != ""
        assert len(pieces) > 5
        assert (last.finish, last.input_tokens, last.output_tokens) == (
            whole.finish, whole.input_tokens, whole.output_tokens,
        )  # fmt: skip
        assert last.output_tokens > 5
    assert server.holders == before + 2
    one.close()
    two.close()
    SERVERS.give_back(server)
    assert server.running
    assert one.generate(CANOE).text == two.generate(CANOE).text
    one.close()
    two.close()
    assert server.holders == before - 1


def test_more_than_there_is_room_for(local_model: str) -> None:
    generator = of(served(local_model))
    with pytest.raises(PromptTooLongError):
        generator.generate(Generation(system="", user="a canoe and " * 2_000, max_tokens=8))
    with pytest.raises(PromptTooLongError):
        list(generator.stream(Generation(system="", user="a canoe and " * 2_000, max_tokens=8)))
    generator.close()


def test_a_stream_that_nobody_reads_holds_up_nobody(local_model: str) -> None:
    generator = of(served(local_model))
    tale = Generation(system="", user="Tell a tale", max_tokens=2_000)
    parts = streamed(generator, tale)
    assert next(parts)
    parts.close()
    started = time.monotonic()
    assert generator.generate(Generation(system="", user="Hi", max_tokens=2)).text
    assert time.monotonic() - started < 5
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(generator.generate(CANOE).text))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(texts)) == 1
    generator.close()


def test_a_server_lives_as_long_as_somebody_holds_it(local_model: str) -> None:
    """It is not the session's: this one has less room."""
    small = Served(served(local_model).path, 512, 1)
    generator = of(small)
    assert generator.generate(CANOE).text
    server = SERVERS.take(small)
    SERVERS.give_back(server)
    assert server.running
    server.process.kill()
    server.process.wait()
    assert generator.generate(CANOE).text  # of another
    other = SERVERS.take(small)
    SERVERS.give_back(other)
    assert other is not server
    del generator  # as good as closing it
    assert not other.running


def test_what_cannot_be_served(local_model: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(served(local_model).path.read_bytes()[:100_000])
    generator = make_generator(load_settings(), f"local:{broken}")
    assert generator is not None
    with pytest.raises(ConfigurationError, match=r"broken\.gguf cannot be served .*Failed to init"):
        generator.generate(CANOE)
    generator.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_leaves_the_server_alone(local_model: str) -> None:
    generator = of(served(local_model))
    text = generator.generate(CANOE).text
    child = os.fork()
    if not child:
        try:
            generator.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert generator.generate(CANOE).text == text
    generator.close()


@pytest.mark.skipif(os.name != "posix", reason="asks whether a process lives by a signal")
@pytest.mark.parametrize("end", ["returns", "is killed"])
def test_a_server_ends_with_its_process(local_model: str, end: str) -> None:
    code = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from cofire.models.local_serving import SERVERS, Served\n"
        "server = SERVERS.take(Served(Path(sys.argv[1]), 256, 1))\n"
        "print(server.process.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    path = str(served(local_model).path)
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        os.kill(server, 0)
        if end == "is killed":
            process.kill()
        process.communicate("\n")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and lives(server):
        time.sleep(0.02)
    assert not lives(server)


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")  # one that ended stays there until somebody asks for it
    return not (state.exists() and ") Z " in state.read_text(encoding="utf-8"))
