"""`chat`: a conversation with an assistant that remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.asking import (
    MaxTokens,
    Model,
    Most,
    NoLearn,
    ProfileName,
    Seed,
    Temperature,
    Tokens,
)
from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, language_model

if TYPE_CHECKING:
    from cofire.answers import AnswerOptions
    from cofire.models import Generator


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "chat",
        examples=(
            "cofire chat",
            "cofire chat --model openai:gpt-4o-mini --name Nora",
            "cat turns.txt | cofire chat --session monday",
            "cat turns.txt | cofire chat --json | jq -r .answer.text",
        ),
    )(chat)


def chat(
    common: Common,
    *,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who speaks to it. Default: that of --user, or none."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Goes on with this session, or begins it. Default: a new one."
        ),
    ] = None,
    model: Model = None,
    k: Most = 60,
    tokens: Tokens = None,
    profile: ProfileName = "cofire",
    no_learn: NoLearn = False,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it begins. Default: the clock."),
    ] = None,
) -> None:
    """Talk with an assistant that remembers both sides.

    What you say is stored before anything else. What bears on it is recalled, and a language model
    replies with its sources; without one, questions are answered by the sentence that fits best,
    and what you tell is only remembered. `/help` lists what else can be done: feedback on a reply,
    why its sources were recalled, forgetting one. In a pipe, each line is a turn.
    """
    from cofire.chatting import Conversation
    from cofire.cli.conversing import Screen
    from cofire.cli.lines import standard_input

    given: AnswerOptions = {
        "k": k, "tokens": tokens, "profile": profile, "learn": False if no_learn else None,
        "temperature": temperature, "max_tokens": max_tokens, "seed": seed,
    }  # fmt: skip
    with opened(common, create=True) as memory, _models(common) as made:
        conversation = Conversation(
            memory,
            model=made(model),
            speaker=name or common.user,
            session=session,
            options=given,
            clock=_clock(now),
        )
        Screen(conversation, standard_input(shown=not common.json), made, common).run()


def _clock(now: str | None) -> Callable[[], datetime]:
    """The clock, or one that begins to run at another time."""
    if now is None:
        return lambda: datetime.now(UTC)
    from cofire.arguments import as_moment

    beginning, started = as_moment(now), monotonic()
    return lambda: beginning + timedelta(seconds=monotonic() - started)


@contextmanager
def _models(common: Common) -> Iterator[Callable[[str | None], Generator | None]]:
    """Makes the model of a name (None: that of the settings), and closes all in the end: a local
    one takes long to load, so none is made for each turn."""
    from cofire.models import make_generator
    from cofire.settings import load_settings

    settings = load_settings(store=common.store, embedder=common.embedder)
    every: list[Generator] = []

    def made(spec: str | None) -> Generator | None:
        generator = make_generator(settings, language_model(spec) or settings.answer_model or None)
        if generator is not None:
            every.append(generator)
        return generator

    try:
        yield made
    finally:
        for generator in every:
            generator.close()
