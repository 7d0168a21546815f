"""Kinds b and f of the case bank on a real store: what is one fact and what are two, which of them
holds, and what a model's answer may and may not do to them."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.models.generator import Generation
from cofire.testing import ScriptedGenerator
from cofire.types import Kind, SemanticRecord, SleepReport
from fakes import StubEmbedder
from scripts_of_models import echo, record, reply, turns_in

NIGHT = datetime(2024, 8, 1, 3, tzinfo=UTC)
Model = Callable[[], ScriptedGenerator | None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64") as memory:
        yield memory


def sleep(memory: Memory, *steps: str, days: int = 0, **options: Any) -> SleepReport:
    (report,) = memory.consolidate(steps, now=NIGHT + timedelta(days=days), **options)
    return report


def facts(memory: Memory) -> list[SemanticRecord]:
    kinds = (Kind.FACT, Kind.TRAIT, Kind.PERSONA, Kind.PROCEDURE)
    return sorted(memory.records(kinds=kinds), key=lambda one: str(one.valid_from))


def current(memory: Memory) -> list[str]:
    return sorted(one.content for one in facts(memory) if one.valid_to is None)


# b-01: a contradiction leaves the later of the two, and the former as history

CHANGES = [
    ("I love mushroom soup", "I hate mushroom soup now", "mushroom soup"),
    ("I hate mushroom soup", "I really like mushroom soup now!", "mushroom soup"),
    ("I like olives.", "I don't like olives.", "olives"),
    ("I enjoy swimming", "I can't stand swimming", "swimming"),
    ("My favourite colour is blue.", "My favorite color is green.", "what is my favorite color?"),
    ("I live in Bergen.", "I moved to Oslo", "where do I live, or moved to?"),
    ("I work at the harbour.", "I now work for Norsk Hydro.", "what do I work for?"),
    ("I am 41 years old", "I'm 42 years old now", "how many years old am I?"),
    ("My phone number is +47 555 01 23.", "My phone number is +47 555 09 99.", "phone number"),
    ("I have two dogs.", "I have three dogs now.", "how many dogs?"),
    ("My name is Robin Berg.", "My name is Robin Lund.", "what is my name?"),
]
DAYS = ("2024-07-05", "2024-07-20")


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("nights", [1, 2])
def test_of_two_that_contradict_one_holds_and_both_stay(
    memory: Memory, change: tuple[str, str, str], late: bool, nights: int
) -> None:
    *texts, question = change
    said = list(zip(texts, DAYS, strict=True))
    for night, (text, day) in enumerate(reversed(said) if late else said):
        memory.remember(text, role="user", time=day, now=day)
        if nights == 2:
            sleep(memory, "verify", "facts", days=night)
    sleep(memory, days=3)
    former, later = facts(memory)
    assert [former.content, later.content] == texts
    assert later.valid_to is None
    assert former.valid_to == later.valid_from == datetime.fromisoformat(DAYS[1] + "T00:00Z")
    assert former.closed is not None
    assert [
        (link.source, link.target) for link in memory.links(later.id) if link.type == "supersedes"
    ] == [(later.id, former.id)]
    assert [version.id for version in memory.history(later.id)] == [former.id]
    recalled = memory.recall(question, now="2024-08-09").semantic
    assert [one.content for one in recalled] == [texts[1]]
    before = memory.recall(question, now="2024-08-09", as_of="2024-07-10").semantic
    assert [one.content for one in before] == [texts[0]]
    assert len(memory.list(kinds="episode")) == 2
    assert memory.check() == []


# b-02: the same again is evidence, and nothing goes

REPEATS = [
    ("The boat has two masts.", "The boat has two masts.", "  the boat has two masts "),
    ("The caf\u00e9 is blue.", unicodedata.normalize("NFD", "The caf\u00e9 is blue."),
     "THE CAF\u00c9 IS BLUE!"),
    ("Robin's tea is hot", "Robin\u2019s tea is hot.", "Robin's  tea is\thot"),
]  # fmt: skip


@pytest.mark.parametrize("texts", REPEATS, ids=lambda texts: texts[0])
@pytest.mark.parametrize("nights", [1, 3])
def test_the_same_sentence_is_one_record_with_more_evidence(
    memory: Memory, texts: Sequence[str], nights: int
) -> None:
    seen: set[str] = set()
    for place, text in enumerate(texts):
        memory.remember(text, speaker="Robin", session=f"s{place}", now=NIGHT)
        if nights > 1 or place == 2:
            night = 2 * place  # a single turn waits a day for company
            sleep(memory, "distil", days=night + 2, generator=ScriptedGenerator(then=echo))
            (one,) = facts(memory)
            seen.add(one.id)
    assert len(seen) == 1
    assert [quote.text.strip() for quote in one.evidence] == [text.strip() for text in texts]
    assert one.valid_to is None
    assert one.confidence == pytest.approx(1 - 0.5**3)
    assert len(memory.list(kinds="episode")) == 3
    sleep(memory, days=9, generator=ScriptedGenerator(then=echo))
    assert [one.id for one in facts(memory)] == list(seen)
    assert memory.check() == []


# b-05: a short name is one thing, whatever the vectors say


@pytest.mark.parametrize("nights", [1, 3])
@pytest.mark.parametrize(
    "said",
    [
        ("QRV opened a new office", "QRV hired ten people", "qrv moved its depot"),
        ("\u00c9VR opened an office", "E\u0301VR hired ten people", "\u00e9vr moved its depot"),
    ],
    ids=["acronym", "composed"],
)
def test_a_short_name_is_one_concept_whatever_the_vectors_say(
    path: Path, said: Sequence[str], nights: int
) -> None:
    model = StubEmbedder(name="random", dimension=16)
    with Memory.open(path, embedder=model) as memory:
        for night, text in enumerate(said, 1):
            memory.remember(text, speaker="Robin", now=NIGHT)
            if nights > 1 or night == len(said):
                sleep(memory, "words", "concepts", days=2 * night)
        key = unicodedata.normalize("NFC", said[2].split()[-4]).casefold()
        for kind in ("concept", "word"):
            found = [
                one
                for one in memory.records(kinds=kind)
                if unicodedata.normalize("NFC", one.content).casefold() == key
            ]
            assert len(found) == 1, kind
            assert [quote.text for quote in found[0].evidence] == list(said)
        assert memory.check() == []


# b-06: what is about somebody or something else retires nothing

UNRELATED = [
    ("Robin", "I live in Fernhill", "lives in", "Fernhill", True),
    ("Sam", "I work at the harbour", "works at", "the harbour", True),
    ("Sam", "I moved to Northport", "lives in", "Northport", True),
    ("Robin", "The harbour cafe closed", None, None, False),
    ("Sam", "I love tea", "likes:tea", "likes it", True),
    ("Robin", "I hate tea", "likes:tea", "does not like it", True),
    ("Sam", "I hate coffee", "likes:coffee", "does not like it", True),
    ("Sam", "I speak French", "speaks", "French", False),
    ("Sam", "I speak German", "speaks", "German", False),
    ("Sam", "My sister lives in Oslo", "sister lives in", "Oslo", True),
]


@pytest.mark.parametrize("maker", ["rules", "a model"])
@pytest.mark.parametrize("backwards", [False, True])
def test_unrelated_facts_never_retire_each_other(
    memory: Memory, maker: str, backwards: bool
) -> None:
    by_text = {text: (slot, value, single) for _, text, slot, value, single in UNRELATED}

    def answer(request: Generation) -> str:
        records = []
        for one in turns_in(request):
            slot, value, single = by_text[one["text"]]
            quotes = [{"turn": one["turn"], "text": one["text"]}]
            records.append(
                record(content=one["text"], subject=one["speaker"], slot=slot, value=value,
                       single=single, quotes=quotes)
            )  # fmt: skip
        return reply(*records)

    told = list(enumerate(UNRELATED, 1))
    for day, (speaker, text, *_) in reversed(told) if backwards else told:
        memory.remember(text, speaker=speaker, time=f"2024-01-{day:02}", now=NIGHT)
        sleep(memory, "facts")
    model = ScriptedGenerator(then=answer) if maker == "a model" else None
    sleep(memory, days=2, generator=model)
    assert all(one.valid_to is None for one in facts(memory))
    assert len(facts(memory)) == (10 if model else 8)
    types = {link.type for one in facts(memory) for link in memory.links(one.id)}
    assert "supersedes" not in types
    assert memory.check() == []


def test_every_supersession_names_its_cause(memory: Memory) -> None:
    towns = ("Bergen", "Oslo", "Rome", "Lyon")
    for speaker, (day, town) in itertools.product(("Kim", "Sam"), enumerate(towns, 1)):
        text = f"I live in {town}."
        memory.remember(text, speaker=speaker, time=f"2024-0{day}-01", now=NIGHT)
    sleep(memory)
    for one in facts(memory):
        causes = [
            link.source
            for link in memory.links(one.id)
            if link.type == "supersedes" and link.target == one.id
        ]
        by_id = {other.id: other for other in facts(memory)}
        assert len(causes) == (one.valid_to is not None)
        for cause in causes:
            assert by_id[cause].subject == one.subject
            assert by_id[cause].valid_from == one.valid_to
    assert [one.content for one in facts(memory) if one.valid_to is None] == ["I live in Lyon."] * 2


# What goes in the middle of a line, and what is left of it


@pytest.mark.parametrize("change", ["deleted", "edited"])
@pytest.mark.parametrize(
    ("towns", "left"),
    [
        (("Bergen", "Oslo", "Rome"), ("Bergen", "Rome")),
        (("Bergen", "Oslo", "Bergen"), ("Bergen",)),
    ],
)
def test_a_line_stays_whole_when_one_in_the_middle_goes(
    memory: Memory, change: str, towns: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """At any moment one value holds, and in the end the line is what is left of what was said."""
    ids = [
        memory.remember(f"I live in {town}.", speaker="Kim", time=f"2024-0{month}-01", now=NIGHT).id
        for month, town in enumerate(towns, 4)
    ]
    sleep(memory, "facts")
    if change == "deleted":
        memory.forget(ids[1])
    else:
        memory.update(ids[1], content="The sea is cold.", now=NIGHT)
    assert current(memory) == [f"I live in {towns[2]}."]
    assert memory.check() == []
    sleep(memory, "verify", "facts", days=1)
    found = facts(memory)
    assert tuple(one.value for one in found) == left
    assert [one.valid_to for one in found] == [*(one.valid_from for one in found[1:]), None]
    assert found[0].valid_from == datetime(2024, 4, 1, tzinfo=UTC)
    assert sum(len(one.evidence) for one in found) == 2
    assert memory.check() == []


def test_who_said_the_same_in_other_words_is_read_again(memory: Memory) -> None:
    """The record has the words of the first and goes with them; the second says it still."""
    first = memory.remember("I moved to Tromsø!", speaker="Kim", time="2024-07-01", now=NIGHT).id
    memory.remember("I live in Tromsø.", speaker="Kim", time="2024-07-09", now=NIGHT)
    sleep(memory, "facts")
    (one,) = facts(memory)
    assert (one.content, len(one.evidence)) == ("I moved to Tromsø!", 2)
    memory.forget(first)
    assert not memory.records()
    sleep(memory, "verify", "facts", days=1)
    (again,) = facts(memory)
    assert again.content == "I live in Tromsø."
    assert again.valid_from == datetime(2024, 7, 9, tzinfo=UTC)
    assert memory.check() == []


# f-03: only ids that were offered, and of this space


def test_ids_of_nobody_and_of_another_space_are_dropped_and_counted(path: Path) -> None:
    with (
        Memory.open(path, user="ada", embedder="hashing:64") as ada,
        Memory.open(path, user="bo", embedder="hashing:64") as bo,
    ):
        hers = ada.remember("I own a canoe.", speaker="Ada", now=NIGHT).id
        ada.remember("I own a kite.", speaker="Ada", now=NIGHT)
        his = bo.remember("I own a yacht.", speaker="Bo", now=NIGHT).id
        number = ada.get(hers).number
        names = (
            his,
            hers,
            str(number),
            f"T{number}",
            "0",
            "-1",
            "all",
            "*",
            "T3",
            "T01",
            "t1 ",
            "",
        )
        wrong = [
            record(content=f"Ada owns a yacht{place}.", subject="Ada",
                   quotes=[{"turn": name, "text": "I own a yacht."}])
            for place, name in enumerate(names)
        ]  # fmt: skip
        right = record(
            content="Ada owns a kite.", subject="Ada", slot=None, value=None,
            quotes=[{"turn": "T2", "text": "I own a kite."}, {"turn": his, "text": "A yacht."}],
            causes=[his, "T7", "D99", "*"],
        )  # fmt: skip
        answer = json.loads(reply(*wrong, right)) | {
            "updates": [{"id": "12", "text": "x"}, {"id": his, "text": "x"}],
            "deletes": ["0", "all", "*", hers, his, "T1"],
            "links": [["T1", "0"], [hers, his]],
        }
        model = ScriptedGenerator(then=json.dumps(answer))
        report = sleep(ada, "distil", days=2, generator=model)
        assert not report.failed
        assert report.counts["dropped label"] >= len(names) - 1
        assert current(ada) == ["Ada owns a kite."]
        assert {quote.id for one in facts(ada) for quote in one.evidence} <= set(ada_ids(ada))
        assert sorted(item.content for item in ada.list(kinds="episode")) == [
            "I own a canoe.", "I own a kite.",
        ]  # fmt: skip
        assert [item.content for item in bo.list()] == ["I own a yacht."]
        assert not bo.records()
        assert not bo.quarantine()
        assert bo.get(his).version == 1
        assert ada.check() == []


def ada_ids(memory: Memory) -> list[str]:
    return [item.id for item in memory.list(kinds="episode")]


# f-04: the language of the message


@pytest.mark.parametrize(
    "answers",
    [
        ["The user has a dog called Brisa"],
        ["El perro del usuario se llama Brisa"],
        ["The user has a dog called Brisa", "El perro del usuario se llama Brisa"],
    ],
    ids=["translated", "kept", "both"],
)
def test_the_words_said_stay_findable_whatever_the_model_did(
    memory: Memory, answers: list[str]
) -> None:
    said = "Mi perro se llama Brisa y es muy tranquilo."
    id = memory.remember(said, role="user", now=NIGHT).id
    memory.remember("Hoy hace mucho viento en la costa.", role="user", now=NIGHT)
    memory.remember("¿Cómo se llama el puerto de tu pueblo?", role="assistant", now=NIGHT)
    entries = [
        record(content=text, subject="user", slot="dog's name", value="Brisa",
               quotes=[{"turn": "T1", "text": said}])
        for text in answers
    ]  # fmt: skip
    model = ScriptedGenerator(then=reply(*entries))
    sleep(memory, "facts", "distil", "gists", "words", days=2, generator=model)
    assert "keep the language of the message" in model.requests[0].system
    found = memory.recall("¿cómo se llama mi perro?", now="2024-09-01")
    assert found.ids[0] == id
    assert memory.get(id).content == said
    for one in [*facts(memory), *memory.quarantine()]:  # what says it twice is joined by its turn
        assert [quote.id for quote in one.evidence] == [id]
    assert all(one.content in answers for one in facts(memory))
    assert memory.check() == []


# Values that are none

FAR = ["9999-99-99", "9999-12-31", "0001-01-01", "0000-00-00", "-1", "1e400", "tomorrow", "", 0, -1,
       10**30, float("nan"), float("inf"), True, [], {}, None, "\u0000", "2024-02-30"]  # fmt: skip
FIELDS = ["happened_from", "happened_to", "valid_from", "slot", "value", "single", "causes", "kind",
          "subject", "content", "quotes", "confidence", "importance"]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_value_of_a_field_breaks_a_night_or_a_recall(memory: Memory, field: str) -> None:
    memory.remember("I own a canoe. It is green.", speaker="Robin", time="2024-01-05", now=NIGHT)
    for number, value in enumerate(FAR):
        quotes = [{"turn": "T1", "text": "I own a canoe."}]
        one = {"content": "Robin owns a canoe.", "quotes": quotes, field: value}
        night = 2 * number + 2
        memory.remember(f"I own kite {number}.", speaker="Robin", time="2024-01-06", now=NIGHT)
        answer = reply(record(**one))
        model = ScriptedGenerator([partial(_about, answer)], then=echo)
        report = sleep(memory, "verify", "facts", "distil", days=night, generator=model)
        assert not report.failed, report
    allowed = {"Robin owns a canoe.", *(item.content for item in memory.list(kinds="episode"))}
    assert set(current(memory)) <= allowed
    for one_record in [*facts(memory), *memory.quarantine()]:
        assert one_record.confidence is None or 0.0 <= one_record.confidence < 1.0
        assert 1 <= one_record.item.importance <= 10
        if one_record.state == "current" and one_record.valid_from is not None:
            assert one_record.valid_from.year in (2023, 2024)
    found = memory.recall("What does Robin own?", now="2024-09-01", explain=True)
    json.dumps([hit.score for hit in (*found, *found.semantic)], allow_nan=False)
    assert memory.check() == []


def _about(answer: str, request: Generation) -> str:
    """The answer with its first label as offered in this request."""
    return answer.replace('"T1"', json.dumps(turns_in(request)[0]["turn"]))
