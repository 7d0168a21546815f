"""Errors as answers: one table from the error tree to statuses, as problem+json (RFC 9457).

Whatever goes wrong, REST answers with one of these. Texts of errors that may name files or hold
what somebody wrote are replaced by a fixed one; the log has the error's class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from cofire import errors

MEDIA_TYPE = "application/problem+json"
KIND = "urn:cofire:problem:"
"""What every problem's `type` begins with; the rest says which, as `not-found`."""
BUSY_SECONDS = 1.0
AWAY_SECONDS = 5.0
"""Seconds after which trying again may help: where another writer was in the way, and where the
store cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One answer that says what went wrong. `kind` is the end of its `type`; `detail` says what
    happened and what to do; `more` are further members; `retry_after`: seconds to wait."""

    status: int
    kind: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None

    def body(self, request: str | None = None) -> bytes:
        """The JSON text; `request` is the id by which the log knows the request."""
        content: dict[str, Any] = {
            "type": KIND + self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if request is not None:
            content["request"] = request
        content.update(self.more)
        return json.dumps(content, allow_nan=False, default=str).encode()

    def raw_headers(self, length: int) -> list[tuple[bytes, bytes]]:
        """Headers of the answer, as ASGI has them."""
        given = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % length)]
        if self.retry_after is not None:
            given.append((b"retry-after", b"%d" % max(1, round(self.retry_after + 0.499))))
        given.extend(
            (name.lower().encode(), value.encode()) for name, value in self.headers.items()
        )
        return given


@dataclass(frozen=True, slots=True)
class _Row:
    status: int
    kind: str
    detail: str | None = None
    retry_after: float | None = None


_SETTINGS = "the server's settings do not fit together; its operator finds the reason in the log"

TABLE: Mapping[type[errors.CofireError], _Row] = {
    errors.KeyConflictError: _Row(409, "key-conflict"),
    errors.ConfirmationNeededError: _Row(409, "confirmation-needed"),
    errors.LinkExistsError: _Row(409, "link-exists"),
    errors.ChangedError: _Row(412, "changed"),
    errors.InputError: _Row(422, "input"),
    errors.NotFoundError: _Row(404, "not-found"),
    errors.UnauthorizedError: _Row(401, "unauthorized"),
    errors.ForbiddenError: _Row(403, "forbidden"),
    errors.LimitedError: _Row(429, "limited"),
    errors.FormatError: _Row(422, "format"),
    errors.EmbeddingError: _Row(
        502, "embedding", "the embedding model gave no usable answer; try again later"
    ),
    errors.GenerationError: _Row(
        502, "generation", "the language model gave no usable answer; its operator has the log"
    ),
    errors.EmbeddingMismatchError: _Row(500, "embedding-mismatch"),
    errors.MissingExtraError: _Row(500, "missing-extra"),
    errors.ConfigurationError: _Row(500, "configuration", _SETTINGS),
    errors.StoreBusyError: _Row(
        503, "busy", "another writer held the store for too long; try again", BUSY_SECONDS
    ),
    errors.StoreUnavailableError: _Row(
        503,
        "unavailable",
        "the store could not be reached, or not to the end; look whether a change was made before "
        "asking for it again",
        AWAY_SECONDS,
    ),
    errors.StoreCorruptError: _Row(
        500, "corrupt", "the store contradicts itself; its operator should run `cofire doctor`"
    ),
    errors.SchemaVersionError: _Row(
        500, "schema-version", "the store is of another version of Cofire; its operator upgrades it"
    ),
    errors.StoreError: _Row(500, "store", "the store refused this; its operator has the log"),
}
"""By class of error; the nearest of its classes counts. Where no text is given, the error's own
is told: it is about what the caller sent."""

UNEXPECTED = Problem(
    status=500,
    kind="unexpected",
    detail="something went wrong that should not have; the log has it under this request's id",
)

STOPPING = Problem(
    status=503,
    kind="stopping",
    detail="the server stops and could not wait any longer; look whether a change was made before "
    "asking for it again",
    retry_after=AWAY_SECONDS,
)
"""What is answered to a request that had not ended when the server had to."""


def problem_of(error: Exception) -> Problem:
    """What is answered for an error of the library, of a request that is not as described, or of
    the framework; anything else is `UNEXPECTED`."""
    if isinstance(error, errors.CofireError):
        return _of_library(error)
    if isinstance(error, RequestValidationError):
        return _of_validation(error.errors())
    if isinstance(error, HTTPException):
        return _of_framework(error)
    return UNEXPECTED


