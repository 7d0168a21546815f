"""Answers from a real memory: with a model that is told what to say, and without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cofire import AsyncMemory, Memory
from cofire.answers import NOT_MENTIONED
from cofire.errors import ConfigurationError, GenerationError, InputError, PromptTooLongError
from cofire.models.generator import Generated, Generation
from cofire.settings import load_settings
from cofire.testing import ScriptedGenerator

TURNS = [
    ("Ada", "Yesterday I adopted a greyhound called Gobo.", "2023-05-08T10:00:00Z"),
    ("Bob", "How lovely! What does he eat?", "2023-05-08T10:01:00Z"),
    ("Ada", "Mostly my slippers, and rice with chicken.", "2023-05-08T10:02:00Z"),
    ("Bob", "I started a pottery class in Oslo last week.", "2023-06-20T18:00:00Z"),
    ("Ada", "Gobo ate the clay you gave me.", "2023-06-20T18:01:00Z"),
]
NOW = datetime(2023, 7, 1, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One for all tests: most only read."""
    with Memory.open(tmp_path_factory.mktemp("answers") / "store.db") as memory:
        memory.remember(
            [
                {"content": content, "speaker": speaker, "time": time, "session": time[:10]}
                for speaker, content, time in TURNS
            ]
        )
        yield memory


def label_of(request: Generation, words: str) -> str:
    """The number before the line that has these words."""
    line = next(line for line in request.user.splitlines() if words in line)
    return line.strip().partition(")")[0]


def says(template: str, words: str) -> ScriptedGenerator:
    """A model that cites the line with these words."""
    return ScriptedGenerator(then=lambda request: template.format(label_of(request, words)))


def test_an_answer_with_its_source(memory: Memory) -> None:
    model = says("She adopted Gobo on 7 May 2023 [{}].", "greyhound")
    answer = memory.answer("When did Ada adopt Gobo?", model=model, now=NOW)
    assert answer.text == "She adopted Gobo on 7 May 2023."
    assert answer.marked == "She adopted Gobo on 7 May 2023 [1]."
    assert [citation.text for citation in answer.citations] == [TURNS[0][1]]
    assert answer.citations[0].speaker == "Ada"
    assert not answer.abstained and answer.reason == "" and not answer.extractive
    assert (answer.model, answer.prompt) == ("scripted", "answer@1")
    assert answer.confidence == answer.recall.confidence
    assert answer.usage.calls == 1
    assert answer.usage.input_tokens > 0
    assert 0 < answer.usage.context_tokens <= 1000
    [request] = model.requests
    assert "Yesterday [7 May] I adopted" in request.user  # no model has to count
    assert "Today is Saturday, 1 July 2023." in request.user
    assert (request.temperature, request.max_tokens) == (0.0, 512)
    assert model.closed == 0  # it is the caller's


def test_what_is_cited_gains_by_it_unless_told_not_to(memory: Memory) -> None:
    both = ScriptedGenerator(
        then=lambda request: (
            f"Gobo [{label_of(request, 'greyhound')}] eats [{label_of(request, 'slippers')}]."
        )
    )
    answer = memory.answer("What does Gobo eat?", model=both, now=NOW, by="agent")
    assert answer.learned is not None and answer.learned.counted
    strengths = {frozenset((one.a, one.b)): one.strength for one in memory.strengths(now=NOW)}
    pair = frozenset(answer.cited)
    assert 0.0 < strengths[pair] < 0.5  # weaker than being said to be used
    before = memory.strengths(now=NOW)
    told = memory.answer("What does Gobo eat?", model=both, now=NOW, learn=False)
    assert told.learned is None
    assert memory.strengths(now=NOW) == before


def test_the_settings_decide_what_is_not_said(tmp_path: Path) -> None:
    settings = load_settings().model_copy(update={"answer_learn": False, "answer_tokens": 60})
    with Memory.open(tmp_path / "store.db", settings=settings) as memory:
        for number in range(30):
            memory.remember(f"Ada has kite number {number} in her cellar.", speaker="Ada")
        answer = memory.answer("Which kites does Ada have?", model=says("Some [{}].", "kite"))
        assert answer.learned is None
        assert 0 < answer.context.tokens <= 60
        assert answer.context.left_out > 0


