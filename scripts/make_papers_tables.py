"""Write the tables of docs/explanation/papers-tables.md from the figures that ship; what stands
between its marks is replaced, the rest kept. `--check` only says if they are stale."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cofire.evaluation.qa.markdown import NONE, escaped, plain, table
from cofire.evaluation.qa.published import published_data
from cofire.evaluation.qa.published_tables import (
    counts_note,
    paper_notes,
    published_tables,
    run_notes,
)

TARGET = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "papers-tables.md"
_PART = re.compile(r"(<!-- begin (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end (?P=name) -->)", re.S)


def _tables(benchmark: str, metrics: Sequence[str], *, ablations: bool = False) -> list[str]:
    lines = published_tables(benchmark=benchmark, metrics=metrics, ablations=ablations)
    return [counts_note(benchmark), "", *lines]


def _gates() -> list[str]:
    rows = [
        [
            f"{one['threshold']:.2f}",
            plain(one["adversarial"]),
            plain(one["false_refusals"]),
        ]
        for one in published_data()["gates"]
    ]
    return table(["Synapse's threshold", "F1 of category 5", "false refusals, %"], rows)


def _efficiency() -> list[str]:
    rows = [
        [
            escaped(one["method"]),
            plain(one["tokens"], 0),
            plain(one["seconds"]),
            NONE if one["usd_per_1000"] is None else f"{one['usd_per_1000']:.2f}",
        ]
        for one in published_data()["efficiency"]
    ]
    return table(["method", "tokens", "seconds", "USD per 1,000 questions"], rows)


PARTS: Mapping[str, Callable[[], list[str]]] = {
    "notes": paper_notes,
    "locomo-f1": lambda: _tables("locomo", ["f1"]),
    "locomo-bleu1": lambda: _tables("locomo", ["bleu1"]),
    "locomo-judge": lambda: published_tables(
        benchmark="locomo", metrics=["judge"], ablations=False
    ),
    "locomo-ablations": lambda: _tables("locomo", ["f1"], ablations=True),
    "longmemeval": lambda: _tables("longmemeval-s", ["judge"]),
    "gates": _gates,
    "efficiency": _efficiency,
    "runs": lambda: table(["table", "methods", "whose run", "conditions"], run_notes(), left=4),
}
"""What stands between the marks of that name."""


def page(text: str) -> str:
    """The page with its tables made anew. Raises SystemExit if its marks are not those of PARTS."""
    names = [found["name"] for found in _PART.finditer(text)]
    if sorted(names) != sorted(PARTS):
        raise SystemExit(f"{TARGET.name} has the marks {names}, not {list(PARTS)}")
    return _PART.sub(
        lambda found: found[1] + "\n".join(PARTS[found["name"]]()) + "\n" + found[3], text
    )


def main() -> int:
    """Write the page, or with --check compare it."""
    text = TARGET.read_text(encoding="utf-8")
    made = page(text)
    if "--check" in sys.argv[1:]:
        return 0 if made == text else 1
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
