"""`cofire ask`: answers with sources, honest refusals, and models that fail."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from cofire_process import Cofire

from answering_endpoint import replies
from endpoint import DONE, Endpoint, completes, delta, fails, streams
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture

KEY = "The boathouse key hangs behind the clock."
QUESTION = "Where does the boathouse key hang?"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three sentences."""
    cofire = Cofire(tmp_path_factory.mktemp("three"))
    lines = [
        {"speaker": "Mara", "content": KEY},
        {"speaker": "Ilse", "content": "The ferry leaves at nine."},
        {"speaker": "Ilse", "content": "Joris is allergic to varnish, Zoë to 猫."},
    ]
    text = "".join(json.dumps({**one, "time": "2026-03-02T18:20+01:00"}) + "\n" for one in lines)
    cofire.ok("import", "-", stdin=text)
    return cofire.store


@pytest.fixture
def told(cofire: Cofire, three: Path) -> Cofire:
    """A memory of three sentences."""
    shutil.copy(three, cofire.store)
    return cofire


@pytest.fixture
def modelled(told: Cofire, endpoint: Endpoint) -> Cofire:
    """The same with a language model at an endpoint."""
    told.env |= {
        "COFIRE_GENERATOR": "openai:wise", "COFIRE_GENERATOR_BASE_URL": endpoint.url,
        "COFIRE_GENERATOR_RETRIES": "0", "COFIRE_GENERATOR_INPUT_PRICE": "10",
    }  # fmt: skip
    return told


def test_without_a_model_the_sentence_that_fits_best(told: Cofire) -> None:
    done = told.ok("ask", QUESTION)
    assert f"Mara, 2 March 2026: “{KEY}” [1]\n\n[1] 2 March 2026, Mara  " in done.out
    assert f"\n    {KEY}\n" in done.out
    assert "No language model: this is what fits best, in the words of who said it." in done.out
    assert done.err == ""


def test_the_question_may_come_from_a_pipe(told: Cofire) -> None:
    done = told.ok("ask", "-", "--json", stdin=f"{QUESTION}\n")
    assert done.json["question"] == QUESTION
    assert done.json["extractive"] is True


