"""Case i-08 and its kind: a folder of notes imported again and again, whatever became of it."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cofire_process import Cofire

from cofire import Memory
from cofire.errors import InputError, NotFoundError
from cofire.interchange import ImportReport
from cofire.interchange.report import Action
from cofire.types import Item
from confirming import forget_all

NOTES = {
    "Home.md": "---\ntitle: Home\ntags: [index, test]\ncreated: 2024-02-30\n---\n# Home\n\nSee.\n",
    "Projects/Plan.md": '---\ntitle: "Plan: phase 1\ntags: index\n---\n# Plan\n\nBudget is 400.\n',
    "Archive/Plan.md": "# Plan\n\nBudget was 300 (old).\n",
    "日本語メモ.md": "# 日本語メモ\n\n今日は図書館で勉強した。\n",
    "notes/עברית.md": "# עברית\n\nהפגישה ב-10:30 (room B-12).\n",
    "Empty.md": "",
    "Only Front Matter.md": "---\ntags: []\n---\n",
    ".obsidian/workspace.md": "settings",
    ".trash/Old.md": "# deleted note that must not be imported",
}


def write(root: Path, notes: dict[str, str]) -> Path:
    for name, text in notes.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """The vault of the case bank, as far as it matters here."""
    return write(tmp_path / "files" / "vault", NOTES)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        yield memory
        assert memory.check() == []


def by_path(memory: Memory) -> dict[str, Item]:
    return {str(item.metadata["path"]): item for item in memory.list(limit=1_000)}


def counted(report: ImportReport) -> tuple[int, int, int]:
    """New, updated, known."""
    assert report.read == (
        report.imported + report.updated + report.known + report.skipped + report.dropped
    )
    return report.imported, report.updated, report.known


def test_five_notes_after_every_run(memory: Memory, vault: Path) -> None:
    first = memory.import_(vault)
    assert (counted(first), first.skipped) == ((5, 0, 0), 2)
    before = by_path(memory)
    windows = memory.import_(str(vault).replace("/", "\\"))
    assert counted(windows) == (0, 0, 5)

    (vault / "Archive" / "2023").mkdir()
    (vault / "Archive/Plan.md").rename(vault / "Archive/2023/Plan.md")
    (vault / "Home.md").rename(vault / "home.md")
    moved = memory.import_(vault)
    assert counted(moved) == (0, 2, 3)
    after = by_path(memory)
    assert after["Archive/2023/Plan.md"].id == before["Archive/Plan.md"].id
    assert after["Archive/2023/Plan.md"].key == "document:archive/2023/plan.md"
    assert after["home.md"].id == before["Home.md"].id
    assert sorted(item.content for item in after.values()) == sorted(
        item.content for item in before.values()
    )
    assert all(item.version == 1 for item in after.values())  # no text was replaced
    assert counted(memory.import_(vault)) == (0, 0, 5)
    assert memory.stats().items == 5


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "..", "../other/x.md"])
def test_a_path_outside_the_folder_is_refused(
    memory: Memory, vault: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(vault.parent, {"other/x.md": "outside"})
    monkeypatch.chdir(vault)
    for outside in (path, path.replace("/", "\\")):
        with pytest.raises(InputError, match="outside the chosen folder"):
            memory.import_(outside, root=vault, format="text")
    with pytest.raises(NotFoundError):
        memory.import_("CON.md", root=vault)
    with pytest.raises(InputError, match="name a folder"):
        memory.import_("Home.md", root=vault / "Home.md")
    assert memory.stats().items == 0


def test_links_out_of_the_folder_are_refused(memory: Memory, vault: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere", {"secret.md": "secret"})
    (vault / "link.md").symlink_to(secret / "secret.md")
    (vault / "folder").symlink_to(secret, target_is_directory=True)
    (vault / "itself").symlink_to(vault, target_is_directory=True)
    report = memory.import_(vault)
    assert (counted(report), report.dropped) == ((5, 0, 0), 2)
    assert all("outside" in reason for reason in report.reasons(Action.DROPPED))
    for way in ("link.md", "folder/secret.md", "folder"):
        with pytest.raises(InputError, match="outside the chosen folder"):
            memory.import_(vault / way, root=vault)


def test_an_edited_document_updates_its_memory(memory: Memory, vault: Path) -> None:
    memory.import_(vault)
    id = by_path(memory)["Archive/Plan.md"].id
    time = memory.get(id).time
    memory.update(id, importance=9, metadata={**memory.get(id).metadata, "mine": 1})
    write(vault, {"Archive/Plan.md": "# Plan\n\nBudget is 500.\n"})
    assert counted(memory.import_(vault)) == (0, 1, 4)
    item = memory.get(id)
    assert (item.content, item.version) == ("# Plan\n\nBudget is 500.\n", 2)
    assert (item.importance, item.metadata["mine"], item.time) == (9, 1, time)
    assert [version.content for version in memory.history(id)] == [NOTES["Archive/Plan.md"]]
    assert memory.recall("Budget 500", profile="lexical", k=1).ids == (id,)
    assert memory.recall("old", profile="lexical").ids == ()

    write(vault, {"Archive/Plan.md": "---\ntags: money\ndate: 2025-01-02\n---\n" + item.content})
    assert counted(memory.import_(vault)) == (0, 1, 4)  # its front matter alone
    item = memory.get(id)
    assert (item.tags, item.time.year, item.version) == (("money",), 2025, 2)
    write(vault, {"Archive/Plan.md": " \n"})
    assert counted(memory.import_(vault)) == (0, 0, 4)  # empty: its memory stays
    assert memory.get(id).content == item.content


def test_what_was_changed_in_memory_stays_until_the_file_changes(
    memory: Memory, vault: Path
) -> None:
    memory.import_(vault)
    id = by_path(memory)["Archive/Plan.md"].id
    memory.update(id, content="Budget was 301.", title="Mine", tags=["mine"])
    assert counted(memory.import_(vault)) == (0, 0, 5)
    (vault / "Archive/Plan.md").rename(vault / "Old plan.md")
    assert counted(memory.import_(vault)) == (0, 1, 4)
    item = by_path(memory)["Old plan.md"]
    assert (item.id, item.content, item.title, item.tags) == (
        id, "Budget was 301.", "Mine", ("mine",)
    )  # fmt: skip


def test_a_title_that_is_the_files_name_follows_it(memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "n", {"ferry.txt": "Ferry at nine."})
    memory.import_(root)
    (root / "ferry.txt").rename(root / "boat.txt")
    assert counted(memory.import_(root)) == (0, 1, 0)
    (item,) = memory.list()
    assert (item.title, item.metadata["path"]) == ("boat", "boat.txt")
    assert memory.recall("boat", profile="lexical").ids == (item.id,)


def test_a_copy_is_a_memory_of_its_own(memory: Memory, vault: Path) -> None:
    memory.import_(vault)
    shutil.copy(vault / "Archive/Plan.md", vault / "Plan copy.md")
    assert counted(memory.import_(vault)) == (1, 0, 5)
    found = by_path(memory)
    assert found["Plan copy.md"].id != found["Archive/Plan.md"].id
    # Both move at once: each stays itself.
    (vault / "Archive/Plan.md").rename(vault / "A.md")
    (vault / "Plan copy.md").rename(vault / "B.md")
    assert counted(memory.import_(vault)) == (0, 2, 4)
    assert len({item.id for item in memory.list()} & {item.id for item in found.values()}) == 6
    assert counted(memory.import_(vault)) == (0, 0, 6)


def test_a_deleted_file_deletes_nothing(memory: Memory, vault: Path) -> None:
    memory.import_(vault)
    (vault / "Archive/Plan.md").unlink()
    assert counted(memory.import_(vault)) == (0, 0, 4)
    assert memory.stats().items == 5
    write(vault, {"Archive/Plan.md": NOTES["Archive/Plan.md"]})
    assert counted(memory.import_(vault)) == (0, 0, 5)


def test_a_new_file_under_the_name_of_a_moved_one(memory: Memory, vault: Path) -> None:
    memory.import_(vault)
    (vault / "Archive/Plan.md").rename(vault / "Plan 2023.md")
    memory.import_(vault)
    write(vault, {"Archive/Plan.md": "# Plan\n\nThe new one.\n"})
    assert counted(memory.import_(vault)) == (1, 0, 5)
    assert counted(memory.import_(vault)) == (0, 0, 6)


def test_the_unicode_form_of_a_name_makes_no_second_memory(memory: Memory, tmp_path: Path) -> None:
    root = tmp_path / "n"
    names = [unicodedata.normalize(form, "Café é.md") for form in ("NFC", "NFD")]
    write(root, {names[0]: "Two coffees."})
    memory.import_(root)
    (root / names[0]).rename(root / names[1])
    assert counted(memory.import_(root)) == (0, 0, 1)
    write(root, {names[1]: "Three coffees."})
    assert counted(memory.import_(root)) == (0, 1, 0)
    assert [item.content for item in memory.list()] == ["Three coffees."]


def test_names_that_differ_in_case_only_are_two_files_where_both_exist(
    memory: Memory, tmp_path: Path
) -> None:
    root = write(tmp_path / "n", {"readme.md": "small"})
    memory.import_(root)
    write(root, {"README.md": "LARGE"})
    if (root / "readme.md").read_text() == "LARGE":
        pytest.skip("this file system does not tell case apart")
    assert counted(memory.import_(root)) == (1, 0, 1)
    assert counted(memory.import_(root)) == (0, 0, 2)
    ids = {path: item.id for path, item in by_path(memory).items()}
    write(root, {"README.md": "LARGER", "readme.md": "smaller"})
    assert counted(memory.import_(root)) == (0, 2, 0)
    assert {path: item.id for path, item in by_path(memory).items()} == ids
    assert by_path(memory)["readme.md"].content == "smaller"
    (root / "readme.md").unlink()
    assert counted(memory.import_(root)) == (0, 0, 1)
    assert memory.stats().items == 2


def test_files_of_one_name_in_two_folders_stay_apart(memory: Memory, tmp_path: Path) -> None:
    roots = [
        write(tmp_path / place, {"README.md": f"read me of {place}", "LICENSE.txt": "the same"})
        for place in ("one/docs", "two/docs", "three")
    ]
    for root in roots:
        assert counted(memory.import_(root)) == (2, 0, 0)
    for root in roots:
        assert counted(memory.import_(root)) == (0, 0, 2)
        assert counted(memory.import_(root / "README.md")) == (0, 0, 1)
    write(roots[1], {"README.md": "read me again"})
    assert counted(memory.import_(roots[1] / "README.md")) == (0, 1, 0)
    texts = sorted(item.content for item in memory.list() if item.content != "the same")
    assert texts == ["read me again", "read me of one/docs", "read me of three"]


def test_a_file_is_the_same_by_itself_and_within_its_folder(memory: Memory, vault: Path) -> None:
    memory.import_(vault)
    note = vault / "Projects/Plan.md"
    id = by_path(memory)["Projects/Plan.md"].id
    assert counted(memory.import_(note)) == (0, 0, 1)
    note.write_text("Budget is 450.")
    assert counted(memory.import_(note)) == (0, 1, 0)
    assert counted(memory.import_(vault)) == (0, 0, 5)
    assert counted(memory.import_(note, root=vault.parent)) == (0, 0, 1)
    assert (memory.get(id).content, memory.get(id).key) == (
        "Budget is 450.", "document:projects/plan.md"
    )  # fmt: skip
    note.rename(vault / "Plan.md")
    assert counted(memory.import_(vault / "Plan.md")) == (0, 1, 0)
    assert memory.get(id).metadata["path"] == "Plan.md"


@pytest.mark.parametrize("name", ["vault", "Vault", "another name"])
def test_a_folder_that_moved_as_a_whole(memory: Memory, vault: Path, name: str) -> None:
    memory.import_(vault)
    place = vault.parent.parent / "new place" / name
    place.parent.mkdir()
    vault.rename(place)
    assert counted(memory.import_(place)) == (0, 0, 5)
    if name != "another name":  # by its name it is known even where the text is another
        write(place, {"Home.md": "Moved house."})
        assert counted(memory.import_(place)) == (0, 1, 4)
    assert memory.stats().items == 5


def test_odd_names_and_long_paths(memory: Memory, tmp_path: Path) -> None:
    deep = "/".join("d" * 200 for _ in range(6))
    root = write(
        tmp_path / "n",
        {"a\\b.md": "backslash", "a/b.md": "slash", "100% #1.md": "signs", f"{deep}/x.md": "deep",
         "long.md": "# " + "h" * 5_000},
    )  # fmt: skip
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("not UTF-8")
    assert counted(memory.import_(root)) == (6, 0, 0)
    assert counted(memory.import_(root)) == (0, 0, 6)
    (root / f"{deep}/x.md").rename(root / "x.md")
    write(root, {"a\\b.md": "backslash!"})
    assert counted(memory.import_(root)) == (0, 2, 4)
    assert memory.stats().items == 6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_a_folder_is_not_waited_for(memory: Memory, vault: Path) -> None:
    os.mkfifo(vault / "pipe.md")
    report = memory.import_(vault)
    assert (counted(report), report.dropped) == ((5, 0, 0), 1)


def redactions() -> dict[str, Callable[[str], str]]:
    return {
        "text": lambda text: text.replace("hunter2", "[password]"),
        "paths": lambda text: text.replace("Mara", "[name]"),
        "hashes": lambda text: "".join("#" if c in "0123456789abcdef" else c for c in text),
        "nearly all": lambda text: "[x]" if text.strip() else text,
    }


@pytest.mark.parametrize("name", redactions())
def test_documents_stay_apart_under_redaction(tmp_path: Path, name: str) -> None:
    notes = {f"{who}/{who}.md": f"{who} says hunter2" for who in ("Mara", "Mira", "Mora")}
    root = write(tmp_path / "n", {**notes, "[name]/[name].md": "nobody"})
    store = tmp_path / "m.db"
    with Memory.open(store, embedder="hashing:64", redact=redactions()[name]) as memory:
        assert counted(memory.import_(root)) == (4, 0, 0)
        assert counted(memory.import_(root)) == (0, 0, 4)
        write(root, {"Mara/Mara.md": "Mara says nothing more"})
        report = memory.import_(root)
        if name != "nearly all":  # there the new text is stored as the former one was
            assert counted(report) == (0, 1, 3)
        assert memory.stats().items == 4
        assert memory.check() == []


def test_a_redaction_hook_given_later_reaches_documents(vault: Path, tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    with Memory.open(store, embedder="hashing:64") as memory:
        memory.import_(vault)
    with Memory.open(
        store, embedder="hashing:64", redact=lambda text: text.replace("300", "[sum]")
    ) as memory:
        assert counted(memory.import_(vault)) == (0, 1, 4)
        assert counted(memory.import_(vault)) == (0, 0, 5)
        assert "[sum]" in by_path(memory)["Archive/Plan.md"].content


def test_a_document_of_a_space_forgotten_elsewhere(vault: Path, tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    with (
        Memory.open(store, embedder="hashing:64") as one,
        Memory.open(store, embedder="hashing:64") as other,
    ):
        one.import_(vault)
        forget_all(other)
        assert counted(one.import_(vault)) == (5, 0, 0)
        assert counted(other.import_(vault)) == (0, 0, 5)


def test_two_imports_at_once_lose_and_double_nothing(vault: Path, tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    handles = [Memory.open(store, embedder="hashing:64") for _ in range(4)]
    try:
        for turn in range(4):
            write(vault, {f"{index}.md": f"note {index}, turn {turn}" for index in range(20)})
            with ThreadPoolExecutor(len(handles)) as pool:
                reports = list(pool.map(lambda handle: handle.import_(vault), handles))
            assert sum(report.dropped for report in reports) == 0
            changed = [report.imported + report.updated for report in reports]
            assert sum(changed) == (25 if turn == 0 else 20)
            assert handles[0].stats().items == 25
        ids = [item.id for item in handles[0].list() if item.content.startswith("note")]
        assert {len(handles[0].history(id)) for id in ids} == {3}
        assert handles[0].check() == []
    finally:
        for handle in handles:
            handle.close()


def test_at_the_command_line(cofire: Cofire) -> None:
    root = write(cofire.folder / "notes", {"a.md": "Ferry at nine.", "b.md": "Bring rope."})
    assert "2  imported" in cofire.ok("import", "notes").out
    write(root, {"a.md": "Ferry at ten."})
    (root / "b.md").rename(root / "c.md")
    done = cofire.ok("import", "notes")
    assert "2  updated" in done.out
    write(root, {"a.md": "Ferry at noon."})
    assert cofire.ok("import", "notes/a.md", "--json").json["updated"] == 1
    refused = cofire.run("import", "notes/../memory.db", "--root", "notes", "--json")
    assert (refused.code, refused.error["type"]) == (2, "InputError")
    assert len(cofire.ok("list", "--json").json["items"]) == 2
