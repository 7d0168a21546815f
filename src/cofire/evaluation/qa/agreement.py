"""How far labels agree: of a judge with people, of the runs of one judge with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float | None:
    """Agreement of two labellers beyond chance, (p_o - p_e) / (1 - p_e), at most 1 (Cohen 1960).

    None where it is not defined: nothing is labelled, or both give one and the same label always.
    Raises ValueError where the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} labels stand against {len(other)}")
    total = len(one)
    if not total:
        return None
    agreed = sum(a == b for a, b in zip(one, other, strict=True)) / total
    first, second = Counter(one), Counter(other)
    chance = sum(first[label] * second[label] for label in first) / total**2
    return None if chance == 1.0 else (agreed - chance) / (1.0 - chance)


def fleiss_kappa(rows: Sequence[Sequence[Hashable]]) -> float | None:
    """Agreement of n ≥ 2 labels in each row beyond chance, at most 1 (Fleiss 1971, equations 3-7).

    None where it is not defined: no rows, or one and the same label always. Raises ValueError
    where rows differ in length or have fewer than two labels.
    """
    if not rows:
        return None
    runs = len(rows[0])
    if runs < 2 or any(len(row) != runs for row in rows):
        raise ValueError("every row needs the same number of labels, at least 2")
    counts = [Counter(row) for row in rows]
    pairs = runs * (runs - 1)
    agreed = sum(sum(n * (n - 1) for n in row.values()) for row in counts) / (pairs * len(rows))
    everything = sum(counts, Counter[Hashable]())
    chance = sum((n / (runs * len(rows))) ** 2 for n in everything.values())
    return None if chance == 1.0 else (agreed - chance) / (1.0 - chance)


def majority(judged: Sequence[bool | None]) -> bool | None:
    """What most of the usable verdicts (not None) say. A tie is False: an answer that is as often
    held wrong as right is not taken for right. None where no verdict is usable."""
    usable = [verdict for verdict in judged if verdict is not None]
    return 2 * sum(usable) > len(usable) if usable else None
