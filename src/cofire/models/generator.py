"""The seam for generation: what every language model offers, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

Finish = Literal["stop", "length", "refusal", "filter", "other"]
"""Why an answer ended: the model was done; it ran out of tokens, so that the answer is cut; the
model declined; the endpoint's content filter stopped it; anything else."""

FINISHES: tuple[Finish, ...] = get_args(Finish)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One request to a language model.

    `schema` is a JSON Schema that the answer is to fit, named `schema_name`; None: free text. No
    model is trusted to keep to it. `max_tokens` bounds the answer (tokens, at least 1),
    `temperature` is in [0, 2] and `timeout` in seconds per attempt (None: the generator's own).
    `seed` asks for the same answer every time; endpoints keep to it as well as they can, or not.
    """

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    max_tokens: int = 1024
    temperature: float = 0.0
    timeout: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What came back. `text` may be empty or nonsense; for `finish` see `Finish`.

    `input_tokens` and `output_tokens` are what the endpoint counted (0: it did not say), `seconds`
    how long it took with all waiting, and `attempts` how often the endpoint was asked.
    """

    text: str
    finish: Finish = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1


class Generator(Protocol):
    """Writes text. Implementations may be called from several threads at once.

    One that can tell what it writes piece by piece has `stream`, too: `cofire.models.streaming`.
    """

    @property
    def name(self) -> str:
        """The identity of the model; what it wrote is marked with it."""

    def generate(self, request: Generation, /) -> Generated:
        """The model's answer. Raises GenerationError, PromptTooLongError or ConfigurationError."""

    def close(self) -> None:
        """Let go of connections; the generator may be used again afterwards."""
