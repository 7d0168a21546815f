"""Encrypted spaces, end to end: no words in the files, everything works, the key is needed."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.cli import main
from cofire.errors import ConfigurationError, MissingExtraError, StoreCorruptError
from cofire.retrieval import loading
from cofire.settings import Settings, load_settings
from cofire.types import Message
from confirming import forget_all

Opener = Callable[..., Memory]

WORDS = (
    *("xylophone", "Zanzibar", "zanzibar", "quokka", "marmalade", "Umbrella", "umbrella"),
    *("tangerine", "velociraptor", "Wintergreen", "wintergreen", "harpsichord"),
)
MESSAGES = (
    Message(
        content="The alarm code is xylophone and the boat goes to Zanzibar. " * 40,
        title="Umbrella", speaker="Wintergreen", session="velociraptor", role="tangerine",
        tags=("quokka",), metadata={"colour": "marmalade"}, key="harpsichord",
        time="2026-03-01T09:00:00Z",
    ),
    Message(
        content="I live in Zanzibar. My favourite food is marmalade.",
        speaker="Wintergreen", session="velociraptor", time="2026-03-01T09:01:00Z",
    ),
    Message(content="The pier is closed on Mondays.", time="2026-03-02T09:00:00Z"),
)  # fmt: skip


def a_key() -> str:
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


def with_key(key: str | None, **more: Any) -> Settings:
    return load_settings(encryption_key=key, embedder="hashing:64", **more)


@pytest.fixture
def key() -> str:
    return a_key()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loading, "SIDECAR_FROM", 1)
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "m.db"


def fill(memory: Memory) -> list[str]:
    ids = list(memory.remember(MESSAGES).ids)
    memory.update(ids[1], content="I live in Zanzibar now. My favourite food is marmalade.")
    found = memory.recall("where is the xylophone alarm")
    memory.feedback(found.id, outcome=1.0, used=[found.items[0].id])
    memory.consolidate()
    return ids


def left(folder: Path) -> dict[str, list[str]]:
    """Which of the words are in which files."""
    hits: dict[str, list[str]] = {}
    for file in folder.rglob("*"):
        if file.is_file():
            words = [word for word in WORDS if word.encode() in file.read_bytes()]
            if words:
                hits[file.name] = words
    return hits


def rows(memory: Memory) -> list[dict[str, Any]]:
    return [
        {
            "text": item.content, "title": item.title, "speaker": item.speaker, "role": item.role,
            "session": item.session, "tags": item.tags, "metadata": dict(item.metadata),
            "key": item.key,
        }
        for item in memory.list(newest_first=False, limit=50).items
    ]  # fmt: skip


def raw(path: Path, sql: str, *parameters: object) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("encrypt", [False, True])
def test_no_word_is_in_any_file(path: Path, key: str, encrypt: bool) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=encrypt) as memory:
        fill(memory)
        open_files = left(path.parent)
    files = {**open_files, **left(path.parent)}
    assert bool(files) != encrypt  # without encryption the search finds them
    assert bool(list(path.parent.glob("m.db-graph-*"))) != encrypt


def test_it_works_as_a_plain_space_does(tmp_path: Path, key: str) -> None:
    seen = []
    for name, encrypt in (("plain.db", False), ("sealed.db", True)):
        settings = with_key(key)
        with Memory.open(tmp_path / name, settings=settings, encrypt=encrypt) as memory:
            fill(memory)
        with Memory.open(tmp_path / name, settings=settings) as memory:
            assert memory.stats().spaces[0].encrypted == encrypt
            found = memory.recall("marmalade food", k=5)
            filtered = memory.recall(
                "boat", speakers="Wintergreen", tags="quokka", metadata={"colour": "marmalade"}
            )
            again = memory.remember(MESSAGES[0])
            seen.append((
                rows(memory), [item.content for item in found.items], len(again.created or ()),
                [item.content for item in filtered.items],
                [item.content for item in memory.list(sessions="velociraptor").items],
                [record.content for record in memory.records()],
            ))  # fmt: skip
            assert not memory.check()
    assert seen[0] == seen[1]
    assert seen[0][3]


def test_without_the_right_key_nothing_is_read(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        fill(memory)
    for wrong, words in ((None, "no key is set"), (a_key(), "another key")):
        with pytest.raises(ConfigurationError, match=words):
            Memory.open(path, settings=with_key(wrong))
    with pytest.raises(ConfigurationError, match="needs a key"):
        Memory.open(path, "other", settings=with_key(None), encrypt=True)
    with Memory.open(path, "other", settings=with_key(None), encrypt=False) as memory:
        memory.remember("plain words")  # a space beside it needs no key
        assert [finding.code for finding in memory.check()] == ["locked"]
        with pytest.raises(ConfigurationError, match="no key is set"):
            memory.reembed("hashing:32")


def test_settings_decide_for_new_spaces_only(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key)) as memory:
        memory.remember("plain")
    settings = with_key(key, encrypt_new_spaces=True)
    with Memory.open(path, settings=settings, projects="shared") as memory:
        assert [space.encrypted for space in memory.stats().spaces] == [False, True]
    with pytest.raises(ConfigurationError, match="new spaces only"):
        Memory.open(path, settings=settings, encrypt=True)


def test_a_space_forgotten_whole_is_followed_by_an_encrypted_one(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        fill(memory)
    with Memory.open(path, settings=with_key(key)) as memory:
        wrapped = raw(path, "SELECT settings FROM spaces")[0][0]
        forget_all(memory)
        memory.remember(MESSAGES)
        assert memory.stats().spaces[0].encrypted
        data = b"".join(file.read_bytes() for file in path.parent.iterdir())
        assert json.loads(wrapped)["sealed"]["key"].encode() not in data
    assert left(path.parent) == {}


def test_forgetting_gives_a_receipt_that_holds(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        ids = fill(memory)
        receipt = memory.forget(ids[0])
        assert memory.verify(receipt)
        assert not any("xylophone" in row["text"] for row in rows(memory))
        assert memory.recall("xylophone").items == () or all(
            "xylophone" not in item.content for item in memory.recall("xylophone").items
        )


def test_an_export_is_plain_and_comes_back_encrypted(path: Path, tmp_path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        fill(memory)
        memory.export(tmp_path / "out.jsonl")
        before = rows(memory)
    text = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert "xylophone" in text
    assert '"sealed"' not in text
    with Memory.open(path.with_name("n.db"), settings=with_key(a_key()), encrypt=True) as memory:
        memory.import_(tmp_path / "out.jsonl")
        assert rows(memory) == before
        assert not memory.check()
    assert left(path.parent) == {}


def test_a_backup_is_encrypted_and_can_be_restored(path: Path, key: str) -> None:
    copy = path.with_name("copy.db")
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        fill(memory)
        before = rows(memory)
        memory.backup(copy)
        memory.remember("A later word: umbrella.")
        memory.restore(copy)
        assert rows(memory) == before
        memory.remember("After it: umbrella.")
    assert left(path.parent) == {}
    with (
        Memory.open(path.with_name("else.db"), settings=with_key(a_key())) as memory,
        pytest.raises(ConfigurationError, match="another key"),
    ):
        memory.restore(copy)


def test_rotation_changes_the_master_key_and_nothing_else(path: Path, key: str) -> None:
    new = a_key()
    with (
        Memory.open(path, settings=with_key(key), projects="p", encrypt=True) as memory,
        Memory.open(path, settings=with_key(key)) as beside,
    ):
        fill(memory)
        before = rows(memory)
        content = raw(path, "SELECT content FROM items ORDER BY number")
        assert memory.rotate_key(new) == 2
        assert raw(path, "SELECT content FROM items ORDER BY number") == content
        memory.remember("After the rotation.")
        assert rows(beside)[: len(before)] == before  # who has it open goes on
        beside.remember("Said by who has it open.")
    with pytest.raises(ConfigurationError, match="another key"):
        Memory.open(path, settings=with_key(key))
    with Memory.open(path, settings=with_key(new)) as memory:
        assert len(rows(memory)) == len(before) + 2
        assert not memory.check()


def test_rotation_is_all_or_nothing(path: Path, key: str) -> None:
    third = a_key()
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        memory.remember("one")
    with Memory.open(path, "b", settings=with_key(third), encrypt=True) as memory:
        before = raw(path, "SELECT settings FROM spaces ORDER BY id")
        with pytest.raises(ConfigurationError, match="another key"):
            memory.rotate_key(a_key())
        with pytest.raises(ConfigurationError, match="32 random bytes"):
            memory.rotate_key("c2hvcnQ=")
    assert raw(path, "SELECT settings FROM spaces ORDER BY id") == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE items SET content = (SELECT content FROM items WHERE number = 1) WHERE number = 2",
        "UPDATE items SET content = speaker WHERE number = 1",
        "UPDATE items SET content = 'something plain' WHERE number = 1",
        "UPDATE items SET content = substr(content, 5) WHERE number = 1",
    ],
)
def test_what_was_swapped_or_changed_is_noticed(path: Path, key: str, change: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        memory.remember([Message(content="one", speaker="a"), Message(content="two", speaker="b")])
    raw(path, change)
    with Memory.open(path, settings=with_key(key)) as memory:
        with pytest.raises(StoreCorruptError, match=r"items\.content"):
            memory.list()
        assert [finding.code for finding in memory.check()] == ["sealed"]


def test_a_key_that_was_taken_out_of_the_store_is_noticed(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        memory.remember("one")
        raw(path, "UPDATE spaces SET settings = '{}'")
        with pytest.raises(StoreCorruptError, match="was encrypted"):
            memory.remember("never in the clear: umbrella")
    assert left(path.parent) == {}
    with pytest.raises(ConfigurationError, match="not encrypted"):
        Memory.open(path, settings=with_key(key), encrypt=True)


def test_the_rule_of_a_space_is_changed_without_losing_its_key(path: Path, key: str) -> None:
    with Memory.open(path, settings=with_key(key), encrypt=True) as memory:
        fill(memory)
        memory.learn_by("hela_mem")
        store, space = memory._workings.store, memory._workings.spaces.own
        store.set_settings(space, {"other": 1})
    with Memory.open(path, settings=with_key(key)) as memory:
        assert memory.recall("marmalade").items


def test_the_key_can_be_in_a_file(path: Path, tmp_path: Path, key: str) -> None:
    file = tmp_path / "master.key"
    file.write_text(key + "\n", encoding="ascii")
    settings = load_settings(encryption_key_file=str(file), embedder="hashing:64")
    with Memory.open(path, settings=settings, encrypt=True) as memory:
        memory.remember("one")
    with Memory.open(path, settings=with_key(key)) as memory:
        assert rows(memory)[0]["text"] == "one"
    assert key not in repr(with_key(key))
    both = load_settings(encryption_key=key, encryption_key_file=str(file))
    with pytest.raises(ConfigurationError, match="both set"):
        Memory.open(path, settings=both)
    file.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Memory.open(path, settings=settings)


def test_the_extra_is_named_where_it_is_missing(
    path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtraError, match=r"cofire\[encryption\]"):
        Memory.open(path, settings=with_key(key), encrypt=True)


def test_the_command_rotates_and_tells_a_wrong_key(
    path: Path, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    old, new = tmp_path / "old.key", tmp_path / "new.key"
    old.write_text(key, encoding="ascii")
    new.write_text(a_key(), encoding="ascii")
    store = ["--store", str(path), "--embedder", "hashing:64"]
    monkeypatch.setenv("COFIRE_ENCRYPTION_KEY_FILE", str(old))
    monkeypatch.setenv("COFIRE_ENCRYPT_NEW_SPACES", "true")
    assert main(["remember", "The umbrella is in the hall.", *store]) == 0
    assert main(["rotate-key", "--new-key-file", str(tmp_path / "none.key"), *store]) == 4
    assert main(["rotate-key", "--new-key-file", str(new), *store]) == 0
    assert "1 encrypted space under the new key" in capsys.readouterr().out
    assert main(["recall", "umbrella", *store]) == 4
    assert "another key" in capsys.readouterr().err
    monkeypatch.setenv("COFIRE_ENCRYPTION_KEY_FILE", str(new))
    assert main(["recall", "umbrella", *store]) == 0
    assert "in the hall" in capsys.readouterr().out
    assert left(path.parent) == {}
