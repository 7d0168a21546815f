"""How far a copy has come, kept in the settings of the target's space until it is finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import bindparam, select, update

from cofire.errors import StoreBusyError
from cofire.store.copied_rows import COPIED, After, Tally, after_json, read_after
from cofire.store.records import canonical_json
from cofire.store.schema import counters, spaces, tenants
from cofire.store.sealing import SETTING
from cofire.store.session import Query, Scope, Session
from cofire.store.spaces import COPYING, START_COUNT
from cofire.types import SpaceRef

SPACE_ROW = "spaces"
"""The name under which a space's own row has its tally."""

FOUND = Query(
    lambda _: (
        select(
            spaces.c.tenant,
            spaces.c.id,
            spaces.c.identity,
            spaces.c.user,
            spaces.c.project,
            spaces.c.settings,
        )
        .select_from(spaces.join(tenants, tenants.c.id == spaces.c.tenant))
        .where(tenants.c.name == bindparam("tenant_name"))
        .order_by(spaces.c.id)
    )
)
ADVANCE = Query(
    lambda _: (
        update(spaces)
        .where(
            spaces.c.tenant == bindparam("in_tenant"),
            spaces.c.id == bindparam("in_space"),
            spaces.c.settings == bindparam("former"),
        )
        .values(settings=bindparam("text"))
    )
)
BEGIN = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values({
            name: bindparam(f"new_{name}")
            for name in ("revision", "floor", "last_number", "model", "created")
        })
    )
)  # fmt: skip
COUNTERS = Query(
    lambda _: select(counters.c.name, counters.c.value).where(
        counters.c.tenant == bindparam("tenant")
    )
)
RAISE_COUNTER = Query(
    lambda _: (
        update(counters)
        .where(counters.c.tenant == bindparam("in_tenant"), counters.c.name == bindparam("counter"))
        .values(value=bindparam("raised"))
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """How far the copy of a space has come.

    offset: what was added to ids of spaces. state: of the source's space, by `state_of`; None
    before the first row. settings: the source's, which the copy gets in the end. tallies: of what
    was copied, by table; the one named `table` goes on after the key `after`, the others are done.
    """

    offset: int = 0
    state: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    table: str | None = None
    after: After | None = None

    @property
    def whole(self) -> bool:
        """Whether every row was copied."""
        return self.table is None and len(self.tallies) == len(COPIED) + 1

    def has(self, table: str) -> bool:
        """Whether a table was copied to its end."""
        return table in self.tallies and self.table != table

    def moved(self, table: str, tally: Tally, after: After | None) -> Marker:
        """With more of a table; `after` None: with all of it."""
        return replace(
            self,
            tallies={**self.tallies, table: tally},
            table=None if after is None else table,
            after=after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A space of the target: where it is, and its settings as stored. `marker` None: it is whole,
    and nobody's to write to."""

    ref: SpaceRef
    tenant: int
    space: int
    text: str
    marker: Marker | None

    @property
    def scope(self) -> Scope:
        """The scope of writing to it."""
        return Scope(tenant=self.tenant, spaces=(self.space,))

    @property
    def entry(self) -> Mapping[str, str] | None:
        """What its settings say of its key."""
        entry: Mapping[str, str] | None = json.loads(self.text).get(SETTING)
        return entry

    def at(self, marker: Marker) -> Unfinished:
        """The same space, further on."""
        return replace(self, text=marked(marker, self.entry), marker=marker)


def find(session: Session, tenant: str) -> dict[SpaceRef, Unfinished]:
    """A tenant's spaces, unfinished or not; those that are encrypted are met."""
    found: dict[SpaceRef, Unfinished] = {}
    for number, space, identity, user, project, text in session.all(FOUND, tenant_name=tenant):
        ref = SpaceRef(
            tenant=tenant, identity=identity or None, user=user or None, project=project or None
        )
        settings = json.loads(text)
        session.vault.admit(number, space, settings.get(SETTING), ref, strict=False)
        found[ref] = Unfinished(
            ref=ref, tenant=number, space=space, text=text, marker=_read(settings.get(COPYING))
        )
    return found


def marked(marker: Marker, entry: Mapping[str, str] | None) -> str:
    """Settings that say how far a copy has come."""
    said = {
        "offset": marker.offset,
        "state": marker.state,
        "settings": marker.settings,
        "tallies": {name: [one.rows, one.digest] for name, one in marker.tallies.items()},
        "table": marker.table,
        "after": after_json(marker.after),
    }
    return canonical_json({COPYING: said} if entry is None else {COPYING: said, SETTING: entry})


def _read(said: Mapping[str, Any] | None) -> Marker | None:
    if said is None:
        return None
    table = said["table"]
    return Marker(
        offset=said["offset"],
        state=said["state"],
        settings=said["settings"],
        tallies={name: Tally.read(*one) for name, one in said["tallies"].items()},
        table=table,
        after=None if table is None else read_after(COPIED[table], said["after"]),
    )


def advance(session: Session, former: Unfinished, text: str) -> None:
    """Gives a space other settings. Raises StoreBusyError if they are not what they were."""
    here = {"in_tenant": former.tenant, "in_space": former.space}
    if session.run(ADVANCE, former=former.text, text=text, **here) != 1:
        raise StoreBusyError(
            f"{former.ref}: somebody else is copying into this space; let them finish, then look"
        )


def finish(session: Session, space: Unfinished) -> None:
    """Makes a space one like others. Raises StoreBusyError."""
    marker, entry = space.marker, space.entry
    settings: dict[str, Any] = {} if marker is None else dict(marker.settings)
    advance(
        session, space, canonical_json(settings if entry is None else {**settings, SETTING: entry})
    )


def raise_counters(session: Session, tenant: int, least: Mapping[str, int]) -> None:
    """Makes sure that a tenant's ids up to these are not given out (again)."""
    known: dict[str, int] = dict(session.all(COUNTERS, tenant=tenant))
    for name, value in least.items():
        if name not in known:
            session.run(START_COUNT, tenant=tenant, name=name, value=value)
        elif known[name] < value:
            session.run(RAISE_COUNTER, in_tenant=tenant, counter=name, raised=value)
