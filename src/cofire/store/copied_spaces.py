"""The rows of spaces and embedding models on their way between stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select

from cofire.store.copied_rows import ONE_SPACE, Place, Tally, canonical
from cofire.store.copy_marker import Marker, marked, raise_counters
from cofire.store.records import SpaceInfo, canonical_json
from cofire.store.schema import models, spaces
from cofire.store.session import Query, Session
from cofire.store.spaces import ADD_MODEL, ADD_SPACE, next_id
from cofire.types import SpaceRef

MODELS = Query(
    lambda _: (
        select(models.c.id, models.c.name, models.c.dimension)
        .where(models.c.tenant == bindparam("tenant"))
        .order_by(models.c.id)
    )
)
SPACE_COLUMNS = tuple(column.name for column in spaces.columns)


def make_marked(session: Session, space: SpaceInfo, tenant: int, id: int, offset: int) -> None:
    """Makes an empty space in the target that is marked as not copied yet."""
    entry = None
    if space.encrypted or session.vault.wants(space.ref):
        entry = session.vault.make(tenant, id, space.ref)
    session.run(
        ADD_SPACE,
        tenant=tenant,
        id=id,
        identity=space.ref.identity or "",
        user=space.ref.user or "",
        project=space.ref.project or "",
        revision=0,
        floor=0,
        last_number=0,
        model=None,
        settings=marked(Marker(offset=offset), entry),
        created=space.created,
        indexed=0,
    )


def models_of(session: Session, tenant: int) -> dict[int, tuple[str, int]]:
    """A tenant's embedding models by id: name and dimension."""
    rows = session.all(MODELS, tenant=tenant)
    return {id: (name, dimension) for id, name, dimension in rows}


def make_models(
    session: Session, tenant: int, wanted: Mapping[int, tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """A tenant's models by name and dimension; new ones keep their ids where these are free."""
    known = models_of(session, tenant)
    ids = {named: id for id, named in known.items()}
    for id, named in wanted.items():
        if named not in ids:
            ids[named] = id if id not in known else next_id(session, tenant, "model")
            known[ids[named]] = named
            name, dimension = named
            session.run(ADD_MODEL, tenant=tenant, id=ids[named], name=name, dimension=dimension)
            raise_counters(session, tenant, {"model": ids[named]})
    return ids


def space_row(
    ref: SpaceRef,
    values: Mapping[str, Any],
    named: tuple[str, int] | None,
    settings: Mapping[str, Any],
) -> bytes:
    """A space's row without what may differ: ids, its key, whether it is indexed."""
    kept = [values[name] for name in ("revision", "floor", "last_number", "created")]
    who = (ref.tenant, ref.identity, ref.user, ref.project)
    return canonical((*who, *kept, *(named or (None, None)), canonical_json(settings)))


def tally_of_row(
    session: Session, place: Place, ref: SpaceRef, settings: Mapping[str, Any]
) -> Tally:
    """The tally of a copied space's own row, once it has these settings."""
    row = session.one(ONE_SPACE, **place.here)
    if row is None:
        return Tally()
    values = dict(zip(SPACE_COLUMNS, row, strict=True))
    return Tally().counted([space_row(ref, values, place.models.get(values["model"]), settings)])
