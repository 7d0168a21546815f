"""What is kept about words: the same as without keeping it, and bounded."""

import pytest

from cofire.encoding import lexicon, marks
from cofire.encoding.encoder import Encoder
from cofire.encoding.expansion import CACHED, expand
from cofire.encoding.expressions import event_times, may_name_a_time
from cofire.encoding.lexicon import Lexicon
from cofire.encoding.signals import Signal
from cofire.types import Message, from_micros


def test_the_bits_of_marks_are_those_of_signals() -> None:
    told = (Signal.HAS_NUMBER, Signal.HAS_TIME, Signal.FIRST_PERSON)
    assert told == (marks.NUMBER, marks.TIME, marks.PERSON)
    assert not (marks.POLITE | marks.FIGURES | marks.DATING) & sum(Signal)


def test_a_word_is_expanded_as_without_the_table() -> None:
    table = Lexicon("en", ("en",))
    for chunk in ("Walking", "John's", "POL-358", "may", "thanks"):
        assert table[chunk][:4] == expand(0, chunk, "en", ("en",))[:4]
        assert table[chunk] is table[chunk]
    assert table["may"].marks & marks.DATING
    assert table["thanks"].marks & marks.POLITE


def test_the_table_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "_MOST_KNOWN", 10)
    table = Lexicon(None, ())
    for number in range(35):
        assert table[f"word{number}"].terms
    assert len(table) <= 10
    long = "x" * (CACHED + 1)
    assert table[long].terms == (long,)
    assert long not in table


@pytest.mark.parametrize(
    "text",
    ["see you on Friday", "#may 3rd", "in_may", "two weeks ago.", "the 2019-2020 season", "hier"],
)
def test_a_text_without_words_of_time_names_none(text: str) -> None:
    words = text.split()
    if event_times(text, from_micros(1_700_000_000_000_000)):
        assert any(map(may_name_a_time, words))


def test_a_clean_message_is_kept_as_it_is() -> None:
    encoder = Encoder(None)
    plain = Message(content="The kiln fires.", speaker="Ada", session="1")
    assert encoder.cleaned(plain) is plain
    assert Encoder(None, redact=str.upper).cleaned(plain).content == "THE KILN FIRES."


@pytest.mark.parametrize(
    "given",
    [
        {"content": "a\0b"},
        {"speaker": ""},
        {"title": "caf\ud800"},
        {"key": "k\0"},
        {"tags": ["a"]},
        {"tags": []},
        {"metadata": {"a": "b"}},
    ],
)
def test_what_must_be_copied_or_cleaned_is(given: dict[str, object]) -> None:
    message = Message(**{"content": "text"} | given)  # type: ignore[arg-type]
    cleaned = Encoder(None).cleaned(message)
    assert cleaned is not message
    assert isinstance(cleaned.tags, tuple)
    assert cleaned.metadata is not message.metadata
