"""The choices of a question, and which of them is right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cofire.answering.replies import LETTERS
from cofire.errors import InputError

FEWEST, MOST = 2, len(LETTERS)
"""How many choices a question may have."""

_LETTER = re.compile(r"\s*\(?([A-Za-z])[).:]?\s*")
_LABEL = re.compile(r"\s*(?:\(([A-Za-z])\)|([A-Za-z])[).:])\s+(?=\S)")


def read_choices(value: Any) -> tuple[str, ...]:
    """The texts to choose from, without the labels "(a) ", "A. " where all have theirs in order.

    Raises InputError: `value` is no list of 2 to 26 different texts.
    """
    if not isinstance(value, list) or not FEWEST <= len(value) <= MOST:
        raise InputError(f'"choices" is to be a list of {FEWEST} to {MOST} texts')
    texts = []
    for place, choice in enumerate(value):
        if isinstance(choice, bool) or not isinstance(choice, str | int | float):
            raise InputError(f'"choices"[{place}] is no text: write it in quotation marks')
        text = str(choice).strip()
        if not text:
            raise InputError(f'"choices"[{place}] is empty')
        texts.append(text)
    bare = _without_labels(texts)
    if len(set(bare)) < len(bare):
        raise InputError('two of its "choices" are the same: only one of them can be right')
    return tuple(bare)


def right_choice(answer: Any, given: Any, choices: Sequence[str]) -> int:
    """The index of the right choice: `answer` is an index from 0, a letter from A ("b", "(B)"), or
    the text of a choice, as it stands in the file (`given`) or without its label.

    Raises InputError: it is none of these, or means two of the choices.
    """
    if answer is None:
        raise InputError(f'it has no "answer": give an index from 0 to {len(choices) - 1}')
    if isinstance(answer, int) and not isinstance(answer, bool):
        if 0 <= answer < len(choices):
            return answer
        last = len(choices) - 1
        raise InputError(f'"answer" is {answer}, and its choices have the indices 0 to {last}')
    if not isinstance(answer, str):
        raise InputError('"answer" is to be an index from 0, a letter or the text of a choice')
    meant = {place for place, text in enumerate(choices) if text == answer.strip()}
    meant |= {place for place, text in enumerate(given) if str(text).strip() == answer.strip()}
    letter = _LETTER.fullmatch(answer)
    if letter is not None and (place := LETTERS.index(letter[1].upper())) < len(choices):
        meant.add(place)
    if len(meant) == 1:
        return meant.pop()
    if meant:
        raise InputError(
            f'"answer" {answer!r} is the letter of one choice and the text of another: give the '
            "index of the one you mean, from 0"
        )
    raise InputError(
        f'"answer" {answer[:60]!r} is none of its choices: give an index from 0, a letter from A '
        f"to {LETTERS[len(choices) - 1]}, or the very text of a choice"
    )


def _without_labels(texts: Sequence[str]) -> list[str]:
    labels = [_LABEL.match(text) for text in texts]
    if any(
        label is None or (label[1] or label[2]).upper() != letter
        for label, letter in zip(labels, LETTERS, strict=False)
    ):
        return list(texts)
    return [text[label.end() :] for text, label in zip(texts, labels, strict=True) if label]
