"""Who consolidates a space: a claim, held as a lease that expires unless it is renewed.

A worker claims a space before it works on it, renews the claim while it does, and releases it. One
that is killed renews nothing, so after its lease another takes over. The *fence* rises with every
claim of a space and never falls; what a worker writes is written only while the fence is still its
own, so one that was merely paused, and wakes up after it was taken over, writes nothing.

Every time here is read from the database's clock, in µs since 1970: workers' own clocks differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sqlalchemy import bindparam, insert, select, update

from cofire.errors import ClaimLostError, InputError
from cofire.store.records import SpaceInfo
from cofire.store.schema import claims
from cofire.store.session import Query, Session
from cofire.store.spaces import read_space

T = TypeVar("T")

_HERE = (claims.c.tenant == bindparam("in_tenant"), claims.c.space == bindparam("in_space"))
_OWN = (
    *_HERE,
    claims.c.holder == bindparam("held_by"),
    claims.c.fence == bindparam("held_fence"),
    claims.c.expires > 0,
)
READ_CLAIM = Query(
    lambda flavour: select(
        claims.c.holder, claims.c.fence, claims.c.taken, claims.c.expires, flavour.clock()
    ).where(*_HERE)
)
READ_CLOCK = Query(lambda flavour: select(flavour.clock()))
ADD_CLAIM = Query(lambda _: insert(claims))
CLAIM_COLUMNS = tuple(column.name for column in claims.columns)
TAKE_CLAIM = Query(
    lambda _: (
        update(claims)
        .where(*_HERE)
        .values(
            holder=bindparam("new_holder"),
            fence=bindparam("new_fence"),
            taken=bindparam("new_taken"),
            expires=bindparam("new_expires"),
        )
    )
)
RENEW_CLAIM = Query(
    lambda flavour: (
        update(claims)
        .where(*_OWN)
        .values(taken=flavour.clock(), expires=flavour.clock() + bindparam("lease"))
    )
)
RELEASE_CLAIM = Query(lambda _: update(claims).where(*_OWN).values(expires=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A space claimed by us. `fence` ≥ 1 tells this claim from every other of the space; `lease` is
    how long it lasts from the last renewal (µs)."""

    holder: str
    fence: int
    lease: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A space claimed by somebody else, until `until` (µs) unless they renew it."""

    holder: str
    until: int


class _Standing(NamedTuple):
    """A row of the table. `taken`: when the claim was made or renewed last. `expires`: 0 if it was
    released. `now`: the database's clock."""

    holder: str
    fence: int
    taken: int
    expires: int
    now: int

    def is_of(self, claim: Claim) -> bool:
        """Whether it is this claim, neither released nor taken over; it may have expired."""
        return (self.holder, self.fence) == (claim.holder, claim.fence) and self.expires > 0

    @property
    def live(self) -> bool:
        """Whether it has been neither released nor left to expire. A renewal more than a lease
        ahead of the clock was made by a clock that has been set back since, and does not count:
        otherwise an hour's error would keep a dead worker's space for an hour."""
        return self.taken - (self.expires - self.taken) < self.now < self.expires


def held(session: Session, space: SpaceInfo) -> Held | None:
    """Who has a claim of the space that has not expired; None: nobody."""
    found = _read(session, space)
    return Held(holder=found.holder, until=found.expires) if found and found.live else None


def claim(session: Session, space: SpaceInfo, holder: str, seconds: float) -> Claim | Held:
    """Claims a space for `seconds` (> 0), or says who has it. The holder may claim it again, which
    ends its former claim. To be called as the only writer of the space. Raises NotFoundError,
    InputError."""
    if not seconds > 0:
        raise InputError(f"a claim lasts more than 0 seconds, not {seconds}")
    lease = round(seconds * 1_000_000)
    found = _read(session, space)
    if found is None:
        read_space(session, space)  # it may have been forgotten
        now: int = session.all(READ_CLOCK)[0][0]
        row = (space.tenant_id, space.space_id, holder, 1, now, now + lease)
        session.many(ADD_CLAIM, [row], CLAIM_COLUMNS)
        return Claim(holder=holder, fence=1, lease=lease)
    if found.live and found.holder != holder:
        return Held(holder=found.holder, until=found.expires)
    session.run(
        TAKE_CLAIM,
        in_tenant=space.tenant_id,
        in_space=space.space_id,
        new_holder=holder,
        new_fence=found.fence + 1,
        new_taken=found.now,
        new_expires=found.now + lease,
    )
    return Claim(holder=holder, fence=found.fence + 1, lease=lease)


def renew(session: Session, space: SpaceInfo, claim: Claim) -> None:
    """Makes a claim last its lease from now on, also one that expired and that nobody took.
    Raises ClaimLostError, and NotFoundError for a space that is gone."""
    if session.run(RENEW_CLAIM, lease=claim.lease, **_own(space, claim)) == 0:
        raise _lost(session, space)


def release(session: Session, space: SpaceInfo, claim: Claim) -> None:
    """Ends a claim, if it is still held. Its row stays, because the fence must not fall."""
    session.run(RELEASE_CLAIM, **_own(space, claim))


def under(session: Session, space: SpaceInfo, claim: Claim | None, work: Callable[[], T]) -> T:
    """What `work` returns, done only if the claim is still held, which it renews. To be called as
    the only writer of the space: then nobody takes the claim until the transaction ends. None:
    `work` needs no claim. Raises ClaimLostError, and NotFoundError for a space that is gone."""
    if claim is None:
        return work()
    found = _read(session, space)
    if found is None or not found.is_of(claim):
        raise _lost(session, space)
    done = work()
    renew(session, space, claim)  # last: what was done may have taken longer than the lease
    return done


def _read(session: Session, space: SpaceInfo) -> _Standing | None:
    row = session.one(READ_CLAIM, in_tenant=space.tenant_id, in_space=space.space_id)
    return None if row is None else _Standing._make(row)


def _own(space: SpaceInfo, claim: Claim) -> dict[str, int | str]:
    return {
        "in_tenant": space.tenant_id,
        "in_space": space.space_id,
        "held_by": claim.holder,
        "held_fence": claim.fence,
    }


def _lost(session: Session, space: SpaceInfo) -> Exception:
    read_space(session, space)
    found = _read(session, space)
    holder, until = ("", 0) if found is None else (found.holder, found.expires)
    return ClaimLostError(
        f"{space.ref}: {holder or 'another worker'} took the space over meanwhile",
        holder=holder,
        until=until,
    )
