"""`ask`: an answer from memory, with its sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli import options
from cofire.cli.commands import command
from cofire.cli.opening import opened
from cofire.cli.options import Common, language_model, text_or_input
from cofire.cli.output import is_terminal, print_json, say
from cofire.errors import GenerationError
from cofire.plain import answer_shape

if TYPE_CHECKING:
    from cofire.answering.pending import PendingAnswer
    from cofire.answers import Answer, AnswerOptions

Most = Annotated[
    int, typer.Option("-k", "--limit", metavar="NUMBER", help="Memories recalled at most.")
]
Tokens = Annotated[
    int | None,
    typer.Option(
        metavar="TOKENS",
        help="Wordpieces of memories that the answer is made from, at most. Default: "
        "COFIRE_ANSWER_TOKENS, or 1000.",
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="cofire, the baselines dense and lexical, or a paper's: hela_mem, synapse, atamaia.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="openai:NAME, local, local:FILE or none. Default: COFIRE_ANSWER_MODEL, or else "
        "COFIRE_GENERATOR, or none.",
    ),
]
NoLearn = Annotated[
    bool, typer.Option("--no-learn", help="What the model cites gains nothing by it.")
]
Temperature = Annotated[
    float | None,
    typer.Option(metavar="0..2", help="Of the model. Default: COFIRE_ANSWER_TEMPERATURE, or 0."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        metavar="TOKENS",
        help="Of the model's reply, at most. Default: COFIRE_ANSWER_MAX_TOKENS, or 512.",
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="NUMBER", help="For a model that takes one.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "ask",
        examples=(
            'cofire ask "Where is the shed key?"',
            'cofire ask "Who may not eat nuts?" --model openai:gpt-4o-mini',
            'cofire ask "What did we decide?" --speaker Nora --since 2026-01-01 --nearest',
            'cofire ask "When did we move?" --context --model none',
            "cat question.txt | cofire ask - --json | jq -r .text",
        ),
    )(ask)


def ask(
    common: Common,
    *,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="A question. `-` reads standard input.")
    ],
    k: Most = 60,
    tokens: Tokens = None,
    profile: ProfileName = "cofire",
    model: Model = None,
    prompt: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="answer (sentences), short (a phrase), or one in the folder "
            "COFIRE_ANSWER_PROMPTS.",
        ),
    ] = "answer",
    no_gate: Annotated[
        bool,
        typer.Option("--no-gate", help="Answer even if nothing of the kind seems to be there."),
    ] = False,
    no_learn: NoLearn = False,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it is asked. Default: the clock."),
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Where there is no answer, show what came nearest.")
    ] = False,
    show_context: Annotated[
        bool, typer.Option("--context", help="Also show what the answer is made from.")
    ] = False,
    kind: options.Kinds = None,
    speaker: options.Speakers = None,
    session: options.Sessions = None,
    tag: options.Tags = None,
    meta: options.Meta = None,
    since: options.Since = None,
    until: options.Until = None,
    trusted_only: options.TrustedOnly = False,
) -> None:
    """Answer a question from memory, with its sources, or say that it was not mentioned.

    A language model writes the answer from what was recalled, and cites it; without one the
    sentence that fits best is the answer, and is marked as such. The filters decide what may be
    recalled at all. That there is no answer is no failure.
    """
    chosen = options.filters(
        kinds=kind, speakers=speaker, sessions=session, tags=tag, meta=meta,
        since=since, until=until, trusted_only=trusted_only,
    )  # fmt: skip
    given: AnswerOptions = {
        "k": k, "tokens": tokens, "profile": profile, "prompt": prompt, "gate": not no_gate,
        "learn": False if no_learn else None, "temperature": temperature,
        "max_tokens": max_tokens, "seed": seed, "now": now, "by": common.user,
    }  # fmt: skip
    writer = language_model(model)
    with opened(common) as memory:
        text = text_or_input(question)
        with memory.answering(text, model=writer, **given, **chosen) as pending:
            if common.json:
                print_json(answer_shape(_answered(pending), context=show_context))
                return
            if show_context:
                say((pending.context.text or "(nothing was recalled)", "dim"))
                say("")
            answer = _shown(pending)
        _print_rest(answer, common, nearest=nearest, narrowed=any(chosen.values()))


def _answered(pending: PendingAnswer) -> Answer:
    """Raises GenerationError, which says what can be done."""
    with _advised():
        return pending.answer


@contextmanager
def _advised() -> Iterator[None]:
    try:
        yield
    except GenerationError as exc:
        raise type(exc)(
            f"{exc}. `--model none` answers without a language model, and another may be named "
            "there or by COFIRE_ANSWER_MODEL"
        ) from exc


def _shown(pending: PendingAnswer) -> Answer:
    """The answer; on a terminal it is shown while a model writes it."""
    from cofire.cli.answered import print_text
    from cofire.cli.flowing import show_pieces, taken_otherwise

    shown = None
    with _advised():
        if pending.prepared.request is not None and is_terminal(sys.stdout):
            shown = show_pieces(pending)
        answer = pending.answer
    if shown is None or taken_otherwise(shown, answer.marked):
        print_text(answer)
    return answer


def _print_rest(answer: Answer, common: Common, *, nearest: bool, narrowed: bool) -> None:
    """What stands below an answer."""
    from cofire.cli import answered

    answered.print_warnings(answer, vectors=common.vectors)
    if answer.abstained:
        filters = " The filters may leave nothing." if narrowed else ""
        say(f"{answered.why_not(answer)}{filters if not answer.recall else ''}")
        if nearest:
            say("")
            say(("What came nearest:", "bold"))
            answered.print_nearest(answer.recall)
        elif answer.recall:
            hint = ", --no-gate answers all the same" if answer.reason == "gate" else ""
            say((f"--nearest shows what came nearest{hint}.", "dim"))
    elif answer.citations:
        say("")
        answered.print_sources(answer)
    say("")
    if answer.extractive and not answer.abstained:
        say(answered.unwritten(answer))
    answered.print_remarks(
        answered.written_by(answer), answered.figures(answer), answered.lesson(answer),
        f"Recall {answer.recall.id}",
    )  # fmt: skip