def test_an_answer_of_a_model(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [replies("Behind the clock [{boathouse key}], not at nine [{ferry}].")]
    done = modelled.ok("ask", QUESTION)
    assert done.out.startswith("Behind the clock [1], not at nine [2].\n\n[1] 2 March 2026, Mara")
    assert "\n[2] 2 March 2026, Ilse" in done.out
    assert "Written by openai:wise, prompt answer@1." in done.out
    assert "ms; model 120 tokens in, 12 out, " in done.out
    assert "ms, cost 0.0012\n" in done.out
    assert "Learned: " in done.out
    (request,) = endpoint.requests
    assert request["max_tokens" if "max_tokens" in request else "max_completion_tokens"] == 512


def test_json_is_one_document(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [replies("Behind the clock [{boathouse key}].")]
    document = modelled.ok("ask", QUESTION, "--json", "--context").json
    assert document["text"] == "Behind the clock."
    assert document["marked"] == "Behind the clock [1]."
    (cited,) = document["citations"]
    assert (cited["number"], cited["text"], cited["speaker"]) == (1, KEY, "Mara")
    assert document["context"]["text"].startswith("[memory ")
    assert document["model"] == "openai:wise"
    assert document["usage"]["output_tokens"] == 12
    assert document["learned"]["counted"] is True
    assert document["nearest"] == []
    bare = modelled.ok("ask", QUESTION, "--json", "--no-learn").json
    assert (bare["learned"], bare["context"]) == (None, None)


def test_options_reach_the_model(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [replies("Behind the clock.")]
    modelled.ok(
        "ask", QUESTION, "--temperature", "0.7", "--max-tokens", "99", "--seed", "5",
        "--prompt", "short", "--model", "openai:other", "-k", "2", "--tokens", "60",
        "--speaker", "Mara", "--now", "2026-05-08",
    )  # fmt: skip
    (request,) = endpoint.requests
    assert request["model"] == "other"
    assert request["temperature"] == 0.7
    assert request["seed"] == 5
    asked = request["messages"][-1]["content"]
    assert "Short answer:" in asked
    assert "Friday, 8 May 2026" in asked
    assert "ferry" not in asked


def test_what_was_never_said(told: Cofire) -> None:
    done = told.ok("ask", "Quis custodiet ipsos custodes?", "--speaker", "Nobody")
    assert done.out.startswith("Not mentioned.\nNothing was recalled. The filters may leave")


def test_the_model_finds_nothing(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [replies("Not mentioned")]
    done = modelled.ok("ask", QUESTION, "--nearest")
    assert done.out.startswith(
        "Not mentioned.\nopenai:wise found no answer in the 3 lines that it was given.\n\n"
        "What came nearest:\n·   2 March 2026, Mara"
    )
    assert KEY in done.out


def test_a_refusal_as_json(told: Cofire) -> None:
    document = told.ok("ask", "Quis custodiet ipsos custodes?", "--json").json
    assert (document["abstained"], document["reason"]) == (True, "gate")
    assert len(document["nearest"]) == 3


@pytest.mark.parametrize(
    ("script", "told_of"),
    [
        (completes(None), "could not be used (empty)"),
        (completes("A clock [99]."), "names lines that it was not given"),
    ],
)
def test_replies_that_are_no_good(
    modelled: Cofire, endpoint: Endpoint, script: Any, told_of: str
) -> None:
    endpoint.scripts = [script]
    done = modelled.ok("ask", QUESTION)
    assert told_of in done.err
    assert "clock" in done.out
    assert ("cites no source" in done.err) is ("[99]" in done.out)


def test_a_model_that_declines(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [completes(None, refusal="I would rather not.")]
    done = modelled.ok("ask", QUESTION)
    assert done.out.startswith("I would rather not.\nopenai:wise declined to answer")


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (fails(500, "fire"), 1, "fire; try again later"),
        (fails(401), 4, "set COFIRE_GENERATOR_API_KEY"),
    ],
)
def test_endpoints_that_fail(
    modelled: Cofire, endpoint: Endpoint, script: Any, code: int, words: str
) -> None:
    endpoint.scripts = [script]
    done = modelled.run("ask", QUESTION)
    assert done.code == code, done
    assert words in done.err
    assert done.out == ""
    if code == 1:
        assert "`--model none` answers without a language model" in done.err


def test_nobody_listens(modelled: Cofire) -> None:
    env = {"COFIRE_GENERATOR_BASE_URL": "http://127.0.0.1:9/v1"}
    done = modelled.run("ask", QUESTION, env=env)
    assert done.code == 1
    assert "cannot be reached" in done.err
    assert modelled.run("ask", QUESTION, "--model", "gpt", env=env).code == 2


def test_odd_questions(told: Cofire) -> None:
    assert told.run("ask", "  ").code == 2
    long = told.run("ask", "-", stdin="where? " * 50_000)
    assert long.code == 2
    assert "at most 100,000 characters" in long.err
    assert "Zoë to 猫" in told.ok("ask", "Is Zoë 猫 \u202e\x1b[31m?", "--no-gate").out
    assert told.run("ask", "-", stdin=b"\xff").code == 2
    assert told.run("ask", QUESTION, "--prompt", "nothing").code == 2
    assert told.run("ask", QUESTION, "--store", "missing.db").code == 3


def test_prompts_of_your_own(modelled: Cofire, endpoint: Endpoint, tmp_path: Path) -> None:
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "pirate.md").write_text(
        "---\nversion: 3\n---\n# System\nSpeak as a pirate.\n# User\n{{context}}\n{{question}}\n"
    )
    endpoint.scripts = [replies("Arr, the clock [{boathouse key}].")]
    modelled.env["COFIRE_ANSWER_PROMPTS"] = str(own)
    done = modelled.ok("ask", QUESTION, "--prompt", "pirate")
    assert "prompt pirate@3" in done.out
    assert endpoint.requests[0]["messages"][0]["content"] == "Speak as a pirate."
    (own / "pirate.md").write_text("Arr!")
    assert modelled.run("ask", QUESTION, "--prompt", "pirate").code == 4


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
class TestOnATerminal:
    """Where somebody watches the answer being written."""

    def test_an_answer_comes_in_pieces(self, modelled: Cofire, endpoint: Endpoint) -> None:
        from on_terminal import Terminal

        long = "word " * 30
        endpoint.scripts = [replies(f"{long}at the clock [{{boathouse key}}] \x1b[31m猫.")]
        with Terminal(modelled, "ask", QUESTION) as screen:
            assert screen.ended() == 0
        assert endpoint.requests[0]["stream"] is True
        lines = screen.text.split("\n")
        assert max(map(len, lines)) <= 80
        assert lines[0] == ("word " * 16).strip()
        assert lines[2] == "clock [1] \\x1b[31m猫."
        assert "[1] 2 March 2026, Mara" in screen.text

    def test_what_was_written_is_taken_otherwise(
        self, modelled: Cofire, endpoint: Endpoint
    ) -> None:
        from on_terminal import Terminal

        parts = (delta(content='{"answer": "Behind'), delta(content=' it"}'), delta("stop"))
        endpoint.scripts = [streams(*parts, DONE)]
        with Terminal(modelled, "ask", QUESTION) as screen:
            assert screen.ended() == 0
        assert screen.text.startswith('{"answer": "Behind it"}\nBehind it\n')

    def test_ctrl_c_stops_it(self, modelled: Cofire, endpoint: Endpoint) -> None:
        from on_terminal import Terminal

        def waits() -> Any:
            endpoint.left.wait(20)
            yield b""

        endpoint.scripts = [streams(delta(content="Behind the "), then=waits)]
        with Terminal(modelled, "ask", QUESTION) as screen:
            screen.wait("Behind the")
            screen.interrupt()
            assert screen.ended() == 130
        endpoint.left.set()
        assert "Behind the^C\ncofire: stopped" in screen.text
        assert "Traceback" not in screen.text


def test_a_budget_in_which_nothing_fits_is_told(told: Cofire) -> None:
    done = told.ok("ask", QUESTION, "--tokens", "5")
    assert "Nothing of what was recalled fits in so few tokens; --tokens allows more." in done.out
