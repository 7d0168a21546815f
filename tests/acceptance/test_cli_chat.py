"""`cofire chat`: in a pipe, as JSON, and on a terminal where somebody types and interrupts."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from cofire_process import Cofire, Done
from documents import ROOT

from answering_endpoint import replies
from endpoint import Endpoint, delta, fails, streams
from endpoint import endpoint as endpoint  # noqa: PLC0414 - a fixture

KEY = "The boathouse key hangs behind the clock."
QUESTION = "Where does the boathouse key hang?"


@pytest.fixture
def modelled(cofire: Cofire, endpoint: Endpoint) -> Cofire:
    """A language model at an endpoint."""
    cofire.env |= {
        "COFIRE_GENERATOR": "openai:wise", "COFIRE_GENERATOR_BASE_URL": endpoint.url,
        "COFIRE_GENERATOR_RETRIES": "0",
    }  # fmt: skip
    return cofire


def chat(cofire: Cofire, *lines: str, arguments: tuple[str, ...] = ()) -> Done:
    """The conversation of these lines through a pipe."""
    return cofire.ok("chat", "--name", "Ada", *arguments, stdin="".join(f"{x}\n" for x in lines))


def turns(cofire: Cofire) -> list[tuple[str | None, str]]:
    """What is remembered, oldest first."""
    listed = cofire.ok("list", "--all", "--json").out.splitlines()
    items = [json.loads(line) for line in listed]
    return [(item["role"], item["content"]) for item in reversed(items)]


def test_no_link_is_said_to_move_that_does_not(cofire: Cofire) -> None:
    done = chat(cofire, KEY, "The dog is called Gobo.", QUESTION, "/good", "/bad", "/good", "/quit")
    assert done.out.count("Learned: 1 link moved") == 1
    assert "Noted, but no link moved: one person moves it only so far in a day." in done.out
    assert "Nothing changed: this was said before" in done.out


def test_a_conversation_without_a_model(cofire: Cofire) -> None:
    done = chat(
        cofire, KEY, "", QUESTION, "/good", "/sources", "/why", "/used 1", "/wrong 9", "/used",
        "/who", "/stats", "/help", "/opening", "/model", "/nonsense", "//etc is full", "/forget 1",
        "n", "/forget 1", "y", "/good", "/quit", "never read",
    )  # fmt: skip
    assert done.err == ""
    assert "\x1b" not in done.out
    assert f"> {KEY}\nRemembered.\n" in done.out
    assert f"Ada, {{}}: “{KEY}” [1]".split("{}")[0] in done.out
    assert "No language model: this is what fits best" in done.out
    assert "Learned: 1 link moved" in done.out
    assert "Found by its " in done.out
    assert "There is no source 9; there are 1 to 1." in done.out
    assert "Say the numbers of sources, as in 1 3" in done.out
    assert "There is no command /nonsense" in done.out
    assert "Nothing was forgotten." in done.out
    assert "Forgot 1 memory. Receipt " in done.out
    assert "never read" not in done.out
    for name in ("/good", "/remember TEXT", "/quit"):
        assert f"\n{name}" in done.out
    assert turns(cofire) == [("user", QUESTION), ("user", "/etc is full")]


def test_a_conversation_with_a_model(modelled: Cofire, endpoint: Endpoint) -> None:
    endpoint.scripts = [
        replies("Good to know."), replies("Behind the clock [{boathouse key}]."), fails(500),
        replies(""), replies("Not mentioned, I fear."), replies("So it is [99]."),
    ]  # fmt: skip
    done = chat(modelled, KEY, QUESTION, "/sources", "One?", "Two?", "Three?", "Four 猫 \u202e.")
    assert "> Where does the boathouse key hang?\nBehind the clock [1].\n[1] " in done.out
    assert f"Ada: {KEY}" in done.out
    assert "The language model 'wise' at " in done.out
    assert "could not be used (empty)" in done.err
    assert "Not mentioned, I fear." in done.out
    assert "So it is [99].\nNo source. Confidence" in done.out
    assert turns(modelled) == [
        ("user", KEY), ("assistant", "Good to know."),
        ("user", QUESTION), ("assistant", "Behind the clock."),
        ("user", "One?"), ("user", "Two?"), ("user", "Three?"),
        ("user", "Four 猫 \u202e."), ("assistant", "So it is [99]."),
    ]  # fmt: skip
    asked = endpoint.requests[1]["messages"][-1]["content"]
    assert f"Ada: {KEY}\nassistant: Good to know.\n" in asked


def test_each_turn_is_a_line_of_json(cofire: Cofire) -> None:
    lines = "\n".join([KEY, QUESTION, "/used 7", "/stats", "x" * 100_001 + "?"])
    done = cofire.ok("chat", "--json", stdin=lines)
    told, asked, wrong, stats, long = map(json.loads, done.out.splitlines())
    assert (told["said"], told["answer"]) == (KEY, None)
    assert len(told["remembered"]) == 1
    assert asked["answer"]["citations"][0]["text"] == KEY
    assert asked["reply_remembered"] is None
    assert wrong["error"]["type"] == "InputError"
    assert "3 memories" in stats["output"] or "2 memories" in stats["output"]
    assert "at most 100,000 characters" in long["error"]["message"]
    assert len(turns(cofire)) == 3, "what was too long to be answered is remembered all the same"


def test_a_line_that_is_no_text(cofire: Cofire) -> None:
    done = cofire.run("chat", stdin=b"\xff\xfe\n" + KEY.encode() + b"\n")
    assert done.code == 0
    assert "0xff at offset 0" in done.err
    assert turns(cofire) == [("user", KEY)]


def test_the_transcript_in_the_docs(modelled: Cofire, endpoint: Endpoint) -> None:
    page = (ROOT / "docs" / "how-to" / "ask-and-chat.md").read_text(encoding="utf-8")
    shown = page.split("test_cli_chat.py -->\n```text\n")[1].split("\n```")[0]
    command, _, rest = shown.partition("\n")
    endpoint.scripts = [
        replies("Then he had better not help with the boat."),
        replies("Your brother Joris: he is allergic to it [{allergic}]."),
    ]
    lines = re.findall(r"^> (.+)$", shown, re.M)
    done = modelled.ok(*command.split()[2:], stdin="".join(f"{line}\n" for line in lines))
    pattern = re.escape(rest).replace(r"\.\.\.", r".+?")
    assert re.fullmatch(pattern, done.out.strip()), done.out


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
class TestOnATerminal:
    """Where somebody types."""

    def test_typing(self, cofire: Cofire) -> None:
        from on_terminal import Terminal

        with Terminal(cofire, "chat", "--user", "Zoë") as screen:
            screen.wait("Cofire chat, with Zoë")
            screen.wait("> ")
            screen.type("Мой кот любит 猫.")
            screen.wait("Remembered.")
            screen.wait("> ")
            screen.interrupt()
            screen.wait("Ctrl-C once more")
            screen.wait("> ")
            screen.type("/stats")
            screen.wait("1 memory")
            screen.wait("> ")
            screen.end_of_input()
            assert screen.ended() == 0
            assert "Traceback" not in screen.text
            assert max(len(line) for line in screen.text.split("\n")) <= 80
            assert "Remembered 1 turn." in screen.text

    def test_ctrl_c_stops_the_reply_only(self, modelled: Cofire, endpoint: Endpoint) -> None:
        from on_terminal import Terminal

        def waits() -> Any:
            endpoint.left.wait(20)
            yield b""

        endpoint.scripts = [
            streams(delta(content="Let me think about "), then=waits), replies("Hello Ada!")
        ]  # fmt: skip
        with Terminal(modelled, "chat", columns=100) as screen:
            screen.wait("> ")
            screen.type(KEY)
            screen.wait("Let me think about")
            screen.interrupt()
            screen.wait("Stopped. What you said is remembered, the reply is not.")
            endpoint.left.set()
            screen.wait("> ")
            screen.type("Hello")
            screen.wait("Hello Ada!")
            screen.wait("> ")
            screen.interrupt()
            screen.wait("> ")
            screen.interrupt()
            assert screen.ended() == 0
        assert turns(modelled) == [
            ("user", KEY), ("user", "Hello"), ("assistant", "Hello Ada!")
        ]  # fmt: skip


def test_a_model_that_nobody_knows(cofire: Cofire) -> None:
    done = cofire.run("chat", "--model", "nonsense")
    assert done.code == 2
    assert "there is no language model 'nonsense'" in done.err
