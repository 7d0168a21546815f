"""Import and export: other programs' formats as streams of messages, and Cofire's own.

Each reader yields `Message | Problem` lazily and touches no memory; `ImportReport` counts.
"""

from __future__ import annotations

from cofire.interchange.detect import Format, detect
from cofire.interchange.report import Action, ImportReport, Problem

__all__ = ["Action", "Format", "ImportReport", "Problem", "detect"]
