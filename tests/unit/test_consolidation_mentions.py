"""Names in texts: which spellings are one name, and which turns a concept rests on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation.concepts import (
    MENTIONS,
    MOST_NAMES,
    is_distinct,
    may_be_one,
    mentioned,
    spelled,
    stands_in,
)
from cofire.consolidation.drafts import Turn
from cofire.store.telling import unsaid


def turn(number: int, content: str) -> Turn:
    return Turn(
        number=number, version=1, label=f"T{number}", content=content,
        time=datetime(2024, 5, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("QRV hired qrv, not XQRV or qrvs", "QRV", ["QRV", "qrv"]),
        ("Hope hopes; I hope so, HOPE", "Hope", ["Hope", "HOPE"]),
        ("We like pottery. Pottery calms", "pottery", ["pottery", "Pottery"]),
        ("Zoe\u0308 Marsh, zo\u00eb\n marsh", "Zoë Marsh", ["Zo\u00eb Marsh", "zo\u00eb marsh"]),
        ("O\u2019Brien's car", "O'Brien", ["O'Brien"]),
        ("東京タワーに行く", "タワー", ["タワー"]),
        ("A (b) c", "(b)", ["(b)"]),
    ],
)  # fmt: skip
def test_spellings_of_a_name(text: str, name: str, found: list[str]) -> None:
    assert spelled(text, name) == found


def test_distinct_names_can_be_nothing_else() -> None:
    assert all(map(is_distinct, ("QRV", "New York", "R2D2", "@ada", "O'Brien")))
    assert not any(map(is_distinct, ("Hope", "IT", "WHO", "AB", "pottery")))


def test_a_capital_at_the_beginning_of_a_sentence_is_no_name() -> None:
    assert not stands_in("Hope you are well. Hope so!", "Hope")
    assert stands_in("I met Hope there.", "Hope")
    assert stands_in("qrv moved", "QRV")
    assert not stands_in("." * 5_000 + "Hope", "Hope")


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("Zoe", "Zo\u00eb", True),
        ("Adobe Photoshop", "Photoshop", True),
        ("QRV", "QRW", False),
        ("QRV", "QRV Ltd", False),
        ("Boeing 737", "Boeing 747", False),
        ("Anna Marsh", "Anne Marsh", False),
        ("Jon", "John", False),
    ],
)
def test_only_names_of_the_same_words_may_be_one_by_their_vectors(
    one: str, other: str, may: bool
) -> None:
    assert may_be_one(one, other) is may_be_one(other, one) is may


def test_the_most_frequent_spelling_is_the_name() -> None:
    turns = [turn(1, "qrv"), turn(2, "QRV and QRV"), turn(3, "nothing")]
    assert mentioned(["qrv", "QRV"], turns) == (("QRV", "qrv"), (1, 2))
    assert mentioned(["Ada"], turns) is None


def test_of_many_mentions_the_latest_are_kept_and_one_for_every_name() -> None:
    turns = [turn(1, "Rob came"), turn(2, "Rob came"), turn(3, "Bob came")]
    turns += [turn(number, "Robert came") for number in range(4, 4 + MENTIONS)]
    found = mentioned(["Robert", "Rob", "Bob"], turns)
    assert found is not None
    assert found.names == ("Robert", "Rob", "Bob")
    assert found.numbers == (2, 3, *range(4, 4 + MENTIONS))


NAMES = st.sampled_from(["Ada", "ADA", "Ada Lee", "ada lee", "Lee", "QRV", "qrv", "tea", "Tea"])


@given(st.lists(st.lists(NAMES, max_size=3), max_size=80), st.sets(NAMES, min_size=1))
def test_every_name_is_borne_out_by_a_kept_mention(said: list[list[str]], names: set[str]) -> None:
    turns = [turn(number, "; ".join(words)) for number, words in enumerate(said, 1)]
    found = mentioned(names, reversed(turns))
    assert found == mentioned(names, turns)
    if found is not None:
        texts = [turns[number - 1].content for number in found.numbers]
        assert len(found.names) <= MOST_NAMES
        assert all(any(name in text for text in texts) for name in found.names)
        assert not unsaid(found.names, texts)
        assert mentioned(found.names, [turns[number - 1] for number in found.numbers]) is not None


def test_a_name_that_nothing_left_says_is_told_from_one_that_is() -> None:
    assert unsaid(["Robert", "Bob"], ["Robert came", "bobbing"])
    assert not unsaid(["Robert", "Bob"], ["robert came", "Hi, Bob!"])
    assert unsaid(["Bob"], [])
