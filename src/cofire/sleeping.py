"""Sleep: running the steps of consolidation over the spaces of one memory, and what they made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from cofire import views
from cofire.consolidation.budgets import Budget
from cofire.consolidation.cycle import run
from cofire.consolidation.holding import holding, new_holder
from cofire.consolidation.night import Night, SleepRule
from cofire.consolidation.steps import STEPS
from cofire.errors import ClaimLostError, ConfigurationError, InputError
from cofire.models import Generator, make_generator
from cofire.models.verifying import VerifiedGenerator
from cofire.retrieval.semantic import read_records
from cofire.retrieval.synapse import prior
from cofire.store.claims import Claim, Held
from cofire.store.records import NewItem, SpaceInfo
from cofire.types import (
    Kind,
    LinkType,
    Message,
    SemanticRecord,
    Shape,
    SleepReport,
    StepReport,
    Version,
    from_micros,
    to_micros,
)
from cofire.workings import Workings

if TYPE_CHECKING:
    from cofire.settings import Settings

Told = Callable[[StepReport], None]


class Limits(NamedTuple):
    """What a language model may take in one consolidation; None: as much as it wants."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


def consolidate(
    workings: Workings,
    *,
    only: Collection[str],
    rule: SleepRule,
    generator: Generator | str | None,
    limits: Limits,
    now: datetime,
    told: Told | None,
) -> tuple[SleepReport, ...]:
    """See `Memory.consolidate`."""
    unknown = set(only) - {step.name for step in STEPS}
    if unknown:
        raise InputError(
            f"there is no step {', '.join(sorted(unknown))}; the steps are "
            f"{', '.join(step.name for step in STEPS)}"
        )
    workings.settle()
    workings.retry_traces(thorough=True)  # a night has time for a large file
    prices = workings.settings
    budget = Budget(
        calls=limits.calls,
        tokens=limits.tokens,
        cost=limits.cost,
        input_price=prices.generator_input_price,
        output_price=prices.generator_output_price,
    )
    named = generator is None or isinstance(generator, str)
    model = (
        make_generator(prices, generator)
        if generator is None or isinstance(generator, str)
        else VerifiedGenerator(generator)
    )
    if model is not None and limits.cost is not None and not _priced(prices):
        raise ConfigurationError(
            "a limit on cost needs prices: set COFIRE_GENERATOR_INPUT_PRICE and "
            "COFIRE_GENERATOR_OUTPUT_PRICE, or limit calls or tokens"
        )
    holder = new_holder()
    try:
        return tuple(
            workings.spaces.lasting(lambda space=space: _consolidate(  # type: ignore[misc]
                workings, space, holder,
                only=only, rule=rule, generator=model, budget=budget, now=now, told=told,
            ))
            for space in workings.spaces.all()
        )  # fmt: skip
    finally:
        if named and model is not None:  # an object of the caller's own is theirs to close
            model.close()


def _priced(settings: Settings) -> bool:
    return settings.generator_input_price > 0.0 or settings.generator_output_price > 0.0


def _consolidate(
    workings: Workings,
    space: SpaceInfo,
    holder: str,
    *,
    only: Collection[str],
    rule: SleepRule,
    generator: Generator | None,
    budget: Budget,
    now: datetime,
    told: Told | None,
) -> SleepReport:
    """One space, if nobody else has claimed it."""
    claim = workings.store.claim(space, holder, workings.settings.claim_seconds)
    if isinstance(claim, Held):
        return _left_to(claim, space, now, perf_counter())
    with holding(workings.store, space, claim):
        return consolidate_claimed(
            workings, space, claim,
            only=only, rule=rule, generator=generator, budget=budget, now=now, told=told,
        )  # fmt: skip


def consolidate_claimed(
    workings: Workings,
    space: SpaceInfo,
    claim: Claim,
    *,
    only: Collection[str],
    rule: SleepRule,
    generator: Generator | None,
    budget: Budget,
    now: datetime,
    told: Told | None,
    stopped: Callable[[], bool] = lambda: False,
) -> SleepReport:
    """One space that whoever calls has claimed, and holds. `stopped`: see `Night`. Raises
    NotFoundError for a space that is gone, StoreError."""
    started = perf_counter()
    begun = to_micros(datetime.now(UTC))
    space = workings.spaces.with_model(workings.store.refreshed(space))
    night = Night(
        store=workings.store,
        space=space,
        now=to_micros(now),
        graph=lambda: workings.recaller.graph(space),
        make=lambda messages: made(workings, messages, now),
        rule=rule,
        generator=generator,
        budget=budget,
        prior=prior,
        wall=begun,
        claim=claim,
        stopped=stopped,
    )
    steps = run(night, STEPS, only=only, told=told)
    try:
        workings.store.add_report(
            space,
            {"now": to_micros(now), "steps": [asdict(step) for step in steps]},
            started=begun,
            ended=to_micros(datetime.now(UTC)),
            claim=claim,
        )
    except ClaimLostError as exc:
        return _left_to(Held(holder=exc.holder, until=exc.until), space, now, started, steps)
    return SleepReport(space=space.ref, started=now, seconds=perf_counter() - started, steps=steps)


