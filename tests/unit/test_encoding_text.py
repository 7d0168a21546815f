"""Sanitising and folding."""

from __future__ import annotations

import unicodedata

import pytest

from cofire.encoding.text import MAX_DEPTH, aligned, fold, sanitise, sanitise_value
from cofire.errors import InputError


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cut emoji \ud83d end", "cut emoji \ufffd end"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("before\0after", "beforeafter"),
        ("\0", ""),
        ("\ud83d\0\ude00", "😀"),
        ("a\tb\r\nc\rd\u200b\u202e\ufeff", "a\tb\r\nc\rd\u200b\u202e\ufeff"),
        ("cafe\u0301 ｆｕｌｌ", "cafe\u0301 ｆｕｌｌ"),
    ],
)
def test_sanitise_mends_only_what_cannot_be_stored(text: str, kept: str) -> None:
    assert sanitise(text) == kept


def test_sanitise_value_covers_keys_and_nested_values() -> None:
    value = {"k\0": ["a\0b", {"x": ("\ud800", 1, None, 2.5, True)}]}
    assert sanitise_value(value) == {"k": ["ab", {"x": ("\ufffd", 1, None, 2.5, True)}]}
    assert value["k\0"][0] == "a\0b"


def test_sanitise_value_refuses_bottomless_metadata() -> None:
    value: list[object] = []
    for _ in range(MAX_DEPTH + 5):
        value = [value]
    with pytest.raises(InputError, match="nested deeper"):
        sanitise_value(value)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Łódź Søren Æsir", "lodz soren aesir"),
        ("İstanbul", "istanbul"),
        ("Ｆｕｌｌ－ｗｉｄｔｈ１２", "full-width12"),
        ("don\u2019t", "don't"),
        ("pass\u200bword", "password"),
        ("safe\u202etxt", "safetxt"),
        ("soft\u00adhyphen", "softhyphen"),
        ("Ёлка", "елка"),
        ("мой", "мой"),
        ("за\u0301мок", "замок"),
        ("Ἀθῆναι", "αθηναι"),
        ("हिन्दी", "हिन्दी"),
        ("เมื่อวาน", "เมื่อวาน"),
        ("が", "が"),
        ("ｶﾞ", "ガ"),
        ("שָׁלוֹם", "שלום"),
        ("مَرْحَبًا", "مرحبا"),
        ("أحمد", "احمد"),
        ("٢٠٢٤", "2024"),
        ("한국", "한국"),
        (unicodedata.normalize("NFD", "한국"), "한국"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_aligned_keeps_every_offset() -> None:
    text = "Ｐ‘Ｏ’Ｌ－３５８ é 字"
    assert aligned(text) == "P'O'L-358 é 字"
    assert len(aligned(text)) == len(text)
