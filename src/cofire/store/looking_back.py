"""Looking back at what was learned: as of any moment, by another rule, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import and_, bindparam, exists, or_, select, text

from cofire.dynamics.plasticity import LinkState, Rule
from cofire.store.folding import Movement, Pair
from cofire.store.records import LINK_CODES, SpaceInfo
from cofire.store.redaction import CUES_AMONG
from cofire.store.rules import read_rule, write_rule
from cofire.store.schema import links
from cofire.store.session import Query, Session
from cofire.store.settling import TOLERANCE, fold_space, history_of, write_fold
from cofire.store.strengths import COACTIVATION
from cofire.store.writing import take_turn
from cofire.types import LinkType

_other = links.alias("other")
PROPOSALS = Query(
    lambda _: (
        select(links.c.source, links.c.target, links.c.rejections)
        .where(
            links.c.tenant == bindparam("tenant"),
            links.c.space == bindparam("space"),
            text("links.rejections > 0"),
            links.c.rejections >= bindparam("least"),
            links.c.type == COACTIVATION,
            ~exists().where(
                _other.c.tenant == links.c.tenant,
                _other.c.space == links.c.space,
                _other.c.type == LINK_CODES[LinkType.CONTRADICTS.value],
                or_(
                    and_(_other.c.source == links.c.source, _other.c.target == links.c.target),
                    and_(_other.c.source == links.c.target, _other.c.target == links.c.source),
                ),
            ),
        )
        .order_by(links.c.rejections.desc(), links.c.source, links.c.target)
    )
)


class Proposal(NamedTuple):
    """Two memories of which one was rejected `rejections` times when the other was used."""

    source: int
    target: int
    rejections: int


def fold(
    session: Session,
    space: SpaceInfo,
    *,
    up_to_time: int | None = None,
    up_to_seq: int | None = None,
    rule: Rule | None = None,
) -> dict[Pair, LinkState]:
    """The strengths that the log alone says, by pair: of memories the lower number first, of a
    cue and a memory the cue first. As of each link's last change; `plasticity.current` takes off
    what decayed since.

    Of the events up to a time (µs) or a sequence number, both included, and by another rule than
    the space's own if one is given.
    """
    here = {"tenant": space.tenant_id, "space": space.space_id}
    rule = rule or read_rule(session, space)
    folded = fold_space(
        session, here, rule, up_to_time=up_to_time, up_to_seq=up_to_seq, reporting=False
    )
    return folded.fold.states


def replay(session: Session, space: SpaceInfo, rule: Rule | None = None) -> int:
    """Makes every learned link what the log says, and returns how many were not; by another rule
    from now on if one is given."""
    turn = take_turn(session, space)
    if rule is not None:
        write_rule(session, space, rule)
    here = {"tenant": turn.tenant, "space": turn.space}
    folded = fold_space(session, here, read_rule(session, space))
    return write_fold(session, turn, folded, TOLERANCE)


def why(session: Session, space: SpaceInfo, one: int, other: int) -> Sequence[Movement]:
    """The events that moved the link of two memories, or of a cue and a memory, oldest first, and
    by how much each did."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    cues = {row[0] for row in session.all(CUES_AMONG, numbers=session.pack([one, other]), **here)}
    pair = (one, other) if one in cues or (one < other and other not in cues) else (other, one)
    return history_of(session, here, read_rule(session, space), pair)


def proposals(session: Session, space: SpaceInfo, least: int = 3) -> list[Proposal]:
    """The pairs rejected against each other at least so often that no contradicts link joins,
    the most rejected first."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    rows = session.all(PROPOSALS, least=max(1, least), **here)
    return [Proposal(min(row[:2]), max(row[:2]), row[2]) for row in rows]
