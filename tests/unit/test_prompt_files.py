"""Prompts as files, ours or a user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cofire.errors import ConfigurationError
from cofire.models.prompt_files import read_prompt

GOOD = "---\nversion: 3\n---\n# System\n\nBe {{how}}.\n\n# User\n\n{{what}}\n"


def written(folder: Path, text: str, schema: str | None = None) -> Path:
    (folder / "p.md").write_text(text)
    if schema is not None:
        (folder / "p.json").write_text(schema)
    return folder


def test_a_prompt_with_and_without_a_schema(tmp_path: Path) -> None:
    plain = read_prompt(written(tmp_path, GOOD), "p", ("how", "what"))
    assert (str(plain), plain.system, plain.user, plain.schema) == (
        "p@3", "Be {{how}}.", "{{what}}", None,
    )  # fmt: skip
    assert plain.places() == {"how", "what"}
    formed = read_prompt(written(tmp_path, GOOD, '{"type": "object"}'), "p", ("how", "what"))
    assert formed.schema == {"type": "object"}
    assert len({plain.digest, formed.digest}) == 2
    windows = read_prompt(written(tmp_path, GOOD.replace("\n", "\r\n")), "p", ("how", "what"))
    assert windows.digest == formed.digest


def test_another_files_schema(tmp_path: Path) -> None:
    (tmp_path / "shared.json").write_text('{"type": "array"}')
    prompt = read_prompt(written(tmp_path, GOOD), "p", ("how", "what"), schema="shared")
    assert prompt.schema == {"type": "array"}


def test_places_are_filled_once_and_none_is_left_empty(tmp_path: Path) -> None:
    prompt = read_prompt(written(tmp_path, GOOD), "p", ("how", "what"))
    request = prompt.about(
        {"how": "{{what}}", "what": "a\\1"}, max_tokens=5, temperature=0.5, timeout=2.0, seed=9
    )
    assert (request.system, request.user) == ("Be {{what}}.", "a\\1")
    assert (request.max_tokens, request.temperature, request.timeout) == (5, 0.5, 2.0)
    assert (request.seed, request.schema_name) == (9, "p")
    with pytest.raises(KeyError):
        prompt.about({"how": "x"}, max_tokens=5, temperature=0.0)


@pytest.mark.parametrize(
    ("text", "schema", "reason"),
    [
        (GOOD.replace("version: 3", "v3"), None, "version: NUMBER"),
        (GOOD.replace("# User", "# Users"), None, "# User"),
        (GOOD.replace("{{what}}", "{{memory}}"), None, "a place {{memory}}"),
        (GOOD, "{", "schema p.json cannot be read"),
        (GOOD, "[]", "must be a JSON object"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, text: str, schema: str | None, reason: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_prompt(written(tmp_path, text, schema), "p", ("how", "what"))
    assert reason in str(raised.value)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"p\.md cannot be read"):
        read_prompt(tmp_path, "p", ())
    (tmp_path / "p.md").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"p\.md cannot be read"):
        read_prompt(tmp_path, "p", ())
