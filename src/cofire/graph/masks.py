"""Filters as masks over rows: evaluated before ranking, never after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cofire.dynamics.arrays import Bool
from cofire.graph.active import ActiveGraph

KEPT_MASKS = 8
"""Masks of kinds kept with a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows may be recalled; every given condition must hold.

    `any_of`: groups of facet hashes, of each group at least one (a speaker of these, a session of
    those). `all_of`: facet hashes that must all be there (tags, metadata). `kinds`,
    `without_kinds`: kind codes. `since` ≤ time < `until` and `now`: microseconds since 1970 UTC;
    a row whose expiry is at or before `now` is out.

    `derived`: None: whatever it is; True: only what consolidation derived; False: only the rest.
    `holds_at`: what had ceased to hold by then is out; with `as_of` also what did not hold yet or
    had not been said yet. `known_at`: only what had been recorded by then, and what ended then or
    later by what is recorded now: `reopened` are numbers of rows whose end was not known then.
    `trusted_only`: nothing that is not trusted.
    """

    any_of: tuple[tuple[int, ...], ...] = ()
    all_of: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    without_kinds: tuple[int, ...] = ()
    since: int | None = None
    until: int | None = None
    now: int | None = None
    derived: bool | None = None
    holds_at: int | None = None
    as_of: int | None = None
    known_at: int | None = None
    reopened: tuple[int, ...] = ()
    trusted_only: bool = False


def row_mask(graph: ActiveGraph, wanted: RowFilter) -> Bool | None:
    """Live rows that satisfy `wanted`; None if that is every row. Do not write to it."""
    masks: list[Bool] = []
    if graph.live is not None:
        masks.append(graph.live)
    if wanted.kinds or not graph.kinds.isdisjoint(wanted.without_kinds):
        masks.append(_kind_mask(graph, wanted))
    if wanted.since is not None:
        masks.append(graph.column("time") >= wanted.since)
    if wanted.until is not None:
        masks.append(graph.column("time") < wanted.until)
    if wanted.now is not None and graph.first_expiry <= wanted.now:
        masks.append(graph.column("expires") > wanted.now)
    if wanted.derived is not None and (wanted.derived or graph.has_derived):
        masks.append(graph.derived if wanted.derived else ~graph.derived)
    if wanted.trusted_only and graph.has_untrusted:
        masks.append(~graph.untrusted)
    masks += _in_time(graph, wanted)
    masks += [graph.facets.any_of(group, graph.size) for group in wanted.any_of]
    masks += [graph.facets.any_of((facet,), graph.size) for facet in wanted.all_of]
    if not masks:
        return None
    if len(masks) == 1:
        return masks[0]
    result = masks[0] & masks[1]
    for mask in masks[2:]:
        result &= mask
    return result


def _in_time(graph: ActiveGraph, wanted: RowFilter) -> list[Bool]:
    """What holds, and what was known, at the moments asked for."""
    masks: list[Bool] = []
    if wanted.holds_at is not None and graph.first_end <= wanted.holds_at:
        held = graph.column("valid_to") > wanted.holds_at
        for number in wanted.reopened:
            row = graph.row(number)
            if row >= 0:
                held[row] = True
        masks.append(held)
    if wanted.as_of is not None:
        begun = graph.column("valid_from") <= wanted.as_of
        masks.append(begun & (graph.column("time") <= wanted.as_of))
    if wanted.known_at is not None:
        masks.append(graph.column("recorded") <= wanted.known_at)
    return masks


def _kind_mask(graph: ActiveGraph, wanted: RowFilter) -> Bool:
    """Rows of the kinds wanted; the last few masks made are kept with the snapshot."""
    kept: dict[object, Bool] = graph.cache.setdefault("of_kinds", {})
    key = (wanted.kinds, wanted.without_kinds)
    mask = kept.get(key)
    if mask is None:
        table = np.full(256, not wanted.kinds, np.bool_)
        table[list(wanted.kinds)] = True
        table[list(wanted.without_kinds)] = False
        mask = table[graph.column("kind")]
        if len(kept) >= KEPT_MASKS:
            kept.clear()
        kept[key] = mask
    return mask
