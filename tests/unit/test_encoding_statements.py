"""What a turn tells, apart from what it asks."""

from __future__ import annotations

import pytest

from cofire.encoding.statements import statements


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I moved in March. Any advice on a desk?", "I moved in March."),
        ("Any advice? I moved in March.", "I moved in March."),
        ("What did you do? And where?", "What did you do? And where?"),
        ("I moved in March.", "I moved in March."),
        ('She asked "why?" I did not know.', 'She asked "why?" I did not know.'),
        ('I did not know. She asked "why?"', "I did not know."),
        ("我三月搬家了。你呢？", "我三月搬家了。"),
        ("first line\nreally?\nlast line", "first line last line"),
        ("", ""),
        ("?", "?"),
    ],
)
def test_sentences_that_ask_are_left_out_unless_all_do(text: str, told: str) -> None:
    assert statements(text) == told
