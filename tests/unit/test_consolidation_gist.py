"""Extractive gists: verbatim, from the right sentences, with the right spans."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cofire.consolidation import gist
from cofire.consolidation.drafts import Turn

WHEN = datetime(2024, 5, 1, tzinfo=UTC)


def turn(content: str, number: int = 1, speaker: str | None = "Nora") -> Turn:
    return Turn(
        number=number, version=1, label=f"T{number}", content=content, time=WHEN, speaker=speaker
    )


ASKED = turn("I like it here. Do you sail? Where do you practise?", 1, "Juno")
ANSWERED = turn("In the park, mostly. It is quiet there. And you?", 2)


def test_an_exchange_is_the_last_question_and_what_the_answer_tells() -> None:
    found = gist.exchange(ANSWERED, ASKED)
    assert found is not None
    assert found.text == "Where do you practise? In the park, mostly. It is quiet there."
    assert found.number == 2


def test_spans_are_the_words() -> None:
    found = gist.exchange(ANSWERED, ASKED)
    assert found is not None
    texts = {1: ASKED.content, 2: ANSWERED.content}
    quoted = [texts[span.number][span.start : span.end] for span in found.spans]
    assert " ".join(quoted) == found.text


def test_no_exchange_without_a_question_an_answer_or_somebody_else() -> None:
    plain = turn("I like it here.", 1, "Juno")
    assert gist.exchange(ANSWERED, None) is None
    assert gist.exchange(ANSWERED, plain) is None
    assert gist.exchange(turn("Why?", 2), ASKED) is None
    assert gist.exchange(turn("In the park.", 2, "Juno"), ASKED) is None


def test_what_tells_is_what_does_not_ask() -> None:
    assert [one.text for one in gist.told(ANSWERED)] == [
        "In the park, mostly.", "It is quiet there."
    ]  # fmt: skip
    assert [one.text for one in gist.told(turn("Why? Where?"))] == ["Why?", "Where?"]


def test_the_core_is_one_sentence_verbatim() -> None:
    told = gist.told(ANSWERED)
    found = gist.core(ANSWERED, told, 1)
    assert found.text == "It is quiet there."
    (span,) = found.spans
    assert ANSWERED.content[span.start : span.end] == found.text


def test_central_is_what_is_most_like_the_rest_or_the_whole() -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 0.0]])
    assert gist.central(vectors).tolist() == [1]
    assert gist.central(vectors, 2, whole=np.array([0.0, 1.0])).tolist() == [1, 2]
    assert gist.central(vectors, 9).tolist() == [0, 1, 2, 3]


@given(st.text(max_size=200), st.text(max_size=200))
def test_every_gist_is_made_of_words_that_were_said(question: str, answer: str) -> None:
    before, after = turn(question, 1, "Juno"), turn(answer, 2)
    found = gist.exchange(after, before)
    texts = {1: question, 2: answer}
    if found is not None:
        quoted = [texts[span.number][span.start : span.end] for span in found.spans]
        assert " ".join(quoted) == found.text
    for place, sentence in enumerate(gist.told(after)):
        core = gist.core(after, gist.told(after), place)
        assert core.text == sentence.text == answer[sentence.start : sentence.end]
