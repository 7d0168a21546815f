"""What a language model is asked for an answer: `answer` (sentences), `short` (a phrase, as
benchmarks score), `choice` (a letter) and `chat` (a turn of a conversation). A folder of
one's own may hold others in their place."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from cofire.errors import ConfigurationError, InputError
from cofire.models.prompt_files import Prompt, read_prompt

PLACES = ("context", "question", "today", "choices", "recent")
"""The rendered context, the question, the day it is asked, its choices, one to a line, and the
turns of the conversation before it."""

NAMES = ("answer", "short", "choice", "chat")
"""The prompts that ship."""

NEEDED: dict[str, frozenset[str]] = {
    "choice": frozenset({"context", "question", "choices"}),
    "chat": frozenset({"context", "question", "recent"}),
}
"""Places that a prompt must have; all others need a context and a question."""


@cache
def load(name: str, folder: str | None = None) -> Prompt:
    """The prompt of that name, from the folder if it holds one.

    Raises InputError where there is none of the name, ConfigurationError for a file that cannot
    be used.
    """
    own = Path(folder).expanduser() if folder else None
    if own is not None and not own.is_dir():
        raise ConfigurationError(f"COFIRE_ANSWER_PROMPTS names {folder}, which is no folder")
    if own is not None and own.joinpath(f"{name}.md").is_file():
        prompt = read_prompt(own, name, PLACES)
    elif name in NAMES:
        prompt = read_prompt(files(__name__), name, PLACES)
    else:
        raise InputError(f"there is no prompt {name!r}; use one of {', '.join(NAMES)}")
    missing = NEEDED.get(name, frozenset({"context", "question"})) - prompt.places()
    if missing:
        raise ConfigurationError(f"the prompt {name}.md lacks {{{{{sorted(missing)[0]}}}}}")
    return prompt
