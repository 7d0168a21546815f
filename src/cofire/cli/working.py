"""`worker` and `jobs`: background consolidation, and what of it was given up."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofire.cli.commands import Group, command
from cofire.cli.opening import log_to_standard_error
from cofire.cli.options import Common
from cofire.cli.output import many, note, print_json, print_json_line, say
from cofire.errors import InputError, NotFoundError, StoreUnavailableError
from cofire.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cofire.memories import Memories
    from cofire.server.worker import SpaceRun, Worker
    from cofire.settings import Settings
    from cofire.store import Store
    from cofire.store.serving_records import JobRecord, Queue
    from cofire.types import SpaceRef

_WHOSE = ("identity", "user", "project", "tenant")
"""Common options without meaning for what is about all of them."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "worker",
        examples=(
            "cofire worker",
            "cofire worker --once --json",
            "cofire worker --store postgresql://app@host/memory --concurrency 4",
        ),
        without=_WHOSE,
    )(worker)
    group = typer.Typer(
        name="jobs",
        help="How background consolidation stands, and what of it was given up.",
        rich_markup_mode=None,
        cls=Group,
        epilog="cofire jobs list --dead",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.add_typer(group)
    without = (*_WHOSE[:3], "no_vectors", "embedder")
    command(
        group,
        "list",
        examples=("cofire jobs list", "cofire jobs list --dead --json"),
        without=without,
    )(list_jobs)
    command(
        group,
        "retry",
        examples=("cofire jobs retry default/ada", "cofire jobs retry --all --tenant acme"),
        without=without,
    )(retry)


def worker(
    common: Common,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due and end, as for cron.")
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option(metavar="N", help="Spaces at once. Default: COFIRE_WORKER_CONCURRENCY, or 1."),
    ] = None,
) -> int:
    """Consolidate whatever is due, of every tenant and space of the store.

    Several workers share the work, also on several machines. SIGTERM or Ctrl-C ends it after the
    part that it is at, a second one at once; nothing is lost either way. --json prints a line of
    JSON for each space, or with --once one document.
    """
    from cofire.server.worker import Worker
    from cofire.settings import load_settings

    settings = load_settings(
        store=common.store, embedder=common.embedder, worker_concurrency=concurrency
    )
    log_to_standard_error(settings.log_level)
    with ExitStack() as closing:
        memories = closing.enter_context(_memories(settings, common.vectors, waiting=not once))
        working = Worker(memories, meter=_Saying(json=common.json, quiet=once and common.json))
        _stop_by_signal(working)
        runs = working.run(once=once)
        if once:
            _sum_up(common, runs)
        if working.left:
            sys.stdout.flush()
            os._exit(0)  # its claim is released, and a model that is silent must not keep it
    return 1 if any(run.outcome in {"failed", "dead"} for run in runs) else 0


def _memories(settings: Settings, vectors: bool, *, waiting: bool) -> Memories:
    """The store, opened; `waiting`: as soon as it can be reached."""
    from time import sleep

    from cofire.memories import Memories
    from cofire.server.worker import LONGEST, SHORTEST

    wait = SHORTEST
    while True:
        try:
            return Memories.open(settings.store, create=False, vectors=vectors, settings=settings)
        except StoreUnavailableError as exc:
            if not waiting:
                raise
            note(f"{exc}; trying again in {wait:.0f} s")
            sleep(wait)
            wait = min(2 * wait, LONGEST)


def _stop_by_signal(working: Worker) -> None:
    """The first signal ends it soon, the second at once."""

    def stop(number: int, _: FrameType | None) -> None:
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, signal.SIG_DFL)
        working.stop()

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)


