"""What a tenant's administrator does: keys, the audit trail, background work, checking."""

from __future__ import annotations

import base64
import binascii
import time
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from cofire.encoding.timestamps import parse_time
from cofire.errors import ForbiddenError, InputError
from cofire.memory import Memory
from cofire.server.access import Caller
from cofire.server.actions import Action
from cofire.server.answers import Json, json_bytes
from cofire.server.auditing import entry_json
from cofire.server.keys import create_key, key_json, key_uid, revoke_key
from cofire.server.rest import bodies, examples, values
from cofire.server.rest.asking import After, Asked, Limit, answers, page
from cofire.server.worker_pace import Pace
from cofire.store.serving_records import AuditCursor, AuditEntry, JobRecord, KeyRecord
from cofire.types import from_micros, to_micros

router = APIRouter(
    prefix="/v1", tags=["Administration"], generate_unique_id_function=lambda route: route.name
)
KeyId = Annotated[str, Path(max_length=100, description="A key's id.", examples=[examples.A])]
Moment = Annotated[str | None, Query(description="ISO 8601, or epoch seconds or milliseconds.")]


def _micros() -> int:
    return time.time_ns() // 1000


def _whole_tenant(caller: Caller) -> None:
    """What is about a whole tenant is not for a key that is for a part of it. Raises
    ForbiddenError."""
    if not (caller.identities is caller.users is caller.projects is None):
        raise ForbiddenError(
            f"this is about the whole tenant, and the key of {caller.name!r} is for certain "
            "identities, users or projects"
        )


def _within(names: Any, among: Any) -> bool:
    """Whether a key for `names` can reach no more than one for `among`; None is any."""
    return among is None or (names is not None and set(names) <= set(among))


def _covers(caller: Caller, key: KeyRecord | bodies.KeyRequest) -> bool:
    """Whether a key can do no more than the caller."""
    return (
        set(key.scopes) <= set(caller.scopes)
        and _within(key.identities, caller.identities)
        and _within(key.users, caller.users)
        and _within(key.projects, caller.projects)
    )


@router.post(
    "/keys",
    response_model=values.NewKey,
    **answers(
        examples.KEY | {"token": "cofire_…"}, status=201, description="The key, shown this once."
    ),
)
async def make_key(body: bodies.KeyRequest, asked: Asked) -> Response:
    """Make a key for this key's own tenant. It can do no more than the key that makes it, and does
    not have the name of one that can. The answer has the key itself, which is shown this once."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        if not _covers(asked.caller, body):
            raise ForbiddenError("a key can make none that can do more than itself")
        for one in store.list_keys(place.tenant):
            if one.principal == body.name.strip() and not _covers(asked.caller, one):
                raise ForbiddenError("a key cannot speak in the name of one that can do more")
        record, token = create_key(
            store, place.tenant, body.name,
            identities=body.identities, users=body.users, projects=body.projects,
            scopes=body.scopes,
            expires=None if body.expires is None else parse_time(body.expires)[0],
        )  # fmt: skip
        return json_bytes(key_json(record) | {"token": token})

    return Json(await asked.about(Action.KEYS, work), status_code=201)


@router.get(
    "/keys",
    response_model=values.KeyPage,
    **answers(examples.one_page(examples.KEY), description="Keys, oldest first."),
)
async def list_keys(asked: Asked, limit: Limit = 100, after: After = None) -> Response:
    """The tenant's keys that can do no more than this one, without their secrets."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        seen = [one for one in store.list_keys(place.tenant) if _covers(asked.caller, one)]
        items, following = page(seen, limit, after)
        return json_bytes({"items": [key_json(one) for one in items], "next": following})

    return Json(await asked.about(Action.KEYS, work))


