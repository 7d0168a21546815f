"""Options that several commands share, and what they choose."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cofire.errors import InputError

EVERYWHERE = "Options of every command"
FILTERS = "Which memories"


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What the options of every command choose; None where nothing was said."""

    store: str | None = None
    identity: str | None = None
    user: str | None = None
    projects: tuple[str, ...] = ()
    tenant: str | None = None
    json: bool = False
    vectors: bool = True
    embedder: str | None = None

    def over(self, before: Common) -> Common:
        """These choices (given after the command) on top of those given before it."""
        return Common(
            store=self.store if self.store is not None else before.store,
            identity=self.identity if self.identity is not None else before.identity,
            user=self.user if self.user is not None else before.user,
            projects=tuple(dict.fromkeys(before.projects + self.projects)),
            tenant=self.tenant if self.tenant is not None else before.tenant,
            json=self.json or before.json,
            vectors=self.vectors and before.vectors,
            embedder=self.embedder if self.embedder is not None else before.embedder,
        )


COMMON: Mapping[str, tuple[Any, Any]] = {
    "store": (
        Annotated[
            str | None,
            typer.Option(
                "--store",
                metavar="PATH",
                help="SQLite file or URL of the store. Default: COFIRE_STORE, or a file in the "
                "platform's data folder (`cofire doctor` names it).",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
    "identity": (
        Annotated[
            str | None,
            typer.Option(
                "--identity",
                metavar="NAME",
                help="The agent whose memory it is. Default: default.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
    "user": (
        Annotated[
            str | None,
            typer.Option(
                "--user",
                metavar="NAME",
                help="The end user whom the agent serves, with a memory apart.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
    "project": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--project",
                metavar="NAME",
                help="A project whose shared memories are read too; may be repeated.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
    "tenant": (
        Annotated[
            str | None,
            typer.Option(
                "--tenant",
                metavar="NAME",
                help="Walls off everything from other tenants. Default: default.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
    "json": (
        Annotated[
            bool,
            typer.Option(
                "--json",
                help="Print one JSON document; errors are JSON on standard error.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        False,
    ),
    "no_vectors": (
        Annotated[
            bool,
            typer.Option(
                "--no-vectors",
                help="Use words only, and no embedding model.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        False,
    ),
    "embedder": (
        Annotated[
            str | None,
            typer.Option(
                "--embedder",
                metavar="NAME",
                help="minilm, hashing:DIMENSION or openai:MODEL. Default: COFIRE_EMBEDDER, "
                "or minilm.",
                rich_help_panel=EVERYWHERE,
            ),
        ],
        None,
    ),
}
"""Name → annotation and default of the options of every command."""


def common_of(given: Mapping[str, Any]) -> Common:
    """The values of the options in `COMMON`; a command may leave some out."""
    return Common(
        store=given.get("store"),
        identity=given.get("identity"),
        user=given.get("user"),
        projects=tuple(given.get("project") or ()),
        tenant=given.get("tenant"),
        json=bool(given.get("json")),
        vectors=not given.get("no_vectors"),
        embedder=given.get("embedder"),
    )


Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", metavar="KIND", help="Of this kind; may be repeated.", rich_help_panel=FILTERS
    ),
]
Speakers = Annotated[
    list[str] | None,
    typer.Option(
        "--speaker", metavar="NAME", help="Said by them; may be repeated.", rich_help_panel=FILTERS
    ),
]
Sessions = Annotated[
    list[str] | None,
    typer.Option(
        "--session",
        metavar="NAME",
        help="From this session; may be repeated.",
        rich_help_panel=FILTERS,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", metavar="TAG", help="With this tag; all of several.", rich_help_panel=FILTERS
    ),
]
Meta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta",
        metavar="KEY=VALUE",
        help="With this metadata; VALUE is JSON, or else text. All of several.",
        rich_help_panel=FILTERS,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Not before, as in 2026-03-01.", rich_help_panel=FILTERS
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="TIME", help="Before, as in 2026-04-01.", rich_help_panel=FILTERS
    ),
]

TrustedOnly = Annotated[
    bool,
    typer.Option(
        "--trusted-only",
        help="Nothing that comes from outside (tools, web pages).",
        rich_help_panel=FILTERS,
    ),
]


def filters(
    *,
    kinds: Sequence[str] | None,
    speakers: Sequence[str] | None,
    sessions: Sequence[str] | None,
    tags: Sequence[str] | None,
    meta: Sequence[str] | None,
    since: str | None,
    until: str | None,
    trusted_only: bool = False,
) -> dict[str, Any]:
    """The options as `Memory.recall` and `Memory.list` take them."""
    return {
        "kinds": tuple(kinds or ()),
        "speakers": tuple(speakers or ()),
        "sessions": tuple(sessions or ()),
        "tags": tuple(tags or ()),
        "metadata": metadata(meta),
        "since": since,
        "until": until,
        **({"trusted_only": True} if trusted_only else {}),
    }


def metadata(pairs: Sequence[str] | None) -> dict[str, Any]:
    """KEY=VALUE pairs; a value that is valid JSON is read as such, so that 3 is a number and
    true is true; anything else is text. Raises InputError."""
    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--meta takes KEY=VALUE, as in --meta source=mail; not {pair!r}")
        try:
            found[key] = json.loads(value, parse_constant=_not_json)
        except (ValueError, RecursionError):
            found[key] = value
    return found


def _not_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def numbers(text: str, option: str) -> tuple[int, ...]:
    """ "5,10,20" as whole numbers of at least 1. Raises InputError."""
    try:
        found = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise InputError(f"{option} takes whole numbers from 1, as in 5,10,20; not {text!r}")
    return found


def words(text: str, option: str) -> tuple[str, ...]:
    """ "a,b" as texts. Raises InputError where there is none."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise InputError(f"{option} takes one or more names, as in a,b; not {text!r}")
    return found


def language_model(name: str | None) -> str | None:
    """The name of a language model, or None where none is named. Raises InputError for what is
    none, where the settings would complain of a variable that nobody set."""
    if name and name not in {"none", "local"} and not re.match(r"(openai|local):.", name):
        raise InputError(
            f"there is no language model {name!r}; name openai:NAME, local, local:FILE or none"
        )
    return name


def text_or_input(given: str) -> str:
    """The text, or for "-" standard input without the line break at its end."""
    if given != "-":
        return given
    import sys

    data = sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InputError(
            f"standard input is not UTF-8: byte {data[exc.start]:#04x} at offset {exc.start}"
        ) from exc
    return text.removesuffix("\n").removesuffix("\r")


def path_or_none(given: str) -> Path | None:
    """The path, or None for "-"."""
    return None if given == "-" else Path(given).expanduser()
