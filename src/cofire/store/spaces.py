"""Tenants, spaces and embedding models: finding them, making them, removing them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, bindparam, delete, insert, select, update

from cofire.errors import (
    EmbeddingMismatchError,
    InputError,
    NotFoundError,
    StoreUnavailableError,
)
from cofire.store.records import SpaceInfo, canonical_json, tenant_number
from cofire.store.schema import SPACE_TABLES, counters, models, spaces, tenants
from cofire.store.sealing import SETTING, entry_of
from cofire.store.session import Query, Row, Session
from cofire.types import SpaceRef

COPYING = "copying"
"""Where the settings of a space that is not yet copied whole say how far that has come."""

_SPACE = (
    spaces.c.tenant,
    spaces.c.id,
    tenants.c.name,
    spaces.c.identity,
    spaces.c.user,
    spaces.c.project,
    spaces.c.revision,
    models.c.name.label("model"),
    models.c.dimension,
    spaces.c.settings,
    spaces.c.created,
    spaces.c.indexed,
)
_FROM = spaces.join(tenants, tenants.c.id == spaces.c.tenant).outerjoin(
    models, and_(models.c.tenant == spaces.c.tenant, models.c.id == spaces.c.model)
)
_HERE = (spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space"))

# An update reserves the names of the columns it sets.
_THERE = (spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))

FIND_SPACE = Query(
    lambda _: (
        select(*_SPACE)
        .select_from(_FROM)
        .where(
            tenants.c.name == bindparam("tenant_name"),
            spaces.c.identity == bindparam("identity"),
            spaces.c.user == bindparam("user"),
            spaces.c.project == bindparam("project"),
        )
    )
)
READ_SPACE = Query(lambda _: select(*_SPACE).select_from(_FROM).where(*_HERE))
LIST_SPACES = Query(
    lambda _: (
        select(*_SPACE)
        .select_from(_FROM)
        .where(tenants.c.name == bindparam("tenant_name"))
        .order_by(spaces.c.id)
    )
)
LIST_ALL_SPACES = Query(
    lambda _: select(*_SPACE).select_from(_FROM).order_by(spaces.c.tenant, spaces.c.id)
)
LIST_ENCRYPTED = Query(
    lambda _: select(*_SPACE).select_from(_FROM).where(spaces.c.settings.contains(f'"{SETTING}"'))
)
FIND_TENANT = Query(lambda _: select(tenants.c.id).where(tenants.c.name == bindparam("name")))
ADD_TENANT = Query(lambda _: insert(tenants))
ADD_SPACE = Query(lambda _: insert(spaces))
COUNT_UP = Query(
    lambda _: (
        update(counters)
        .where(counters.c.tenant == bindparam("in_tenant"), counters.c.name == bindparam("counter"))
        .values(value=counters.c.value + bindparam("step"))
        .returning(counters.c.value)
    )
)
START_COUNT = Query(lambda _: insert(counters))
FIND_MODEL = Query(
    lambda _: select(models.c.id).where(
        models.c.tenant == bindparam("tenant"),
        models.c.name == bindparam("name"),
        models.c.dimension == bindparam("dimension"),
    )
)
ADD_MODEL = Query(lambda _: insert(models))
SET_MODEL = Query(lambda _: update(spaces).where(*_THERE).values(model=bindparam("chosen")))
SET_SETTINGS = Query(lambda _: update(spaces).where(*_THERE).values(settings=bindparam("text")))
REMOVE_SPACE = Query(lambda _: delete(spaces).where(*_HERE))
EMPTY_TABLES = tuple(
    Query(
        lambda _, table=table: delete(table).where(  # type: ignore[misc]
            table.c.tenant == bindparam("tenant"), table.c.space == bindparam("space")
        )
    )
    for table in SPACE_TABLES
)


def missing_space(space: SpaceInfo) -> NotFoundError:
    """The error for a space that is no longer there."""
    return NotFoundError(f"{space.ref}: no such space in this store (any more)")


def find_space(session: Session, ref: SpaceRef) -> SpaceInfo | None:
    row = session.one(
        FIND_SPACE,
        tenant_name=ref.tenant,
        identity=ref.identity or "",
        user=ref.user or "",
        project=ref.project or "",
    )
    return None if row is None else _info(session, row)


def read_space(session: Session, space: SpaceInfo) -> SpaceInfo:
    """The space as it is now. Raises NotFoundError."""
    row = session.one(READ_SPACE, tenant=space.tenant_id, space=space.space_id)
    if row is None:
        raise missing_space(space)
    return _info(session, row)


def list_spaces(session: Session, tenant: str | None) -> list[SpaceInfo]:
    """A tenant's spaces, or (None) those of all, oldest first; also encrypted ones whose key is
    not here."""
    if tenant is None:
        rows = session.all(LIST_ALL_SPACES)
    else:
        rows = session.all(LIST_SPACES, tenant_name=tenant)
    return [_info(session, row, strict=False) for row in rows]


def find_tenant(session: Session, name: str) -> int | None:
    """A tenant's number."""
    row = session.one(FIND_TENANT, name=name)
    return None if row is None else int(row[0])


def make_tenant(session: Session, name: str) -> int:
    """A tenant's number; the tenant is made if need be."""
    found = find_tenant(session, name)
    if found is None:
        found = tenant_number(name)
        session.run(ADD_TENANT, id=found, name=name)
    return found


