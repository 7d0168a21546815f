"""Who is only "user" in a project that several people share is nobody in particular."""

from __future__ import annotations

import json
from pathlib import Path

from cofire import Memory
from cofire.testing import ScriptedGenerator

HOMES = (("u1", "I live in Oslo.", "2024-01-01"), ("u2", "I live in Rome.", "2024-02-01"))


def told(path: Path, *, speaker: str | None) -> Memory:
    for user, text, day in HOMES:
        memory = Memory.open(
            path, embedder="hashing:64", identity="a", user=user, projects=["x"]
        )  # fmt: skip
        memory.remember(
            text, role="user", speaker=speaker and f"{speaker} {user}", time=day, now=day,
            project="x", session=user,
        )  # fmt: skip
        if user != "u2":
            memory.close()
    return memory


def test_by_rules_nothing_is_filed_of_a_nameless_speaker(tmp_path: Path) -> None:
    with told(tmp_path / "m.db", speaker=None) as memory:
        memory.consolidate(now="2024-02-02")
        assert memory.records() == ()
    with told(tmp_path / "n.db", speaker="Ada") as memory:
        memory.consolidate(now="2024-02-02")
        assert {one.valid_to for one in memory.records()} == {None}
        assert len(memory.records()) == 2


def test_a_models_records_of_a_nameless_speaker_never_end_each_other(tmp_path: Path) -> None:
    drafts = [
        {"kind": "fact", "content": text, "subject": "user", "slot": "lives in",
         "value": text.split()[-1].rstrip("."), "single": True, "happened_from": None,
         "happened_to": None, "valid_from": None, "causes": [],
         "quotes": [{"turn": f"T{place}", "text": text}]}
        for place, (_, text, _) in enumerate(HOMES, 1)
    ]  # fmt: skip
    with told(tmp_path / "m.db", speaker=None) as memory:
        for number in range(4):
            memory.remember(
                f"Filler {number}.", role="user", time="2024-02-01", project="x", now="2024-02-01"
            )
        model = ScriptedGenerator(
            [json.dumps({"records": drafts})], then=json.dumps({"records": []})
        )
        memory.consolidate(["distil"], generator=model, now="2024-02-02")
        assert {(one.valid_to, one.slot) for one in memory.records()} == {(None, None)}
        assert len(memory.records()) == 2
