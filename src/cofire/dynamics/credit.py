"""Who earns what from one piece of feedback: credits of pairs, and of the question's own links.

Only outcomes teach: credit is for what was used, is shared by all that were used together, and is
never earned by a link for having brought its own other end. `plasticity.apply` turns a credit into
a change of strength; `plasticity_reference` has a readable twin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Credits = list[tuple[int, int, float]]
"""(lower number, higher number, credit in [-1, 1] without 0), ascending."""


def pair_credits(
    items: Sequence[tuple[int, float]],
    linked_via: Mapping[int, int] | None = None,
    *,
    outcome: float = 1.0,
) -> Credits:
    """What feedback says of each pair: (i, j, credit), i < j, pairs without credit left out.

        c_i, c_j > 0          outcome · c_i · c_j / (u - 1)        u: how many have c > 0
        c_i > 0 > c_j         -|outcome| · |c_i · c_j| / u
        otherwise             nothing

    `items` are distinct numbers with credits in [-1, 1] (used > 0, rejected < 0), `outcome` is in
    [-1, 1]: a bad one turns the credit of joint use against the pair. So the credit for joint use
    that an item gives sums to at most 1 (fan), and so does the blame for a rejected item.

    `linked_via[j] == i` says that j was retrieved over its link with i alone: such a pair earns no
    positive credit, or links would rehearse themselves. Depends on neither order of items.

    Raises:
        ValueError: a number twice, a credit or the outcome outside [-1, 1] or not a number.
    """
    _check_credits(items, outcome)
    via = linked_via or {}
    used = sorted([item for item in items if item[1] > 0.0])
    rejected = [item for item in items if item[1] < 0.0]
    found: Credits = []
    for position, (i, own) in enumerate(used):
        for j, other in used[position + 1 :]:
            credit = outcome * own * other / (len(used) - 1)
            if credit < 0.0 or (credit > 0.0 and via.get(j) != i and via.get(i) != j):
                found.append((i, j, credit))
        for j, other in rejected:
            credit = abs(outcome) * own * other / len(used)
            if credit < 0.0:
                found.append((i, j, credit) if i < j else (j, i, credit))
    found.sort()
    return found


def cue_credits(
    items: Sequence[tuple[int, float]], fan: float, *, outcome: float = 1.0
) -> list[tuple[int, float]]:
    """What feedback says of the question's link to each item: (number, credit), ascending.

        c > 0     outcome · c / u ** fan         u: how many have c > 0, at least 1
        c < 0     |outcome| · c / u ** fan

    Raises:
        ValueError: see `pair_credits`.
    """
    _check_credits(items, outcome)
    share = max(1, sum(credit > 0.0 for _, credit in items)) ** fan
    scaled = (
        (number, (outcome if credit > 0.0 else abs(outcome)) * credit / share)
        for number, credit in sorted(items)
    )
    return [(number, credit) for number, credit in scaled if credit]


def _check_credits(items: Sequence[tuple[int, float]], outcome: float) -> None:
    if not -1.0 <= outcome <= 1.0:
        raise ValueError(f"an outcome must be in [-1, 1], got {outcome}")
    for number, credit in items:
        if not -1.0 <= credit <= 1.0:
            raise ValueError(f"the credit of item {number} must be in [-1, 1], got {credit}")
    if len(dict(items)) < len(items):
        raise ValueError("an item has two credits in one event")
