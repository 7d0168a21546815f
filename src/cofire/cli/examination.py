"""What `doctor` looks at. Each section gives facts and problems, and none stops the others."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import cofire
from cofire.cli.output import many, size_text
from cofire.errors import (
    CofireError,
    ConfigurationError,
    EmbeddingMismatchError,
    SchemaVersionError,
    StoreBusyError,
    StoreCorruptError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cofire.cli.options import Common
    from cofire.memory import Memory
    from cofire.settings import Settings
    from cofire.store.records import Finding

LIBRARIES = ("numpy", "sqlalchemy", "pydantic", "onnxruntime", "tokenizers", "typer")
OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)
"""The first with RETURNING, which every write uses."""
LITTLE_SPACE = 200_000_000
"""Bytes of free disk below which writing may soon fail."""
EXAMPLE = "The shed key is in the blue tin."


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong, and how to mend it."""

    what: str
    mend: str


@dataclass(slots=True, kw_only=True)
class Section:
    """Facts about one subject, and what is wrong with it."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, what: str, mend: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(what=what, mend=mend))

    def report(self, findings: Sequence[Finding]) -> None:
        """Note what a store's check found; "integrity" if it found nothing."""
        for finding in findings:
            examples = f", for example {', '.join(finding.examples)}" if finding.examples else ""
            self.wrong(
                f"{finding.message} ({finding.count:,}{examples})",
                _MEND.get(finding.code, _MEND_ANY),
            )
        if not findings:
            self.facts["integrity"] = "rows, links, postings, vectors and graphs agree"


def examine(common: Common) -> list[Section]:
    """Every section, in the order of what depends on what."""
    from cofire.settings import load_settings

    sections = [_environment()]
    chosen = Section(name="Settings")
    sections.append(chosen)
    try:
        settings = load_settings(store=common.store, embedder=common.embedder)
    except ConfigurationError as exc:
        chosen.wrong(str(exc), "set it to one of these values, or remove it")
        return sections
    _describe(chosen, settings)
    sections.append(describe_file(settings))
    sections.append(_model(settings, common))
    if _is_there(settings):
        sections.append(examine_memories(settings, common))
    return sections


