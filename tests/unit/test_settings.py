"""Settings: precedence, refusal of unusable values by name, secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cofire.errors import ConfigurationError
from cofire.settings import default_store, load_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("COFIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COFIRE_CONFIG", str(tmp_path / "config.toml"))


def test_defaults() -> None:
    settings = load_settings()
    assert settings.embedder == "minilm"
    assert settings.store == str(default_store())
    assert settings.threads in {1, 2}
    assert settings.durability == "normal"


def test_arguments_go_before_environment_before_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(
        'threads = 3\nwrite_wait = 7.5\nembedder = "hashing:16"\n', encoding="utf-8"
    )
    monkeypatch.setenv("COFIRE_WRITE_WAIT", "8.5")
    monkeypatch.setenv("COFIRE_EMBEDDER", "hashing:32")
    settings = load_settings(embedder="hashing:64", store=None)
    assert (settings.threads, settings.write_wait, settings.embedder) == (3, 8.5, "hashing:64")


def test_empty_variable_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COFIRE_THREADS", "")
    monkeypatch.setenv("COFIRE_LOG_LEVEL", "INFO")
    settings = load_settings()
    assert settings.threads >= 1
    assert settings.log_level == "info"


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("COFIRE_EMBEDDER", "word2vec", "'minilm', 'hashing:DIMENSION'"),
        ("COFIRE_EMBEDDER", "hashing:0", "'minilm', 'hashing:DIMENSION'"),
        ("COFIRE_EMBEDDER", "openai:", "'openai:MODEL'"),
        ("COFIRE_EMBEDDING_BASE_URL", "ftp://x", "http:// or https://"),
        ("COFIRE_EMBEDDING_BASE_URL", "http://me:word@x/v1", "no user name or password"),
        ("COFIRE_EMBEDDING_DIMENSION", "0", "greater than or equal to 1"),
        ("COFIRE_THREADS", "many", "integer"),
        ("COFIRE_THREADS", "0", "greater than or equal to 1"),
        ("COFIRE_WRITE_WAIT", "-1", "greater than or equal to 0"),
        ("COFIRE_WRITE_WAIT", "nan", "finite"),
        ("COFIRE_EMBEDDING_CACHE_MB", "-5", "greater than or equal to 0"),
        ("COFIRE_DURABILITY", "maybe", "'normal' or 'full'"),
        ("COFIRE_LOG_LEVEL", "loud", "'debug'"),
        ("COFIRE_EMBEDDING_ENCODING", "hex", "'float' or 'base64'"),
    ],
)
def test_unusable_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert variable in str(caught.value)
    assert allowed in str(caught.value)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="COFIRE_EMBEDDING_API_KEY"):
        load_settings(embedder="openai:text-embedding-3-small")
    monkeypatch.setenv("COFIRE_EMBEDDING_BASE_URL", "http://127.0.0.1:8080/v1/")
    settings = load_settings(embedder="openai:nomic-embed-text")
    assert settings.embedding_base_url == "http://127.0.0.1:8080/v1"


def test_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COFIRE_EMBEDDING_API_KEY", "sk-secret-value")
    settings = load_settings(embedder="openai:text-embedding-3-small")
    assert settings.embedding_api_key is not None
    assert settings.embedding_api_key.get_secret_value() == "sk-secret-value"
    assert "secret-value" not in repr(settings) + str(settings.model_dump())
    with pytest.raises(ConfigurationError) as caught:
        load_settings(embedding_api_key=["sk-secret-value"])
    assert "secret-value" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"threads = ", "not valid TOML"),
        (b"\xff\xfe", "cannot be read"),
        (b"embeder = 'minilm'", "'embeder'"),
        (b"threads = 0", "COFIRE_THREADS"),
    ],
)
def test_bad_file_is_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_making_models_imports_nothing_heavy() -> None:
    code = (
        "import sys, cofire.models, cofire.models.minilm, cofire.models.openai_compatible,"
        " cofire.models.caching\n"
        "heavy = {'pydantic', 'openai', 'onnxruntime', 'tokenizers'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
