"""What follows what, among derived memories: the line stays whole when one in the middle goes."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, or_, select

from cofire.store.deriving import join
from cofire.store.records import LINK_CODES
from cofire.store.schema import links
from cofire.store.session import Query, Session
from cofire.store.writing import Turn
from cofire.types import LinkType

_SUPERSEDES = LINK_CODES[LinkType.SUPERSEDES.value]
AROUND = Query(
    lambda flavour: select(links.c.source, links.c.target).where(
        links.c.tenant == bindparam("tenant"),
        links.c.space == bindparam("space"),
        links.c.type == _SUPERSEDES,
        or_(
            links.c.source.in_(flavour.members("numbers")),
            links.c.target.in_(flavour.members("numbers")),
        ),
    )
)


def around(session: Session, turn: Turn, gone: Collection[int]) -> set[tuple[int, int]]:
    """Of memories that go, the pairs (later, former) that are left on both sides of them."""
    here = {"tenant": turn.tenant, "space": turn.space}
    former: dict[int, set[int]] = {}
    for source, target in session.all(AROUND, numbers=session.pack(sorted(gone)), **here):
        former.setdefault(source, set()).add(target)
    pairs = set()
    for later in former.keys() - set(gone):
        ahead = list(former[later] & set(gone))
        met = set(ahead)
        while ahead:
            for target in former.get(ahead.pop(), set()) - met:
                met.add(target)
                ahead.append(target)
        pairs |= {(later, target) for target in met - set(gone)}
    return pairs


def bridge(session: Session, turn: Turn, pairs: Collection[tuple[int, int]], *, now: int) -> None:
    """Links each later one to the former that it follows now."""
    wanted = [(*pair, LinkType.SUPERSEDES.value, 1.0) for pair in sorted(pairs)]
    if wanted:
        join(session, turn, wanted, now=now)