def make_space(session: Session, ref: SpaceRef, now: int) -> SpaceInfo:
    """The space, made if need be. Raises InputError if `ref` names nobody."""
    found = find_space(session, ref)
    if found is not None:
        return found
    if ref.project is None and not ref.identity:
        raise InputError(f"{ref}: a space belongs to an identity or a project; name one")
    if ref.project is not None and (ref.identity or ref.user):
        raise InputError(f"{ref}: a project's space has neither identity nor user")
    tenant = make_tenant(session, ref.tenant)
    number = next_id(session, tenant, "space")
    settings: dict[str, Any] = {}
    if session.vault.wants(ref):
        settings[SETTING] = session.vault.make(tenant, number, ref)
    session.run(
        ADD_SPACE,
        tenant=tenant,
        id=number,
        identity=ref.identity or "",
        user=ref.user or "",
        project=ref.project or "",
        revision=0,
        floor=0,
        last_number=0,
        model=None,
        settings=canonical_json(settings),
        created=now,
        indexed=0,
    )
    made = find_space(session, ref)
    assert made is not None  # noqa: S101 - inserted three lines above
    return made


def remove_space(session: Session, space: SpaceInfo) -> None:
    """Deletes everything that belongs to the space, and the space. Its id is not used again."""
    for query in EMPTY_TABLES:
        session.run(query, tenant=space.tenant_id, space=space.space_id)
    if session.run(REMOVE_SPACE, tenant=space.tenant_id, space=space.space_id) == 0:
        raise missing_space(space)


def model_id(session: Session, tenant: int, name: str, dimension: int) -> int:
    """The id of a tenant's embedding model, given one if it is new."""
    if dimension < 1 or not name:
        raise InputError(f"not an embedding model: {name!r} of dimension {dimension}")
    row = session.one(FIND_MODEL, tenant=tenant, name=name, dimension=dimension)
    if row is not None:
        return int(row[0])
    number = next_id(session, tenant, "model")
    session.run(ADD_MODEL, tenant=tenant, id=number, name=name, dimension=dimension)
    return number


def choose_model(session: Session, space: SpaceInfo, name: str, dimension: int) -> SpaceInfo:
    """Fixes the space's embedding model. Raises EmbeddingMismatchError if it has another."""
    current = read_space(session, space)
    if current.model is None:
        chosen = model_id(session, space.tenant_id, name, dimension)
        session.run(SET_MODEL, in_tenant=space.tenant_id, in_space=space.space_id, chosen=chosen)
        return read_space(session, space)
    require_model(current, name, dimension)
    return current


def require_model(space: SpaceInfo, name: str | None, dimension: int | None) -> None:
    """Raises EmbeddingMismatchError unless the space's vectors are of this model."""
    if (space.model, space.dimension) != (name, dimension):
        raise EmbeddingMismatchError(
            f"{space.ref}: this space's vectors were made by {space.model} ({space.dimension} "
            f"dimensions), not by {name} ({dimension} dimensions); run `cofire reembed` to make "
            "them anew, or choose the former model in the settings"
        )


def set_settings(session: Session, space: SpaceInfo, settings: Mapping[str, Any]) -> None:
    """Replaces the space's settings (such as the learning rule it uses), but never its key."""
    row = session.one(READ_SPACE, tenant=space.tenant_id, space=space.space_id)
    entry = None if row is None else entry_of(row[9])
    kept = {name: value for name, value in settings.items() if name not in {SETTING, COPYING}}
    text = canonical_json(kept if entry is None else {**kept, SETTING: entry})
    if (
        session.run(SET_SETTINGS, in_tenant=space.tenant_id, in_space=space.space_id, text=text)
        == 0
    ):
        raise missing_space(space)


def next_id(session: Session, tenant: int, counter: str) -> int:
    """An id of a kind of thing ("space", "model") that a tenant never had."""
    row = session.one(COUNT_UP, in_tenant=tenant, counter=counter, step=1)
    if row is None:
        session.run(START_COUNT, tenant=tenant, name=counter, value=1)
        return 1
    return int(row[0])


def meet_encrypted(session: Session) -> None:
    """Takes note of every encrypted space; their keys are unwrapped when they are used."""
    for row in session.all(LIST_ENCRYPTED):
        _info(session, row, strict=False)


def rewrap(session: Session, new: bytes) -> int:
    """Wraps the keys of all encrypted spaces by another master key; returns how many there are.
    Raises ConfigurationError if one cannot be unwrapped."""
    done = 0
    for tenant, space, *_, text, _, _ in session.all(LIST_ENCRYPTED):
        entry = entry_of(text)
        if entry is None:
            continue
        wrapped = session.vault.rewrapped(new, entry, tenant, space)
        settings = canonical_json({**json.loads(text), SETTING: wrapped})
        session.run(SET_SETTINGS, in_tenant=tenant, in_space=space, text=settings)
        done += 1
    return done


def _info(session: Session, row: Row, *, strict: bool = True) -> SpaceInfo:
    tenant_id, space_id, tenant, identity, user, project, *rest = row
    revision, model, dimension, text, created, indexed = rest
    ref = SpaceRef(
        tenant=tenant, identity=identity or None, user=user or None, project=project or None
    )
    settings = json.loads(text)
    if strict and COPYING in settings:
        raise StoreUnavailableError(
            f"{ref}: this space is being copied into this store, or that was interrupted. Run the "
            "same `cofire db copy` again to finish it, or with --discard to remove what there is"
        )
    entry = settings.pop(SETTING, None)
    encrypted = session.vault.admit(tenant_id, space_id, entry, ref, strict=strict)
    return SpaceInfo(
        tenant_id=tenant_id,
        space_id=space_id,
        ref=ref,
        revision=revision,
        model=model,
        dimension=dimension,
        settings=settings,
        created=created,
        encrypted=encrypted,
        indexed=indexed == 1,
    )
