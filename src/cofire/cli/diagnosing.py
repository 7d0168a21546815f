"""`doctor`: is everything well, and if not, how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from cofire.cli.commands import command
from cofire.cli.options import Common
from cofire.cli.output import many, print_json, say

if TYPE_CHECKING:
    from cofire.cli.examination import Section


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    command(
        app,
        "doctor",
        examples=("cofire doctor", "cofire doctor --store locomo.db", "cofire doctor --json"),
    )(doctor)


def doctor(common: Common) -> int:
    """Examine everything, and say how to mend what is wrong.

    Looks at the environment, the settings, the file, the model (with a test embedding) and whether
    rows, links, postings, vectors and graphs agree. The exit code is 1 if
    something is wrong.
    """
    from cofire.cli.examination import examine

    return tell(examine(common), as_json=common.json)


def tell(sections: Sequence[Section], *, as_json: bool) -> int:
    """Print facts and problems; returns the exit code."""
    problems = [problem for section in sections for problem in section.problems]
    if as_json:
        print_json({"ok": not problems, "sections": sections})
        return 1 if problems else 0
    for section in sections:
        say((section.name, "bold"))
        longest = max(map(len, section.facts), default=0)
        for name, value in section.facts.items():
            say(f"{name:<{longest}}  {value}", indent=2, hang=longest + 2)
        for problem in section.problems:
            say(("✗ ", "bold red"), problem.what, indent=2, hang=2)
            say(("→ ", "bold"), problem.mend, indent=4, hang=2)
        say("")
    if problems:
        say((f"{many(len(problems), 'problem')} found.", "bold red"))
    else:
        say(("All is well.", "bold green"))
    return 1 if problems else 0
