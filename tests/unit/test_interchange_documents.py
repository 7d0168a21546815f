"""Plain text and Markdown, folders of them, and paths that lead outside."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cofire.errors import FormatError, InputError, NotFoundError
from cofire.interchange import documents, files
from cofire.interchange.report import Action, Problem
from cofire.types import Message


def split(path: Path) -> tuple[dict[str, Message], list[Problem]]:
    entries = list(documents.read(path))
    found = [entry for entry in entries if isinstance(entry, Message)]
    problems = [entry for entry in entries if isinstance(entry, Problem)]
    return {str(message.metadata["path"]): message for message in found}, problems


def test_markdown_with_front_matter(tmp_path: Path) -> None:
    note = tmp_path / "Note.md"
    note.write_text(
        "---\ntitle: 'Glaze tests'\ncreated: 2024-03-01\ntags:\n  - kiln\n  - '#clay'\n"
        "nested:\n  a: b\n# comment\n---\n# Heading\n\nBody: --- here.\n",
        encoding="utf-8",
    )
    (message,) = documents.read(note)
    assert isinstance(message, Message)
    assert message.content == "# Heading\n\nBody: --- here.\n"
    assert (message.title, message.time, message.tags) == (
        "Glaze tests",
        "2024-03-01",
        ("kiln", "clay"),
    )
    assert message.key == "document:note.md"


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("no front matter", "n", None),
        ("# First #\n## Second", "First", None),
        ("```\n# code\n```\n", "n", None),
        ("---\ntitle: never closed\n", "n", None),
        ("---\nA rule, then text.\n---\nMore", "n", None),
        ('---\ntitle: "open quote: x\n---\nBody', "open quote: x", "Body"),
        ("---\r\ntitle: CRLF\r\n---\r\nBody\r\n", "CRLF", "Body\r\n"),
        ("\ufeff---\ntitle: BOM\n---\nBody", "BOM", "Body"),
    ],
)
def test_nothing_of_the_body_is_lost(
    tmp_path: Path, text: str, title: str, body: str | None
) -> None:
    path = tmp_path / "n.md"
    path.write_text(text, encoding="utf-8", newline="")
    (message,) = documents.read(path)
    assert isinstance(message, Message)
    assert (message.content, message.title) == (text if body is None else body, title)


def test_plain_text_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("---\ntitle: x\n---\n# y\n", encoding="utf-8")
    (message,) = documents.read(path)
    assert isinstance(message, Message)
    assert (message.content, message.title) == ("---\ntitle: x\n---\n# y\n", "plain")


def test_impossible_date_is_ignored_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "n.md"
    path.write_text("---\ncreated: 2024-02-30\n---\nBody", encoding="utf-8")
    problem, message = documents.read(path)
    assert isinstance(problem, Problem)
    assert isinstance(message, Message)
    assert problem.action is Action.REPAIRED
    assert message.time is None


def test_folder(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    for name in ("b.md", "a.txt", "sub/c.markdown", ".trash/d.md", "sub/.hidden.md", "e.png"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    (root / "empty.md").touch()
    (root / "latin.txt").write_bytes(b"caf\xe9")
    outside = tmp_path / "secret.md"
    outside.write_text("secret", encoding="utf-8")
    (root / "link.md").symlink_to(outside)
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "alias.md").symlink_to(root / "b.md")
    found, problems = split(root)
    assert list(found) == ["a.txt", "alias.md", "b.md", "sub/c.markdown"]
    assert {problem.where: problem.action for problem in problems} == {
        "empty.md": Action.SKIPPED,
        "latin.txt": Action.DROPPED,
        "link.md": Action.DROPPED,
    }


def test_one_key_whatever_the_spelling_of_the_path() -> None:
    assert documents.document_key("Notes\\Caf\u00e9.md") == documents.document_key(
        "notes/cafe\u0301.MD"
    )


def test_windows_path_style_is_understood(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("text", encoding="utf-8")
    style = str(tmp_path / "sub" / "a.md").replace("/", "\\")
    (message,) = documents.read(style)
    assert isinstance(message, Message)


def test_single_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(FormatError, match="offset 3"):
        list(documents.read(path))
    with pytest.raises(NotFoundError):
        list(documents.read(tmp_path / "CON.md"))


def test_standard_input() -> None:
    (first,) = documents.read_stream(io.BytesIO("text \u2028 é\n".encode()), "standard input")
    (again,) = documents.read_stream(io.BytesIO("text \u2028 é\n".encode()), "standard input")
    assert isinstance(first, Message)
    assert first.content == "text \u2028 é\n"
    assert first == again
    (empty,) = documents.read_stream(io.BytesIO(b" \n"), "standard input")
    assert isinstance(empty, Problem)


def test_overlarge_document_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    (tmp_path / "n.md").write_text("x" * 11, encoding="utf-8")
    (problem,) = documents.read(tmp_path)
    (streamed,) = documents.read_stream(io.BytesIO(b"x" * 11), "standard input")
    assert isinstance(problem, Problem)
    assert isinstance(streamed, Problem)


def test_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    assert files.inside(root, "a/../b.md") == root.resolve() / "b.md"
    for outside in ("../x", "/etc/passwd", "out/x", "a/../../x"):
        with pytest.raises(InputError, match="outside the chosen folder"):
            files.inside(root, outside)
