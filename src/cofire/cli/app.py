"""The application: its name, the options before a command, and every command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

import cofire
from cofire.cli import (
    asking,
    auditing,
    browsing,
    changing,
    chatting,
    database,
    deleting,
    demo,
    diagnosing,
    evaluating,
    installing,
    keys,
    learning,
    mcp_serving,
    moving,
    plotting,
    recalling,
    remembering,
    serving,
    sessions,
    sleeping,
    working,
)
from cofire.cli.commands import Group, examples_text
from cofire.cli.options import COMMON, common_of

ABOUT = """Long-term memory for LLM agents.

Remembers what was said, and recalls what bears on a question: by meaning, by words, and over the
links between memories. Everything stays in one SQLite file on this machine, or in a PostgreSQL
database of yours."""

EXAMPLES = (
    "cofire demo",
    'cofire remember "The shed key is in the blue tin." --speaker Ada',
    'cofire recall "How do I get into the shed?"',
    "cofire import notes/",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cofire {cofire.__version__}")
        raise typer.Exit


def _before(context: typer.Context, version: bool = False, **given: Any) -> None:
    context.obj = common_of(given)


def build() -> typer.Typer:
    """The application with every command."""
    app = typer.Typer(
        name="cofire",
        cls=Group,
        help=ABOUT,
        epilog=examples_text(EXAMPLES),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    _take_common_options(app)
    groups = (
        demo, remembering, recalling, asking, chatting, sessions, learning, sleeping, browsing,
        changing, deleting, moving, serving, mcp_serving, installing, working, database, keys,
        auditing, diagnosing, evaluating, plotting,
    )  # fmt: skip
    for group in groups:
        group.register(app)
    return app


def _take_common_options(app: typer.Typer) -> None:
    """Every command's options may also stand before the command."""
    import inspect

    version = Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        ),
        inspect.Parameter("version", kind, default=False, annotation=version),
        *(
            inspect.Parameter(name, kind, default=default, annotation=annotation)
            for name, (annotation, default) in COMMON.items()
        ),
    ]
    _before.__annotations__ = {one.name: one.annotation for one in parameters}
    _before.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app.callback()(_before)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Raises what went wrong."""
    click_command = typer.main.get_command(build())
    code = click_command.main(list(arguments), prog_name="cofire", standalone_mode=False)
    return code if isinstance(code, int) else 0
