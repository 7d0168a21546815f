"""What Cofire rendered and a transcript brings back, on a real store and over processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cofire import Memory
from cofire.echoes import Lookup, Told
from cofire.types import Filters

SAID = (
    ("Ada", "user", "I live in Bergen.", "2026-05-08T12:00+02:00"),
    ("Ben", "user", "The kiln is hot until ten.\nThen it cools for a day.", "2026-05-09"),
    (None, "tool", "Kilns, cheap kilns: buy one today at kilns.example.", "2026-05-10"),
)
LONG = " ".join(f"On shelf {n} lies a book about lake number {n}." for n in range(60))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64") as memory:
        for speaker, role, content, time in SAID:
            memory.remember(content, speaker=speaker, role=role, time=time)
        memory.remember("Glaze a bowl", kind="goal", time="2026-05-11")
        memory.remember(LONG, speaker="Cy", time="2026-05-12")
        yield memory


def renderings(memory: Memory) -> dict[str, str]:
    recall = memory.recall("kiln in Bergen").text
    return {
        "recall": recall,
        "hydration": memory.hydrate(untrusted=True).text,
        "quoted": "> " + recall.replace("\n", "\n> "),
        "in code": f"```text\n{recall}\n```",
        "indented": "    " + recall.replace("\n", "\n    "),
        "flat": "\n".join(line.strip() for line in recall.split("\n")),
        "on one line": " ".join(recall.split()),
        "broken off": recall[: recall.index("is hot until") + 6],
        "broken off within a line's day": recall[: recall.index("May 2026") + 3],
        "without marks": recall.split("\n", 1)[1].rsplit("\n", 1)[0],
        "one line": next(line for line in recall.split("\n") if "Ada: " in line),
        "a part of a long text": memory.recall("lake number 59 shelf", 1)[0].line,
    }


@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_a_message_that_is_a_rendering_is_passed_over(memory: Memory, role: str) -> None:
    before = memory.stats().items
    for name, text in renderings(memory).items():
        receipt = memory.remember(text, role=role)
        assert (name, receipt.ids) == (name, ())
        assert "Cofire's own rendering" in receipt.warnings[0]
    assert memory.stats().items == before


def test_it_is_cut_out_of_a_longer_message(memory: Memory) -> None:
    asked, answer = "What do you know of me?", "You live by the sea, and on 8 May 2026 you said so."
    for name, text in renderings(memory).items():
        if name.startswith("broken off"):
            continue  # a transcript breaks off at its end
        receipt = memory.remember(f"User: {asked}\n{text}\n{answer}\n")
        kept = memory.get(receipt.id).content
        assert (name, kept.split()) == (name, f"User: {asked} {answer}".split())


def test_others_know_it_again(memory: Memory, path: Path) -> None:
    text = memory.recall("kiln").text
    with Memory.open(path, embedder="hashing:64") as other:
        assert other.remember(["A word of mine.", text]).ids != ()
        receipt = other.remember([{"content": text}, {"content": f"{text}\nThanks!"}])
        assert [other.get(id).content.strip() for id in receipt.ids] == ["Thanks!"]
        passed, cut = receipt.warnings
        assert "1 of 2 messages, passed over: 0" in passed
        assert "cut out of 1 of 2 messages: 1" in cut


@pytest.mark.parametrize(
    "said",
    [
        'You told me "I live in Bergen." on 8 May 2026.',
        "8 May 2026 Ada: I live in Oslo.",
        "9 May 2026 Ada: I live in Bergen.",
        "8 May 2026: dentist. 9 May 2026: kiln.",
        "What does [memory 482976] mean, and [untrusted 482976]?",
        "[memory 123456]\nis a title of mine\n[/memory 123456]",
        "On 10 May 2026 tool: Kilns, cheap kilns",
        "- milk\n- eggs\n> a quote\n```\ncode\n```\n",
        "31 February 2026 Ada: I live in Bergen.",
        "[memory 482976]\nThis is a heading of my own notes.",
    ],
)
def test_what_somebody_says_stays(memory: Memory, said: str) -> None:
    receipt = memory.remember(said)
    kept = memory.get(receipt.id).content
    assert kept == said.removeprefix("[memory 482976]\n")


def test_replies_between_quoted_lines_stay(memory: Memory) -> None:
    lines = memory.recall("kiln in Bergen").text.split("\n")
    quoted = "\n".join(f"> {line}" for line in lines)
    first = quoted.index("\n", quoted.index("I live in Bergen."))
    told = f"{quoted[:first]}\nNot any more, I moved.\n{quoted[first + 1 :]}\nBye."
    kept = memory.get(memory.remember(told).id).content
    assert kept.split() == "Not any more, I moved. Bye.".split()


def test_what_was_forgotten_does_not_come_back(memory: Memory) -> None:
    text = memory.recall("kiln in Bergen").text
    memory.forget([hit.id for hit in memory.recall("kiln in Bergen")])
    assert memory.remember(text).ids == ()


def test_imported_transcripts_are_looked_through_as_well(memory: Memory, tmp_path: Path) -> None:
    import json

    text = memory.recall("kiln").text
    lines = [{"content": text}, {"content": f"Hello.\n{text}"}, {"content": "Bye.", "key": "b"}]
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    report = memory.import_(file, format="jsonl")
    assert report.imported == 2
    assert any("passed over" in str(problem) for problem in report.problems)
    assert "Hello." in {item.content.strip() for item in memory.list(limit=5)}
    file.write_text(json.dumps(lines[0]), "utf-8")
    assert memory.import_(file, format="jsonl").imported == 0


def test_an_export_comes_back_whole(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "other.db", embedder="hashing:64") as other:
        memory.export(tmp_path / "e.jsonl")
        other.import_(tmp_path / "e.jsonl")
        assert {one.content: one.untrusted for one in other.list()} == {
            one.content: one.untrusted for one in memory.list()
        }


def test_marks_around_somebodys_own_words_cut_nothing(memory: Memory) -> None:
    said = "[memory 000000]\nSell the boat, and tell nobody.\n[/memory 000000]"
    kept = memory.get(memory.remember(said, role="user").id).content
    assert "Sell the boat, and tell nobody." in kept


def test_messages_remembered_together_share_what_is_looked_up(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line for line in memory.recall("kiln in Bergen").text.split("\n") if "2026 " in line]
    looked_up = []
    listed = Lookup._listed

    def counting(lookup: Lookup, filters: Filters) -> Told:
        looked_up.append(filters)
        return listed(lookup, filters)

    monkeypatch.setattr(Lookup, "_listed", counting)
    receipt = memory.remember([{"content": line} for line in lines * 5])
    assert receipt.ids == ()
    assert len(looked_up) == len({line.split(" 2026")[0] for line in lines})
