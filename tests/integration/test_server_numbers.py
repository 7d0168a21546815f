"""Metrics and spans: what whoever runs a server is told, and that none of it is content."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from starlette.middleware import Middleware

from cofire.memories import Memories
from cofire.server import tracing
from cofire.server.access import local_caller
from cofire.server.metrics import Metrics
from cofire.server.serving import Plan, assemble
from cofire.server.tracing import RequestSpans, VerbSpans
from cofire.settings import load_settings
from serving import listening, running_server

CONTENT = "The ferry to Norderney leaves at nine"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx2.Client]:
    """Of a server as `cofire serve` makes it."""
    settings = load_settings(store=str(tmp_path / "memory.db"), embedder="hashing:64")
    plan = Plan(settings=settings, caller=local_caller())
    with Memories.open(settings.store, settings=settings) as memories:
        _, app = assemble(plan, memories, Metrics())
        with listening(app) as url, httpx2.Client(base_url=url, timeout=30.0) as client:
            yield client


def numbers(client: httpx2.Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        f"{one.name}{sorted(one.labels.items())}" if one.labels else one.name: one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


def test_numbers_answer_what_an_operator_asks(client: httpx2.Client) -> None:
    kept = client.post("/v1/memories", json={"content": CONTENT}).json()["ids"]
    recall = client.post("/v1/recall", json={"query": "When does the ferry leave?"}).json()
    client.post("/v1/recall", json={"query": "quarterly budget of the aquarium in Lisbon"})
    client.post(f"/v1/recalls/{recall['id']}/feedback", json={"used": kept})
    client.get(f"/v1/memories/{recall['id']}")  # there is no such memory
    time.sleep(0.3)
    found = numbers(client)

    def requests(action: str, outcome: str = "ok") -> float:
        labels = [("action", action), ("outcome", outcome), ("surface", "rest")]
        return found[f"cofire_requests_total{labels}"]

    assert (requests("remember"), requests("recall"), requests("feedback")) == (1, 2, 1)
    assert requests("get", "error") == 1
    assert found[f"cofire_errors_total{[('action', 'get'), ('error', 'NotFoundError')]}"] == 1
    for stage in ("refresh", "embed", "rank", "fetch", "total"):
        assert found[f"cofire_recall_stage_seconds_count{[('stage', stage)]}"] == 2
    assert found["cofire_recalls_abstained_total"] in {0, 1, 2}
    assert found["cofire_active_graph_bytes"] > 0
    assert found["cofire_event_loop_lag_seconds_count"] > 0
    assert found["cofire_http_in_progress"] == 1  # the one that asks
    for name in ("due", "waiting", "dead", "lag_seconds"):
        assert f"cofire_consolidation_{name}" in found
    routes = [("method", "GET"), ("route", "/v1/memories/{id}"), ("status", "404")]
    assert found[f"cofire_http_requests_total{routes}"] == 1


def test_labels_are_few_and_without_content(client: httpx2.Client) -> None:
    client.post("/v1/memories?user=Nora", json={"content": CONTENT})
    for number in range(20):
        client.get(f"/nowhere/{number}")
        client.request(f"PURGE{number}", f"/v1/memories/{number}")
    text = client.get("/metrics").text
    assert not re.search(r"Nora|ferry|nowhere|/\d", text)
    families = list(text_string_to_metric_families(text))
    answered = next(one for one in families if one.name == "cofire_http_requests")
    assert len(answered.samples) < 20


def test_spans_have_the_verbs_and_no_content(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with running_server(
        tmp_path / "memory.db",
        witnesses=(VerbSpans(provider),),
        outermost=(Middleware(RequestSpans, provider=provider),),
    ) as running:
        running.memories.watch_recalls(tracing.recalled)
        httpx2.post(f"{running.url}/v1/memories", json={"content": CONTENT})
        httpx2.post(
            f"{running.url}/v1/recall?identity=default",
            json={"query": "When does the ferry leave?"},
            headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"},
        )
        httpx2.get(f"{running.url}/v1/memories/0")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    recall, verb = spans["POST /v1/recall"], spans["cofire.recall"]
    assert recall.context is not None and verb.parent is not None
    assert f"{recall.context.trace_id:032x}" == TRACE
    assert verb.parent.span_id == recall.context.span_id
    assert verb.start_time is not None and verb.end_time is not None
    assert verb.start_time <= verb.end_time
    assert {"cofire.recall.rank_ms", "http.response.status_code"} <= set(recall.attributes or {})
    assert spans["cofire.get"].attributes is not None
    assert spans["cofire.get"].attributes["error.type"] in {"NotFoundError", "InputError"}
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "ferry" not in told
    assert "identity=" not in told
