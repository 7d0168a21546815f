"""What deletion promises: nothing of it is in any file, what rested on it follows, and a receipt
says so and can be checked."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.errors import ConfirmationNeededError, InputError, NotFoundError
from cofire.retrieval import loading
from cofire.sleeping import made
from cofire.store.records import NewDerived, SpaceInfo
from cofire.types import Kind, LinkType, Message, to_micros
from cofire.views import public_id
from confirming import forget_all
from hostile import same_id
from readers import a_reader

SECRET = ("xylophone", "4711", "Zanzibar", "zanzibar", "Quetzalcoatl", "quetzalcoatl")
"""Words that only the deleted turn said, or its labels are made of."""
TURN = "The alarm code of the boathouse is xylophone-4711, and Bo has gone to Zanzibar."
OTHER = "The alarm of the boathouse is beside the door, and Bo likes tea."
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(loading, "SIDECAR_FROM", 1)
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, projects=["p"], embedder="hashing:64") as memory:
        yield memory


def found(folder: Path) -> dict[str, list[str]]:
    """Which of the secret words are in which files, in any encoding Cofire writes."""
    hits: dict[str, list[str]] = {}
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            words = [word for word in SECRET if word.encode() in data]
            if words:
                hits[file.name] = words
    return hits


def own(memory: Memory) -> SpaceInfo:
    return memory._workings.spaces.own


def number(memory: Memory, id: str) -> int:
    return memory._workings.spaces.locate(id)[1]


def derive(memory: Memory, text: str, sources: Sequence[tuple[str, int]], **fields: Any) -> str:
    """A derived memory that rests on these (id, version); its id."""
    kind = fields.pop("kind", Kind.FACT)
    (item,) = made(memory._workings, [Message(content=text, kind=kind, time=NOW)], NOW)
    new = NewDerived(
        item=item,
        maker=fields.pop("maker", "extractive"),
        sources=tuple((number(memory, id), version, 0, 0) for id, version in sources),
        links=tuple(
            (number(memory, id), LinkType.EVIDENCE.value, 0.5)
            for id in dict.fromkeys(id for id, _ in sources)
        ),
        **fields,
    )
    store = memory._workings.store
    (filed,) = store.file_derived(own(memory), [new], now=to_micros(NOW)).numbers
    assert filed is not None
    return public_id(item.uid)


def states(memory: Memory, ids: Mapping[str, str]) -> dict[str, str]:
    """How each derived memory is now: gone, or its state."""
    rows = {public_id(row.item.uid): row for row in memory._workings.store.derived(own(memory))}
    return {name: rows[id].state if id in rows else "gone" for name, id in ids.items()}


def everything_told(memory: Memory) -> tuple[str, dict[str, str]]:
    """A memory in which a turn has left all that it can leave; its id, and what rests on it."""
    other, third = memory.remember(
        [{"content": OTHER, "session": "s"}, {"content": "Bo has gone to sea.", "session": "s"}]
    ).ids
    id = memory.remember(
        f"{TURN} Quetzalcoatl.",
        title="Quetzalcoatl", speaker="Quetzalcoatl", role="quetzalcoatl", session="Zanzibar",
        tags=["quetzalcoatl"], metadata={"quetzalcoatl": "Zanzibar"}, key="xylophone",
    ).id  # fmt: skip
    former_text = derive(memory, "God", [(id, 1), (other, 1)], maker="a model")
    memory.update(id, content=TURN, title="Quetzalcoatl once more")
    memory.remember("and so on. " * 300 + "Zanzibar", session="long", key="long")
    long = memory.list(sessions="long").items[0].id
    memory.forget(long)  # segments, too
    memory.link(id, other, "supports")
    only = memory.recall("alarm code xylophone-4711", 1)
    assert only.ids == (id,)
    memory.feedback(only, used=[id])
    both = memory.recall("is xylophone the code of the boathouse alarm", 3)
    memory.feedback(both, used=[id, other])
    plain = memory.recall("what about the boathouse alarm", 3)
    memory.feedback(plain, used=[id, other])
    memory.recall("has Bo gone to Zanzibar", 3)
    memory.recall("what does Bo like", 3)
    rests = {
        "alone": derive(memory, "Bo has gone to Zanzibar.", [(id, 2)], subject="Bo"),
        "verbatim": derive(
            memory, "Bo has gone to Zanzibar.", [(id, 2), (third, 1)], subject="Bo"
        ),
        "common words": derive(
            memory, "The alarm of the boathouse is", [(id, 2), (other, 1)], maker="a model"
        ),
        "telling": derive(
            memory, "Bo: Zanzibar, tea", [(id, 2), (other, 1)], maker="a model", value="Zanzibar"
        ),
        "quarantined": derive(
            memory, "Bo is away", [(id, 2), (other, 1)], state="quarantined",
            reasons=("name: Zanzibar is in no cited turn",),
        ),
        "former text": former_text,
        "shape": derive(
            memory, "boathouse, xylophone: 2 memories", [(id, 2), (other, 1)], kind=Kind.SHAPE
        ),
        "elsewhere": derive(memory, "Bo likes tea.", [(other, 1)], subject="Bo"),
    }  # fmt: skip
    former = derive(memory, "Bo is at home.", [(third, 1)], subject="Bo", slot="is in")
    ender = derive(
        memory, "Bo is in Zanzibar.", [(id, 2)],
        subject="Bo", slot="is in", supersedes=((number(memory, former), to_micros(NOW)),),
    )  # fmt: skip
    deep = derive(memory, "Zanzibar is far.", [(rests["alone"], 1), (ender, 1)], kind=Kind.CONCEPT)
    return id, {**rests, "former": former, "ender": ender, "deep": deep}


@pytest.mark.parametrize("careless", ["pages", "log"])
def test_the_search_finds_what_a_careless_store_leaves(
    path: Path, monkeypatch: pytest.MonkeyPatch, careless: str
) -> None:
    """The test below proves something only because this one finds the words."""
    erasing, connections = "cofire.store.sqlite_erasing", "cofire.store.sqlite_connections"
    if careless == "pages":
        pragmas = ("PRAGMA secure_delete=OFF", "PRAGMA wal_autocheckpoint=4000")
        monkeypatch.setattr(f"{connections}.CONNECTION_PRAGMAS", pragmas)
        monkeypatch.setattr(f"{erasing}._rebuild", lambda connection, wait: None)
    else:
        monkeypatch.setattr(f"{erasing}._empty_log", lambda connection, wait: True)
    with Memory.open(path, embedder="hashing:64") as memory:
        ids = memory.remember([f"{TURN} {word}" for word in range(20)]).ids
        memory.remember("something else")
        memory.forget(ids)
        assert "xylophone" in str(found(path.parent))


def test_nothing_is_left_in_any_file(
    path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with Memory.open(path, projects=["p"], embedder="hashing:64") as memory:
        id, rests = everything_told(memory)
        memory.remember("in the project", project="p")
        memory.recall("boathouse")  # of which a sidecar is kept
    memory = Memory.open(path, projects=["p"], embedder="hashing:64")
    copy = path.with_name("m.db.schema-0002.backup")  # as a migration leaves one
    memory.backup(copy)
    assert {"m.db", copy.name} <= found(path.parent).keys()
    assert list(path.parent.glob("m.db-graph-*"))
    receipt = memory.forget(id)
    assert receipt.scrubbed == "scrubbed"
    assert found(path.parent) == {}, "while the store is open"
    assert not copy.exists()
    assert not list(path.parent.glob(f"m.db-graph-{own(memory).space_id}*"))
    assert states(memory, rests) == {
        "alone": "gone",
        "verbatim": "gone",
        "common words": "stale",
        "telling": "gone",
        "quarantined": "gone",
        "former text": "gone",
        "shape": "gone",
        "elsewhere": "current",
        "former": "current",
        "ender": "gone",
        "deep": "gone",
    }
    assert memory.check() == []
    assert receipt.memories == 1
    assert receipt.derived == 8
    assert receipt.doubtful == (rests["common words"],)
    assert receipt.reopened == (rests["former"],)
    (row,) = [row for row in memory.records("Bo") if row.id == rests["former"]]
    assert (row.valid_to, row.closed) == (None, None)
    assert set(receipt.ids) >= {id, *(rests[name] for name in ("alone", "verbatim", "shape"))}
    # A cue that led to another memory too stays unless its words give the turn away.
    cues = [item.content for item in memory.list(kinds="cue")]
    assert cues == ["what about the boathouse alarm"]
    assert receipt.cues == 2
    assert bool(memory.verify(receipt))
    assert memory.receipts()[0] == receipt
    assert all(word not in repr(receipt) for word in SECRET)
    memory.close()
    assert found(path.parent) == {}, "after closing"
    output = capfd.readouterr()
    told = caplog.text + output.out + output.err
    assert all(word not in told for word in SECRET)


def test_what_lost_a_part_of_its_evidence_waits_for_verification(memory: Memory) -> None:
    id, rests = everything_told(memory)
    other = memory.recall("beside the door", 1).ids[0]
    fact = rests["common words"]
    asked = "alarm of the boathouse"
    assert fact in [record.id for record in memory.recall(asked).semantic]
    memory.forget(id)
    assert fact not in [record.id for record in memory.recall(asked).semantic]
    (waiting,) = [record for record in memory.quarantine() if record.id == fact]
    assert waiting.reasons == ("support: a part of its evidence was deleted",)
    assert [quote.id for quote in waiting.evidence] == [other]
    memory._workings.store.set_sources(
        own(memory), number(memory, fact), [(number(memory, other), 1, 0, 0)],
        state="current", confidence=0.5, now=to_micros(NOW),
    )  # fmt: skip
    assert fact in [record.id for record in memory.recall(asked).semantic]
    assert memory.check() == []


def test_a_question_of_common_words_stays_and_one_that_tells_goes(memory: Memory) -> None:
    id, other = memory.remember(["The gate code is marmalade.", "The gate is green."]).ids
    tells, plain = memory.recall("marmalade gate", 2), memory.recall("green gate", 2)
    assert set(tells.ids) == set(plain.ids) == {id, other}
    deletion = memory.forget(id)
    assert deletion.recalls == 1
    with pytest.raises(NotFoundError):
        memory.feedback(tells, used=[other])
    assert memory.feedback(plain, used=[other]).counted


def test_words_that_others_say_give_nothing_away(memory: Memory) -> None:
    first, second = memory.remember(["Marmalade is sweet.", "I like marmalade."]).ids
    recall = memory.recall("marmalade", 2)
    assert memory.forget(first).recalls == 0
    assert memory.feedback(recall, used=[second]).counted


def test_a_word_in_no_alphabet_counts_too(memory: Memory) -> None:
    id, other = memory.remember(["暗証番号は孔雀です。", "門は緑です。"]).ids
    recall = memory.recall("孔雀の門", 2)
    assert set(recall.ids) == {id, other}
    assert memory.forget(id).recalls == 1


# Receipts


def test_a_receipt_waits_for_readers_and_is_retried(
    memory: Memory, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = memory.remember([TURN, "another thing"]).ids
    with a_reader(path):
        receipt = memory.forget(first)
        assert receipt.scrubbed == "pending"
        assert not memory.verify(receipt)
        assert memory.verify(receipt).found == {}
        assert found(path.parent)
    memory.forget(second)
    assert memory.verify(receipt).scrubbed == "scrubbed"
    assert [one.scrubbed for one in memory.receipts()] == ["scrubbed", "scrubbed"]
    assert found(path.parent) == {}


@pytest.mark.parametrize("how", ["scrub", "reopen", "close"])
def test_a_waiting_receipt_is_settled(path: Path, how: str) -> None:
    with Memory.open(path, embedder="hashing:64") as memory:
        id = memory.remember([TURN, "another thing"]).ids[0]
        with a_reader(path):
            receipt = memory.forget(id)
            if how == "reopen":
                memory.close()
        if how == "scrub":
            memory.scrub()
            assert memory.verify(receipt)
    if how == "close":
        with Memory.open(path, embedder="hashing:64") as memory, a_reader(path):
            assert memory.verify(receipt), "it was settled when it closed"
    with Memory.open(path, embedder="hashing:64") as memory:
        assert memory.verify(receipt)
    assert found(path.parent) == {}


def test_a_large_file_is_pending_until_it_is_scrubbed(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cofire.store.sqlite_erasing.REBUILT_AT_ONCE", 0)
    receipt = memory.forget(memory.remember([TURN, "another"]).ids[0])
    assert receipt.scrubbed == "pending"
    memory._workings.retry_traces()
    assert not memory.verify(receipt)
    memory._workings.retry_traces(thorough=True)
    assert memory.verify(receipt)


def test_a_restored_backup_is_found_out(memory: Memory, tmp_path: Path) -> None:
    id = memory.remember([TURN, "another"]).ids[0]
    memory.backup(tmp_path / "old.backup")
    receipt = memory.forget(id)
    assert memory.verify(receipt)
    memory.restore(tmp_path / "old.backup")
    assert memory.get(id).content == TURN
    again = memory.verify(receipt)
    assert (bool(again), again.scrubbed) == (False, "pending")
    assert again.found["items"] == 1
    memory.scrub()
    assert memory.verify(receipt).scrubbed == "pending", "it is there, so nothing is scrubbed"
    memory.forget(id)
    assert memory.verify(receipt)


def test_an_import_that_brings_it_back_is_found_out(memory: Memory, tmp_path: Path) -> None:
    id = memory.remember([TURN, "another"]).ids[0]
    memory.export(tmp_path / "old.jsonl")
    receipt, rest = memory.forget(id), forget_all(memory)
    assert memory.verify(receipt)
    assert memory.verify(rest)
    memory.import_(tmp_path / "old.jsonl")
    assert memory.verify(receipt).found == {"items": 1}
    assert memory.verify(rest), "its space is another one"


def test_receipts_are_those_of_ones_own(path: Path, memory: Memory) -> None:
    mine = memory.forget(memory.remember("mine").id)
    both = memory.forget([memory.remember("a").id, memory.remember("b", project="p").id])
    assert {str(space) for space in both.spaces} == {"default/default", "default/project:p"}
    assert memory.receipts() == (both, mine)
    assert memory.receipts(limit=1) == (both,)
    for who in ({"user": "bo"}, {"identity": "bo", "projects": ["p"]}, {"tenant": "bo"}):
        with Memory.open(path, embedder="hashing:64", **who) as other:
            assert other.receipts() == ()
            for receipt in (mine, both):
                with pytest.raises(NotFoundError, match="no receipt"):
                    other.verify(receipt)
    with pytest.raises(NotFoundError):
        memory.verify("01890000-0000-7000-8000-000000000000")
    with pytest.raises(InputError):
        memory.verify("x")


# By filter


@pytest.mark.parametrize(
    "selectors",
    [
        {"tags": ["keep"]}, {"speakers": "Ada"}, {"sessions": ["s", "t"]},
        {"metadata": {"n": 1}}, {"since": "2026-02-01"}, {"kinds": "fact"},
        {"since": "2026-02-01", "until": "2027-01-01", "tags": ("keep",), "speakers": ["Ada"]},
        {"tags": (tag for tag in ("keep", "keep"))},
    ],
    ids=same_id,
)  # fmt: skip
def test_what_matches_goes_archived_or_not(memory: Memory, selectors: dict[str, Any]) -> None:
    common: dict[str, Any] = {
        "tags": ["keep"],
        "speaker": "Ada",
        "metadata": {"n": 1},
        "kind": "fact",
    }
    gone = memory.remember(
        [{"content": "one", "session": "s", "time": "2026-03-01", **common},
         {"content": "two", "session": "t", "time": "2026-03-01", **common}]
    ).ids  # fmt: skip
    stays = memory.remember({"content": "three", "session": "u", "time": "2026-01-01"}).id
    shared = memory.remember("shared", session="s", project="p", **common).id
    memory.archive(gone[1])
    given: dict[str, Any] = {
        name: list(one) if name == "tags" else one for name, one in selectors.items()
    }
    would = memory.forget(scope="own", dry_run=True, **given)
    assert (would.memories, would.id, would.dry_run) == (2, None, True)
    assert set(would.ids) == set(gone)
    assert memory.stats().items == 4
    assert memory.receipts() == ()
    deletion = memory.forget(scope="own", **given)
    assert set(deletion.ids) == set(gone)
    assert deletion.spaces == (own(memory).ref,)
    assert {item.id for item in memory.list()} == {stays, shared}
    assert memory.forget(scope="own", **given).memories == 0
    assert memory.forget(scope="p", sessions="s").memories == 1
    assert memory.verify(deletion)


@pytest.mark.parametrize(
    "call",
    [
        {"tags": None}, {"tags": []}, {"tags": ()}, {"tags": ""}, {"tags": [""]}, {"tags": [None]},
        {"tags": iter(())}, {"tags": {}}, {"speakers": []}, {"sessions": None}, {"kinds": []},
        {"kinds": None}, {"metadata": {}}, {"metadata": None}, {"since": None}, {"until": None},
        {"since": ""}, {"tags": "keep", "speakers": []}, {"tags": [], "speakers": "Ada"},
        {"tags": "keep", "metadata": {}}, {"tags": "keep", "since": None}, {"filter": None},
        {"tags": " "}, {"tags": "keep", "scope": None}, {"tags": "keep", "scope": ""},
        {"tags": "keep", "scope": "unknown"}, {"tags": "keep", "scope": "*"},
        {"tags": "keep", "ids": "x"}, {"tags": "keep", "everything": True},
        {"tags": "keep", "dry_run": None}, {"tags": "keep", "project": "p"}, {"scope": "own"},
        {"scope": "p"}, {"dry_run": True}, {"ids": [], "dry_run": True}, {"tags": 5},
        {"everything": True, "scope": "own"}, {"confirm": "x"},
    ],
    ids=same_id,
)  # fmt: skip
def test_a_selector_that_says_nothing_is_refused(memory: Memory, call: dict[str, Any]) -> None:
    memory.remember(["untagged one", "untagged two"])
    memory.remember("tagged", tags=["keep"], speaker="Ada")
    memory.remember("shared", tags=["keep"], project="p")
    given = {"scope": "own", **call} if "scope" not in call and len(call) else call
    for arguments in (call, given):
        with pytest.raises((InputError, TypeError)):
            memory.forget(**arguments)
    assert memory.stats().items == 4
    assert memory.receipts() == ()


def test_own_is_not_taken_for_a_project(path: Path) -> None:
    with Memory.open(path, projects=["own"], embedder="hashing:64") as memory:
        memory.remember("one", tags=["t"])
        with pytest.raises(InputError, match="project of that name"):
            memory.forget(tags="t", scope="own")


# Everything


def test_everything_needs_to_be_confirmed(memory: Memory, path: Path) -> None:
    memory.remember(["one", "two"])
    memory.remember("shared", project="p")
    would = memory.forget(everything=True, dry_run=True)
    assert (would.memories, would.everything, would.id) == (2, True, None)
    with pytest.raises(ConfirmationNeededError, match="2 memories") as asked:
        memory.forget(everything=True, now="2026-05-01T12:00Z")
    assert asked.value.count == 2
    token = asked.value.token
    wrong: Sequence[dict[str, Any]] = (
        {"confirm": ""}, {"confirm": "yes"}, {"confirm": token[:-1]}, {"confirm": f"f{token}"},
        {"confirm": token, "project": "p", "now": "2026-05-01T12:05Z"},
        {"confirm": token, "now": "2026-05-01T12:11Z"},  # too late
        {"confirm": token, "now": "2026-05-01T11:00Z"},
    )  # fmt: skip
    for arguments in wrong:
        with pytest.raises(ConfirmationNeededError, match="another space, number, or too old"):
            memory.forget(everything=True, **arguments)
    with Memory.open(path, user="bo", embedder="hashing:64") as other:
        other.remember("another's")
        with pytest.raises(ConfirmationNeededError):
            other.forget(everything=True, confirm=token, now="2026-05-01T12:05Z")
    memory.remember("a third, added since")
    with pytest.raises(ConfirmationNeededError, match="3 memories") as again:
        memory.forget(everything=True, confirm=token, now="2026-05-01T12:08Z")
    token = again.value.token
    with Memory.open(path, embedder="hashing:64") as another_process:
        gone = another_process.forget(everything=True, confirm=token, now="2026-05-01T12:09Z")
    assert (gone.memories, gone.everything, gone.scrubbed) == (3, True, "scrubbed")
    assert [item.content for item in memory.list()] == ["shared"]
    with pytest.raises(ConfirmationNeededError):  # the space that took its place is another
        memory.forget(everything=True, confirm=token, now="2026-05-01T12:09Z")
    assert memory.verify(gone)


def test_everything_takes_all_that_was_derived(memory: Memory, path: Path) -> None:
    everything_told(memory)
    would = memory.forget(everything=True, dry_run=True)
    assert (would.memories, would.derived, would.cues) == (3, 11, 3)
    assert would.recalls >= 4
    gone = forget_all(memory)
    assert (gone.memories, gone.derived, gone.cues, gone.recalls) == (
        would.memories, would.derived, would.cues, would.recalls,
    )  # fmt: skip
    assert memory.verify(gone)
    assert found(path.parent) == {}
    assert memory.check() == []


# e-07: the same content elsewhere


def test_the_same_sentence_of_another_is_not_touched(path: Path) -> None:
    text = "Same sentence everywhere, xylophone."

    def opened(user: str) -> Memory:
        return Memory.open(path, user=user, embedder="hashing:64")

    with opened("u1") as one, opened("u2") as other:
        own_id, kept = one.remember(text).id, other.remember(text).id
        derive(one, text, [(own_id, 1)], subject="Ada")
        fact = derive(other, text, [(kept, 1)], subject="Ada")
        other.feedback(other.recall("xylophone"), used=[kept])
        links = other.links(kept)
        forget_all(one)
        for profile in ("lexical", "dense", "cofire"):
            assert other.recall("xylophone", profile=profile).ids == (kept,)
        assert [record.id for record in other.recall("xylophone").semantic] == [fact]
        assert other.links(kept) == links
        again = one.remember(text).id
        assert one.recall("xylophone").ids == (again,)
        assert other.check() == one.check() == []


# j-03: deleting what consolidation is working on


def test_consolidation_that_meets_a_deletion_derives_nothing_from_it(memory: Memory) -> None:
    gone, kept = memory.remember(["I live in Zanzibar.", "I like tea."], speaker="Bo").ids
    told: list[str] = []

    def forget_midway(step: Any) -> None:
        told.append(step.name)
        if len(told) == 1:
            memory.forget(gone)

    memory.consolidate(told=forget_midway)
    assert len(told) > 3
    assert all(report.steps and not report.failed for report in memory.reports())
    rest = {quote.id for record in memory.records() for quote in record.evidence}
    assert rest <= {kept}
    assert "Zanzibar" not in str([*memory.records(), *memory.quarantine(), *memory.shapes()])
    assert memory.check() == []
    assert gone not in memory.recall("Zanzibar").ids


def test_a_night_clears_a_large_file(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cofire.store.sqlite_erasing.REBUILT_AT_ONCE", 0)
    receipt = memory.forget(memory.remember([TURN, "another"]).ids[0])
    assert receipt.scrubbed == "pending"
    memory.consolidate()
    assert memory.verify(receipt)


# Questions that were asked of several spaces at once


def test_what_a_project_keeps_of_a_telling_question_goes(memory: Memory, path: Path) -> None:
    id = memory.remember("The gate code is xylophone.").id
    shared = memory.remember("The gate is green.", project="p").id
    for question in ("xylophone gate", "green gate"):
        recall = memory.recall(question, 5)
        assert set(recall.ids) == {id, shared}
        memory.feedback(recall, used=[shared])
    assert len(memory.list(kinds="cue")) == 2
    deletion = memory.forget(id)
    assert {str(space) for space in deletion.spaces} == {"default/default", "default/project:p"}
    assert (deletion.memories, deletion.cues, deletion.recalls) == (1, 1, 3)
    assert [item.content for item in memory.list(kinds="cue")] == ["green gate"]
    assert memory.check() == []
    assert memory.verify(deletion)
    memory.close()
    assert found(path.parent) == {}


def test_what_projects_keep_of_a_users_questions_goes_with_the_user(path: Path) -> None:
    with Memory.open(path, user="u", projects=["p"], embedder="hashing:64") as memory:
        memory.remember("My locker is by the gate.")
        shared = memory.remember("The gate is green.", project="p").id
        assert len(memory.recall("xylophone gate", 5)) == 2
    with Memory.open(path, user="v", projects=["p"], embedder="hashing:64") as other:
        theirs = other.recall("green gate", 5)
    assert "xylophone" in str(found(path.parent))
    with Memory.open(path, user="u", embedder="hashing:64") as memory:
        forget_all(memory)
    assert found(path.parent) == {}
    with Memory.open(path, user="v", projects=["p"], embedder="hashing:64") as other:
        assert other.feedback(theirs, used=[shared]).counted
        assert other.check() == []