def test_no_model_is_asked_where_the_gate_refuses(memory: Memory) -> None:
    model = ScriptedGenerator()  # any request fails the test
    answer = memory.answer("Which opera did Zelda conduct in Vienna?", model=model, now=NOW)
    assert answer.abstained and answer.reason == "gate"
    assert answer.text == NOT_MENTIONED
    assert answer.usage.calls == 0
    asked = memory.answer(
        "Which opera did Zelda conduct in Vienna?",
        model=ScriptedGenerator(["Not mentioned."]), gate=False, now=NOW,
    )  # fmt: skip
    assert asked.abstained and asked.reason == "evidence"
    assert asked.usage.calls == 1


def test_an_empty_memory_has_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "empty.db") as memory:
        answer = memory.answer("Where is the key?", model=ScriptedGenerator())
        assert (answer.abstained, answer.reason, answer.citations) == (True, "nothing", ())


def test_without_a_model_the_answer_is_somebodys_words(memory: Memory) -> None:
    answer = memory.answer("When did Bob start a pottery class?", now=NOW)
    assert answer.extractive and not answer.abstained
    assert answer.model == "extractive" and answer.prompt == ""
    assert answer.text == (
        "Bob, 20 June 2023: \u201cI started a pottery class in Oslo last week "
        "[12 to 18 June].\u201d"
    )
    assert [citation.text for citation in answer.citations] == [TURNS[3][1]]
    assert answer.learned is None


@pytest.mark.parametrize(
    ("reply", "malformed", "reason"),
    [
        ("", "empty", ""),
        ("<think>hm", "thinking", ""),
        (Generated(text="No.", finish="refusal"), "refusal", "refusal"),
        (Generated(text="", finish="filter"), "filter", "refusal"),
        (Generated(text="He eats", finish="length"), "cut", ""),
        ("<!doctype html><html>502</html>", "", ""),
    ],
)
def test_what_a_model_writes_never_raises(
    memory: Memory, reply: str | Generated, malformed: str, reason: str
) -> None:
    answer = memory.answer("What does Gobo eat?", model=ScriptedGenerator([reply]), now=NOW)
    assert answer.malformed == malformed
    assert answer.reason == reason
    if malformed in {"empty", "thinking"}:
        assert answer.extractive and answer.citations
        assert any("could not be used" in warning for warning in answer.warnings)


def test_a_model_that_fails_is_an_error(memory: Memory) -> None:
    failing = ScriptedGenerator([GenerationError("down", retryable=True)])
    with pytest.raises(GenerationError, match="down"):
        memory.answer("What does Gobo eat?", model=failing, now=NOW)


def test_a_window_that_is_too_small_gets_half(memory: Memory) -> None:
    model = ScriptedGenerator([PromptTooLongError("too long"), "Rice."])
    answer = memory.answer("What does Gobo eat?", model=model, now=NOW)
    first, second = model.requests
    assert len(second.user) < len(first.user)
    assert answer.text == "Rice."
    never = ScriptedGenerator(then=PromptTooLongError("too long"))
    with pytest.raises(PromptTooLongError):
        memory.answer("What does Gobo eat?", model=never, now=NOW)


def test_pieces_as_they_are_written(memory: Memory) -> None:
    model = says("He eats rice [{}], they say.", "slippers")
    with memory.answering("What does Gobo eat?", model=model, now=NOW) as pending:
        assert pending.context.entries
        pieces = list(pending)
        answer = pending.answer
    assert len(pieces) > 1
    assert "".join(pieces) == answer.marked == "He eats rice [1], they say."
    assert answer.learned is not None


def test_a_stream_that_is_left_early_has_no_answer(memory: Memory) -> None:
    pending = memory.answering("What does Gobo eat?", model=says("Rice [{}] it is.", "rice"))
    assert next(iter(pending))
    pending.close()
    with pytest.raises(RuntimeError, match="closed"):
        _ = pending.answer


def test_prompts_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "answer.md").write_text(
        "---\nversion: 7\n---\n# System\nBe a pirate.\n# User\n{{context}}\n{{question}}\n",
        encoding="utf-8",
    )
    settings = load_settings().model_copy(update={"answer_prompts": str(folder)})
    with Memory.open(tmp_path / "store.db", settings=settings) as memory:
        memory.remember("The key is under the blue pot.", speaker="Ada")
        model = ScriptedGenerator(["Arr."])
        answer = memory.answer("Where is the key?", model=model)
        assert answer.prompt == "answer@7"
        assert model.requests[0].system == "Be a pirate."
        (folder / "answer.md").write_text("no prompt", encoding="utf-8")
        (folder / "bare.md").write_text(
            "---\nversion: 1\n---\n# System\nx\n# User\n{{context}}\n", encoding="utf-8"
        )
        with pytest.raises(ConfigurationError, match=r"lacks \{\{question\}\}"):
            memory.answer("Where is the key?", model=model, prompt="bare")
    with (
        Memory.open(
            tmp_path / "store.db",
            settings=settings.model_copy(update={"answer_prompts": str(tmp_path / "gone")}),
        ) as memory,
        pytest.raises(ConfigurationError, match="no folder"),
    ):
        memory.answer("Where is the key?", model=ScriptedGenerator())


