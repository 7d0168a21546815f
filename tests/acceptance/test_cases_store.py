"""Kinds a, i (in one process) of the case bank, and e-01, h-06, h-07, j-02 as far as they apply:
nothing is lost, nothing is deleted by leaving something out, nothing dangles."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofire import Memory
from cofire.errors import (
    CofireError,
    FormatError,
    InputError,
    KeyConflictError,
    NotFoundError,
    StoreError,
)
from cofire.types import LinkType, Message
from confirming import forget_all
from fakes import FailingEmbedder, StubEmbedder

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory.open(path, embedder="hashing:64") as memory:
        yield memory


def texts(memory: Memory) -> list[str]:
    return [item.content for item in memory.list(limit=10_000, newest_first=False)]


def together(*calls: Callable[[], object]) -> None:
    """Run calls at the same time; the first exception of any is raised."""
    errors: list[BaseException] = []
    ready = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        ready.wait()
        try:
            call()
        except BaseException as exc:  # noqa: BLE001 - handed to the test
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# a-03 (its single-process part): several handles, several threads, one file


def test_two_handles_see_each_others_writes_at_once(path: Path) -> None:
    with (
        Memory.open(path, embedder="hashing:64") as one,
        Memory.open(path, embedder="hashing:64") as other,
    ):
        for index in range(20):
            for name, writer, reader in (("a", one, other), ("b", other, one)):
                text = f"proc {name} item {index}"
                id = writer.remember(text).id
                assert reader.recall(text, 1).ids == (id,)
                assert reader.get(id).content == text
        assert one.stats().items == other.stats().items == 40
        gone = one.list().items[0].id
        assert other.forget(gone).memories == 1
        assert gone not in one.recall("proc a item", k=100).ids
        with pytest.raises(NotFoundError):
            one.get(gone)


def test_many_threads_lose_nothing(memory: Memory) -> None:
    def write(name: int) -> None:
        for index in range(25):
            memory.remember(f"thread {name} item {index}", session=f"s{name}")
            memory.recall(f"item {index}", k=3)

    together(*(lambda name=name: write(name) for name in range(6)))
    assert len(set(texts(memory))) == memory.stats().items == 150
    # Each session is one unbroken chain.
    assert memory.stats().links == 6 * 24
    assert memory.check() == []


def test_changes_of_different_fields_at_once_all_survive(path: Path) -> None:
    with (
        Memory.open(path, embedder="hashing:64") as one,
        Memory.open(path, embedder="hashing:64") as other,
    ):
        id = one.remember("Robin parks on level 2").id
        together(
            lambda: [one.update(id, title=f"title {index}") for index in range(20)],
            lambda: [other.update(id, tags=[f"tag {index}"]) for index in range(20)],
            lambda: [one.update(id, content=f"on level {index}") for index in range(20)],
        )
        item = one.get(id)
        assert (item.title, item.tags, item.content) == (
            "title 19", ("tag 19",), "on level 19"
        )  # fmt: skip
        assert item.version == len(one.history(id)) + 1
        assert one.check() == []


# a-04: every message exactly once, in order


@pytest.mark.parametrize("size", [1, 2, 7, 999, 1000, 1001, 2500])
def test_every_message_is_there_once_and_in_order(memory: Memory, size: int) -> None:
    wanted = [f"fact number {index}" for index in range(size)]
    told: list[tuple[int, int | None]] = []
    receipt = memory.remember(
        ({"content": text, "role": "user"} for text in wanted),
        session="s",
        progress=lambda done, total: told.append((done, total)),
    )
    assert texts(memory) == wanted
    assert [memory.get(id).content for id in receipt.ids[:: max(1, size // 7)]] == (
        wanted[:: max(1, size // 7)]
    )
    assert told[-1][0] == size
    assert memory.stats().links == size - 1


def test_memories_of_the_same_moment_keep_their_order(memory: Memory) -> None:
    wanted = [f"turn {index}" for index in range(50)]
    for text in wanted[:10]:
        memory.remember(text, time="2024-01-01")
    memory.remember(wanted[10:], time="2024-01-01")
    assert texts(memory) == wanted
    seen: list[str] = []
    page = memory.list(limit=7)
    while True:
        seen += [item.content for item in page]
        if page.next is None:
            break
        page = memory.list(limit=7, after=page.next)
    assert seen == wanted[::-1]


# a-05: nothing is deleted by leaving something out


@pytest.mark.parametrize(
    "call",
    [
        {}, {"ids": None}, {"ids": []}, {"ids": ()}, {"ids": ""}, {"ids": [""]}, {"ids": [None]},
        {"ids": {}}, {"ids": 0}, {"ids": 5}, {"ids": "*"}, {"ids": "all"}, {"ids": ["%"]},
        {"ids": None, "everything": False}, {"everything": None}, {"everything": "yes"},
        {"everything": 1}, {"ids": [], "everything": True}, {"ids": "x", "everything": True},
        {"project": "p"}, {"everything": True, "project": "unknown"},
        {"everything": True, "project": ""}, {"ids": NOWHERE}, {"everything": True},
        {"everything": True, "confirm": ""}, {"everything": True, "confirm": "yes"},
        {"tags": []}, {"tags": None}, {"tags": {}}, {"filter": None}, {"tags": "keep"},
        {"tags": [], "scope": "own"}, {"tags": None, "scope": "own"}, {"scope": "own"},
    ],
    ids=str,
)  # fmt: skip
def test_forgetting_without_saying_what_is_refused(path: Path, call: dict[str, Any]) -> None:
    with Memory.open(path, projects=["p"], embedder="hashing:64") as memory:
        memory.remember(["untagged one", "untagged two"])
        memory.remember("tagged", tags=["keep"])
        memory.remember("shared", project="p")
        with pytest.raises((InputError, NotFoundError)):
            memory.forget(**call)
        assert memory.stats().items == 4


def test_forgetting_several_is_all_or_nothing(memory: Memory) -> None:
    ids = memory.remember(["one", "two", "three"]).ids
    with pytest.raises(NotFoundError, match=NOWHERE):
        memory.forget([ids[0], NOWHERE])
    assert len(texts(memory)) == 3
    assert memory.forget([ids[0], ids[0], ids[1]]).memories == 2
    assert texts(memory) == ["three"]
    with pytest.raises(NotFoundError):
        memory.forget(ids[0])


def test_what_is_forgotten_is_gone_from_everywhere(memory: Memory, path: Path) -> None:
    word = "xyzzyplugh"
    id = memory.remember(f"the word is {word}", title=word, tags=[word], session="s").id
    memory.remember("next in the session", session="s")
    memory.update(id, content=f"the word was {word} before")
    memory.recall(word, profile="lexical")  # the question goes with the only memory it found
    memory.forget(id)
    memory.close()
    for file in path.parent.iterdir():
        assert word.encode() not in file.read_bytes(), file.name
    with Memory.open(path, embedder="hashing:64") as again:
        assert again.recall(word, profile="lexical").ids == ()
        assert (again.stats().links, again.check()) == (0, [])
        for get in (again.get, again.history, again.links):
            with pytest.raises(NotFoundError):
                get(id)


# e-01: one user's memories


def test_forgetting_one_user_leaves_every_other(path: Path) -> None:
    owners: list[dict[str, Any]] = [
        {"tenant": "t1", "user": "u1"}, {"tenant": "t1", "user": "u2"},
        {"tenant": "t2", "user": "u1"}, {"tenant": "t1", "user": None},
        {"tenant": "t1", "user": "u1", "identity": "other agent"},
    ]  # fmt: skip
    for owner in owners:
        with Memory.open(path, projects=["p"], embedder="hashing:64", **owner) as memory:
            memory.remember([f"fact of {owner}", f"second fact of {owner}"])
            memory.remember(f"shared fact of {owner}", project="p")
            assert len(memory.recall("fact")) >= 3
    with Memory.open(path, projects=["p"], embedder="hashing:64", **owners[0]) as memory:
        assert forget_all(memory).memories == 2
        assert all("shared" in hit.content for hit in memory.recall("fact"))
        assert memory.check() == []
        again = memory.remember("a new fact").id
        assert again in memory.recall("new fact").ids
    for owner in owners[1:]:
        with Memory.open(path, embedder="hashing:64", **owner) as memory:
            for profile in ("lexical", "dense", "cofire"):
                found = {hit.content for hit in memory.recall("fact", profile=profile)}
                assert found == {f"fact of {owner}", f"second fact of {owner}"}
            assert memory.check() == []


def test_a_space_forgotten_elsewhere_is_simply_empty(path: Path) -> None:
    with (
        Memory.open(path, projects=["p"], embedder="hashing:64") as one,
        Memory.open(path, projects=["p"], embedder="hashing:64") as other,
    ):
        id = one.remember("fact").id
        one.remember("shared fact", project="p")
        assert len(other.recall("fact")) == 2
        forget_all(one)
        assert [hit.content for hit in other.recall("fact")] == ["shared fact"]
        for get in (other.get, other.history, other.links, other.forget):
            with pytest.raises(NotFoundError):
                get(id)
        forget_all(one, "p")
        assert (other.stats().items, len(other.list())) == (0, 0)
        new = other.remember("new fact").id
        assert one.get(new).content == "new fact"
        assert one.recall("fact").ids == (new,)
        forget_all(one)
        later = one.remember("later fact").id
        assert [item.id for item in other.list()] == [later]
        forget_all(one)
        assert other.remember("x" for _ in range(1500)).created == (True,) * 1500
        assert forget_all(one).memories == 1500
        assert forget_all(other).memories == 0
        assert other.check() == one.check() == []


def test_spaces_never_leak(path: Path) -> None:
    with (
        Memory.open(path, user="ada", projects=["p"], embedder="hashing:64") as ada,
        Memory.open(path, user="bo", projects=["q"], embedder="hashing:64") as bo,
    ):
        mine = ada.remember("secret of ada").id
        shared = ada.remember("shared on p", project="p").id
        bo.remember("bo knows nothing")
        for id in (mine, shared):
            assert id not in bo.recall("secret shared p", k=100).ids
            assert id not in [item.id for item in bo.list()]
            verbs: tuple[Callable[[str], object], ...] = (
                bo.get, bo.update, bo.forget, bo.history, bo.links
            )  # fmt: skip
            for verb in verbs:
                with pytest.raises(NotFoundError):
                    verb(id)
        with pytest.raises(InputError, match="not opened with the project 'p'"):
            bo.remember("x", project="p")
        assert ada.stats().items == 2


# Keys


def test_a_key_makes_repetition_harmless(memory: Memory) -> None:
    id = memory.remember("I like oolong", key="k1").id
    again = memory.remember("I like oolong", key="k1", title="ignored")
    assert (again.id, again.created) == (id, (False,))
    with pytest.raises(KeyConflictError):
        memory.remember("I like sencha", key="k1")
    with pytest.raises(KeyConflictError):
        memory.remember([{"content": "fine", "key": "k2"}, {"content": "other", "key": "k1"}])
    batch = memory.remember([Message(content="same", key="k3"), Message(content="same", key="k3")])
    assert (batch.ids[0], batch.created) == (batch.ids[1], (True, False))
    assert len(memory.remember([{"content": "a", "key": ""}, {"content": "b", "key": ""}]).ids) == 2
    with pytest.raises(InputError, match="one key"):
        memory.remember(["a", "b"], key="k4")
    assert texts(memory) == ["I like oolong", "same", "a", "b"]


def test_the_same_key_at_once_is_one_memory(path: Path) -> None:
    handles = [Memory.open(path, embedder="hashing:64") for _ in range(4)]
    ids: list[str] = []
    calls = [
        lambda handle=handle: ids.append(handle.remember("I like oolong", key="k1").id)
        for handle in handles * 2
    ]
    together(*calls)
    assert len(set(ids)) == 1
    assert handles[0].stats().items == 1
    for handle in handles:
        handle.close()


# j-02: links


@pytest.mark.parametrize(
    "end", ["no-such-id", NOWHERE, "foreign", "", "0190163d-8694-739b-aea5-966c26f8ad91"]
)
def test_a_link_to_what_is_not_here_is_refused_alike(path: Path, end: str) -> None:
    with Memory.open(path, tenant="t2", embedder="hashing:64") as other:
        foreign = other.remember("boat of somebody else").id
    target = foreign if end == "foreign" else end
    with Memory.open(path, tenant="t1", projects=["p"], embedder="hashing:64") as memory:
        boat = memory.remember("boat").id
        for source, to in ((boat, target), (target, boat)):
            with pytest.raises(NotFoundError) as caught:
                memory.link(source, to)
            # The text is the same whether it is nobody's or somebody else's.
            wanted = f"there is no memory {target} here; `list` shows what there is"
            assert str(caught.value) == wanted
        elsewhere = memory.remember("in another space", project="p").id
        with pytest.raises(NotFoundError):
            memory.link(boat, elsewhere)
        assert memory.links(boat) == ()
        assert (memory.stats().links, memory.check()) == (0, [])


def test_links_are_checked_and_go_with_their_ends(memory: Memory) -> None:
    boat, dock, crew = memory.remember(["boat", "dock", "crew"]).ids
    made = memory.link(boat, dock, LinkType.SUPPORTS, strength=0.9)
    assert memory.links(boat) == memory.links(dock) == (made,)
    for wrong in ({"strength": 1.1}, {"strength": -0.1}, {"strength": float("nan")},
                  {"strength": "x"}, {"strength": True}, {"type": "likes"}):  # fmt: skip
        with pytest.raises(InputError):
            memory.link(boat, crew, **wrong)
    for source, target in ((boat, dock), (boat, boat)):
        with pytest.raises(InputError):
            memory.link(source, target)
    memory.link(dock, boat, "contradicts")
    memory.forget(dock)
    assert (memory.links(boat), memory.check()) == ((), [])


# h-06, h-07: imports


def test_a_file_with_every_fault_of_its_kind(memory: Memory, tmp_path: Path) -> None:
    lines = [
        b"\xef\xbb\xbf" + json.dumps({"content": "first after the mark"}).encode(),
        b'{"content":"lone \\ud83d here"}', b'{"content":"nul\\u0000byte"}', b"",
        b'{"content":"cut off in the mid', b'{"content":"line \xe2\x80\xa8 inside"}',
        b'{"content":"two"}{"content":"glued"}', b"[1,2]", b'{"content":"  "}',
        b'{"content":"bad tag","tags":["x","\\u0000"]}',
        b'{"content":"last without newline"}',
    ]  # fmt: skip
    path = tmp_path / "messages.jsonl"
    path.write_bytes(b"\r\n".join(lines))
    report = memory.import_(path)
    wanted = [
        "first after the mark", "lone � here", "nulbyte", "line \u2028 inside", "two", "glued",
        "last without newline",
    ]  # fmt: skip
    assert texts(memory) == wanted
    assert (report.imported, report.dropped, report.skipped) == (len(wanted), 3, 1)
    assert any("line 5" in str(problem) for problem in report.problems)
    again = memory.import_(path)
    assert (again.imported, again.known, len(texts(memory))) == (0, len(wanted), len(wanted))
    latin = tmp_path / "latin1.jsonl"
    latin.write_bytes(b'{"content":"fine"}\n{"content":"caf\xe9"}\n')
    with pytest.raises(FormatError, match="byte"):
        memory.import_(latin)
    assert len(texts(memory)) == len(wanted)
    assert memory.check() == []


def test_an_import_broken_off_goes_on(memory: Memory, tmp_path: Path) -> None:
    class StopHereError(Exception):
        pass

    def stop(done: int, _: int | None) -> None:
        if done >= 2000:
            raise StopHereError

    path = tmp_path / "many.jsonl"
    with path.open("w") as file:
        for index in range(3500):
            file.write(json.dumps({"content": f"line {index}", "session": "s"}) + "\n")
    with pytest.raises(StopHereError):
        memory.import_(path, progress=stop)
    assert memory.stats().items == 2000
    report = memory.import_(path)
    assert (report.imported, report.known) == (1500, 2000)
    assert texts(memory) == [f"line {index}" for index in range(3500)]
    assert memory.import_(path).imported == 0


# i-03: a failing or empty read leaves nothing open


def test_empty_and_failing_recalls_leave_nothing_open(path: Path) -> None:
    embedder = FailingEmbedder()
    with Memory.open(path, embedder=embedder) as memory:
        together(*(lambda: memory.recall("nothing matches this") for _ in range(12)))
        for _ in range(20):
            assert memory.recall("x").ids == ()
        for wrong in ({"k": 0}, {"k": True}, {"k": "5"}, {"k": 1.5}, {"token_budget": 0},
                      {"token_budget": "5"}, {"profile": "none"}, {"now": "?"}):  # fmt: skip
            with pytest.raises(InputError):
                memory.recall("x", **wrong)
        with pytest.raises(InputError, match="question must be text"):
            memory.recall(b"x")  # type: ignore[arg-type]
        with Memory.open(path, embedder=embedder) as other:  # nobody holds the file
            other.remember("x")
        assert len(memory.recall("x")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"identity": ""}, {"identity": " "}, {"identity": "\0"}, {"identity": 5}, {"user": ""},
        {"user": 5}, {"tenant": ""}, {"tenant": 5}, {"projects": [""]}, {"projects": [5]},
        {"embedder": "no such"},
    ],
    ids=str,
)  # fmt: skip
def test_names_of_nobody_are_refused(path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(CofireError):
        Memory.open(path, **{"embedder": "hashing:64", **wrong})


def test_hostile_names_are_names(path: Path) -> None:
    for name in ("a/b", "../x", "%", "a'b", "\ud83d", "日本", "project:p", "x" * 500):
        with Memory.open(path, name, name, [name], tenant=name, embedder="hashing:64") as memory:
            memory.remember(f"own of {len(name)}")
            memory.remember("shared", project=name)
            assert memory.stats().items == 2
            assert memory.check() == []
    with Memory.open(path, projects="work", embedder="hashing:64") as memory:
        assert memory.remember("one project", project="work").created == (True,)


def test_after_closing_everything_says_so(memory: Memory) -> None:
    id = memory.remember("x").id
    memory.close()
    memory.close()
    calls: list[Callable[[], object]] = [
        lambda: memory.remember("x"), lambda: memory.recall("x"), lambda: memory.get(id),
        memory.list, lambda: memory.forget(id), lambda: memory.update(id, title="t"),
        memory.stats, memory.check, memory.reembed,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(StoreError, match="closed"):
            call()


def test_a_backup_brings_everything_back(memory: Memory, tmp_path: Path) -> None:
    id = memory.remember("before", tags=["t"]).id
    memory.recall("before")
    memory.backup(tmp_path / "b.db")
    memory.update(id, content="after")
    memory.remember("later")
    memory.recall("later")
    memory.restore(tmp_path / "b.db")
    assert texts(memory) == ["before"]
    assert memory.recall("before", profile="lexical").ids == (id,)
    assert memory.recall("later after", profile="lexical").ids == ()
    assert memory.check() == []


def test_redaction_comes_before_everything(path: Path) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[password]")

    with Memory.open(path, embedder="hashing:64", redact=redact) as memory:
        id = memory.remember(
            "my password is hunter2", title="hunter2", speaker="hunter2", tags=["hunter2"],
            session="hunter2", metadata={"a": ["hunter2", {"b": "hunter2"}]},
        ).id  # fmt: skip
        memory.update(id, content="still hunter2")
        memory.recall("hunter2")
        assert memory.get(id).content == "still [password]"
        memory.export(path.parent / "out.jsonl")
    for file in path.parent.iterdir():
        assert b"hunter2" not in file.read_bytes(), file.name


def test_redaction_holds_for_what_an_export_brings(path: Path, tmp_path: Path) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[password]")

    long = "They met at the harbour and spoke of boats. " * 40
    with Memory.open(path, embedder="hashing:64") as memory:
        ids = memory.remember(
            [
                {"content": "my password is hunter2", "key": "hunter2 is an identifier here"},
                {"content": "a title", "title": "hunter2", "speaker": "hunter2"},
                {"content": "tags", "tags": ["hunter2", "t"], "session": "hunter2"},
                {"content": "data", "metadata": {"hunter2": {"hunter2": ["hunter2", 1]}}},
                {"content": f"{long}hunter2. {long}", "session": "s"},
                {"content": f"{long}{long}", "title": "hunter2", "session": "s"},
                {"content": "it was hunter2", "title": "hunter2"},
                {"content": "nothing to hide", "title": "plain", "tags": ["t"], "key": "k"},
            ],
            time="2026-03-10",
        ).ids
        memory.update(ids[6], content="it is gone", title="now")
        memory.link(ids[0], ids[7], strength=0.25)
        memory.recall("where is hunter2?")
        memory.export(tmp_path / "all.jsonl")
        before = {item.id: item for item in memory.list()}
    other = tmp_path / "other" / "m.db"
    with Memory.open(other, embedder="hashing:64", redact=redact) as memory:
        report = memory.import_(tmp_path / "all.jsonl")
        assert (report.read, report.imported, report.dropped) == (8, 8, 0)
        assert {item.id for item in memory.list()} == set(ids)
        items = [memory.get(id) for id in ids]
        assert items[0].content == "my password is [password]"
        assert (items[1].title, items[1].speaker) == ("[password]", "[password]")
        assert (items[2].tags, items[2].session) == (("[password]", "t"), "[password]")
        # Keys and the names of metadata are identifiers; they are left alone.
        assert items[0].key == "hunter2 is an identifier here"
        assert items[3].metadata == {"hunter2": {"hunter2": ["[password]", 1]}}
        assert "[password]" in items[4].content
        assert (items[6].content, items[6].version) == ("it is gone", 2)
        (former,) = memory.history(ids[6])
        assert (former.content, former.title) == ("it was [password]", "[password]")
        for item in items:
            was = before[item.id]
            assert (item.time, item.recorded, item.updated, item.embedded, item.kind) == (
                was.time, was.recorded, was.updated, True, was.kind
            )  # fmt: skip
        assert items[7] == replace(before[ids[7]], number=items[7].number)
        assert [link.strength for link in memory.links(ids[0])] == [0.25]
        found = memory.recall("which password", profile="lexical", k=20).ids
        assert set(found) == {ids[0], ids[1], ids[4], ids[5]}
        assert memory.recall("tags", tags="hunter2").ids == ()
        assert memory.recall("tags", tags="[password]").ids == (ids[2],)
        assert memory.stats().spaces[0].pending == 0
        assert memory.check() == []
        memory.export(tmp_path / "other" / "again.jsonl")
    plain = (tmp_path / "other" / "again.jsonl").read_text()
    allowed = ('"key":"hunter2 is an identifier here"', '"hunter2":')
    for mark in allowed:
        plain = plain.replace(mark, "")
    assert "hunter2" not in plain


def test_redaction_leaves_an_export_without_secrets_as_it_was(path: Path, tmp_path: Path) -> None:
    embedder = StubEmbedder()
    with Memory.open(path, embedder=embedder) as memory:
        memory.remember(["one", "two " * 300], session="s", tags=["t"])
        memory.export(tmp_path / "all.jsonl")
    wanted = (tmp_path / "all.jsonl").read_text().splitlines()[1:-1]
    for redact in (None, lambda text: text.replace("hunter2", "")):
        other = StubEmbedder()
        store = tmp_path / f"{redact is None}.db"
        with Memory.open(store, embedder=other, redact=redact) as memory:
            memory.import_(tmp_path / "all.jsonl")
            assert other.calls == []  # the vectors are taken over
            memory.export(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_text().splitlines()[1:-1] == wanted


def test_an_export_of_which_redaction_leaves_nothing(path: Path, tmp_path: Path) -> None:
    with Memory.open(path, embedder="hashing:64") as memory:
        one, two = memory.remember(["hunter2", "keep me"], session="s").ids
        memory.export(tmp_path / "all.jsonl")
    with Memory.open(
        tmp_path / "o.db", embedder="hashing:64", redact=lambda text: text.replace("hunter2", "")
    ) as memory:
        report = memory.import_(tmp_path / "all.jsonl")
        assert (report.imported, report.dropped) == (1, 1)
        assert one in str(report.problems[0])
        assert [item.id for item in memory.list()] == [two]
        assert memory.check() == []
