"""Public values as JSON, the same as the command line's `--json`, ten times as fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


def json_bytes(value: Any) -> bytes:
    """A public value (or mappings and lists of such) as JSON; times as ISO 8601 in UTC. Call it in
    the verb, on its thread, where it may be long: the event loop serves everybody."""
    return to_json(value, inf_nan_mode="null")


class Json(Response):
    """An answer with a JSON body, made of bytes that are ready, or of a value."""

    media_type = "application/json"

    def __init__(
        self,
        content: Any,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(content, status_code, dict(headers) if headers else None)

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else json_bytes(content)
