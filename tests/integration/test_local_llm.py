"""A real small language model, asked over HTTP: it writes something, and nothing goes unseen."""

from __future__ import annotations

from datetime import UTC, datetime

from cofire.consolidation.asking import Room, ask
from cofire.consolidation.budgets import Budget
from cofire.consolidation.drafts import DISTILLED
from cofire.consolidation.prompts import load
from cofire.models import Generation, make_generator
from cofire.settings import load_settings
from local_model import local_model as local_model  # noqa: PLC0414 - a fixture
from scripts_of_models import turn

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
TURNS = [turn("T1", "I own a green canoe. My sister Ada lives in Bergen.", time=MAY)]


def test_distilling_with_a_real_model(local_model: str) -> None:
    settings = load_settings(
        generator="openai:smollm2-135m", generator_base_url=local_model, generator_timeout=120
    )
    generator = make_generator(settings)
    assert generator is not None
    budget = Budget(calls=2, tokens=6_000)
    room = Room(answer=100, longest_answer=400)
    result = ask(generator, load("distil"), TURNS, budget, room=room)
    generator.close()
    assert result.error is None
    assert 1 <= result.calls <= 2
    assert result.spent == budget.spent
    assert result.spent.input_tokens > 300 * result.calls
    assert result.spent.output_tokens > 10
    assert sum(result.failures.values()) == result.calls - (result.unanswered == ())
    for draft in result.drafts:
        assert draft.kind in DISTILLED
        assert draft.maker == "openai:smollm2-135m"
        assert {quote.label for quote in draft.quotes} == {"T1"}


def test_the_schema_holds_a_real_model(local_model: str) -> None:
    settings = load_settings(generator="openai:smollm2-135m", generator_base_url=local_model)
    generator = make_generator(settings)
    assert generator is not None
    schema = {
        "type": "object",
        "properties": {"animal": {"type": "string", "enum": ["cat", "dog"]}},
        "required": ["animal"],
        "additionalProperties": False,
    }
    request = Generation(
        system="Answer with JSON.", user="Which one barks?", schema=schema, max_tokens=40
    )
    answer = generator.generate(request)
    generator.close()
    assert answer.finish == "stop"
    assert answer.text.replace(" ", "").replace("\n", "") in (
        '{"animal":"cat"}',
        '{"animal":"dog"}',
    )
