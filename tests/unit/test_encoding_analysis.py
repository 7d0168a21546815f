"""Terms of texts: every script, identifiers, stop words, languages, long and hostile texts."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from cofire.encoding.analysis import analyse
from cofire.encoding.english import IRREGULAR
from cofire.encoding.stems import default_stem
from cofire.encoding.text import sanitise

SHARED = Path(os.environ.get("COFIRE_SHARED", Path(__file__).parents[3] / "shared"))


def terms(text: str, **options: object) -> set[str]:
    return set(analyse(text, **options).terms)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("他决定明天去图书馆还书", "图书馆"),
        ("他决定明天去图书馆还书", "明天"),
        ("他决定明天去图书馆还书", "书"),
        ("昨日は成語しりとりをした", "しりとり"),
        ("오늘 끝말잇기 게임을 했다", "게임"),
        ("오늘 책을 샀다", "책"),
        ("C盘满了 API配置错误", "配置"),
        ("C盘满了 API配置错误", "api"),
        ("เราจะไปตลาดพรุ่งนี้", "ตลาด"),
        ("ຂ້ອຍໄປຕະຫຼາດ", "ຕະຫຼາດ"),
        ("ខ្ញុំទៅផ្សារ", "ផ្សារ"),
        ("ကျွန်တော်ဈေးသွားတယ်", "ဈေး"),
        ("Aria는 Tartine Lab의", "tartine lab"),
        ("コーヒーを飲んだ", "ｺｰﾋｰ"),
        ("Ticket POL-358 is open", "pol-358"),
        ("Ticket POL-358 is open", "358"),
        ("Ticket POL-358 is open", "pol358"),
        ("the foo_bar value", "fooBar"),
        ("the foo_bar value", "bar"),
        ("a_b", "a_b"),
        ("see C:\\temp\\x", "temp"),
        ("see C:\\temp\\x", "C:\\temp\\x"),
        ("runs ubuntu 20.04", "20.04"),
        ("it was o'clock somewhere", "o\u2019clock"),
        ("use --error-on-warnings", "warnings"),
        ("sent an e-mail", "email"),
        ("https://example.com/a/b?x=1", "example.com"),
        ("a #tag here", "tag"),
        ("a #tag here", "#tag"),
        ("50% off", "50"),
        ("50% off", "50%"),
        ("HTTPServer iPhone", "server phone"),
        ("paid 1,000 dollars", "1000"),
        ("in the 1990s", "1990"),
        ("at 5:30pm", "5:30pm"),
        ("C++ and C#", "c++"),
        ("O'Brien called", "obrien"),
        ("family 👨\u200d👩\u200d👧", "👩"),
        ("family 👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("nice 👍🏽", "👍"),
        ("I love it ❤\ufe0f", "❤"),
        ("pass\u200bword", "password"),
        ("cafe\u0301", "CAFÉ"),
        ("l'ami de d'Artagnan", "artagnan"),
        ("dell'acqua", "acqua"),
        ("п'ять років", "п’ять"),
        ("She went home", "go"),
        ("they bought shoes", "buying"),
        ("two children", "child kids"),
        ("John's dog", "john"),
        ("my moms cooking", "mother"),
        ("शहर में घर है", "शहर"),
        ("שלום עולם", "עולם"),
        ("الكتاب على الطاولة", "الكتاب"),
    ],
)
def test_a_query_finds_its_text(text: str, query: str) -> None:
    wanted = terms(query)
    assert wanted
    assert wanted <= terms(text)


def test_numbers_with_points_are_not_whole_numbers() -> None:
    assert "2004" not in terms("ubuntu 20.04")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("OR", ["or"]),
        ("AND OR NOT", ["and", "or", "not"]),
        ("don't", ["do", "not"]),
        ("I'm gonna go", ["go", "go"]),
        ("I didn't see it", ["see"]),
        ("yo soy de el la", ["yo", "soy", "de", "el", "la"]),
        ("の", ["の"]),
    ],
)
def test_stop_words_go_but_never_leave_nothing(text: str, kept: list[str]) -> None:
    assert list(analyse(text).terms) == kept


@pytest.mark.parametrize("text", ["", "   ", "\n\n\n", "***---***", "<->", "()", "\\", "*"])
def test_texts_without_words_have_no_terms(text: str) -> None:
    analysis = analyse(text)
    assert analysis.terms == ()
    assert analysis.length == 0


def test_a_language_adds_its_own_stem_and_keeps_the_default_term() -> None:
    text = analyse("Los gatos comieron todo en la casa de mi abuela, ¿no?")
    assert text.language == "es"
    assert {"gato", "es|gat", "es|com"} <= set(text.terms)
    # Too short to tell, the query still meets the text …
    assert terms("gatos") & set(text.terms) == {"gato"}
    # … and by its inflection where the caller says which languages the store holds.
    assert not terms("comiendo") & set(text.terms)
    assert terms("comiendo", languages=("en", "es")) & set(text.terms) == {"es|com"}


def test_an_english_text_gives_one_term_a_word() -> None:
    analysis = analyse("The cats were sleeping on the sofa yesterday")
    assert list(analysis.terms) == ["cat", "sleep", "sofa", "yesterday"]
    assert analysis.length == 4


def test_words_of_another_script_are_not_stemmed_in_the_language_of_the_text() -> None:
    found = terms("Вчера мы были в Crestmoor и это было хорошо")
    assert "crestmoor" in found
    assert not any(term.startswith("ru|") for term in found)


def test_irregular_forms_all_end_in_one_stem() -> None:
    for form, base in IRREGULAR.items():
        assert default_stem(form) == default_stem(base), form


def test_offsets_point_at_the_words() -> None:
    text = "Café POL-358, 图书馆 게임을 👍🏽"
    places = {token.term: text[token.start : token.end] for token in analyse(text).tokens}
    assert places["cafe"] == "Café"
    assert places["pol358"] == "POL-358"
    assert places["358"] == "358"
    assert places["图书"] == "图书"
    assert places["게임"] == "게임"
    assert places["👍"] == "👍"


def test_stemming_is_safe_in_threads() -> None:
    words = [f"running{chr(97 + n % 26)}{n}ations" for n in range(2_000)]
    texts = [" ".join("".join(c for c in word if c.isalpha()) for word in words)] * 4
    results: list[tuple[str, ...]] = [()] * 4

    def work(number: int) -> None:
        results[number] = analyse(texts[number]).terms

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    "unit",
    ["x", "a-", "слово ", "é\u0301", "\U0001f468\u200d", "게임", "'", "a'", "\u0301", "#", "_a"],
)
def test_a_megabyte_takes_bounded_time(unit: str) -> None:
    text = (unit * 1_000_000)[: 1_000_000 // len(unit.encode())]
    begin = time.perf_counter()
    analyse(text).pack()
    assert time.perf_counter() - begin < 10  # seconds; about 1 on an idle machine


def test_a_megabyte_of_chinese_keeps_every_pair() -> None:
    text = "他决定明天去图书馆" * 37_000
    assert {"图书", "书馆", "馆他"} <= set(analyse(text).terms)


needs_cases = pytest.mark.skipif(
    not (SHARED / "cases/files/text").is_dir(),
    reason="the shared case bank is not beside the project (set COFIRE_SHARED)",
)


@needs_cases
def test_every_query_of_the_case_bank_is_analysed() -> None:
    lines = (SHARED / "cases/files/text/fts_queries.txt").read_text("utf-8").split("\n")
    for line in lines:
        analysis = analyse(sanitise(line))
        if any(char.isalnum() for char in line) or "😀" in line:
            assert analysis.terms, line
            assert set(analysis.terms) <= set(analyse(f"{line} {line}").terms) or (
                analysis.only_stop_words
            )


@needs_cases
def test_every_hostile_text_of_the_case_bank_is_analysed() -> None:
    texts = json.loads((SHARED / "cases/files/text/hostile_texts.json").read_text("utf-8"))
    for name, text in texts.items():
        clean = sanitise(text)
        clean.encode("utf-8")
        analysis = analyse(clean)
        assert bool(analysis.terms) == any(c.isalnum() or c == "😀" for c in clean), name
        analysis.pack()
