"""Spans of OpenTelemetry, where they are configured (COFIRE_SERVER_TRACING): one for each request,
one for each verb in it, with how long the stages of a recall took. Nothing in them is content.

Where they are sent is said by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, …).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cofire.errors import MissingExtraError
from cofire.server.service import Answered, Asked

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

NAME = "cofire"


def make_provider() -> TracerProvider:
    """Sends spans to where OpenTelemetry's variables say. Raises MissingExtraError."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as exc:
        raise MissingExtraError(
            'spans need OpenTelemetry: pip install "cofire[tracing]", or unset '
            "COFIRE_SERVER_TRACING"
        ) from exc
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class VerbSpans:
    """A witness: one span for each verb, within the request's."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer(NAME)

    def told(self, asked: Asked, answered: Answered, result: object) -> None:
        """Makes the span of a verb that is over."""
        from opentelemetry.trace import StatusCode

        del result
        end = time.time_ns()
        span = self._tracer.start_span(
            f"cofire.{asked.action.value}",
            start_time=end - int(1e9 * answered.seconds),
            attributes={
                "cofire.action": asked.action.value,
                "cofire.surface": asked.surface,
                "cofire.outcome": answered.outcome,
                "cofire.count": answered.count,
            },
        )
        if answered.code is not None:
            span.set_attribute("error.type", answered.code)
            span.set_status(StatusCode.ERROR)
        span.end(end)


def recalled(timings: Mapping[str, float]) -> None:
    """Notes the stages of a recall (ms) in the span of the request that it belongs to."""
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    for stage, spent in timings.items():
        span.set_attribute(f"cofire.recall.{stage}_ms", round(spent, 3))


class RequestSpans:
    """Middleware: one span for each request, part of the trace that its `traceparent` names."""

    def __init__(self, app: ASGIApp, *, provider: TracerProvider) -> None:
        self._app = app
        self._tracer: Tracer = provider.get_tracer(NAME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {
            key.decode("latin-1"): value.decode("latin-1")
            for key, value in scope["headers"]
            if key in {b"traceparent", b"tracestate"}
        }
        with self._tracer.start_as_current_span(
            scope["method"],
            context=TraceContextTextMapPropagator().extract(carrier),
            kind=SpanKind.SERVER,
            record_exception=False,
            attributes={"http.request.method": scope["method"]},
        ) as span:

            async def answer(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            await self._app(scope, receive, answer)
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                span.set_attribute("http.route", route)
                span.update_name(f"{scope['method']} {route}")
