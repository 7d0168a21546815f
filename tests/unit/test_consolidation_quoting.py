"""Quotes and numbers: where they stand, and what they are."""

from __future__ import annotations

import unicodedata

import pytest

from cofire.consolidation.quantities import quantities
from cofire.consolidation.quoting import locate, sentences, spelled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I row. Do you? Yes!", ["I row.", "Do you?", "Yes!"]),
        ("Dr. Lund met J. Berg at St. Olaf, e.g. on Monday.", None),
        ("i like tea. it is hot", ["i like tea.", "it is hot"]),
        ("I would go... if I could.", None),
        ("“Really?” she asked. “Yes.”", ["“Really?” she asked.", "“Yes.”"]),
        ("one line\nanother line\n", ["one line", "another line"]),
        ("私は東京に住んでいます。犬がいます。", ["私は東京に住んでいます。", "犬がいます。"]),
        ("It costs 3.50 at most.", None),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str] | None) -> None:
    found = [text[start:end] for start, end in sentences(text)]
    assert found == ([text] if expected is None else expected)


@pytest.mark.parametrize(
    "quote",
    [
        "It’s my mother’s recipe.",
        "It's  my mother's\nrecipe.",
        "It's my mother's recipe",
        " It`s my mother´s recipe. ",
    ],
)
def test_white_space_and_marks_are_forgiven(quote: str) -> None:
    text = "Hello. It’s my\u00a0mother’s recipe. Bye."
    place = locate(quote, text)
    assert place is not None
    assert text[slice(*place)] == "It’s my\u00a0mother’s recipe."


def test_another_unicode_form_is_forgiven() -> None:
    text = unicodedata.normalize("NFD", "Élodie lebt hier. 각하 한글.")
    for quote in ("Élodie lebt hier.", "각하 한글."):
        place = locate(quote, text)
        assert place is not None
        assert unicodedata.normalize("NFC", text[slice(*place)]) == quote


@pytest.mark.parametrize(
    "quote",
    [
        "my mother's recipe.",
        "It's my father's recipe.",
        "it's my mother's recipe.",
        "It's my mother's recipe. Bye",
        "",
        " . ",
    ],
)
def test_nothing_else_is_forgiven(quote: str) -> None:
    assert locate(quote, "It's my mother's recipe, I think. By the way.") is None


def test_a_sentence_that_also_stands_inside_another() -> None:
    text = "Nobody says I row. I row."
    assert locate("I row.", text) == (19, 25)


def test_spelled_ignores_case_and_stops() -> None:
    assert spelled(" the boat has  two masts ") == spelled("The boat has two masts.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two dogs, 22 hens and 1,200 bees", ["2", "22", "1200"]),
        ("twenty-two hens", ["22"]),
        ("two hundred and ten pages", ["210"]),
        ("three thousand five hundred", ["3500"]),
        ("on the third floor, the 3rd time", ["3", "3"]),
        ("my twenty-first birthday", ["21"]),
        ("one of us, no one", []),
        ("at 7:30 for 3.5 hours", ["7:30", "3.5"]),
        ("2 thousand people, a dozen eggs", ["2000", "12"]),
        ("12% of 007", ["12", "7"]),
    ],
)
def test_quantities(text: str, expected: list[str]) -> None:
    assert [number.value for number in quantities(text)] == expected


def test_numbers_in_words_of_another_language() -> None:
    assert [n.value for n in quantities("Ich habe drei Katzen und 4 Hunde", "de")] == ["3", "4"]
    assert [n.value for n in quantities("con mis dos perros", "es")] == ["2"]
    assert [n.value for n in quantities("mam trzy koty", "pl")] == ["3"]
