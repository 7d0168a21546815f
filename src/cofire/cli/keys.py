"""`keys`: who may ask a server, and for what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from cofire.cli.commands import Group, command
from cofire.cli.opening import log_to_standard_error
from cofire.cli.options import Common
from cofire.cli.output import note, print_json, say, table, write
from cofire.errors import InputError

if TYPE_CHECKING:
    from cofire.store import Store
    from cofire.store.serving_records import KeyRecord

_ID = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
_OTHER = ("identity", "user", "project", "no_vectors", "embedder")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}
_SPAN = re.compile(r"([1-9][0-9]{0,5})\s*([hdwy])")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    group = typer.Typer(
        name="keys",
        help="Make, list and revoke the keys by which others use this store over a server.",
        rich_markup_mode=None,
        cls=Group,
        epilog="cofire keys create --name dashboard --scope read",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.add_typer(group)
    command(
        group,
        "create",
        examples=(
            "cofire keys create --name assistant",
            "cofire keys create --name dashboard --scope read --expires 90d",
            "cofire keys create --name helpdesk --identity support --user nora --user igor",
            "cofire keys create --name operator --any-identity --any-project --scope read "
            "--scope write --scope forget --scope admin --json",
        ),
        without=_OTHER,
    )(create)
    command(
        group,
        "list",
        examples=("cofire keys list", "cofire keys list --tenant acme --json"),
        without=_OTHER,
    )(list_keys)
    command(group, "revoke", examples=(f"cofire keys revoke {_ID}",), without=_OTHER)(revoke)


def create(
    common: Common,
    *,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Whose key it is: the principal of feedback and the audit trail."
        ),
    ],
    identity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An agent whose memories it is for; may be repeated, the first is meant where a "
            "request names none. Default: default.",
        ),
    ] = None,
    any_identity: Annotated[
        bool, typer.Option("--any-identity", help="It is for every agent's memories.")
    ] = False,
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An end user whose memories it is for; may be repeated. Default: any, and none.",
        ),
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A project whose shared memories it is for; may be repeated. Default: none.",
        ),
    ] = None,
    any_project: Annotated[
        bool, typer.Option("--any-project", help="It is for every project's memories.")
    ] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="read, write, forget or admin; may be repeated. Default: read and write.",
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="From when on it is good for nothing, as in 90d, 12h or 2027-01-01. Default: "
            "never.",
        ),
    ] = None,
) -> None:
    """Make a key, and show it once: only its hash is kept.

    The key alone is on standard output, so that it can go to where it is needed without being seen.
    """
    from cofire.server import keys

    now = datetime.now(UTC)
    with opened_store(common, create=True) as store:
        record, token = keys.create_key(
            store,
            _tenant(common),
            name,
            identities=_identities(_with(common.identity, identity), any_identity),
            users=_with(common.user, user) or None,
            projects=_any("project", [*common.projects, *(project or ())], any_project),
            scopes=scope or keys.DEFAULT_SCOPES,
            expires=None if expires is None else expiry(expires, now),
            now=now,
        )
        _enter(store, "keys.create", record)
    if common.json:
        print_json({**keys.key_json(record), "token": token})
        return
    write(token)
    note(
        f"This is the key {record.name!r}; it is shown only now. Its id, for `cofire keys revoke`: "
        f"{keys.key_id(record.uid)}"
    )


def list_keys(common: Common) -> None:
    """List the keys of a tenant, never what is secret about them."""
    from cofire.server import keys

    with opened_store(common) as store:
        found = [keys.key_json(record) for record in store.list_keys(_tenant(common))]
    if common.json:
        print_json(found)
        return
    if not found:
        say("There are no keys: `cofire keys create --name NAME` makes one.")
        return
    head = ("id", "name", "state", "scopes", "identities", "users", "projects", "expires", "used")
    rows = [
        (
            key["id"], key["name"], key["state"], ",".join(key["scopes"]),
            _said(key["identities"]), _said(key["users"]), _said(key["projects"]),
            (key["expires"] or "never")[:10], (key["last_used"] or "never")[:16],
        )
        for key in found
    ]  # fmt: skip
    table([head, *rows])


def revoke(
    common: Common,
    *,
    id: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id, as `cofire keys list` shows it.")
    ],
) -> None:
    """Make a key good for nothing: servers notice within five seconds."""
    from cofire.server import keys

    tenant = _tenant(common)
    with opened_store(common) as store:
        revoked = keys.revoke_key(store, tenant, id)
        record = next(one for one in store.list_keys(tenant) if one.uid == keys.key_uid(id))
        if revoked:
            _enter(store, "keys.revoke", record)
    if common.json:
        print_json({"revoked": revoked, **keys.key_json(record)})
    elif revoked:
        say(f"The key {record.name!r} is revoked.")
    else:
        say(f"The key {record.name!r} was revoked before.")


def expiry(text: str, now: datetime) -> datetime:
    """When a key expires: "90d" from now on, or a time. Raises InputError."""
    from cofire.encoding.timestamps import parse_time

    span = _SPAN.fullmatch(text.strip().lower())
    if span is None:
        try:
            return parse_time(text)[0]
        except InputError:
            raise InputError(
                f"--expires takes a span such as 12h, 90d, 4w or 1y, or a time such as 2027-01-01; "
                f"not {text!r}"
            ) from None
    try:
        return now + timedelta(hours=int(span[1]) * _HOURS[span[2]])
    except OverflowError:
        raise InputError(f"--expires {text} is too far ahead; leave it out for never") from None


@contextmanager
def opened_store(common: Common, *, create: bool = False) -> Iterator[Store]:
    """The store that the options choose, closed afterwards."""
    from cofire.memories import Memories
    from cofire.settings import load_settings

    settings = load_settings(store=common.store)
    log_to_standard_error(settings.log_level)
    with Memories.open(settings.store, create=create, vectors=False, settings=settings) as opened:
        yield opened.store


def _tenant(common: Common) -> str:
    return common.tenant or "default"


def _with(before: str | None, after: Sequence[str] | None) -> list[str]:
    """What was said before the command's name, and after it."""
    return [*([] if before is None else [before]), *(after or ())]


def _identities(names: list[str], anything: bool) -> list[str] | None:
    return _any("identity", names, anything) if names or anything else ["default"]


def _any(what: str, names: list[str], anything: bool) -> list[str] | None:
    if anything and names:
        raise InputError(f"--{what} and --any-{what} say different things; give one of them")
    return None if anything else names


def _said(names: Sequence[str] | None) -> str:
    return "any" if names is None else ",".join(names) or "none"


def _enter(store: Store, action: str, record: KeyRecord) -> None:
    """In the audit trail: a person at this machine did this to that key."""
    from time import time_ns

    from cofire.store.serving_records import AuditEntry

    store.write_audit(
        [
            AuditEntry(
                tenant=record.tenant, time=time_ns() // 1000, surface="cli", action=action,
                principal="local", key=record.uid,
            )
        ]
    )  # fmt: skip
