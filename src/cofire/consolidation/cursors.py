"""What the cursors of steps count, for who moves a ledger to other numbers."""

from __future__ import annotations

EVENT_STEPS = frozenset({"window", "strengthen"})
"""Steps whose `StepRow.seq` is an event's place in the learning log; that of every other is the
number of the last memory it has seen."""
