"""`install`: tell a client of MCP how to start Cofire, and take that back."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from cofire.cli.clients import NAME, Client, client_named, is_secret, program
from cofire.cli.commands import command
from cofire.cli.json_members import read, with_member, without_member
from cofire.cli.options import Common
from cofire.cli.output import asks, note, print_json, say, visible, write
from cofire.errors import FormatError, InputError, StoreUnavailableError

KEPT = ".before-cofire"
"""What the name of the file as it was ends with."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "install",
        examples=(
            "cofire install claude-code",
            "cofire install vscode --scope project --identity coder --project billing",
            "cofire install cursor --print",
            "cofire install claude-desktop --undo",
        ),
    )(install)


def install(
    common: Common,
    client: Annotated[
        str,
        typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop, cursor or vscode."),
    ],
    *,
    scope: Annotated[
        str, typer.Option(metavar="SCOPE", help="user: everywhere; project: in this folder.")
    ] = "user",
    undo: Annotated[
        bool, typer.Option("--undo", help="Take out what was put in, and nothing else.")
    ] = False,
    print_only: Annotated[
        bool, typer.Option("--print", help="Only print the entry; change nothing.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The client's file, if it is elsewhere.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Tell a client of MCP how to start `cofire mcp`.

    Shows the change and asks. The rest of the file stays as it is, comments included; a copy of
    it is kept beside it until --undo. The options that say which store and whose memories go into
    the entry, and so do COFIRE_ variables that are set here, except keys and passwords.
    """
    chosen = client_named(client)
    place = file.expanduser() if file is not None else chosen.file(scope, Path.cwd())
    entry, left_out = _entry(common, chosen)
    if print_only:
        print_json({chosen.servers: {NAME: entry}})
        return 0
    config = _Config(_real(place), (chosen.servers, NAME))
    new = config.undone() if undo else config.with_entry(entry)
    if new == config.text:
        say("There is nothing to undo." if undo else "It is there already.")
        return 0
    if not _agreed(config, new, yes=yes, as_json=common.json):
        return 1
    config.write(new, undo=undo)
    if common.json:
        print_json({"client": chosen.name, "file": str(config.place), "undone": undo})
        return 0
    say(f"{'Taken out of' if undo else 'Written to'} {config.place}.")
    if not undo:
        say(f"Now {chosen.after}.")
    for name in left_out:
        note(f"{name} is not written there, because it is secret: put it into Cofire's own "
             "configuration file (`cofire doctor` names it)")  # fmt: skip
    return 0


def _agreed(config: _Config, new: str, *, yes: bool, as_json: bool) -> bool:
    """Shows the change, and asks. Raises InputError where nobody can be asked."""
    if not as_json:
        for line in config.changes(new):
            write(visible(line))
    if yes:
        return True
    if as_json or not asks():
        raise InputError("add --yes where nobody can be asked; --print shows the entry")
    if typer.confirm(f"Change {config.place}?", err=True):
        return True
    note("Nothing was changed.")
    return False


def _entry(common: Common, client: Client) -> tuple[dict[str, Any], list[str]]:
    """The entry, and the variables that must not stand in it."""
    from cofire.settings import load_settings

    arguments = ["mcp"]
    for option, value in (
        ("--tenant", common.tenant),
        ("--identity", common.identity),
        ("--user", common.user),
        *(("--project", project) for project in common.projects),
        ("--embedder", common.embedder),
    ):
        if value is not None:
            arguments += [option, value]
    if not common.vectors:
        arguments.append("--no-vectors")
    env = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith("COFIRE_") and name not in {"COFIRE_STORE", "COFIRE_DEBUG"} and value
    }
    env["COFIRE_STORE"] = _absolute(load_settings(store=common.store).store)
    if "COFIRE_CONFIG" in env:
        env["COFIRE_CONFIG"] = str(Path(env["COFIRE_CONFIG"]).expanduser().absolute())
    left_out = [name for name, value in env.items() if is_secret(name) or _has_password(value)]
    kept = {name: value for name, value in sorted(env.items()) if name not in left_out}
    return client.entry([*program(), *arguments], kept), left_out


def _absolute(store: str) -> str:
    if re.match(r"[a-z][a-z0-9+]*://", store):
        return store
    return str(Path(store).expanduser().absolute())


def _has_password(value: str) -> bool:
    return re.search(r"://[^/@\s]*:[^/@\s]+@", value) is not None


def _real(place: Path) -> Path:
    """The file itself: one that is linked to is not replaced by a copy."""
    return place.resolve() if place.is_symlink() else place.absolute()


class _Config:
    """A client's file as it is, and where in it the entry belongs."""

    def __init__(self, place: Path, path: tuple[str, str]) -> None:
        """Raises FormatError, StoreUnavailableError."""
        self.place = place
        self._path = path
        self._raw, self.text = _read(place)

    @property
    def kept(self) -> Path:
        """The copy of the file as it was."""
        return self.place.with_name(self.place.name + KEPT)

    def with_entry(self, entry: dict[str, Any]) -> str:
        """The text with the entry. Raises FormatError."""
        with _naming(self.place):
            return with_member(self.text, self._path, entry)

    def undone(self) -> str:
        """The text as it was before; where it was changed since, only the entry is taken out (or
        the one that stood in its place put back). Raises FormatError."""
        former = _read(self.kept)[1] if self.kept.exists() else None
        with _naming(self.place):
            return _undone(self.text, self._path, former)

    def changes(self, new: str) -> list[str]:
        """What changes, as lines of a diff."""
        name = str(self.place)
        lines = difflib.unified_diff(
            self.text.splitlines(), new.splitlines(), name, name, lineterm="", n=1
        )
        return list(lines)

    def write(self, new: str, *, undo: bool) -> None:
        """Replace the file whole or not at all. Raises StoreUnavailableError where somebody else
        has changed it meanwhile."""
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            if not undo and self._raw is not None and not self.kept.exists():
                _replace(self.kept, self._raw, like=self.place)
            if _read(self.place)[0] != self._raw:
                raise StoreUnavailableError(
                    f"{self.place} was changed at this moment by somebody else; try again"
                )
            if undo and not new and not self.kept.exists():  # there was no file
                self.place.unlink(missing_ok=True)
            else:
                _replace(self.place, new.encode("utf-8"), like=self.place)
            if undo:
                self.kept.unlink(missing_ok=True)
        except OSError as exc:
            raise StoreUnavailableError(f"{self.place} cannot be written: {exc}") from exc


def _undone(text: str, path: tuple[str, str], former: str | None) -> str:
    """See `_Config.undone`. Empty where there was no file before, and nothing else is in it."""
    entry = _at(text, path)
    if entry is None:
        return text
    if with_member(former or "", path, entry) == text:
        return former or ""
    servers = None if former is None else _at(former, path[:1])
    before = servers.get(path[1]) if isinstance(servers, dict) else None
    if before is not None:
        return with_member(text, path, before)
    new = without_member(text, path)
    return without_member(new, path[:1]) if servers is None and _at(new, path[:1]) == {} else new


def _at(text: str, path: Sequence[str]) -> Any:
    """What a text says there; None: nothing."""
    value = read(text)
    for key in path:
        member = None if value is None or value.members is None else value.member(key)
        value = None if member is None else member.value
    return None if value is None else value.said


def _read(place: Path) -> tuple[bytes | None, str]:
    """The bytes (None: there is no such file) and the text. Raises FormatError,
    StoreUnavailableError."""
    try:
        raw = place.read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as exc:
        raise StoreUnavailableError(f"{place} cannot be read: {exc}") from exc
    try:
        return raw, raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise FormatError(f"{place} is not UTF-8; nothing was changed") from exc


def _replace(place: Path, content: bytes, *, like: Path) -> None:
    """Write a file beside and put it in place; readable by whom `like` is."""
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            shutil.copymode(like, made)
        made.replace(place)
    except OSError:
        made.unlink(missing_ok=True)
        raise


@contextmanager
def _naming(place: Path) -> Iterator[None]:
    """What is wrong with a file is told with its name."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{place}: {error}; nothing was changed") from error