@router.delete(
    "/keys/{id}",
    response_model=values.Revoked,
    **answers({"id": examples.A, "revoked": True}, 404, description="It is good for nothing."),
)
async def revoke(id: KeyId, asked: Asked) -> Response:
    """Make a key good for nothing from now on; every process of the server knows within 5 s."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        uid = key_uid(id)
        for record in store.list_keys(place.tenant):
            if record.uid == uid and not _covers(asked.caller, record):
                raise ForbiddenError("a key can revoke none that can do more than itself")
        return json_bytes({"id": id, "revoked": revoke_key(store, place.tenant, id)})

    return Json(await asked.about(Action.KEYS, work))


@router.get(
    "/audit",
    response_model=values.AuditPage,
    **answers(examples.one_page(examples.AUDIT), description="Entries, newest first."),
)
async def audit(
    *,
    asked: Asked,
    since: Moment = None,
    until: Moment = None,
    principal: Annotated[str | None, Query(max_length=200)] = None,
    action: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 100,
    after: After = None,
) -> Response:
    """Who did what, newest first; never what it was about. For keys that are for a whole tenant."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        _whole_tenant(asked.caller)
        found = store.list_audit(
            place.tenant,
            since=_read(since), until=_read(until), principal=principal, action=action,
            after=None if after is None else _cursor(after), limit=limit + 1,
        )  # fmt: skip
        following = _place_of(found[limit - 1]) if len(found) > limit else None
        return json_bytes({"items": [entry_json(one) for one in found[:limit]], "next": following})

    return Json(await asked.about(Action.AUDIT, work))


def _read(moment: str | None) -> int | None:
    return None if moment is None else to_micros(parse_time(moment)[0])


def _place_of(entry: AuditEntry) -> str:
    raw = entry.time.to_bytes(8, "big", signed=True) + entry.uid
    return base64.urlsafe_b64encode(raw).decode("ascii")


def _cursor(text: str) -> AuditCursor:
    try:
        raw = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 24:
        raise InputError("that is not where a page ended; pass the former page's `next`")
    return int.from_bytes(raw[:8], "big", signed=True), raw[8:]


@router.get(
    "/jobs",
    response_model=values.Jobs,
    **answers(examples.JOBS, description="Background consolidation."),
)
async def jobs(asked: Asked) -> Response:
    """How background consolidation of the tenant's spaces stands, and which it gave up. For keys
    that are for the whole tenant."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        _whole_tenant(asked.caller)
        pace = Pace.of(asked.service.memories.settings)
        queue = store.queue(_micros(), every=pace.every_us, idle=pace.idle_us, tenant=place.tenant)
        return json_bytes(
            {
                "due": queue.due,
                "waiting": queue.waiting,
                "dead": queue.dead,
                "running": queue.running,
                "oldest_seconds": queue.oldest / 1e6,
                "given_up": [_job(one) for one in store.dead_jobs(place.tenant)[: values.MOST]],
            }
        )

    return Json(await asked.about(Action.JOBS, work))


def _job(job: JobRecord) -> dict[str, Any]:
    return {
        "space": job.ref,
        "revision": job.revision,
        "ran": _moment(job.ran),
        "attempts": job.attempts,
        "next_at": _moment(job.next_at),
        "dead": _moment(job.dead),
        "error": job.error,
    }


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros).astimezone(UTC)


@router.post(
    "/jobs:retry",
    response_model=values.Retried,
    **answers({"retried": 1}, description="They are tried again."),
)
async def retry_jobs(asked: Asked) -> Response:
    """Have the tenant's spaces tried again that background consolidation gave up."""
    store = asked.service.memories.store

    def work(place: Any) -> bytes:
        _whole_tenant(asked.caller)
        return json_bytes({"retried": store.retry_jobs(place.tenant)})

    return Json(await asked.about(Action.JOBS, work))


@router.get(
    "/check",
    response_model=values.Checked,
    **answers({"findings": []}, description="What does not agree; nothing, if all is well."),
)
async def check(asked: Asked) -> Response:
    """What of the tenant's memories does not agree with everything else: rows, links, vectors,
    postings, active graphs. For keys that are for the whole tenant; it reads everything."""

    def shape(found: Any) -> dict[str, Any]:
        return {"findings": list(found)}

    def verb(memory: Memory) -> Any:
        _whole_tenant(asked.caller)
        return memory.check()

    return await asked.read(Action.CHECK, verb, shape)
