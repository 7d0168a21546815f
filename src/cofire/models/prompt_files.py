"""Prompts in files: a text and, where JSON is due, a JSON Schema for each task of a language model.

A file NAME.md begins with its version, which rises whenever its words or its schema change: what a
model made is kept with the name and version of the prompt that asked for it ("distil@2"). Then
come the parts "# System" and "# User", in which {{word}} stands for what a request puts there.
NAME.json beside it is the schema; without one the answer is free text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from cofire.errors import ConfigurationError
from cofire.models.generator import Generation

_FILE = re.compile(
    r"---\nversion: (?P<version>\d+)\n---\n# System\n(?P<system>.+?)\n# User\n(?P<user>.+)", re.S
)
_PLACE = re.compile(r"\{\{([a-z]+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A task for a language model. In `system` and `user`, {{word}} is a place for a text;
    `schema` is what the answer is to fit, None: free text."""

    name: str
    version: int
    system: str
    user: str
    schema: Mapping[str, Any] | None = field(default=None, hash=False)

    def __str__(self) -> str:
        """The name and version that are kept with what it brought."""
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of its words and schema: what has the same was asked the same."""
        told = json.dumps([self.system, self.user, self.schema], sort_keys=True)
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def places(self) -> frozenset[str]:
        """The words of its places."""
        return frozenset(_PLACE.findall(self.system + self.user))

    def about(
        self,
        given: Mapping[str, str],
        *,
        max_tokens: int,
        temperature: float,
        timeout: float | None = None,
        seed: int | None = None,
    ) -> Generation:
        """The request with `given` in its places. What stands in them is put in once and never
        searched for places. Raises KeyError where a place is given nothing."""
        system, user = (
            _PLACE.sub(lambda match: given[match[1]], text) for text in (self.system, self.user)
        )
        return Generation(
            system=system,
            user=user,
            schema=self.schema,
            schema_name=self.name,
            max_tokens=max_tokens,
            temperature=temperature,
            timeout=timeout,
            seed=seed,
        )


def read_prompt(
    folder: Traversable | Path, name: str, places: Collection[str], *, schema: str | None = None
) -> Prompt:
    """The prompt in NAME.md of a folder, of a package or of a user, with the schema in NAME.json or
    `schema`.json.

    Raises:
        ConfigurationError: it cannot be read, has no version or parts, has a place that is not
            among `places`, or its schema is no JSON object.
    """
    try:
        text = folder.joinpath(f"{name}.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"the prompt {name}.md cannot be read: {exc}") from exc
    match = _FILE.fullmatch(text.replace("\r\n", "\n"))
    if match is None:
        raise ConfigurationError(
            f"the prompt {name}.md must have lines ---, version: NUMBER, ---, then # System and "
            "# User, each with text"
        )
    prompt = Prompt(
        name=name,
        version=int(match["version"]),
        system=match["system"].strip(),
        user=match["user"].strip(),
        schema=_schema(folder, name if schema is None else schema),
    )
    if unknown := sorted(prompt.places() - set(places)):
        raise ConfigurationError(
            f"the prompt {name}.md has a place {{{{{unknown[0]}}}}}; there are "
            f"{', '.join(sorted(places))}"
        )
    return prompt


def _schema(folder: Traversable | Path, name: str) -> Mapping[str, Any] | None:
    file = folder.joinpath(f"{name}.json")
    if not file.is_file():
        return None
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise ConfigurationError(f"the schema {name}.json cannot be read: {exc}") from exc
    if not isinstance(schema, dict):
        raise ConfigurationError(f"the schema {name}.json must be a JSON object")
    return schema
