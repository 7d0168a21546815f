"""Concepts, keywords and signals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cofire.encoding.concepts import concepts, key_of
from cofire.encoding.keywords import keywords
from cofire.encoding.signals import Signal, signals

SHARED = Path(os.environ.get("COFIRE_SHARED", Path(__file__).parents[3] / "shared"))
ENTITIES = SHARED / "data/mempalace_multilingual/entity_extraction"


def names(text: str) -> dict[str, str]:
    return {concept.key: concept.sort for concept in concepts(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met Gera Vossen in Crestmoor.", {"gera vossen": "name", "crestmoor": "name"}),
        ("I read The Name of the Wind by Patrick Rothfuss", {"patrick rothfuss": "name"}),
        ("He moved to Rio de Janeiro last May.", {"rio de janeiro": "name"}),
        ("Have you seen \u201cThe Santa Clause\u201d?", {"the santa clause": "title"}),
        ("ask @maria about #Garden", {"@maria": "handle", "#garden": "tag"}),
        ("昨日コーヒーを飲んだ", {"コーヒー": "run"}),
        ("他在看《三体》", {"三体": "title"}),
        ("Aria는 Tartine Lab의 연구원", {"aria": "name", "tartine lab": "name"}),
        ("It's John's new car", {"john": "name"}),
        ("the QRV files", {"qrv": "acronym"}),
    ],
)
def test_concepts(text: str, expected: dict[str, str]) -> None:
    assert expected.items() <= names(text).items()


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! Painting is fun.",
        "Reviewed by nobody. Apparently it works.",
        "What did you do on Monday?",
        "I'm happy. Haven't seen it.",
        "no names here",
        "",
    ],
)
def test_sentence_beginnings_and_days_are_no_concepts(text: str) -> None:
    assert names(text) == {}


def test_spellings_of_a_name_share_a_key() -> None:
    assert key_of("QRV") == key_of("qrv") == key_of("ＱＲＶ")
    assert key_of("José  Núñez") == key_of("Jose Nunez") == key_of("Jose\u0301 Nu\u0301n\u0303ez")


def test_topics_are_stems_of_content_words() -> None:
    found = {concept.key: concept.sort for concept in concepts("my pottery classes", topics=True)}
    assert found == {"potteri": "topic", "class": "topic"}


def test_concepts_say_where() -> None:
    text = "Yesterday I saw Élodie’s brother at l’Hôtel Lutetia."
    for concept in concepts(text):
        assert text[concept.start : concept.end] == concept.name


def test_keywords_put_names_and_long_phrases_first() -> None:
    text = "Caroline joined the LGBTQ support group and enjoys transgender stories."
    found = keywords(text, 4)
    assert found[:2] == ("Caroline", "LGBTQ")
    assert len(found) == 4
    assert keywords("") == ()


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("How are you?", Signal.QUESTION | Signal.ASKS),
        ("Thanks! Where did she go?", Signal.QUESTION | Signal.ASKS),
        ("We lost. Where did she go?", Signal.ASKS | Signal.FIRST_PERSON),
        ("Bye Joanna! Take care!", Signal.PLEASANTRY | Signal.HAS_NAME),
        ("谢谢！", Signal.PLEASANTRY),
        ("my dog is 3", Signal.FIRST_PERSON | Signal.HAS_NUMBER),
        ("Ich war gestern im Kino.", Signal.FIRST_PERSON | Signal.HAS_TIME),
        ("她昨天去了", Signal.HAS_TIME),
        ("rain", Signal(0)),
        ("", Signal(0)),
    ],
)
def test_signals(text: str, flags: Signal) -> None:
    assert signals(text) & ~Signal.HAS_NAME == flags & ~Signal.HAS_NAME
    assert flags in signals(text)


def test_long_texts_are_marked() -> None:
    assert Signal.LONG in signals("tree " * 60)
    assert Signal.LONG not in signals("tree " * 59)


# Least precision and recall of names, a little under what was measured (see the README of the
# data: ten languages, 50 texts each, entities with their Latin spelling).
FLOORS = {
    "": (0.80, 0.94), ".de": (0.52, 0.79), ".es": (0.77, 0.94), ".fr": (0.76, 0.94),
    ".it": (0.76, 0.95), ".pt-BR": (0.79, 0.94), ".ru": (0.76, 0.90), ".hi": (0.79, 0.90),
    ".ko": (0.82, 0.96), ".zh": (0.85, 0.96),
}  # fmt: skip


@pytest.mark.skipif(
    not ENTITIES.is_dir(), reason="the shared data is not beside the project (set COFIRE_SHARED)"
)
@pytest.mark.parametrize("language", FLOORS)
def test_names_in_ten_languages(language: str) -> None:
    labels = {}
    for line in (ENTITIES / "labels.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        labels[row["id"]] = {key_of(entity["name"]) for entity in row["entities"]}
    right = found = wanted = 0
    for line in (ENTITIES / f"dataset{language}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        got = {concept.key for concept in concepts(row["text"]) if concept.sort == "name"}
        right += len(got & labels[row["id"]])
        found += len(got)
        wanted += len(labels[row["id"]])
    precision, recall = right / found, right / wanted
    least_precision, least_recall = FLOORS[language]
    assert precision >= least_precision
    assert recall >= least_recall
