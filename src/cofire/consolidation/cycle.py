"""The cycle: step after step, each committed by itself, and the report of what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any

from cofire.consolidation.budgets import Spent
from cofire.consolidation.night import DAY_US, Night, Step
from cofire.errors import ClaimLostError, CofireError, NotFoundError
from cofire.store.planning import Applied, OutdatedPlanError, Plan
from cofire.store.records import StepRow
from cofire.types import StepReport

TAKEN_OVER = "another worker took the space over"
STOPPED = "the worker was told to stop"


class _StoppedError(Exception):
    """Whoever runs the night wants it to end."""


def run(
    night: Night,
    steps: Sequence[Step],
    *,
    only: Collection[str] = (),
    told: Callable[[StepReport], None] | None = None,
) -> tuple[StepReport, ...]:
    """Runs the steps in their order (`only`: those of these names) and tells of each when it is
    done. A step that fails does not keep the others from running; a space that is gone, or that
    another worker took over, does, and so does `Night.stopped`: the last report says `STOPPED`,
    and the next night goes on there."""
    done: list[StepReport] = []
    for step in steps:
        if only and step.name not in only:
            continue
        stopped = night.stopped()
        report = StepReport(name=step.name, skipped=STOPPED) if stopped else _run_step(night, step)
        done.append(report)
        if told is not None:
            told(report)
        if report.skipped in {TAKEN_OVER, STOPPED}:
            break
    return tuple(done)


def _run_step(night: Night, step: Step) -> StepReport:
    started = perf_counter()
    counts: Counter[str] = Counter()
    error = skipped = None
    row = night.store.steps(night.space).get(step.name) or StepRow(step.name)
    period = None if step.period is None else night.now // step.period
    if period is not None and _applied(night, row, period):
        return StepReport(name=step.name, skipped="already applied in this period")
    before = night.budget.spent
    try:
        _work(night, step, row, period, counts)
    except OutdatedPlanError:
        skipped = "another process is running it"
    except ClaimLostError:
        skipped = TAKEN_OVER
    except _StoppedError:
        skipped = STOPPED
    except NotFoundError:
        raise
    except CofireError as exc:
        error = f"{type(exc).__name__}: {exc}"
    return StepReport(
        name=step.name,
        counts={name: count for name, count in sorted(counts.items()) if count},
        seconds=perf_counter() - started,
        skipped=skipped,
        error=error,
        **_spent(before, night.budget.spent),
    )


def _applied(night: Night, row: StepRow, period: int) -> bool:
    """Whether the step was applied in the period, or after it. A night that was once said to be in
    a future that has not come (a wrong clock) does not count: it would put an end to sleep."""
    if night.wall and row.period > period and row.time > max(night.wall, night.now) + DAY_US:
        return False
    return row.period >= period


def _spent(before: Spent, after: Spent) -> dict[str, Any]:
    return {
        "calls": after.calls - before.calls,
        "tokens": _tokens(after) - _tokens(before),
        "cost": after.cost - before.cost,
    }


def _tokens(spent: Spent) -> int:
    return spent.input_tokens + spent.output_tokens


def _work(night: Night, step: Step, row: StepRow, period: int | None, counts: Counter[str]) -> None:
    """Drives a step: each part of its work is applied with the note of how far it came."""
    working = step.run(night, row)
    over = False
    try:
        work = next(working)
        while True:
            noted = row.period if period is None or not work.last else period
            time = night.now if work.seen is None else work.seen
            following = work.row._replace(name=step.name, period=noted, time=time)
            applied = night.store.apply(
                night.space, work.plan, following, before=row, claim=night.claim, now=night.now
            )
            row = following
            over = work.last
            counts.update(work.counts)
            counts.update(_counted(applied))
            if not over and night.stopped():
                raise _StoppedError
            work = working.send(applied)
    except StopIteration:
        pass
    finally:
        working.close()
    if period is not None and not over:  # there was nothing to do, which counts as done
        done = row._replace(period=period, time=night.now)
        night.store.apply(night.space, Plan(), done, before=row, claim=night.claim, now=night.now)


def _counted(applied: Applied) -> dict[str, int]:
    values: dict[str, Any] = asdict(applied)
    filed = values.pop("filed")
    kept = [number for number in filed if number is not None]
    return {**values, "filed": len(kept), "outdated": len(filed) - len(kept)}
