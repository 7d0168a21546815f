"""Language detection."""

from __future__ import annotations

import pytest

from cofire.encoding.language import detect


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I went to the store with my sister", "en"),
        ("Ich habe gestern einen Film gesehen", "de"),
        ("Où est le chat de ma voisine ?", "fr"),
        ("¿Dónde está la casa de mi abuela?", "es"),
        ("Non ho mai visto questo film con lui", "it"),
        ("Você não está com a minha irmã?", "pt"),
        ("Ik heb het boek niet van jou gekregen", "nl"),
        ("Jag tycker om dig och det är bra", "sv"),
        ("спасибо, как дела у тебя", "ru"),
        ("дякую, як справи", "uk"),
        ("हम कल मिले थे और वह खुश था", "hi"),
        ("他决定明天去图书馆还书", "zh"),
        ("昨日は成語しりとりをした", "ja"),
        ("오늘 끝말잇기 게임을 했다", "ko"),
        ("เราจะไปตลาดพรุ่งนี้", "th"),
        ("שלום עולם", "he"),
        ("Το βιβλίο είναι στο τραπέζι", "el"),
        ("هذا الكتاب من المكتبة", "ar"),
        ("این کتاب را از کتابخانه گرفتم", "fa"),
        ("C盘满了 API配置错误", "zh"),
        ("hello", None),
        ("gatos", None),
        ("12345", None),
        ("", None),
        ("Berlin Paris Tokyo", None),
    ],
)
def test_detect(text: str, language: str | None) -> None:
    assert detect(text) == language


def test_case_and_normal_form_do_not_matter() -> None:
    assert detect("ICH HABE GESTERN EINEN FILM GESEHEN") == "de"
    assert detect("¿Do\u0301nde esta\u0301 la casa de mi abuela?") == "es"
