"""`db upgrade`, `db check` and `db distribute`: the schema of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import command
from cofire.cli.options import Common
from cofire.cli.output import many, print_json, say, write
from cofire.errors import ConfigurationError, InputError, MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

    from cofire.settings import Settings
    from cofire.store import Upgraded

MOST_PARTITIONS = 256
"""More parts than that make every query's planning slow."""

Place = Annotated[
    str | None,
    typer.Argument(
        metavar="URL_OR_PATH",
        help="postgresql://USER@HOST/DATABASE, or an SQLite file. Default: the store that the "
        "options and settings choose.",
    ),
]


def register(group: typer.Typer) -> None:
    """Add the commands of this module to the group `db`."""
    command(
        group,
        "upgrade",
        examples=(
            "cofire db upgrade postgresql://cofire_owner@host/cofire --app-role cofire_app",
            "cofire db upgrade postgresql://cofire_owner@host/cofire --print-setup",
            "cofire db upgrade memories.db --json",
        ),
    )(upgrade)
    command(
        group,
        "check",
        examples=(
            "cofire db check postgresql://cofire_owner@host/cofire",
            "cofire db check postgresql://cofire_app@host/cofire --tenant acme --json",
            "cofire db check memories.db",
        ),
    )(check)
    command(
        group,
        "distribute",
        examples=(
            "cofire db distribute postgresql://cofire_owner@host/cofire",
            "cofire db distribute postgresql://cofire_owner@host/cofire --run --json",
        ),
    )(distribute)


def upgrade(
    common: Common,
    *,
    place: Place = None,
    app_role: Annotated[
        list[str] | None,
        typer.Option(
            "--app-role",
            metavar="ROLE",
            help="A role that is to open the store; it is granted what the library needs. May be "
            "repeated.",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            help="Parts of each table of a new store, a power of two up to 256. Default: 16.",
        ),
    ] = None,
    index_dimension: Annotated[
        int | None,
        typer.Option(
            "--index-dimension",
            metavar="N",
            help="PostgreSQL: also make the index that spaces too large for memory are searched "
            "by, for vectors of N dimensions. There is one for 384.",
        ),
    ] = None,
    print_setup: Annotated[
        bool,
        typer.Option(
            "--print-setup",
            help="Only print the SQL that an administrator runs once: roles, database, extension.",
        ),
    ] = False,
) -> None:
    """Make the schema of a PostgreSQL store, or bring a store's schema up to date.

    On PostgreSQL name a URL of the role that owns the store, or is to. All happens in
    one transaction, or nothing. An SQLite file is copied beside itself first, just as when it is
    opened.
    """
    if partitions is not None and (
        not 1 <= partitions <= MOST_PARTITIONS or partitions & (partitions - 1)
    ):
        raise InputError(
            f"--partitions is a power of two from 1 to {MOST_PARTITIONS}, not {partitions}"
        )
    settings = _settings(common, place)
    if print_setup:
        _print_setup(settings.store, app_role or [], as_json=common.json)
        return
    from cofire.store import upgrade_store

    done = upgrade_store(
        settings.store,
        app_roles=app_role or (),
        partitions=partitions,
        busy_timeout=settings.write_wait,
    )
    if index_dimension is not None:
        _add_index(settings.store, index_dimension)
    if common.json:
        print_json(done)
        return
    say(f"{done.where}: {_what_was_done(done)}.")
    if done.copy is not None:
        say(f"The store as it was before is in {done.copy}; delete it when you no longer need it.")
    for role in app_role or ():
        say(f"The role {role} may open it.")
    if partitions is not None and done.before is not None:
        say("The store was there already and keeps the parts that its tables have.")


def _add_index(store: str, dimension: int) -> None:
    if not store.startswith(("postgresql:", "postgres:")):
        raise InputError("--index-dimension: only PostgreSQL has indexes of vectors")
    from cofire.store.postgres_schema import add_vector_index

    add_vector_index(store, dimension)


def _what_was_done(done: Upgraded) -> str:
    if done.before is None:
        return f"made with schema {done.after}"
    if done.before == done.after:
        return f"already current (schema {done.after})"
    return f"brought from schema {done.before} to {done.after}"


def _settings(common: Common, place: str | None) -> Settings:
    from cofire.settings import load_settings

    return load_settings(
        store=place if place is not None else common.store, embedder=common.embedder
    )


def _print_setup(store: str, app_roles: list[str], *, as_json: bool) -> None:
    from cofire.store.postgres_setup import setup_statements

    text = setup_statements(store, app_roles)
    if as_json:
        print_json({"sql": text})
    else:
        write(text)


def check(common: Common, *, place: Place = None) -> int:
    """Say what a database is like, and whether its store may be used as it is.

    Nothing is changed. On PostgreSQL: versions, the schema, row-level security, and whether the
    role may open the store; as a role that may, also whether everything of --tenant agrees. On
    SQLite: the schema, the file and whether everything in it agrees. The exit code is 1 if
    something is wrong.
    """
    from cofire.cli.diagnosing import tell
    from cofire.cli.store_examination import examine_store

    return tell(examine_store(common, _settings(common, place)), as_json=common.json)


def distribute(
    common: Common,
    *,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="postgresql://USER@COORDINATOR/DATABASE, as the role that owns the store.",
        ),
    ],
    shards: Annotated[
        int,
        typer.Option("--shards", metavar="N", min=1, max=32_000, help="Shards of each table."),
    ] = 32,
    run: Annotated[
        bool, typer.Option("--run", help="Run the statements, if the database has Citus.")
    ] = False,
) -> None:
    """Print the SQL that spreads a store's tables over a Citus cluster by tenant.

    It is written from Citus' documentation and was not tested on Citus. With --run the statements
    are run on what is not distributed yet; in a database without the extension nothing is, and the
    exit code is 4.
    """
    distributing = _distributing(url)
    made = (distributing.distribute if run else distributing.planned)(url, shards=shards)
    if common.json:
        print_json({"run": run, "statements": made})
        return
    for statement in made:
        write(f"{statement};")
    if run:
        say(f"{many(len(made), 'statement')} run.")


def _distributing(url: str) -> ModuleType:
    from cofire.store import NEEDS_POSTGRES, is_postgres

    if not is_postgres(url):
        raise ConfigurationError(f"{url}: only PostgreSQL can be distributed")
    try:
        from cofire.store import postgres_distributing
    except ImportError as exc:
        raise MissingExtraError(NEEDS_POSTGRES) from exc
    return postgres_distributing
