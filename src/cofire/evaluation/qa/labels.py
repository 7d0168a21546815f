"""What tables call an arm: ablations stand under what they are of, so that few words do."""

from __future__ import annotations

from collections.abc import Iterable

from cofire.evaluation.qa.charts import bound_of

WITHOUT = " without "
NOTE = '"– gate" is the one above it without the gate.'
"""What is to be said where a label is shortened."""
SHORTENED = "  – "
"""What such a label begins with."""


def labelled(names: Iterable[str]) -> dict[str, str]:
    """Name → label, ablations right after what they are of: "cofire without gate @500" is
    "  – gate @500" under "cofire @500". Where several have ablations only those of the first are
    shortened, so that no two labels are the same."""
    given = list(dict.fromkeys(names))
    bases = {bound_of(name).base for name in given}
    first = next((root for name in given if (root := _root(name, bases))), None)
    places: dict[str, int] = {}
    for name in given:
        places.setdefault(_root(name, bases) or bound_of(name).base, len(places))
    ordered = sorted(
        given,
        key=lambda name: (
            places[_root(name, bases) or bound_of(name).base], bool(_root(name, bases))
        ),
    )  # fmt: skip
    return {
        name: f"{SHORTENED}{name.removeprefix(f'{first}{WITHOUT}')}"
        if first and _root(name, bases) == first
        else name
        for name in ordered
    }


def _root(name: str, bases: set[str]) -> str:
    """What an ablation is of, if that is there itself; else nothing."""
    root, found, _ = bound_of(name).base.partition(WITHOUT)
    return root if found and root in bases else ""


def fitted(name: str, width: int) -> str:
    """A name that is too long loses its middle, never its bound."""
    if len(name) <= width:
        return f"{name:{width}}"
    base, _, bound = name.rpartition(" ")
    kept = max(1, width - len(bound) - 2)
    return f"{base[:kept]}… {bound}"[:width]
