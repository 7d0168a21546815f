"""Settings from COFIRE_ variables and a TOML file, read once at the edge.

Importing this module imports pydantic, so the modules that `cofire --help` needs import it inside
the functions that use it. Order of precedence: arguments, environment, TOML file, defaults. The
file is `config.toml` in the platform's configuration folder (Linux: ~/.config/cofire), or the one
that COFIRE_CONFIG names; its keys are the names of the fields below.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from cofire.errors import ConfigurationError

OPENAI_URL = "https://api.openai.com/v1"
_CHOICE = re.compile(r"minilm|hashing:[1-9]\d{0,4}|openai:\S.*")
_GENERATOR = re.compile(r"none|openai:\S.*|local(?::\S.*)?")
_GENERATORS = "'none', 'openai:MODEL', 'local' or 'local:PATH' of a GGUF file"
_SIGNATURES = "some of RS256, ES256, EdDSA and HS256, with commas"
_EMBEDDERS = "'minilm', 'hashing:DIMENSION' (1 to 99999) or 'openai:MODEL'"


class Settings(BaseSettings):
    """Everything that can be set from outside. Values that cannot be used raise
    ConfigurationError through `load_settings`; secrets are never shown."""

    model_config = SettingsConfigDict(
        env_prefix="COFIRE_",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    store: str = Field(
        default_factory=lambda: str(default_store()),
        min_length=1,
        description="Path of the SQLite file or URL of the store.",
    )
    embedder: str = Field(default="minilm", description=f"One of {_EMBEDDERS}.")
    embedding_base_url: str = Field(
        default=OPENAI_URL, description="Address of the OpenAI-compatible endpoint, up to /v1."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Its key, if it has one.")
    embedding_dimension: int | None = Field(
        default=None,
        ge=1,
        le=65_536,
        description="Length of its vectors; learned from the first answer if not given.",
    )
    embedding_query_prefix: str = Field(default="", description="Text put before every question.")
    embedding_passage_prefix: str = Field(
        default="", description="Text put before every passage; part of the model's identity."
    )
    embedding_timeout: float = Field(
        default=30.0, gt=0, le=3600, allow_inf_nan=False, description="Seconds, per attempt."
    )
    embedding_batch: int = Field(default=64, ge=1, le=2048, description="Texts per request.")
    embedding_encoding: Literal["float", "base64"] = Field(
        default="float", description="How the endpoint sends vectors; base64 is smaller."
    )
    threads: int = Field(
        default_factory=lambda: min(2, os.cpu_count() or 1),
        ge=1,
        le=64,
        description="Threads of models that run on this machine.",
    )
    embedding_cache_mb: int = Field(
        default=64, ge=0, le=65_536, description="Megabytes of cached vectors; 0: no cache."
    )
    generator: str = Field(
        default="none", description=f"Language model for consolidation: {_GENERATORS}."
    )
    answer_model: str = Field(
        default="",
        description=f"Language model that answers: {_GENERATORS}; empty: that of `generator`.",
    )
    answer_tokens: int = Field(
        default=1_000,
        ge=1,
        le=1_000_000,
        description="Wordpieces of memories at most that an answer is made from.",
    )
    answer_temperature: float = Field(
        default=0.0,
        ge=0,
        le=2,
        allow_inf_nan=False,
        description="Temperature of answers; 0: the likeliest words.",
    )
    answer_max_tokens: int = Field(
        default=512, ge=1, le=1_000_000, description="Tokens of an answer at most."
    )
    answer_prompts: str | None = Field(
        default=None,
        min_length=1,
        description="Folder whose files replace the prompts of the same name.",
    )
    answer_learn: bool = Field(
        default=True, description="Whether memories that an answer cites gain by it."
    )
    local_model: str | None = Field(
        default=None, min_length=1, description="GGUF file that the model 'local' is."
    )
    local_context: int = Field(
        default=4_096,
        ge=256,
        le=1_048_576,
        description="Tokens of prompt and answer together that a local model has room for.",
    )
    generator_base_url: str = Field(
        default=OPENAI_URL, description="Address of its OpenAI-compatible endpoint, up to /v1."
    )
    generator_api_key: SecretStr | None = Field(default=None, description="Its key, if it has one.")
    generator_timeout: float = Field(
        default=120.0, gt=0, le=3600, allow_inf_nan=False, description="Seconds, per attempt."
    )
    generator_retries: int = Field(
        default=3, ge=0, le=10, description="Further attempts after a failure that may pass."
    )
    generator_max_tokens: int = Field(
        default=4096, ge=64, le=1_000_000, description="Tokens of one answer at most."
    )
    generator_input_price: float = Field(
        default=0.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Price of a million tokens sent, in the currency of your budget.",
    )
    generator_output_price: float = Field(
        default=0.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Price of a million tokens received.",
    )
    claim_seconds: float = Field(
        default=60.0,
        ge=0.1,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds after which another worker takes over from one that was killed.",
    )
    worker_every: float = Field(
        default=3_600.0,
        gt=0,
        le=31_536_000,
        allow_inf_nan=False,
        description="Seconds between consolidations of a space that changed.",
    )
    worker_idle: float = Field(
        default=86_400.0,
        gt=0,
        le=31_536_000,
        allow_inf_nan=False,
        description="Seconds between consolidations of a space that did not.",
    )
    worker_concurrency: int = Field(
        default=1, ge=1, le=64, description="Spaces that one worker consolidates at once."
    )
    worker_jitter: float = Field(
        default=0.1,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Part by which a worker's waits are longer, at random, at most.",
    )
    worker_attempts: int = Field(
        default=8, ge=1, le=1_000, description="Failures in a row after which a space is given up."
    )
    worker_stop_seconds: float = Field(
        default=8.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="How long a worker that is told to stop may take over a step's part.",
    )
    graph_cache_mb: int = Field(
        default=1024, ge=0, le=1_000_000, description="Megabytes of active graphs kept in memory."
    )
    space_budget_mb: int = Field(
        default=1024,
        ge=0,
        le=1_000_000,
        description="Megabytes of one active graph, from which on PostgreSQL's indexes serve its "
        "space.",
    )
    statement_timeout: float = Field(
        default=300.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds that PostgreSQL works on one statement before it is stopped.",
    )
    pool_size: int = Field(
        default=8, ge=1, le=1_000, description="Connections to PostgreSQL of one process at most."
    )
    write_wait: float = Field(
        default=30.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds a write waits for other writers before StoreBusyError.",
    )
    durability: Literal["normal", "full"] = Field(
        default="normal",
        description="normal: survives the process; full: survives a power cut, slower writes.",
    )
    encryption_key: SecretStr | None = Field(
        default=None,
        description="Master key of encrypted spaces: 32 random bytes in base64.",
    )
    encryption_key_file: str | None = Field(
        default=None, description="File that has the master key, in its place."
    )
    encrypt_new_spaces: bool = Field(
        default=False, description="Encrypt what spaces that are made from now on hold."
    )
    server_host: str = Field(
        default="127.0.0.1", min_length=1, description="Address that `cofire serve` listens on."
    )
    server_port: int = Field(
        default=8321, ge=0, le=65_535, description="Its port; 0: any that is free."
    )
    server_auth: Literal["none", "keys"] = Field(
        default="none",
        description="Whether it wants a key; none: on this machine's own address only.",
    )
    server_hosts: str = Field(
        default="",
        description="Names that clients call it by, with commas, besides this machine's; *: any.",
    )
    server_origins: str = Field(
        default="", description="Origins of web pages that may use it, with commas (CORS)."
    )
    server_proxies: str = Field(
        default="",
        description="Addresses of proxies whose X-Forwarded-For counts, with commas.",
    )
    server_workers: int = Field(default=1, ge=1, le=64, description="Processes that answer.")
    server_threads: int = Field(
        default=4, ge=1, le=64, description="Verbs at work at once in one process."
    )
    server_answers: int = Field(
        default=8,
        ge=1,
        le=1_000,
        description="Answers that wait for the language model at once in one process.",
    )
    server_answer_seconds: float = Field(
        default=120.0,
        gt=0,
        le=3_600,
        allow_inf_nan=False,
        description="Seconds that the language model may take over one answer.",
    )
    server_body_mb: float = Field(
        default=10.0,
        gt=0,
        le=1_000,
        allow_inf_nan=False,
        description="Megabytes of a request's body at most.",
    )
    server_bulk_mb: float = Field(
        default=1_000.0,
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Megabytes of an import at most.",
    )
    server_stop_seconds: int = Field(
        default=30, ge=1, le=3600, description="How long requests may take to end when it stops."
    )
    server_metrics_token: SecretStr | None = Field(
        default=None, description="Bearer token for /metrics; without it, where it wants no key."
    )
    server_tracing: bool = Field(
        default=False, description="Make spans of OpenTelemetry; OTEL_ variables say where to."
    )
    token_issuer: str | None = Field(
        default=None, description="Issuer (iss) whose tokens (JWT) a server takes beside keys."
    )
    token_audience: str | None = Field(
        default=None, description="Audience (aud) that such a token must name."
    )
    token_jwks_url: str | None = Field(
        default=None, description="Address of the issuer's public keys (JWKS)."
    )
    token_key_file: str | None = Field(
        default=None, description="File with them instead: JWKS, PEM, or the secret of HS256."
    )
    token_algorithms: str = Field(
        default="RS256,ES256,EdDSA", description=f"Which signatures count: {_SIGNATURES}."
    )
    token_tenant: str | None = Field(
        default=None, min_length=1, description="Tenant of every token, in place of a claim."
    )
    token_tenant_claim: str = Field(
        default="tenant", min_length=1, description="Claim that names a token's tenant."
    )
    token_identities_claim: str = Field(
        default="identities", min_length=1, description="Claim that lists the identities."
    )
    token_users_claim: str = Field(
        default="users", min_length=1, description="Claim that lists the users."
    )
    token_projects_claim: str = Field(
        default="projects", min_length=1, description="Claim that lists the projects."
    )
    token_scopes_claim: str = Field(
        default="scope", min_length=1, description="Claim that lists the scopes."
    )
    token_scope_prefix: str = Field(
        default="cofire:", description="How scopes begin there that are meant for Cofire."
    )
    rate_limit: float = Field(
        default=50.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Requests per second of one key, in one process; 0: no limit.",
    )
    rate_burst: int = Field(
        default=100, ge=1, le=1_000_000, description="How many of them at once after a pause."
    )
    failed_attempts: int = Field(
        default=30,
        ge=0,
        le=1_000_000,
        description="Attempts per minute of one address with keys that do not count; 0: no limit.",
    )
    audit_days: int = Field(
        default=400, ge=0, le=36_500, description="Days that the audit trail is kept; 0: for ever."
    )
    audit_reads: bool = Field(
        default=True, description="Enter in the audit trail also what only reads."
    )
    log_level: Literal["debug", "info", "warning", "error", "critical"] = Field(
        default="warning", description="Least severe messages that are logged."
    )

    @field_validator("embedder")
    @classmethod
    def _known_embedder(cls, value: str) -> str:
        if _CHOICE.fullmatch(value) is None:
            raise PydanticCustomError("embedder", f"must be {_EMBEDDERS}")
        return value

    @field_validator("generator")
    @classmethod
    def _known_generator(cls, value: str) -> str:
        if _GENERATOR.fullmatch(value) is None:
            raise PydanticCustomError("generator", f"must be {_GENERATORS}")
        return value

    @field_validator("answer_model")
    @classmethod
    def _known_answerer(cls, value: str) -> str:
        return cls._known_generator(value) if value else value

    @field_validator("embedding_base_url", "generator_base_url")
    @classmethod
    def _web_address(cls, value: str) -> str:
        if re.fullmatch(r"https?://[^\s@]+", value) is None:
            raise PydanticCustomError(
                "url", "must start with http:// or https:// and hold no user name or password"
            )
        return value.rstrip("/")

    @field_validator("token_jwks_url")
    @classmethod
    def _safe_address(cls, value: str | None) -> str | None:
        if value is not None and re.fullmatch(r"https://[^\s@]+", value) is None:
            local = re.fullmatch(r"http://(?:localhost|127\.0\.0\.1|\[::1\])[:/][^\s@]*", value)
            if local is None:
                raise PydanticCustomError(
                    "url", "must start with https:// (http:// for this machine only)"
                )
        return value

    @field_validator("token_algorithms")
    @classmethod
    def _known_signatures(cls, value: str) -> str:
        names = [name.strip() for name in value.split(",")]
        if not set(names) <= {"RS256", "ES256", "EdDSA", "HS256"}:
            raise PydanticCustomError("algorithms", f"must be {_SIGNATURES}")
        if "HS256" in names and len(names) > 1:
            raise PydanticCustomError(
                "algorithms", "must not mix HS256 with others: its key is a shared secret"
            )
        return ",".join(names)

    @property
    def token_algorithm_names(self) -> tuple[str, ...]:
        """`token_algorithms`, each by itself."""
        return tuple(self.token_algorithms.split(","))

    @field_validator("log_level", "durability", "embedding_encoding", "server_auth", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _openai_needs_key(self) -> Settings:
        for name, prefix in (
            ("embedder", "embedding"),
            ("generator", "generator"),
            ("answer_model", "generator"),
        ):
            remote = getattr(self, name).startswith("openai:")
            address = getattr(self, f"{prefix}_base_url")
            if remote and address == OPENAI_URL and getattr(self, f"{prefix}_api_key") is None:
                variable = f"COFIRE_{prefix.upper()}"
                raise PydanticCustomError(
                    "key",
                    "needs {variable}_API_KEY, or {variable}_BASE_URL of another server",
                    {"name": name, "variable": variable},
                )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, toml_file=config_path())
        return (init_settings, env_settings, file)


def load_settings(**given: Any) -> Settings:
    """Read the environment and the TOML file; `given` (None: not given) goes before both.

    Raises ConfigurationError naming the variable and what it may be.
    """
    return _made({name: value for name, value in given.items() if value is not None})


def with_embedder(settings: Settings, embedder: str) -> Settings:
    """The settings with another embedder. Raises ConfigurationError."""
    return _made({**dict(settings), "embedder": embedder})


def with_generator(settings: Settings, generator: str) -> Settings:
    """The settings with another language model. Raises ConfigurationError."""
    return _made({**dict(settings), "generator": generator})


def _made(given: Mapping[str, Any]) -> Settings:
    path = config_path()
    try:
        return Settings(**given)
    except ValidationError as exc:
        details = exc.errors(include_url=False, include_input=False)
        raise ConfigurationError("; ".join(_explained(detail) for detail in details)) from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"{path} is not valid TOML: {exc}") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc


def config_path() -> Path:
    """The TOML file that is read if it exists."""
    named = os.environ.get("COFIRE_CONFIG")
    return Path(named) if named else platformdirs.user_config_path("cofire") / "config.toml"


def default_store() -> Path:
    """The store used when none is named: an SQLite file in the platform's data folder."""
    return platformdirs.user_data_path("cofire") / "memory.db"


def _explained(detail: ErrorDetails) -> str:
    """One problem, in terms of what the user set."""
    name = str(detail["loc"][0]) if detail["loc"] else str(detail.get("ctx", {}).get("name"))
    if detail["type"] == "extra_forbidden":
        return f"{name!r} in {config_path()} is no setting; there are {', '.join(_names())}"
    return f"COFIRE_{name.upper()} (or {name} in {config_path()}): {detail['msg']}"


def _names() -> list[str]:
    return sorted(Settings.model_fields)
