"""Mere co-retrieval as evidence, where a space has chosen a rule that counts it.

The default rule gives the signal `retrieved` no rate, and then nothing here happens: retrieval
that rewards itself rewards its mistakes. HeLa-Mem and Atamaia count it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cofire.dynamics.plasticity import Rule
from cofire.errors import ConfigurationError
from cofire.store.learning import NewEvent, learn
from cofire.store.records import HYDRATION, RecallRecord, SpaceInfo, text_hash
from cofire.store.rules import rule_of
from cofire.store.session import Session

SIGNAL = "retrieved"
TOGETHER = 15
"""Best memories of a recall that count as retrieved together: the ten and the five that HeLa-Mem's
two paths bring. A list of a hundred would be 4,950 pairs."""


def rehearse(session: Session, kept: Sequence[tuple[SpaceInfo, RecallRecord]]) -> int:
    """Learns from recalls that nobody has judged, in spaces whose settings name a rule that does;
    returns how many events were appended. Memories forgotten meanwhile are passed over, and so is
    a rule of a later version."""
    rules: dict[int, Rule | None] = {}
    appended = 0
    for space, record in kept:
        if space.space_id not in rules:
            rules[space.space_id] = _rehearsing(space)
        rule = rules[space.space_id]
        if rule is not None and len(record.hits) > 1 and record.profile != HYDRATION:
            here = replace(space, model=None, dimension=None)  # whatever model it has by now
            event = co_retrieval(record, rule)
            appended += learn(session, here, event, rule, now=record.time).seq is not None
    return appended


def _rehearsing(space: SpaceInfo) -> Rule | None:
    """The space's rule if it counts co-retrieval."""
    try:
        rule = rule_of(space.settings)
    except ConfigurationError:
        return None
    return rule if rule.alpha[SIGNAL] > 0.0 else None


def co_retrieval(record: RecallRecord, rule: Rule) -> NewEvent:
    """What a recall says by itself: its best memories were retrieved together.

    A pair of which one came only over its link with the other earns nothing, as in feedback. The
    same question counts once where the rule bounds how far one principal moves a link; the papers'
    rules have no such bound, and count every retrieval.
    """
    best = sorted(record.hits, key=lambda hit: hit.position)[:TOGETHER]
    question = None
    if rule.cap_per_day is not None:
        question = text_hash(" ".join(record.query.casefold().split()))
    return NewEvent(
        items=tuple((hit.number, 1.0) for hit in best),
        signal=SIGNAL,
        time=record.time,
        principal=record.principal,
        recall=record.uid,
        question=question,
        via={hit.number: hit.via for hit in best if hit.via},
    )
