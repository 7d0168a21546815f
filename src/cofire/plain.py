"""Public values as what JSON knows: one shape for each, whoever writes it (commands, servers)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cofire.answers import Answer
from cofire.types import Hydration, Recall, Recalled, SleepReport

NEAREST = 3
"""What came nearest, of an answer that is none: so many memories."""


def plain(value: Any) -> Any:
    """A public value as what JSON knows; times as ISO 8601 in UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


# The shapes below are mappings of values that `plain`, or a faster writer of JSON, makes plain.


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a public value, as they are."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def recalled_shape(hit: Recalled) -> dict[str, Any]:
    """A recalled memory: its fields, with the text that matched, its score and segment."""
    return fields_of(hit.item) | {
        "content": hit.content,
        "score": hit.score,
        "segment": hit.segment,
        "line": hit.line,
    }


def recall_shape(recall: Recall) -> dict[str, Any]:
    """A recall, its items as `recalled_shape`."""
    return fields_of(recall) | {"items": [recalled_shape(hit) for hit in recall.items]}


def answer_shape(answer: Answer, *, context: bool = False) -> dict[str, Any]:
    """An answer. `recall` is the id under which feedback is given; its citations are numbered from
    1, as the marks in `marked` are; `nearest` are the memories that came nearest where there is no
    answer. `context` is what the model was given, if that is asked for, and else None."""
    nearest = sorted(answer.recall, key=lambda hit: -hit.score) if answer.abstained else []
    cited = enumerate(answer.citations, start=1)
    return fields_of(answer) | {
        "citations": [{"number": number, **fields_of(one)} for number, one in cited],
        "recall": answer.recall.id,
        "nearest": [_near(hit) for hit in nearest[:NEAREST]],
        "context": fields_of(answer.context) if context else None,
    }


def _near(hit: Recalled) -> dict[str, Any]:
    item = hit.item
    return {
        "id": hit.id,
        "text": hit.content,
        "time": item.time,
        "speaker": item.speaker or item.role,
        "score": hit.score,
        "untrusted": hit.untrusted,
    }


def hydration_shape(hydration: Hydration) -> dict[str, Any]:
    """A session's opening context, with its text for a prompt."""
    return fields_of(hydration) | {"text": hydration.text}


def report_shape(report: SleepReport) -> dict[str, Any]:
    """What a consolidation did, with its status."""
    return {"status": report.status, **fields_of(report)}
