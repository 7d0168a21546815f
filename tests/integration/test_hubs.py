"""Hubs on a real store: what use ties together gets a gist, once, for as long as it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofire import Memory
from cofire.consolidation.hubs import SENTENCES
from cofire.consolidation.night import SleepRule
from cofire.errors import GenerationError, InputError
from cofire.store.records import KIND_CODES
from cofire.testing import ScriptedGenerator
from cofire.types import Kind, LinkType, SemanticRecord
from scripts_of_models import echo, turns_in

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
RULE = SleepRule(hub_strength=0.3)
"""One day of use makes a link of at most 0.2."""
SAID = (
    "The kiln is in the shed. It was cheap.",
    "We fire pots in the kiln on Sundays. Hello there!",
    "The kiln needs new bricks.",
    "The clay for the pots is from Wales.",
    "The train was late again.",
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m.db", embedder="hashing:64") as opened:
        yield opened


def tell(memory: Memory) -> list[str]:
    return [
        memory.remember(text, speaker="Ada", time=START + timedelta(minutes=place), now=START).id
        for place, text in enumerate(SAID)
    ]


def use(memory: Memory, *pairs: tuple[str, str], days: float = 0.0) -> None:
    """Each pair answers a question together, four times."""
    for pair in pairs:
        for turn in range(4):
            now = START + timedelta(days=days, minutes=turn)
            recall = memory.recall("What of the kiln, the pots, the clay, the train?", 9, now=now)
            memory.feedback(recall, used=list(pair), now=now)


def tied(memory: Memory) -> list[str]:
    """A hub: the first, used with the second and with the third."""
    ids = tell(memory)
    use(memory, (ids[0], ids[1]), (ids[0], ids[2]))
    return ids


def sleep(memory: Memory, days: float, *steps: str, **options: Any) -> dict[str, int]:
    (report,) = memory.consolidate(
        steps or ("verify", "hubs"), now=START + timedelta(days=days), **{"rule": RULE, **options}
    )
    assert not report.failed, report
    return dict(report.counts)


def gists(memory: Memory) -> dict[str, SemanticRecord]:
    """By the id of the hub."""
    return {str(one.value): one for one in memory.records("hub", kinds="gist")}


def members(memory: Memory, gist: SemanticRecord) -> set[str]:
    return {link.target for link in memory.links(gist.id) if link.type == LinkType.ABSTRACTION}


def test_a_cluster_has_a_gist_of_its_most_central_sentences_verbatim(memory: Memory) -> None:
    ids = tied(memory)
    assert sleep(memory, 1)["filed"] == 1
    (gist,) = gists(memory).values()
    assert (gist.value, gist.slot, gist.maker, gist.prompt) == (ids[0], "hub", "extractive", None)
    assert members(memory, gist) == set(ids[:3])
    quoted = [(one.id, one.text) for one in gist.evidence]
    assert {id for id, _ in quoted} == set(ids[:3])
    said = dict(zip(ids, SAID, strict=True))
    assert all(text in said[id] for id, text in quoted)
    assert gist.content == " ".join(text for _, text in quoted)
    assert "kiln" in gist.content
    assert len(quoted) <= SENTENCES
    assert not memory.check()


def test_an_unchanged_cluster_is_let_alone(memory: Memory) -> None:
    tied(memory)
    sleep(memory, 1)
    before = gists(memory)
    assert not sleep(memory, 1.2)
    assert not sleep(memory, 2)
    assert gists(memory) == before


def test_a_cluster_that_grows_is_made_anew_and_one_that_fades_goes(memory: Memory) -> None:
    ids = tied(memory)
    sleep(memory, 1)
    (former,) = gists(memory).values()
    use(memory, (ids[0], ids[3]), days=1.1)
    counts = sleep(memory, 2)
    assert (counts["filed"], counts["retired"]) == (1, 1)
    (gist,) = gists(memory).values()
    assert gist.id != former.id
    assert members(memory, gist) == set(ids[:4])
    assert sleep(memory, 3, rule=SleepRule(hub_strength=100.0)) == {"retired": 1}
    assert not gists(memory)
    assert sleep(memory, 2_000) == {}  # by then, use has been forgotten


def test_frequency_is_the_rival(memory: Memory) -> None:
    ids = tied(memory)
    by_use = SleepRule(hub_by="frequency", hub_strength=7.0)
    assert sleep(memory, 1, rule=by_use)["filed"] == 1
    assert gists(memory).keys() == {ids[0]}
    sleep(memory, 2, rule=SleepRule(hub_by="frequency", hub_strength=1_000.0))
    assert not gists(memory)
    with pytest.raises(InputError, match="hub_by"):
        SleepRule(hub_by="luck")


def test_a_gist_follows_what_happens_to_its_members(memory: Memory) -> None:
    ids = tied(memory)
    use(memory, (ids[0], ids[3]))
    sleep(memory, 1)
    memory.update(ids[1], content="We fire vases in the kiln.", now=START + timedelta(days=1))
    assert not gists(memory)
    sleep(memory, 2)
    assert "vases" in gists(memory)[ids[0]].content
    memory.archive(ids[2])
    assert sleep(memory, 3)["retired"] == 1
    assert members(memory, gists(memory)[ids[0]]) == {ids[0], ids[1], ids[3]}
    memory.forget(ids[1])
    assert not gists(memory)
    sleep(memory, 4)
    assert not gists(memory)
    assert not memory.check()


def test_the_gists_of_turns_are_other_records(memory: Memory) -> None:
    ids = tied(memory)
    sleep(memory, 1, "gists", "hubs")
    (gist,) = gists(memory).values()
    turns = {one.id for one in memory.records(kinds="gist")} - {gist.id}
    assert turns
    memory.update(ids[4], content="The bus was late. It rained.", now=START + timedelta(days=1))
    sleep(memory, 2, "gists")
    assert gists(memory).keys() == {ids[0]}


def test_a_model_is_asked_about_a_cluster_once(memory: Memory) -> None:
    ids = tied(memory)
    sleep(memory, 1)
    model = ScriptedGenerator(then=echo)
    assert sleep(memory, 2, generator=model)["new"] == 3
    assert [[one["text"] for one in turns_in(request)] for request in model.requests] == [
        list(SAID[:3])
    ]
    assert {record.maker for record in memory.records()} == {model.name}
    assert gists(memory).keys() == {ids[0]}
    again = ScriptedGenerator(then=echo)
    assert not sleep(memory, 3, generator=again)
    use(memory, (ids[0], ids[3]), days=3.1)
    assert sleep(memory, 4, generator=again)["new"] == 1
    assert len(again.requests) == 1
    workings = memory._workings
    sleep(memory, 5, rule=SleepRule(hub_strength=100.0))
    notes = workings.store.steps(workings.spaces.all()[0])
    assert not any(name.startswith("hub/") for name in notes)


def test_an_answer_that_fails_leaves_the_gist_and_is_asked_for_a_few_times(memory: Memory) -> None:
    ids = tied(memory)
    asked = []
    for night in range(1, 6):
        model = ScriptedGenerator(then="I'm sorry, but I can't help with that.")
        sleep(memory, night, generator=model)
        asked.append(len(model.requests))
        assert gists(memory).keys() == {ids[0]}
    assert [count > 0 for count in asked] == [True, True, True, False, False]
    assert not memory.records()


def test_an_endpoint_that_is_down_is_asked_again(memory: Memory) -> None:
    ids = tied(memory)
    down = ScriptedGenerator(then=GenerationError("no answer", retryable=True))
    (report,) = memory.consolidate("hubs", rule=RULE, generator=down, now=START + timedelta(days=1))
    assert report.failed == ("hubs",)
    assert gists(memory).keys() == {ids[0]}
    assert sleep(memory, 1, generator=ScriptedGenerator(then=echo))["new"] == 3


def test_what_a_model_invents_about_a_cluster_is_quarantined(memory: Memory) -> None:
    tied(memory)
    invented = {
        "kind": "fact", "content": "Ada owns 3 kilns.", "subject": "Ada", "slot": None,
        "value": None, "single": False, "happened_from": None, "happened_to": None,
        "valid_from": None, "causes": [], "quotes": [{"turn": "T1", "text": "It was cheap."}],
    }  # fmt: skip
    reply = json.dumps({"records": [invented]})
    assert sleep(memory, 1, generator=ScriptedGenerator([reply]))["quarantined"] == 1
    assert not memory.records()


# -- What fading leaves alone --------------------------------------------------------------------


def test_the_cap_on_links_leaves_words_and_gists_alone(memory: Memory) -> None:
    ids = tied(memory)
    memory.remember(
        [f"Ada Lee met Bo Roe{place} and the QRV team, in the kiln shed" for place in range(6)],
        now=START,
    )
    sleep(memory, 1, "gists", "words", "concepts", "hubs")

    def made(kinds: Sequence[Kind]) -> set[tuple[str, str]]:
        found = [one.id for kind in kinds for one in memory.records(kinds=kind)]
        return {(one.source, one.target) for id in found for one in memory.links(id)}

    standing = made([Kind.GIST, Kind.WORD])
    named = made([Kind.CONCEPT])
    assert standing and named and ids
    narrow = SleepRule(links_per_item=1)
    sleep(memory, 2, "prune", "cap", "staircase", "archive", "adaptive", "dormant", rule=narrow)
    assert made([Kind.GIST, Kind.WORD]) == standing
    assert made([Kind.CONCEPT]) < named


def test_what_only_stands_for_memories_does_not_count_towards_the_size(memory: Memory) -> None:
    tied(memory)
    sleep(memory, 1, "gists", "words", "concepts", "hubs")
    workings = memory._workings
    graph = workings.recaller.graph(workings.spaces.all()[0])
    assert int(np.count_nonzero(graph.column("kind") == KIND_CODES["word"])) > len(SAID)
    assert not sleep(memory, 2, "dormant", rule=SleepRule(hub_strength=0.3, most_items=12))