def _of_library(error: errors.CofireError) -> Problem:
    row = next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), None)
    if row is None:
        return UNEXPECTED
    made = Problem(
        status=row.status,
        kind=row.kind,
        detail=row.detail or str(error),
        retry_after=row.retry_after,
    )
    if isinstance(error, errors.ConfirmationNeededError):
        return replace(made, more={"token": error.token, "count": error.count})
    if isinstance(error, errors.UnauthorizedError):
        return replace(made, headers={"www-authenticate": "Bearer"})
    if isinstance(error, errors.GenerationError):
        more = {"retryable": error.retryable}
        return replace(made, more=more, retry_after=error.retry_after)
    if isinstance(error, errors.LimitedError):
        made = replace(made, retry_after=error.retry_after)
        return replace(made, status=503, kind="overloaded") if error.overloaded else made
    return made


def _of_validation(found: Sequence[Mapping[str, Any]]) -> Problem:
    """What was sent is not repeated: it may be long, or secret."""
    if any(one["type"] == "json_invalid" for one in found):
        return Problem(status=400, kind="json", detail="the body is not JSON")
    problems = [
        {"where": [str(step) for step in one["loc"]], "what": one["msg"]} for one in found[:20]
    ]
    first = problems[0] if problems else {"where": [], "what": "it is not as described"}
    return Problem(
        status=422,
        kind="invalid",
        detail=f"{'.'.join(first['where'])}: {first['what']}",
        more={"errors": problems},
    )


def _of_framework(error: HTTPException) -> Problem:
    kinds = {
        400: ("malformed", "the request cannot be read"),
        404: ("no-route", "there is nothing at this address; /openapi.json lists what there is"),
        405: ("method", "this address does not take this method"),
        413: ("too-large", str(error.detail)),
        415: ("media-type", str(error.detail)),
    }
    kind, detail = kinds.get(error.status_code, ("http", str(error.detail)))
    return Problem(
        status=error.status_code, kind=kind, detail=detail, headers=dict(error.headers or {})
    )


_EXAMPLES: Mapping[int, tuple[str, str]] = {
    400: ("json", "the body is not JSON"),
    401: ("unauthorized", "this needs a key: Authorization: Bearer …"),
    403: ("forbidden", "this needs the scope 'write'; the key of 'reader' has: read"),
    404: ("not-found", "there is no memory 01890a5d-ac96-774b-bcce-b302099a8057"),
    408: ("slow", "the body did not arrive within 30 seconds"),
    409: ("key-conflict", "the key 'a' was remembered with another text"),
    412: ("changed", "the memory was changed since; get it again"),
    413: ("too-large", "the body has more than 10,000,000 bytes"),
    415: ("media-type", "the body must be application/json"),
    422: ("invalid", "body.k: Input should be greater than 0"),
    429: ("limited", "more requests than this key may make; try again in a second"),
    500: ("unexpected", UNEXPECTED.detail),
    502: ("embedding", "the embedding model gave no usable answer; try again later"),
    503: ("busy", "another writer held the store for too long; try again"),
}

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": f"Which problem it is: {KIND}…"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and what to do."},
        "request": {"type": "string", "description": "The request's id, as in X-Request-Id."},
        "token": {"type": "string", "description": "Confirms a deletion (confirmation-needed)."},
        "count": {"type": "integer", "description": "How many memories it would be."},
        "retryable": {
            "type": "boolean",
            "description": "Whether the same may succeed later (generation).",
        },
        "errors": {
            "type": "array",
            "description": "What of the request is not as described (invalid).",
            "items": {
                "type": "object",
                "required": ["where", "what"],
                "properties": {
                    "where": {"type": "array", "items": {"type": "string"}},
                    "what": {"type": "string"},
                },
            },
        },
    },
}
"""Of every problem, for the OpenAPI document."""

EVERYWHERE = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)
"""Statuses of problems that any route may answer with."""


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: those of `EVERYWHERE` and these, with an example each."""
    return {status: _response(status) for status in sorted({*EVERYWHERE, *statuses})}


def _response(status: int) -> dict[str, Any]:
    kind, detail = _EXAMPLES[status]
    example = json.loads(Problem(status=status, kind=kind, detail=detail).body("7f3c"))
    return {
        "description": HTTPStatus(status).phrase,
        "content": {
            MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
        },
    }
