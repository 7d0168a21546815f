"""On a terminal: colours, wrapping, questions and progress; none of them elsewhere."""

from __future__ import annotations

import os
import select
import struct
import sys
from collections.abc import Mapping

import pytest
from cofire_process import Cofire

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are a Unix thing", allow_module_level=True)

import fcntl
import pty
import termios

LONG = "The shed key is in the blue tin. " * 6


def on_terminal(
    cofire: Cofire, *arguments: str, answer: str = "", env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and everything that an 80-column terminal was sent."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(cofire.folder)
        command = cofire.command(*arguments)
        env = {**cofire.env, "TERM": "xterm-256color", **(env or {})}
        os.execvpe(command[0], command, env)  # noqa: S606 - the command under test
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    sent = b""
    while select.select([screen], [], [], 60)[0]:
        try:
            piece = os.read(screen, 65_536)
        except OSError:  # how Linux says that the other side is gone
            break
        if not piece:
            break
        sent += piece
        if answer and b"]:" in sent:
            os.write(screen, answer.encode())
            answer = ""
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sent.decode()


def test_colours_on_a_terminal_only(cofire: Cofire) -> None:
    cofire.ok("remember", LONG, "--speaker", "Ada")
    code, text = on_terminal(cofire, "recall", "tin")
    assert code == 0
    assert "\x1b[1m" in text
    assert max(len(line) for line in text.replace("\r", "").split("\n") if "\x1b" not in line) <= 80
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(cofire, "recall", "tin", env=env)[1]
    piped = cofire.run("recall", "tin", env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"})
    assert "\x1b" not in piped.out
    assert LONG.strip() in piped.out, "texts are not wrapped in a pipe"


def test_forget_asks_first(cofire: Cofire) -> None:
    id = cofire.ok("remember", "the secret", "--json").json["ids"][0]
    code, text = on_terminal(cofire, "forget", id, answer="n\n")
    assert code == 1
    assert "the secret" in text
    assert "Nothing was forgotten." in text
    assert cofire.ok("stats", "--json").json["items"] == 1
    code, text = on_terminal(cofire, "forget", "--everything", answer="y\n")
    assert code == 0
    assert "Forgot 1 memory." in text


def test_ctrl_c_at_the_question_changes_nothing(cofire: Cofire) -> None:
    id = cofire.ok("remember", "the secret", "--json").json["ids"][0]
    code, text = on_terminal(cofire, "forget", id, answer="\x03")
    assert code in {1, 130}
    assert "Traceback" not in text
    assert cofire.ok("stats", "--json").json["items"] == 1


def test_restore_asks_first(cofire: Cofire) -> None:
    cofire.ok("remember", "one")
    cofire.ok("backup", "safe.db")
    code, text = on_terminal(cofire, "restore", "safe.db", answer="n\n")
    assert code == 1
    assert "Nothing was changed." in text


def test_progress_is_shown_to_people_only(cofire: Cofire) -> None:
    lines = "".join(f'{{"text":"line number {n} of many"}}\n' for n in range(4_000))
    (cofire.folder / "many.jsonl").write_text(lines)
    code, text = on_terminal(
        cofire, "import", "many.jsonl", env={"COFIRE_EMBEDDER": "hashing:1024"}
    )
    assert code == 0
    assert "Importing" in text
    assert "4,000  imported" in text
    assert cofire.ok("import", "many.jsonl", "--store", "other.db").err == ""


def test_work_of_unknown_length_shows_that_it_goes_on(cofire: Cofire) -> None:
    cofire.ok("remember", "one")
    code, text = on_terminal(cofire, "scrub")
    assert code == 0
    assert "Rebuilding the file" in text
    assert "Scrubbed" in text
    assert "Rebuilding" not in on_terminal(cofire, "scrub", "--json")[1]
