"""How a command is made: its name, examples, options of every command, place in the help."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from cofire.cli.options import COMMON, Common, common_of

Body = Callable[..., int | None]


class ReaderHasGoneError(Exception):
    """Whoever read standard output has closed it. Typer would turn the plain BrokenPipeError
    into a failure of its own."""


class Command(TyperCommand):
    """A command whose help shows its own options first, then those of every command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = parameter.metavar or ""
                pieces.append(name if parameter.required else f"[{name}]")
                pieces[-1] += "" if parameter.nargs == 1 else "..."
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                help = getattr(parameter, "help", None)
                sections["Arguments"].append((parameter.metavar or "", help or ""))
                continue
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            sections.setdefault(panel, []).append(record)
        last = [name for name in sections if name not in {"Arguments", "Options"}]
        for name in ("Arguments", "Options", *last):
            if sections[name]:
                with formatter.section(name):
                    formatter.write_dl(sections[name])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """Commands in the order in which a newcomer needs them, and before the options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        records = (parameter.get_help_record(ctx) for parameter in self.get_params(ctx))
        outermost = ctx.parent is None
        with formatter.section(f"Options{', before or after the command' if outermost else ''}"):
            formatter.write_dl([record for record in records if record is not None])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(self.epilog, formatter)


def command(
    app: typer.Typer, name: str, *, examples: Sequence[str], without: Collection[str] = ()
) -> Callable[[Body], Body]:
    """Makes a function a command.

    Its first parameter is a `Common`, made of the options before and after the command's name;
    the others are the command's own. It returns the exit code (None: 0). `without` names options
    of every command that this one has another use for.
    """

    def decorate(body: Body) -> Body:
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in COMMON.items()
            if key not in without
        ]
        context = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        parameters = [context, *(one.replace(kind=one.KEYWORD_ONLY) for one in own), *shared]
        names = {one.name for one in shared}

        def run(context: typer.Context, **given: Any) -> int:
            after = common_of({key: given.pop(key) for key in names})
            before = context.find_root().obj
            common = after.over(before) if isinstance(before, Common) else after
            try:
                return body(common, **given) or 0
            except BrokenPipeError as exc:
                raise ReaderHasGoneError from exc

        run.__name__, run.__doc__ = body.__name__, body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(
            name,
            cls=Command,
            epilog=examples_text(examples),
            context_settings={"help_option_names": ["-h", "--help"]},
        )(run)
        return body

    return decorate


def examples_text(examples: Sequence[str]) -> str:
    """The examples as the end of a help text; \\b keeps the lines as they are."""
    return "\n".join(examples)


def write_examples(examples: str | None, formatter: Any) -> None:
    """Examples as lines that can be copied, whatever the width."""
    if examples:
        with formatter.section("Examples"):
            for example in examples.splitlines():
                formatter.write(f"  {example}\n")