def _left_to(
    other: Held,
    space: SpaceInfo,
    now: datetime,
    started: float,
    steps: tuple[StepReport, ...] = (),
) -> SleepReport:
    """The report of a space that another worker has claimed, or (`until` 0) had."""
    return SleepReport(
        space=space.ref,
        started=now,
        seconds=perf_counter() - started,
        steps=steps,
        claimed_by=other.holder or "another worker",
        claimed_until=from_micros(other.until) if other.until else None,
    )


def reports(workings: Workings, limit: int) -> tuple[SleepReport, ...]:
    """What the last consolidations of each space did, newest first."""
    found = []
    for space in workings.spaces.all():
        for body in workings.store.reports(space, limit):
            steps = tuple(StepReport(**step) for step in body["steps"])
            found.append(
                SleepReport(
                    space=space.ref,
                    started=from_micros(body["now"]),
                    seconds=sum(step.seconds for step in steps),
                    steps=steps,
                )
            )
    return tuple(sorted(found, key=lambda report: report.started, reverse=True)[:limit])


def made(workings: Workings, messages: Sequence[Message], now: datetime) -> Sequence[NewItem]:
    """Items of derived texts, embedded in one call. Redaction has seen every text they are made
    of, and sees them again."""
    with workings.embedding.shared():
        cleaned = [workings.encoder.cleaned(message) for message in messages]
        return workings.encoder.derive(cleaned, now=now, counter=workings.embedder).items


def records(
    workings: Workings, *, states: Collection[str], subject: str | None, kinds: Collection[Kind]
) -> tuple[SemanticRecord, ...]:
    """The semantic records of these states and kinds (of one subject), oldest first."""
    found: list[SemanticRecord] = []
    for space in workings.spaces.all():
        numbers = None
        if subject is not None:
            about = workings.store.derived_about(space, [subject])
            numbers = [row.item.number for row in about]
        found += [
            record
            for record in read_records(workings.store, space, numbers).values()
            if record.state in states and record.item.kind in kinds
        ]
    return tuple(sorted(found, key=lambda record: (record.item.time, record.id)))


def history(workings: Workings, id: str) -> tuple[Version, ...]:
    """Former texts of a memory, and the records that led to a semantic one, oldest first."""
    space, number = workings.spaces.locate(id)
    store = workings.store
    former = [views.version(row) for row in store.history(space, number)]
    line, ahead = {number}, [number]
    while ahead:
        for link in store.links(space, ahead.pop()):
            if link.type == LinkType.SUPERSEDES.value:
                new = {link.source, link.target} - line
                line |= new
                ahead += sorted(new)
    ended = [
        row
        for row in store.derived(space, sorted(line - {number}))
        if row.item.valid_to is not None
    ]
    ended.sort(key=lambda row: (row.item.valid_from or row.item.time, row.item.number))
    return (*(views.former_record(row) for row in ended), *former)


def shapes(workings: Workings) -> tuple[Shape, ...]:
    """What is left of what was archived."""
    found = [
        views.shape(row)
        for space in workings.spaces.all()
        for row in workings.store.derived(space)
        if row.item.kind == Kind.SHAPE.value and row.state == "current"
    ]
    return tuple(sorted(found, key=lambda shape: (shape.since, shape.id)))


def archive(workings: Workings, ids: Sequence[str], now: datetime) -> int:
    """Archives memories. Raises NotFoundError, and then nothing is."""
    done = 0
    for space, numbers in _by_space(workings, ids):
        done += len(workings.store.archive(space, numbers, now=to_micros(now)))
    return done


def unarchive(workings: Workings, ids: Sequence[str]) -> int:
    """Brings archived memories back; of a shape, all that it stands for. Raises NotFoundError,
    InputError."""
    done = 0
    for space, numbers in _by_space(workings, ids):
        wanted = set(numbers)
        for row in workings.store.derived(space, numbers):
            if row.item.kind == Kind.SHAPE.value:
                wanted.discard(row.item.number)
                wanted.update(source.source for source in row.sources)
        done += len(workings.store.restore_archived(space, sorted(wanted)))
    return done


def _by_space(workings: Workings, ids: Sequence[str]) -> list[tuple[SpaceInfo, list[int]]]:
    places = [workings.spaces.locate(id) for id in dict.fromkeys(ids)]
    spaces = {space.space_id: space for space, _ in places}
    return [
        (space, [number for place, number in places if place.space_id == at])
        for at, space in spaces.items()
    ]