def _environment() -> Section:
    section = Section(name="Environment")
    section.facts = {
        "cofire": cofire.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
    }
    for library in LIBRARIES:
        try:
            section.facts[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            section.wrong(f"{library} is not installed", "`pip install --upgrade cofire`")
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        section.wrong(
            f"SQLite {sqlite3.sqlite_version} is older than {needed}",
            "use a Python built with a newer SQLite",
        )
    return section


def _describe(section: Section, settings: Settings) -> None:
    """Every setting that is not as it comes, and the two that matter most; no secret."""
    from cofire.settings import config_path

    path = config_path()
    section.facts["config file"] = str(path) if path.exists() else f"{path} (there is none)"
    shown = {"store", "embedder"} | settings.model_fields_set
    for name in type(settings).model_fields:
        if name in shown:
            section.facts[name] = _shown(name, settings)
    if len(section.facts["store"]) > 0 and "store" not in settings.model_fields_set:
        section.facts["store"] += " (default)"


def _shown(name: str, settings: Settings) -> str:
    """A setting as it may be shown: a URL may have a password in it."""
    from cofire.store import is_postgres
    from cofire.store.urls import describe

    text = str(getattr(settings, name))
    return describe(text) if name == "store" and is_postgres(text) else text


def _path(settings: Settings) -> Path | None:
    """The store's file; None if the setting is a URL that is not read here."""
    if "://" in settings.store:
        scheme, _, rest = settings.store.partition(":///")
        return Path(rest.partition("?")[0]) if scheme.startswith("sqlite") else None
    return Path(settings.store).expanduser().absolute()


def _is_there(settings: Settings) -> bool:
    path = _path(settings)
    return path is None or path.exists()


def describe_file(settings: Settings) -> Section:
    """The store's file, as the file system has it."""
    section = Section(name="File")
    path = _path(settings)
    if path is None:
        section.facts["url"] = _shown("store", settings)
        return section
    section.facts["path"] = str(path)
    if not path.exists():
        section.facts["size"] = "there is none yet; `cofire remember TEXT` makes it"
        parent = next(folder for folder in path.parents if folder.exists())
        if not os.access(parent, os.W_OK):
            section.wrong(
                f"no file can be made in {parent}",
                "give this user write permission there, or choose a place with --store",
            )
        return section
    status = path.stat()
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    extra = sum(one.stat().st_size for one in beside if one.exists())
    section.facts["size"] = size_text(status.st_size) + (
        f" and {size_text(extra)} of log" if extra else ""
    )
    section.facts["permissions"] = stat.filemode(status.st_mode)
    if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        section.facts["permissions"] += (
            f" (others may read it; `chmod 600 {path}` keeps it private)"
        )
    for place, what in ((path, "file"), (path.parent, "folder")):
        if not os.access(place, os.W_OK):
            section.wrong(
                f"the {what} {place} is read-only",
                f"give this user write permission (chmod u+w {place}), or copy the store to a "
                "writable folder and name it with --store",
            )
    free = shutil.disk_usage(path.parent).free
    section.facts["free disk"] = size_text(free)
    if free < LITTLE_SPACE:
        section.wrong("the disk is nearly full", "free some space, or move the store")
    return section


def _model(settings: Settings, common: Common) -> Section:
    """Weights, hash and one test embedding; asking a remote endpoint tells whether it answers."""
    section = Section(name="Model")
    if not common.vectors:
        section.facts["model"] = "not used (--no-vectors)"
        return section
    from cofire.models import make_embedder

    embedder = make_embedder(settings)
    try:
        started = perf_counter()
        _, usable = embedder.embed_query(EXAMPLE)
        loading = perf_counter() - started
        started = perf_counter()
        embedder.embed_query(EXAMPLE[::-1])
        once = perf_counter() - started
        section.facts["model"] = embedder.name
        section.facts["dimension"] = str(embedder.dimension)
    except CofireError as exc:
        section.wrong(str(exc), "meanwhile --no-vectors works by words only")
        return section
    finally:
        embedder.close()
    section.facts["test"] = f"loaded in {1e3 * loading:.0f} ms, then {1e3 * once:.1f} ms a text"
    if not usable:
        section.wrong(
            "a test text got no usable vector", "choose another model with COFIRE_EMBEDDER"
        )
    return section


def examine_memories(settings: Settings, common: Common) -> Section:
    """Whether what is in the spaces that the options choose agrees."""
    from cofire.memory import Memory

    section = Section(name="Memories")
    try:
        with Memory.open(
            settings.store,
            common.identity or "default",
            common.user,
            common.projects,
            tenant=common.tenant or "default",
            create=False,
            vectors=False,
            settings=settings,
        ) as memory:
            _count(section, memory)
            section.report(memory.check())
            _compare_model(section, settings, common)
    except CofireError as exc:
        section.wrong(str(exc), _mend_store(exc))
    return section


def _count(section: Section, memory: Memory) -> None:
    stats = memory.stats()
    for space in stats.spaces:
        counts = f"{many(space.items, 'memory', 'memories')}, {many(space.links, 'link')}"
        section.facts[str(space.space)] = counts
    pending = sum(space.pending for space in stats.spaces)
    if pending:
        waiting = many(pending, "memory waits", "memories wait")
        section.facts["pending"] = f"{waiting} for a vector; `cofire reembed` makes them"


_MEND_ANY = (
    "restore a backup (`cofire restore FILE`); or save what can be read with `cofire export "
    "saved.jsonl` and import it into a new store (`cofire import saved.jsonl --store new.db`)"
)
_MEND = {
    "graph": "delete the files named like the store with `-graph-` and a number at the end; they "
    "are made anew",
}


def _compare_model(section: Section, settings: Settings, common: Common) -> None:
    """Whether the store's vectors are of the model that is set."""
    if not common.vectors:
        return
    from cofire.memory import Memory
    from cofire.models import make_embedder

    try:
        with Memory.open(
            settings.store,
            common.identity or "default",
            common.user,
            common.projects,
            tenant=common.tenant or "default",
            create=False,
            embedder=make_embedder(settings),
            settings=settings,
        ):
            return
    except EmbeddingMismatchError as exc:
        section.wrong(
            str(exc).partition(". Run")[0],
            "`cofire reembed` makes them anew; or choose the model that made them with "
            "COFIRE_EMBEDDER or --embedder",
        )


def _mend_store(error: CofireError) -> str:
    if isinstance(error, StoreBusyError):
        return "wait until the other process is done, or end it"
    if isinstance(error, StoreCorruptError):
        return "move the file away and restore a backup: `cofire restore FILE --yes`"
    if isinstance(error, SchemaVersionError):
        return "`pip install --upgrade cofire`"
    if isinstance(error, StoreUnavailableError):
        return "mend the permissions, or choose another file with --store"
    return "choose the right file with --store, or move this one away"
