"""What language models are asked: a text and a JSON Schema for each task, versioned in its file.

A file begins with its version, which rises whenever its words or its schema change: records keep
the name and version of the prompt that made them ("distil@2").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from cofire.models.generator import Generation

_FILE = re.compile(
    r"---\nversion: (?P<version>\d+)\n---\n# System\n(?P<system>.+?)\n# User\n(?P<user>.+)", re.S
)
_PLACE = re.compile(r"\{\{(mark|turns)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A task for a language model. In `system` and `user`, {{mark}} and {{turns}} stand for the
    fence and the fenced turns; `schema` is what the answer is to fit."""

    name: str
    version: int
    system: str
    user: str
    schema: Mapping[str, Any] = field(hash=False)

    def __str__(self) -> str:
        """The name and version that records keep."""
        return f"{self.name}@{self.version}"

    def about(
        self, *, mark: str, turns: str, max_tokens: int, temperature: float, timeout: float | None
    ) -> Generation:
        """The request that asks it of fenced turns. What stands in them is put in once and never
        searched for places."""
        given = {"mark": mark, "turns": turns}
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
        )


@cache
def load(name: str) -> Prompt:
    """The prompt "distil" or "concepts"."""
    folder = files(__name__)
    match = _FILE.fullmatch(folder.joinpath(f"{name}.md").read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"the prompt {name}.md must have a version, # System and # User")
    return Prompt(
        name=name,
        version=int(match["version"]),
        system=match["system"].strip(),
        user=match["user"].strip(),
        schema=json.loads(folder.joinpath(f"{name}.json").read_text(encoding="utf-8")),
    )