def test_a_choice(memory: Memory) -> None:
    model = ScriptedGenerator(["B"])
    answer = memory.answer(
        "What does Gobo eat?", prompt="choice", choices=["clay", "rice"], model=model, now=NOW
    )
    assert answer.text == "B"
    assert "A) clay\nB) rice" in model.requests[0].user


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 0}, "tokens"),
        ({"temperature": 3.0}, "temperature"),
        ({"k": 0}, "k must"),
        ({"prompt": "sonnet"}, "no prompt 'sonnet'"),
        ({"prompt": "choice"}, "2 to 26 choices"),
        ({"choices": "ab"}, "list of texts"),
        ({"colour": "red"}, "no option 'colour'"),
        ({"model": object()}, "no generator"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_say_what_is_wrong(
    memory: Memory, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        memory.answer("What does Gobo eat?", **options)  # type: ignore[arg-type]


def test_a_question_must_have_text(memory: Memory) -> None:
    with pytest.raises(InputError, match="must have text"):
        memory.answer("  \n")


def test_people_are_told_of_where_they_speak_of_themselves(tmp_path: Path) -> None:
    model = ScriptedGenerator(then="Fine [1].")
    with Memory.open(tmp_path / "store.db") as memory:
        memory.remember("The stove is broken.", speaker="Bob")
        memory.remember("Bob is allergic to nuts.", kind="trait", speaker="Bob")
        asked = "What should I cook for my guests?"
        memory.answer(asked, model=model, gate=False, k=1)
        memory.answer(asked, model=model, gate=False, k=1, until="2200-01-01")
        memory.answer(asked, model=model, gate=False, k=1, since="2000-01-01")
        early = memory.answer(asked, model=model, gate=False, k=1, until="2000-01-01")
    told = ["allergic to nuts" in request.user for request in model.requests]
    assert told == [True, True, False]  # a filter leaves out of an answer what it leaves out
    assert early.reason == "nothing"


def test_relative_dates_of_the_question_are_resolved(memory: Memory) -> None:
    model = ScriptedGenerator(then="A class.")
    memory.answer("What did Bob start last month in Oslo?", model=model, gate=False, now=NOW)
    assert "Question: What did Bob start last month [June] in Oslo?" in model.requests[0].user


def test_an_answer_costs_what_the_prices_say(tmp_path: Path) -> None:
    settings = load_settings().model_copy(
        update={"generator_input_price": 2.0, "generator_output_price": 10.0}
    )
    with Memory.open(tmp_path / "store.db", settings=settings) as memory:
        memory.remember("The key is under the blue pot.", speaker="Ada")
        reply = Generated(text="Under the pot.", input_tokens=1_000, output_tokens=100)
        answer = memory.answer("Where is the key?", model=ScriptedGenerator([reply]))
        assert answer.usage.cost == pytest.approx(0.003)


def test_answers_for_asyncio(tmp_path: Path) -> None:
    async def run() -> str:
        async with await AsyncMemory.open(tmp_path / "store.db") as memory:
            await memory.remember("The key is under the blue pot.", speaker="Ada")
            answer = await memory.answer("Where is the key?", model=says("Pot [{}].", "blue"))
            return answer.marked

    assert asyncio.run(run()) == "Pot [1]."


def test_pieces_for_asyncio(tmp_path: Path) -> None:
    async def run() -> tuple[list[str], str]:
        async with await AsyncMemory.open(tmp_path / "store.db") as memory:
            await memory.remember("The key is under the blue pot.", speaker="Ada")
            model = says("Under the pot [{}].", "blue")
            async with await memory.answering("Where is the key?", model=model) as pending:
                assert pending.context.entries
                pieces = [piece async for piece in pending]
                return pieces, (await pending.answer()).text

    pieces, text = asyncio.run(run())
    assert len(pieces) > 1
    assert "".join(pieces) == "Under the pot [1]."
    assert text == "Under the pot."
