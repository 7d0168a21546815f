"""Consolidation, and what it made."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from cofire.plain import report_shape
from cofire.server.actions import Action
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Key, Limit, answers, page, paged
from cofire.types import Kind

router = APIRouter(
    prefix="/v1", tags=["Sleep"], generate_unique_id_function=lambda route: route.name
)


@router.post(
    "/consolidate",
    response_model=values.Reports,
    **answers({"reports": [examples.REPORT]}, 409, 502, description="What was done."),
)
async def consolidate(body: bodies.Consolidation, asked: Asked, key: Key = None) -> Response:
    """Consolidate these memories now, and answer when it is done. A step applies once per period
    however often it is asked for; a space that a worker is at is left to it (status claimed)."""

    def shape(reports: Any) -> dict[str, Any]:
        return {"reports": [report_shape(report) for report in reports]}

    return await asked.write(
        Action.CONSOLIDATE, lambda memory: memory.consolidate(**body.model_dump()), shape, key=key
    )


@router.get(
    "/reports",
    response_model=values.SleepReportPage,
    **answers(examples.one_page(examples.REPORT), description="Newest first."),
)
async def reports(asked: Asked, limit: Limit = 30, after: After = None) -> Response:
    """What the last consolidations did, newest first."""

    def shape(found: Any) -> dict[str, Any]:
        items, following = page(found, limit, after)
        return {"items": [report_shape(report) for report in items], "next": following}

    return await asked.read(
        Action.REPORTS, lambda memory: memory.reports(values.MOST), shape, count=len
    )


@router.get(
    "/records",
    response_model=values.RecordPage,
    **answers(examples.one_page(examples.RECORD), description="Oldest first."),
)
async def records(
    asked: Asked,
    kinds: Annotated[list[Kind], Query(default_factory=list, max_length=len(Kind))],
    subject: Annotated[str | None, Query(description="About whom or what.")] = None,
    limit: Limit = 100,
    after: After = None,
) -> Response:
    """The records that consolidation made (of one subject), oldest first, with what they rest on,
    and those that no longer hold (`valid_to`)."""
    return await asked.read(
        Action.RECORDS,
        lambda memory: memory.records(subject, kinds=kinds),
        paged(limit, after),
        count=len,
    )


@router.get(
    "/quarantine",
    response_model=values.RecordPage,
    **answers(examples.one_page(examples.RECORD), description="Records and reasons."),
)
async def quarantine(asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """The records that are not trusted and never recalled, with the reasons."""
    return await asked.read(
        Action.QUARANTINE, lambda memory: memory.quarantine(), paged(limit, after), count=len
    )


@router.get(
    "/shapes",
    response_model=values.ShapePage,
    **answers(examples.one_page(examples.SHAPE), description="Oldest first."),
)
async def shapes(asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """What is left of what was archived by consolidation, oldest first."""
    return await asked.read(
        Action.SHAPES, lambda memory: memory.shapes(), paged(limit, after), count=len
    )


@router.post(
    "/archive",
    response_model=values.Archived,
    **answers({"archived": 1}, 404, 409, description="They are out of recall."),
)
async def archive(body: bodies.Named, asked: Asked, key: Key = None) -> Response:
    """Take memories out of recall without deleting them."""
    return await asked.write(
        Action.ARCHIVE, lambda memory: memory.archive(body.ids),
        lambda count: {"archived": count}, key=key, count=_itself,
    )  # fmt: skip


@router.post(
    "/unarchive",
    response_model=values.Restored,
    **answers({"restored": 1}, 404, 409, description="They are recalled again."),
)
async def unarchive(body: bodies.Named, asked: Asked, key: Key = None) -> Response:
    """Bring archived memories back as they were; for a shape, all that it stands for."""
    return await asked.write(
        Action.UNARCHIVE, lambda memory: memory.unarchive(body.ids),
        lambda count: {"restored": count}, key=key, count=_itself,
    )  # fmt: skip


def _itself(count: Any) -> int:
    return int(count)
