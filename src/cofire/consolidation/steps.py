"""The steps of consolidation, in their order."""

from __future__ import annotations

from cofire.consolidation.abstracting import gists, words
from cofire.consolidation.distilling import distil
from cofire.consolidation.facts import facts
from cofire.consolidation.fading import FADING_STEPS
from cofire.consolidation.hubs import hubs
from cofire.consolidation.naming import concepts
from cofire.consolidation.night import DAY_US, Step
from cofire.consolidation.reverifying import reverify
from cofire.consolidation.working import WORKING_STEPS

STEPS: tuple[Step, ...] = (
    Step(name="verify", run=reverify),
    Step(name="facts", run=facts),
    Step(name="distil", run=distil),
    Step(name="gists", run=gists),
    Step(name="words", run=words),
    Step(name="concepts", run=concepts),
    Step(name="hubs", run=hubs, period=DAY_US),
    *WORKING_STEPS,
    *FADING_STEPS,
)
"""Run by `Memory.consolidate`, each by itself: what is known first, then what fades."""
