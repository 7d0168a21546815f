"""What callers write: chat messages as they come, numbers of any library, hooks, and clear errors
that are Cofire's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import AsyncMemory, Memory
from cofire.arguments import Messages
from cofire.errors import ConfigurationError, InputError, StoreError
from cofire.settings import load_settings
from cofire.types import Message
from fakes import StubEmbedder
from hostile import same_id

CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "What's the weather in Graz?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "12 C"},
    {"role": "assistant", "content": "12 degrees.", "refusal": None, "annotations": []},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", vectors=False) as memory:
        yield memory


def contents(memory: Memory) -> list[str]:
    return [item.content for item in memory.list(newest_first=False)]


# Chat messages


def test_a_chat_with_tool_calls_is_remembered(memory: Memory) -> None:
    receipt = memory.remember(CHAT, session="s")
    assert contents(memory) == ["What's the weather in Graz?", "12 C", "12 degrees."]
    assert len(receipt.ids) == 3
    assert receipt.warnings == ("no text in 1 of 4 messages, passed over: 1 (tool_calls)",)


@pytest.mark.parametrize(
    ("silent", "said"),
    [
        ({"content": None, "tool_calls": [CALL]}, "tool_calls"),
        ({"content": "", "tool_calls": [CALL]}, "tool_calls"),
        ({"content": " \n", "function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
        ({"tool_calls": [CALL]}, "tool_calls"),
        ({"content": [], "tool_calls": [CALL]}, "tool_calls"),
        ({"content": "", "tool_call_id": "1"}, "tool_call_id"),
        ({"content": None, "refusal": "I cannot"}, "refusal"),
        ({"content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}, "tool_use"),
        ({"content": [{"type": "tool_result", "content": "12 C"}]}, "tool_result"),
    ],
)
def test_messages_without_text_are_passed_over(
    memory: Memory, silent: dict[str, Any], said: str
) -> None:
    one: dict[str, Any] = {"role": "assistant", **silent}
    receipt = memory.remember([one, {"content": "kept"}])
    assert contents(memory) == ["kept"]
    assert receipt.warnings == (f"no text in 1 of 2 messages, passed over: 0 ({said})",)
    alone = memory.remember(one)
    assert (alone.ids, alone.created, len(alone.warnings)) == ((), (), 1)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([{"type": "text", "text": "hi"}], "hi"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "input_text", "text": "one"}, "two"], "one\ntwo"),
        ((({"text": "one"}),), "one"),
    ],
)
def test_parts_of_text_are_put_one_below_the_other(memory: Memory, parts: Any, text: str) -> None:
    assert memory.remember({"role": "user", "content": parts}).warnings == ()
    assert contents(memory) == [text]


def test_what_is_no_text_beside_text_is_left_out_and_told(memory: Memory) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    content = [{"type": "text", "text": "What is this?"}, picture]
    receipt = memory.remember([{"role": "user", "content": content}])
    assert contents(memory) == ["What is this?"]
    assert receipt.warnings == (
        "only the text is remembered of 1 of 1 messages: 0 (not image_url)",
    )


@pytest.mark.parametrize(
    ("unusable", "reason"),
    [
        ({"role": "user", "content": None}, "the content is None"),
        ({"role": "user"}, "needs content; this one has role"),
        ({"role": "user", "content": ""}, "the content is empty"),
        ({"role": "user", "content": []}, "content must be text, not list"),
        ({"role": "user", "content": {"text": "x"}}, "content must be text, not dict"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "parts of type image_url only"),
        ({"role": "user", "content": 5}, "content must be text, not int"),
        ({"content": "x", "colour": "red"}, "no field colour"),
        ({"content": "x", "tags": {"a": 1}}, "tags must be a list of texts, not dict"),
        ({"content": "x", "importance": "5"}, "importance must be"),
        (5, "not int"),
        (None, "not NoneType"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_place(
    memory: Memory, unusable: Any, reason: str
) -> None:
    with pytest.raises(InputError, match=f"^message 5: .*{reason}"):
        memory.remember([*CHAT, "more", unusable])  # counted among all that were given
    assert contents(memory) == []


def test_many_silent_messages_are_counted_and_a_few_named() -> None:
    silent = {"content": None, "tool_calls": [CALL]}
    messages = Messages([silent] * 1_200 + ["kept"], {})
    assert [place for place, _ in messages] == [1_200]
    assert messages.warnings == (
        "no text in 1,200 of 1,201 messages, passed over: 0 (tool_calls), 1 (tool_calls), "
        "2 (tool_calls), 3 (tool_calls), 4 (tool_calls) and 1,195 more",
    )


def test_progress_counts_what_was_given(memory: Memory) -> None:
    told: list[tuple[int, int | None]] = []
    chat = [*CHAT] * 500
    memory.remember(chat, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2_000, 2_000)
    assert len(contents(memory)) == 50


# Values


def test_a_date_is_its_midnight_in_utc(memory: Memory) -> None:
    day = date(2026, 1, 1)
    id = memory.remember("x", time=day, expires=date(2030, 1, 1)).id
    item = memory.get(id)
    assert (item.time, item.offset) == (datetime(2026, 1, 1, tzinfo=UTC), None)
    assert memory.remember(Message(content="y", time=day)).id
    assert len(memory.list(since=day, until=date(2026, 1, 2))) == 2
    assert memory.recall("x", now=day).ids[0] == id
    assert memory.recall("x", now=date(2031, 1, 1)).ids == ()
    assert memory.update(id, time=date(2025, 1, 1)).time.year == 2025


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_whole_numbers_of_numpy_are_whole_numbers(
    memory: Memory, kind: Callable[[int], Any]
) -> None:
    id = memory.remember("a boat", importance=kind(7)).id
    memory.remember([{"content": "a boat", "importance": kind(3)}, "a boat"])
    assert memory.get(id).importance == 7
    assert memory.update(id, importance=kind(8)).importance == 8
    assert len(memory.recall("boat", k=kind(2), token_budget=kind(200))) == 2
    assert len(memory.list(limit=kind(2))) == 2


@pytest.mark.parametrize("wrong", [True, 5.0, "5", np.float64(5), None, np.bool_(True)])
def test_what_is_no_whole_number_is_none(memory: Memory, wrong: Any) -> None:
    for call in (
        lambda: memory.recall("x", k=wrong),
        lambda: memory.list(limit=wrong),
    ):
        with pytest.raises(InputError, match="whole number"):
            call()


def test_a_strength_of_numpy_is_a_number(memory: Memory) -> None:
    first, second = memory.remember(["one", "two"]).ids
    assert memory.link(first, second, strength=np.float32(0.25)).strength == 0.25  # type: ignore[arg-type]


def test_tags_are_one_or_several(memory: Memory) -> None:
    for tags, kept in (("abc", ("abc",)), (["a", "b"], ("a", "b"))):
        assert memory.get(memory.remember("x", tags=tags).id).tags == kept
        assert memory.get(memory.remember({"content": "x", "tags": tags}).id).tags == kept
    id = memory.remember("y").id
    assert memory.update(id, tags="abc").tags == ("abc",)
    wrong: Any = {"a": 1}
    for call in (
        lambda: memory.remember("x", tags=wrong),
        lambda: memory.update(id, tags=wrong),
        lambda: memory.recall("x", tags=wrong),
        lambda: memory.list(speakers=wrong),
        lambda: memory.forget(wrong),
    ):
        with pytest.raises(InputError, match=r"must be .*texts"):
            call()


# Nothing foreign comes out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"projects": None}, "projects must be texts, not NoneType"),
        ({"projects": {"a": 1}}, "projects must be texts, not dict"),
        ({"projects": 5}, "projects must be texts, not int"),
        ({"embedder": object()}, "object is no embedder: it lacks name, dimension, max_tokens"),
        ({"embedder": 5}, "int is no embedder"),
        ({"embedder": StubEmbedder}, "the class StubEmbedder itself"),
        ({"redact": "secret"}, "redact must be a function"),
        ({"settings": {"threads": 1}}, "settings must be what load_settings"),
    ],
    ids=same_id,
)
def test_what_cannot_be_opened_with_is_named(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Memory.open(tmp_path / "new.db", **options)
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("where", [5, b"m.db", [], object()], ids=same_id)
def test_a_store_is_a_path_or_a_url(where: Any) -> None:
    with pytest.raises(InputError, match="path of a file or a URL"):
        Memory.open(where)


def test_an_embedder_lacking_one_thing_is_told_which(tmp_path: Path) -> None:
    embedder = StubEmbedder()
    embedder.token_offsets = None  # type: ignore[assignment,method-assign]
    with pytest.raises(InputError, match=r"lacks token_offsets\. Give"):
        Memory.open(tmp_path / "m.db", embedder=embedder)


@pytest.mark.parametrize("profile", [[], None, 5, {}, "none"], ids=repr)
def test_a_profile_is_one_or_its_name(memory: Memory, profile: Any) -> None:
    for call in (memory.recall, memory.candidates):
        with pytest.raises(InputError, match="profile"):
            call("x", profile=profile)


@pytest.mark.parametrize("kept", [None, 5, b"x"], ids=repr)
def test_a_hook_that_gives_no_text_is_named(tmp_path: Path, kept: Any) -> None:
    def hides_names(text: str) -> Any:
        return kept

    with Memory.open(tmp_path / "m.db", vectors=False, redact=hides_names) as memory:
        for call in (
            lambda: memory.remember("Ada's secret"),
            lambda: memory.recall("Ada's secret"),
        ):
            with pytest.raises(InputError, match=f"hides_names gave {type(kept).__name__}") as told:
                call()
            assert "secret" not in str(told.value)
        assert memory.stats().items == 0


async def _use_after_close(path: Path) -> None:
    memory = await AsyncMemory.open(path, vectors=False)
    await memory.close()
    await memory.close()
    with pytest.raises(StoreError, match="closed; open it again"):
        await memory.recall("x")
    with pytest.raises(StoreError, match="closed; open it again"):
        await memory.remember("x")


def test_a_closed_async_memory_says_so(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(_use_after_close(tmp_path / "m.db"))


# The embedder that is named


def test_a_name_goes_before_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COFIRE_WRITE_WAIT", "7")
    settings = load_settings(embedder="hashing:16", write_wait=3)
    with Memory.open(tmp_path / "m.db", settings=settings, embedder="hashing:32") as memory:
        memory.remember("x")
        assert memory.stats().spaces[0].embedding_model == "hashing-v1:32"
        assert memory._workings.settings.write_wait == 3
        memory.reembed("hashing:8")
        assert memory.stats().spaces[0].dimension == 8
    with pytest.raises(ConfigurationError, match="COFIRE_EMBEDDER"):
        Memory.open(tmp_path / "m.db", settings=settings, embedder="no such")


def test_reembedding_by_name_keeps_the_settings(tmp_path: Path) -> None:
    settings = load_settings(
        embedder="hashing:16", embedding_base_url="http://127.0.0.1:9/v1", embedding_timeout=1
    )
    with Memory.open(tmp_path / "m.db", settings=settings) as memory:
        memory.remember("x")
        with pytest.raises(Exception, match=r"127\.0\.0\.1:9"):  # not OpenAI's address
            memory.reembed("openai:embed-x")
        assert memory.recall("x").warnings == ()


def test_a_message_keeps_what_it_says() -> None:
    message = Message(content="x", importance=3)
    assert list(Messages(message, {"importance": 9, "role": "user"})) == [
        (0, replace(message, role="user"))
    ]