class _Saying:
    """A meter that prints what became of each space."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self._json = json
        self._quiet = quiet

    def began(self, space: SpaceRef) -> None: ...

    def ended(self, run: SpaceRun) -> None:
        if self._quiet:
            return
        if self._json:
            print_json_line(_as_json(run))
        else:
            say((str(run.space), "bold"), f"  {run.outcome}{_detail(run)}", hang=2)
        sys.stdout.flush()

    def queued(self, queue: Queue) -> None: ...


def _detail(run: SpaceRun) -> str:
    if run.error is not None:
        return f" ({many(run.attempts, 'failure')} in a row): {run.error}"
    return f" in {run.seconds:.1f} s"


def _as_json(run: SpaceRun) -> dict[str, Any]:
    return {**plain(run), "space": str(run.space)}


def _sum_up(common: Common, runs: tuple[SpaceRun, ...]) -> None:
    outcomes = [run.outcome for run in runs]
    if common.json:
        counts = {one: outcomes.count(one) for one in sorted(set(outcomes))}
        print_json({"outcomes": counts, "spaces": [_as_json(run) for run in runs]})
        return
    told = [f"{outcomes.count(one)} {one}" for one in sorted(set(outcomes))]
    say(f"{many(len(runs), 'space')} due{': ' if told else ''}{', '.join(told)}")


def list_jobs(
    common: Common,
    *,
    dead: Annotated[bool, typer.Option("--dead", help="Only what was given up.")] = False,
) -> None:
    """Show how background consolidation stands: of all tenants, or of --tenant.

    What was given up after too many failures is listed with the last error. Without --dead, also
    how many spaces are due, wait for another attempt, or are being worked on.
    """
    with _store(common) as (store, settings):
        found = store.dead_jobs(common.tenant)
        queue = None if dead else _queue(store, settings, common.tenant)
    if common.json:
        told: dict[str, Any] = {"dead": [_job_as_json(job) for job in found]}
        if queue is not None:
            told["queue"] = {**queue._asdict(), "oldest": queue.oldest / 1e6}
        print_json(told)
        return
    if queue is not None:
        say(
            f"{queue.due} due (the oldest for {queue.oldest / 1e6:,.0f} s), "
            f"{queue.running} running, {queue.waiting} waiting to be tried again, "
            f"{queue.dead} given up"
        )
    for job in found:
        say((str(job.ref), "bold"), f"  given up after {many(job.attempts, 'failure')}", hang=2)
        say(job.error or "", indent=2, hang=2)
    if dead and not found:
        say("none")


@contextmanager
def _store(common: Common) -> Iterator[tuple[Store, Settings]]:
    """The store that the options choose, without a model."""
    from cofire.settings import load_settings
    from cofire.store import open_store
    from cofire.workings import master_key

    settings = load_settings(store=common.store)
    log_to_standard_error(settings.log_level)
    with open_store(
        settings.store, create=False, busy_timeout=settings.write_wait,
        durability=settings.durability, statement_timeout=settings.statement_timeout,
        pool_size=settings.pool_size, master_key=master_key(settings),
    ) as store:  # fmt: skip
        yield store, settings


def _queue(store: Store, settings: Settings, tenant: str | None) -> Queue:
    from datetime import UTC, datetime

    from cofire.server.worker_pace import Pace
    from cofire.types import to_micros

    pace = Pace.of(settings)
    now = to_micros(datetime.now(UTC))
    return store.queue(now, every=pace.every_us, idle=pace.idle_us, tenant=tenant)


def _job_as_json(job: JobRecord) -> dict[str, Any]:
    from cofire.types import from_micros

    return {
        "space": str(job.ref),
        "attempts": job.attempts,
        "dead": None if job.dead is None else plain(from_micros(job.dead)),
        "ran": None if job.ran is None else plain(from_micros(job.ran)),
        "error": job.error,
    }


def retry(
    common: Common,
    *,
    spaces: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPACE", help="As `cofire jobs list` names it."),
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Everything that was given up (of --tenant).")
    ] = False,
) -> None:
    """Have what was given up, or waits after a failure, tried again at once."""
    if all == bool(spaces):
        raise InputError("name the spaces to try again, as `cofire jobs list` does, or say --all")
    with _store(common) as (store, _):
        dead = store.dead_jobs(common.tenant)
        if all:
            tenants = dict.fromkeys(job.ref.tenant for job in dead)
            done = sum(store.retry_jobs(tenant) for tenant in tenants)
        else:
            named = [_named(store, name, dead) for name in dict.fromkeys(spaces or ())]
            found = [store.space(ref, create=False) for ref in named]
            done = sum(store.retry_job(space) for space in found if space is not None)
    if common.json:
        print_json({"retried": done})
    else:
        say(f"{many(done, 'space')} to be tried again")


def _named(store: Store, name: str, dead: list[JobRecord]) -> SpaceRef:
    """The space of this name. Raises NotFoundError."""
    for job in dead:
        if str(job.ref) == name:
            return job.ref
    tenant = name.partition("/")[0]
    for space in store.spaces(tenant):
        if str(space.ref) == name:
            return space.ref
    raise NotFoundError(f"there is no space {name}; `cofire jobs list --dead` names those given up")
