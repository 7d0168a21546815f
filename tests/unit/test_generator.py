"""Language models behind their seam: chosen by settings, scripted, and somebody else's."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from cofire.errors import ConfigurationError, GenerationError, InputError, PromptTooLongError
from cofire.models import Generated, Generation, Generator, make_generator
from cofire.models.verifying import VerifiedGenerator
from cofire.settings import load_settings
from cofire.testing import ScriptedGenerator

ASKED = Generation(system="Be brief.", user="Who owns it?")


def test_settings_choose_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_generator(load_settings()) is None
    monkeypatch.setenv("COFIRE_GENERATOR", "openai:chat-x")
    with pytest.raises(ConfigurationError, match=r"COFIRE_GENERATOR .*COFIRE_GENERATOR_API_KEY"):
        load_settings()
    monkeypatch.setenv("COFIRE_GENERATOR_BASE_URL", "http://127.0.0.1:8080/v1/")
    monkeypatch.setenv("COFIRE_GENERATOR_API_KEY", "sk-secret-value")
    settings = load_settings()
    assert settings.generator_base_url == "http://127.0.0.1:8080/v1"
    assert "secret-value" not in repr(settings)
    generator = make_generator(settings)
    assert generator is not None
    assert generator.name == "openai:chat-x"
    generator.close()
    assert make_generator(settings, "none") is None
    other = make_generator(settings, "openai:chat-y")
    assert other is not None
    assert other.name == "openai:chat-y"
    with pytest.raises(ConfigurationError, match="'none', 'openai:MODEL', 'local' or"):
        make_generator(settings, "chat-y")


def test_another_model_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings()
    assert (settings.answer_model, settings.answer_tokens, settings.answer_learn) == (
        "", 1_000, True,
    )  # fmt: skip
    monkeypatch.setenv("COFIRE_ANSWER_MODEL", "openai:chat-x")
    with pytest.raises(ConfigurationError, match=r"COFIRE_ANSWER_MODEL .*COFIRE_GENERATOR_API_KEY"):
        load_settings()
    monkeypatch.setenv("COFIRE_GENERATOR_API_KEY", "sk-secret-value")
    assert load_settings().answer_model == "openai:chat-x"
    assert load_settings(answer_model="local").answer_model == "local"


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("COFIRE_GENERATOR", "gpt", "'none', 'openai:MODEL', 'local' or"),
        ("COFIRE_GENERATOR", "local:", "'none', 'openai:MODEL', 'local' or"),
        ("COFIRE_GENERATOR", "locally", "'none', 'openai:MODEL', 'local' or"),
        ("COFIRE_ANSWER_MODEL", "gpt", "'local:PATH' of a GGUF file"),
        ("COFIRE_ANSWER_TOKENS", "0", "greater than or equal to 1"),
        ("COFIRE_ANSWER_TEMPERATURE", "2.1", "less than or equal to 2"),
        ("COFIRE_ANSWER_MAX_TOKENS", "0", "greater than or equal to 1"),
        ("COFIRE_LOCAL_CONTEXT", "100", "greater than or equal to 256"),
        ("COFIRE_GENERATOR_BASE_URL", "ftp://x", "http:// or https://"),
        ("COFIRE_GENERATOR_TIMEOUT", "0", "greater than 0"),
        ("COFIRE_GENERATOR_RETRIES", "-1", "greater than or equal to 0"),
        ("COFIRE_GENERATOR_MAX_TOKENS", "1", "greater than or equal to 64"),
        ("COFIRE_GENERATOR_INPUT_PRICE", "-1", "greater than or equal to 0"),
        ("COFIRE_GENERATOR_OUTPUT_PRICE", "nan", "finite"),
    ],
)
def test_unusable_settings_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert variable in str(caught.value)
    assert allowed in str(caught.value)


def test_making_one_imports_nothing_heavy() -> None:
    code = (
        "import sys, cofire.models.openai_generator, cofire.consolidation.asking\n"
        "heavy = {'pydantic', 'openai', 'json_repair', 'sqlalchemy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_scripted_generator_follows_its_script() -> None:
    whole = Generated(text="cut", finish="length")
    error = GenerationError("HTTP 429", retryable=True, retry_after=3.0)
    scripted = ScriptedGenerator(
        ["a canoe", whole, error, lambda request: request.user.upper()], then="and so on"
    )
    generator: Generator = scripted
    assert generator.name == "scripted"
    first = generator.generate(ASKED)
    assert (first.text, first.finish) == ("a canoe", "stop")
    assert (first.input_tokens, first.output_tokens) == (5, 2)
    assert generator.generate(ASKED) is whole
    with pytest.raises(GenerationError) as caught:
        generator.generate(ASKED)
    assert (caught.value.retryable, caught.value.retry_after) == (True, 3.0)
    assert scripted.left == 1
    assert generator.generate(ASKED).text == "WHO OWNS IT?"
    assert [generator.generate(ASKED).text for _ in range(2)] == ["and so on"] * 2
    assert scripted.requests == [ASKED] * 6
    generator.close()
    assert scripted.closed == 1
    with pytest.raises(AssertionError, match="no reply to request 1"):
        ScriptedGenerator().generate(ASKED)


def test_a_test_can_hold_the_scripted_generator() -> None:
    arrived, go = threading.Event(), threading.Event()

    def hold(request: Generation) -> None:
        arrived.set()
        assert go.wait(5)

    generator = ScriptedGenerator(["late"], wait=hold, delay=0.001)
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(generator.generate(ASKED).text))
    thread.start()
    assert arrived.wait(5)
    assert texts == []
    go.set()
    thread.join(5)
    assert texts == ["late"]


def test_every_reply_goes_to_one_thread() -> None:
    generator = ScriptedGenerator([str(number) for number in range(200)])
    texts: list[str] = []

    def take() -> None:
        texts.extend([generator.generate(ASKED).text for _ in range(25)])

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts, key=int) == [str(number) for number in range(200)]


class Foreign:
    """A generator of somebody else's that gives `answer`, or raises it."""

    name = "foreign"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.closed = False

    def generate(self, request: Generation, /) -> Generated:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    def close(self) -> None:
        self.closed = True


def test_somebody_elses_generator_is_held_to_the_seam() -> None:
    good = Generated(text="fine")
    inner = Foreign(good)
    generator = VerifiedGenerator(inner)
    assert (generator.name, generator.inner) == ("foreign", inner)
    assert generator.generate(ASKED) is good
    generator.close()
    assert inner.closed


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("boom"), r"foreign failed \(RuntimeError\)"),
        ("a text", "gave str; its `generate` must return"),
        (None, "gave NoneType"),
        (Generated(text=None), "with a text"),  # type: ignore[arg-type]
        (Generated(text="x", finish="done"), "'done'; it must be one of stop, length"),  # type: ignore[arg-type]
    ],
    ids=["raises", "text", "none", "no text", "finish"],
)
def test_what_breaks_the_seam_is_a_generation_error(answer: Any, said: str) -> None:
    with pytest.raises(GenerationError, match=said) as caught:
        VerifiedGenerator(Foreign(answer)).generate(ASKED)
    assert not caught.value.retryable
    with pytest.raises(PromptTooLongError):
        VerifiedGenerator(Foreign(PromptTooLongError("too long"))).generate(ASKED)


def test_what_is_no_generator_is_refused() -> None:
    nothing: Any = object()
    with pytest.raises(InputError, match="it lacks name, generate, close"):
        VerifiedGenerator(nothing)
    kind: Any = ScriptedGenerator
    with pytest.raises(InputError, match="the class ScriptedGenerator itself"):
        VerifiedGenerator(kind)
