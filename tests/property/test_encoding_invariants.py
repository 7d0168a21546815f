"""What holds for every text."""

from __future__ import annotations

import unicodedata
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.encoding.analysis import analyse
from cofire.encoding.concepts import concepts
from cofire.encoding.keywords import keywords
from cofire.encoding.language import detect
from cofire.encoding.segments import split
from cofire.encoding.signals import signals
from cofire.encoding.terms import pack_terms, term_hash, unpack_terms
from cofire.encoding.text import aligned, fold, lower, sanitise, sanitise_value

any_text = st.text(st.characters(), max_size=80) | st.text(
    st.sampled_from("\ud800\udbff\udc00\udfff\0ab é😀"), max_size=12
)
clean_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"))

# Letters of living scripts with the punctuation of identifiers; what people write.
_ALPHABET = (
    "abcxyzABCXYZ0123456789 .,-_'@#/:%+&!?\n"
    "éÉñÑüÜçÇåÅøØß«»“”’"
    "абвйёАБВЙЁїЇєґ"
    "αβγάέΑΒΓ"
    "אבגד"
    "ابتأإ"
    "हिन्दीमें"
    "ไทยเมื่"
    "漢字图书館かがカガー"
    "한국게임을"
    "😀👍🏽❤\ufe0f\u200d👩👧🇫🇷"
)
written = st.text(st.sampled_from(_ALPHABET), max_size=60)
_WORDS = (
    "the cat and my dog went home el gato la casa de que die Katze und der Hund ist le chat est "
    "dans it's don't l'ami POL-358 foo_bar café 20.04 e-mail"
)
sentences = st.lists(st.sampled_from(_WORDS.split()), max_size=20).map(" ".join)


@given(any_text)
def test_sanitise_is_idempotent_and_storable(text: str) -> None:
    once = sanitise(text)
    assert sanitise(once) == once
    assert "\0" not in once
    once.encode("utf-8")


@given(clean_text)
def test_sanitise_keeps_clean_text(text: str) -> None:
    assert sanitise(text) == text


@given(
    st.recursive(
        any_text | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
        max_leaves=8,
    )
)
def test_sanitise_value_is_idempotent(value: object) -> None:
    once = sanitise_value(value)
    assert sanitise_value(once) == once
    repr(once).encode("utf-8")


@given(any_text)
def test_no_text_raises_and_offsets_lie_within_it(text: str) -> None:
    text = sanitise(text)
    analysis = analyse(text)
    tokens = analysis.tokens
    assert Counter(token.term for token in tokens) == Counter(analysis.terms)
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)
        assert token.term
    assert 0 <= analysis.length <= max(len(tokens), 0)
    hashes, _ = unpack_terms(analysis.pack())
    assert {term_hash(term) for term in analysis.terms} == set(hashes.tolist())
    detect(text)
    signals(text)
    keywords(text)
    for concept in concepts(text, topics=True):
        assert aligned(text)[concept.start : concept.end] == concept.name


@given(written)
def test_a_word_found_in_a_text_is_found_by_its_own_slice(text: str) -> None:
    for token in analyse(text, "en").tokens:
        assert token.term in analyse(text[token.start : token.end], "en").terms or (
            # a contraction's or an elision's part, which alone is another word
            "'" in aligned(text)[max(token.start - 1, 0) : token.end + 1]
        )


@given(written | sentences | clean_text)
def test_nfc_and_nfd_have_the_same_terms(text: str) -> None:
    composed = analyse(unicodedata.normalize("NFC", text))
    decomposed = analyse(unicodedata.normalize("NFD", text))
    assert sorted(composed.terms) == sorted(decomposed.terms)
    assert composed.length == decomposed.length


@given(written | sentences)
def test_upper_and_lower_case_have_the_same_terms(text: str) -> None:
    assert sorted(analyse(text.upper()).terms) == sorted(analyse(text.lower()).terms)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=40) | sentences)
def test_full_width_and_ascii_have_the_same_terms(text: str) -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
    assert sorted(analyse(wide).terms) == sorted(analyse(text).terms)


@given(clean_text)
def test_fold_is_idempotent_and_ignores_normal_form(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))
    assert lower(lower(text)) == lower(text)


@given(st.dictionaries(clean_text, st.integers(1, 1_000), max_size=20))
def test_pack_and_unpack_are_inverse(counts: dict[str, int]) -> None:
    hashes, values = unpack_terms(pack_terms(counts))
    assert all(hashes[:-1] < hashes[1:])
    expected = {term_hash(term): min(count, 255) for term, count in counts.items()}
    assert dict(zip(hashes.tolist(), values.tolist(), strict=True)) == expected


def _tokens(text: str) -> list[tuple[int, int]]:
    """A wordpiece-like tokeniser: runs of letters in pieces of three, other characters alone."""
    spans = []
    at = 0
    while at < len(text):
        end = at + 1
        if text[at].isalpha():
            while end < len(text) and text[end].isalpha() and end - at < 3:
                end += 1
        if not text[at].isspace():
            spans.append((at, end))
        at = end
    return spans


@settings(deadline=None)
@given(
    st.lists(
        clean_text | st.sampled_from(["word ", "x" * 150, "字" * 70, "\n\n", ". "]), max_size=40
    ),
    st.integers(4, 60),
)
def test_segments_cover_the_text_within_the_limit(parts: list[str], limit: int) -> None:
    text = "".join(parts)
    spans = split(text, _tokens, limit)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)
    for start, end in spans:
        piece = text[start:end]
        # A cluster of marks is never cut, however many tokens it has.
        whole = all(unicodedata.category(char)[0] in "MC" for char in piece[1:])
        assert len(_tokens(piece)) <= limit or whole
