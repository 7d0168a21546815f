"""Whatever the OpenAPI document allows is answered as it says, and what it forbids is refused: made
by schemathesis from docs/reference/openapi.json, which is what a server says of itself.

A longer run by hand: `schemathesis run URL/openapi.json -n 100`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, Phase, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its dependencies have to say on being imported
    import schemathesis
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import load_all_checks
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
)

from serving import Running, running_server

ROOT = Path(__file__).resolve().parents[2]
OPENAPI = ROOT / "docs" / "reference" / "openapi.json"
REASONS = {"input", "format", "changed"}
"""What the library, not the document, has against data that the document allows."""

load_all_checks()
document = json.loads(OPENAPI.read_text(encoding="utf-8"))
del document["security"]  # a server on this machine asks for no key
schema = schemathesis.openapi.from_dict(document)


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: object, value: object) -> bytes:
    """Lines as they are."""
    return str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all, so that routes meet what others made."""
    store = tmp_path_factory.mktemp("schema") / "memory.db"
    with running_server(store, embedder="hashing:16") as running:
        yield running


def refused_with_reasons(case: Case[Any], response: Response) -> None:
    """Data that the document allows is taken, or refused for a reason that it cannot say."""
    mode = case.meta.generation.mode if case.meta is not None else None
    if mode is GenerationMode.POSITIVE and response.status_code in {400, 412, 415, 422}:
        kind = response.json()["type"].rpartition(":")[2]
        assert kind in REASONS, response.text


def wrong_body(case: Case[Any]) -> bool:
    """Whether a body is sent that the document forbids. (In a query everything is a text: null is
    the name "null", and a text a list of one. A file of lines is whatever is sent.)"""
    if case.meta is None or case.path == "/v1/import":
        return False
    body = case.meta.components.get(ParameterLocation.BODY)
    return body is not None and body.mode is GenerationMode.NEGATIVE


@schema.parametrize()
@settings(
    max_examples=4,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_it_is_as_described(case: Case[Any], server: Running) -> None:
    response = case.call(base_url=server.url)
    refused_with_reasons(case, response)
    excluded: list[Any] = [positive_data_acceptance]  # `refused_with_reasons` says it more exactly
    if not wrong_body(case):
        excluded.append(negative_data_rejection)
    case.validate_response(response, excluded_checks=excluded)
    assert response.status_code < 500


def test_the_document_is_current() -> None:
    script = ROOT / "scripts" / "make_openapi.py"
    found = importlib.util.spec_from_file_location("make_openapi", script)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.document() == OPENAPI.read_text(encoding="utf-8"), f"run python {script}"


def test_a_server_says_the_same_of_itself(server: Running) -> None:
    said = httpx.get(f"{server.url}/openapi.json").json()
    committed = json.loads(OPENAPI.read_text(encoding="utf-8"))
    assert (said["paths"], said["components"]) == (committed["paths"], committed["components"])


def test_the_reference_lists_every_route() -> None:
    text = (ROOT / "docs" / "reference" / "rest.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([A-Z]+ /\S+)` \|", text, re.MULTILINE)
    paths = json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"]
    assert sorted(listed) == sorted(
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    )
