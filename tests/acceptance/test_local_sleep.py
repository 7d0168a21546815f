"""A whole night with a real small language model over HTTP. It is far too small to be right: what
it invents is quarantined and never recalled."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cofire import Memory
from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.verifying import verify
from cofire.models import Generated, Generation, Generator, make_generator
from cofire.settings import load_settings
from cofire.types import Kind, SemanticRecord
from local_model import local_model as local_model  # noqa: PLC0414 - a fixture
from scripts_of_models import record, reply, turns_in

NIGHT = datetime(2024, 8, 1, 3, tzinfo=UTC)
SAID = (
    ("Robin", "I own a green canoe."),
    ("Robin", "My sister Ada lives in Bergen."),
    ("Ada", "I work at the harbour."),
    ("Robin", "I never eat fish."),
    ("Ada", "I moved to Tromsø in May because of the sea."),
)
INVENTED = "Robin owns 17 yachts in Lisbon."


class Helped:
    """The real model, asked for one sentence at a time: the first request goes to it as it is; of
    the others it writes the sentences and names the turns, and the frame around them is ours. Left
    to itself it fills every answer up to the last token, and then nothing of it is read."""

    def __init__(self, model: Generator) -> None:
        self.name = model.name
        self._model = model
        self.asked = 0
        self.written: list[str] = []

    def generate(self, request: Generation, /) -> Generated:
        self.asked += 1
        if self.asked == 1:
            return self._model.generate(replace(request, max_tokens=60))
        turns = turns_in(request)
        answers = [
            self._about(turn, warmth) for turn, warmth in zip(turns, (0.0, 1.2), strict=False)
        ]
        records = [self._record(turn, answer) for turn, answer in zip(turns, answers, strict=False)]
        quote = {"turn": turns[0]["turn"], "text": turns[0]["text"]}
        invented = record(content=INVENTED, slot=None, value=None, quotes=[quote])
        return Generated(
            text=reply(*records, invented),
            input_tokens=sum(answer.input_tokens for answer in answers),
            output_tokens=sum(answer.output_tokens for answer in answers),
        )

    def _about(self, turn: dict[str, Any], temperature: float) -> Generated:
        schema = {
            "type": "object",
            "properties": {"fact": {"type": "string", "minLength": 8, "maxLength": 60}},
            "required": ["fact"],
            "additionalProperties": False,
        }
        return self._model.generate(
            Generation(
                system="Write one fact about the speaker as JSON.",
                user=f"{turn['speaker']}: {turn['text']}",
                schema=schema,
                max_tokens=240,
                temperature=temperature,
            )
        )

    def _record(self, turn: dict[str, Any], answer: Generated) -> dict[str, Any]:
        content = answer.text if answer.finish != "stop" else json.loads(answer.text)["fact"]
        self.written.append(" ".join(content.split()))
        quote = {"turn": turn["turn"], "text": turn["text"]}
        return record(
            content=content, subject=turn["speaker"], slot=None, value=None, quotes=[quote]
        )

    def close(self) -> None:
        self._model.close()


def holds(one: SemanticRecord) -> bool:
    """Whether a record holds by the whole of the turns that it names."""
    turns = {
        f"T{place}": Turn(number=place, version=1, label=f"T{place}", content=quote.text,
                          time=quote.time, speaker=quote.speaker)
        for place, quote in enumerate(one.evidence, 1)
    }  # fmt: skip
    quotes = tuple(Quote(label=label, text=turn.content) for label, turn in turns.items())
    draft = Draft(kind=Kind(one.item.kind), content=one.content, subject=one.subject, quotes=quotes)
    return verify(draft, turns).holds


def test_a_night_with_a_real_model(local_model: str, tmp_path: Path) -> None:
    model = make_generator(load_settings(generator=local_model, threads=1, generator_timeout=300))
    assert model is not None
    helped = Helped(model)
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as memory:
        for day, (speaker, text) in enumerate(SAID, 1):
            memory.remember(text, speaker=speaker, time=f"2024-07-0{day}", now=f"2024-07-0{day}")
        (report,) = memory.consolidate(now=NIGHT, generator=helped, most_calls=4)
        helped.close()
        assert report.status == "done", report
        assert report.calls == helped.asked >= 2
        assert report.tokens > 100
        assert report.counts["filed"] >= 1
        (kept,) = memory.reports()
        assert kept.steps == report.steps

        made = [one for one in memory.records() if one.maker == helped.name]
        failed = [one for one in memory.quarantine() if one.maker == helped.name]
        assert INVENTED in {one.content for one in failed}
        assert all(one.reasons and one.state == "quarantined" for one in failed)
        assert report.counts["quarantined"] == len(failed)
        assert {one.content for one in (*made, *failed)} <= {*helped.written, INVENTED}
        assert all(holds(one) for one in made)
        for question in (*(text for _, text in SAID), *helped.written, INVENTED):
            recalled = {one.id for one in memory.recall(question, k=10, now=NIGHT).semantic}
            assert not recalled & {one.id for one in failed}
        said = {item.content for item in memory.list(kinds="episode")}
        assert said == {text for _, text in SAID}
        assert memory.check() == []
