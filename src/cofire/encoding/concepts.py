"""What a text is about, without a model: its names and topics, from capitals, quotation and
position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from cofire.encoding.analysis import analyse
from cofire.encoding.characters import HANGUL, IGNORABLE, MARKS, UNSPACED
from cofire.encoding.english import ELISIONS, SUFFIXES
from cofire.encoding.language import detect, script_of
from cofire.encoding.names import (
    CLASS_NOUNS,
    COMMON_OPENERS,
    DETERMINERS,
    NAME_PARTICLES,
    NOUN_ENDINGS,
    OPENER_ENDINGS,
    TIME_NAMES,
    VERBS_AFTER_NAMES,
)
from cofire.encoding.stems import default_language, fits
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold

MAX_CHARS = 20_000
"""Only so much of a text is read for names: a segment has a few hundred characters."""
MAX_NAME = 80
"""Characters: a longer quotation or run of capitals is no name."""


class Concept(NamedTuple):
    """Something that a text is about. `name` is as written, `key` is the same for all spellings
    of it (case, accents, width), `start` and `end` are characters of its first mention. `sort`
    is name, acronym, handle, tag, title (quoted), run (katakana) or topic (a content word; its
    key is a stem)."""

    name: str
    key: str
    sort: str
    start: int
    end: int


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    key: str
    capital: bool
    initial: bool  # begins a sentence
    owner: bool  # had a possessive 's


_LETTER = rf"[^\W_{UNSPACED}{HANGUL}]"
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|[{MARKS}{IGNORABLE}]|['&.-](?={_LETTER}))*+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:['&.-][A-Za-z0-9]+)*+")
_QUOTE = re.compile('["\u201c\u201e\u00ab\u300a\u300c\u300e]')
_OPENING = re.compile(r"(?:^|[.!?…:।॥؟\n\r•*>«»\"“”„(\[\])]|(?:^|\s)[-–—])[\s\"'“”„«»(\[*_-]*$")
_GAP = re.compile(r" {1,2}(?:& )?")
_MARKED = re.compile(rf"(?<![\w/.])(?P<sign>[@#])(?P<name>\w(?:[\w{MARKS}]|[-.](?=\w))*)")
_QUOTED = re.compile(
    "\u201c([^\u201c\u201d\n]{2,80})\u201d|\u201e([^\u201c\u201d\u201e\n]{2,80})[\u201c\u201d]"
    "|\u00ab\\s?([^\u00ab\u00bb\n]{2,80}?)\\s?\u00bb|\u300a([^\u300a\u300b\n]{1,80})\u300b"
    "|\u300c([^\u300c\u300d\n]{1,80})\u300d|\u300e([^\u300e\u300f\n]{1,80})\u300f"
    '|(?<!\\w)"([^"\n]{2,80})"(?!\\w)'
)
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{3,}(?:[\u30fb=\uff1d][\u30a1-\u30fa\u30fc]{2,})*")
_FIRM_PARTICLES = frozenset({"of", "the"})
_MAX_TITLE_WORDS = 8
_MIN_TOPIC = 4  # letters


def key_of(name: str) -> str:
    """The key under which a name is one thing however it is written: folded, single spaces."""
    return " ".join(fold(name).split())


_cached_key = lru_cache(maxsize=1 << 14)(key_of)


def concepts(
    text: str, language: str | None = None, *, topics: bool = False
) -> tuple[Concept, ...]:
    """Names, acronyms, @handles, #tags, quoted titles and katakana words of `text`, each once, in
    order; with `topics` its other content words, too. `language` overrides detection."""
    text = aligned(text[:MAX_CHARS])
    if language is None:
        language = detect(text)
    found: dict[str, Concept] = {}
    for concept in _candidates(text, language):
        known = found.get(concept.key)
        if concept.key and (known is None or (known.sort == "title" and concept.sort == "name")):
            found[concept.key] = concept
    if topics:
        for token in analyse(text, language).tokens:
            word = text[token.start : token.end]
            if len(word) >= _MIN_TOPIC and word.isalpha() and "|" not in token.term:
                topic = Concept(word, token.term, "topic", token.start, token.end)
                found.setdefault(token.term, topic)
    return tuple(found.values())


def _candidates(text: str, language: str | None) -> list[Concept]:
    """Everything that may be a concept, in order; of what begins together the longest first."""
    found = list(_names(text, language))
    if '"' in text or not text.isascii():
        titles = list(_titles(text)) if _QUOTE.search(text) else []
        if titles:
            found = [
                name
                for name in found
                if not any(title.start <= name.start and name.end <= title.end for title in titles)
            ]
        runs = [_concept(run.group(), "run", run.start()) for run in _KATAKANA.finditer(text)]
        found = titles + runs + found
    if "@" in text or "#" in text:
        found = [*_marked(text), *found]
    if len(found) > 1:
        found.sort(key=_by_place)
    return found


def _by_place(concept: Concept) -> tuple[int, int]:
    return concept.start, -concept.end


def _concept(name: str, sort: str, start: int) -> Concept:
    key = (_cached_key if len(name) <= MAX_NAME else key_of)(name)  # a handle may be of any length
    return Concept(name, key, sort, start, start + len(name))


def _marked(text: str) -> Iterator[Concept]:
    for match in _MARKED.finditer(text):
        if not match["name"].isdecimal():
            sort = "handle" if match["sign"] == "@" else "tag"
            yield _concept(match.group(), sort, match.start())


def _titles(text: str) -> Iterator[Concept]:
    """Quotations that read as titles: in title case, or short and of a script without case."""
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 0
        name, start = match.group(group), match.start(group)
        words = [word for word in name.split() if word[:1].isalpha()]
        if not words or len(words) > _MAX_TITLE_WORDS or name[-1] in "?!.,":
            continue
        cased = [word for word in words if word.lower() != word.upper()]
        capitals = [word for word in cased if not word[0].islower()]
        if (cased and words[0][0].isupper() and 2 * len(capitals) > len(cased)) or (
            not cased and len(name) <= 20
        ):
            yield _concept(name, "title", start)


def _word(text: str, match: re.Match[str]) -> _Word:
    """What is known of a word; elisions (l'ami) and possessives are cut off."""
    word, skipped, key, capital, owner = _bare(match[0])
    at = match.start()
    start = at + skipped
    return _Word(word, start, start + len(word), key, capital, _initial(text, at), owner)


@lru_cache(maxsize=1 << 14)
def _bare(word: str) -> tuple[str, int, str, bool, bool]:
    """A word without elision and possessive, the characters cut off before it, its key, whether
    it has a capital, and whether it had a possessive 's."""
    skipped = 0
    owner = False
    if "'" in word:
        head, _, tail = word.rpartition("'")
        if tail.lower() in SUFFIXES and head:
            owner = tail.lower() == "s"
            word = head
        elif fold(head) in ELISIONS and head.lower() != "o":
            skipped = len(head) + 1
            word = tail
    key = fold(word)
    return word, skipped, key, word[:1].isupper() and not key.endswith("n't"), owner


def _initial(text: str, at: int) -> bool:
    """Whether a sentence begins at `at`; the usual cases without a search."""
    if at == 0:
        return True
    if at > 1 and text[at - 1] == " ":
        before = text[at - 2]
        if before in ".!?":
            return True
        if before == "," or before.isalnum():
            return False
    return _OPENING.search(text, max(0, at - 12), at) is not None


def _names(text: str, language: str | None) -> Iterator[Concept]:
    """Runs of capitalised words that are capitalised for what they are, not where they stand."""
    matches = list((_ASCII_WORD if text.isascii() else _WORD).finditer(text))
    words = _capitals(text, matches)
    if not words:
        return
    foreign = script_of(text) is not None
    seen_inside = {word.key for word in words.values() if not word.initial}
    done = 0
    for at in list(words):
        if at < done:
            continue
        run = [words[at]]
        done = at + 1
        while done < len(matches) and not run[-1].owner:
            if done not in words and matches[done][0].lower() not in NAME_PARTICLES:
                break  # the usual case, without a closer look
            more = _continues(text, matches, words, done, language)
            if not more:
                break
            run.extend(more)
            done += len(more)
        run = _trim(run, language)
        if not run:
            continue
        before = _word(text, matches[at - 1]) if at and language == "de" else None
        asked = len(run) == 1 and run[0].initial and done < len(matches)
        after = _word(text, matches[done]) if asked else None
        alien = foreign and default_language(run[0].key) == "en"
        if alien or _accepted(run, before, after, language, seen_inside):
            name = _without_compound(text[run[0].start : run[-1].end], language)
            if 1 < len(name) <= MAX_NAME:
                acronym = len(run) == 1 and name.isupper() and name.isalpha()
                yield _concept(name, "acronym" if acronym else "name", run[0].start)


def _capitals(text: str, matches: list[re.Match[str]]) -> dict[int, _Word]:
    """The words with a capital, by their place among all."""
    # Most words are lower case and need not be looked at; an elision may hide a capital.
    words: dict[int, _Word] = {}
    for index, match in enumerate(matches):
        written = match[0]
        if written >= "a" and written.isascii() and "'" not in written:
            continue
        if written[0].isupper() or ("'" in written and written != written.lower()):
            word = _word(text, match)
            if word.capital:
                words[index] = word
    return words


def _continues(
    text: str,
    matches: list[re.Match[str]],
    words: dict[int, _Word],
    at: int,
    language: str | None,
) -> list[_Word]:
    """The words from `at` on that continue the name before them: one, or a particle and one."""
    match, before = matches[at], words[at - 1]
    if not _GAP.fullmatch(text, before.end, match.start()):
        return []
    if at in words:
        return [words[at]] if words[at].start == match.start() else []
    if before.initial or before.text.isupper():
        return []
    # In German "von" may stand between any two nouns; elsewhere, after two words "de" says where
    # from (Bek Halloran de Wendelsea).
    earlier = words.get(at - 2)
    joined = earlier is not None and _GAP.fullmatch(text, earlier.end, before.start)
    allowed = _FIRM_PARTICLES if language == "de" or joined else NAME_PARTICLES
    particle = match.group().lower()
    size = 2 if particle == "of" and at + 1 < len(matches) and matches[at + 1][0] == "the" else 1
    follower = words.get(at + size)
    if particle not in allowed or follower is None:
        return []
    if text[matches[at + size - 1].end() : follower.start] not in {" ", "'"}:
        return []
    return [*(_word(text, between) for between in matches[at : at + size]), follower]


@lru_cache(maxsize=1 << 14)
def _is_function_word(text: str, key: str, language: str | None) -> bool:
    if text.isupper() and len(text) > 1:
        return False
    own = language if language and fits(language, default_language(key)) else "en"
    return key in stop_words(own) or key in stop_words("en")


def _trim(run: list[_Word], language: str | None) -> list[_Word]:
    """The run without function words, openers and days or months at either end."""
    while run and (
        _is_function_word(run[0].text, run[0].key, language)
        or _is_time(run[0], len(run))
        or (run[0].initial and _is_opener(run[0]))
        or (len(run) > 1 and run[0].key in CLASS_NOUNS)
        or (len(run) > 2 and len(run[0].text) <= 4 and run[0].text.isupper())  # CFO Ivora Tinn
    ):
        run = run[1:]
    while run and (
        _is_function_word(run[-1].text, run[-1].key, language) or _is_time(run[-1], len(run))
    ):
        run = run[:-1]
    return run


def _is_time(word: _Word, size: int) -> bool:
    """A day or month; a short one (Mar, Sun) only where it stands alone."""
    return word.key in TIME_NAMES and (size == 1 or len(word.key) > 4)


def _is_opener(word: _Word) -> bool:
    """A common word with which sentences begin: Apparently, Reviewed, Thanks, Painting."""
    return word.key in COMMON_OPENERS or (
        len(word.key) > 4 and word.key.endswith(OPENER_ENDINGS) and word.text[1:].islower()
    )


def _accepted(
    run: list[_Word],
    before: _Word | None,
    after: _Word | None,
    language: str | None,
    seen_inside: set[str],
) -> bool:
    first = run[0]
    if len(run) > 1:
        return len(first.text) > 1
    if len(first.text) < 2:
        return False
    if any(letter.isupper() for letter in first.text[1:]):  # acronyms, McDonald, YouTube
        return not first.initial or len(first.text) > 2
    if first.initial:
        if first.key in seen_inside and language != "de":
            return True
        return first.owner or (after is not None and _like_a_verb(after, language))
    return language != "de" or not _german_noun(first, before)


def _like_a_verb(word: _Word, language: str | None) -> bool:
    """Whether the word after a sentence's first makes it likely to be a subject."""
    if word.capital:
        return False
    if word.key in VERBS_AFTER_NAMES:
        return True
    if language == "en":
        return word.key.endswith(("ed", "es")) or (
            word.key.endswith("s")
            and not word.key.endswith("ss")
            and len(word.key) > 3
            and word.key not in stop_words("en")
        )
    return language is not None and word.key.endswith(_VERB_ENDINGS.get(language, ()))


_VERB_ENDINGS: dict[str, tuple[str, ...]] = {
    "de": ("te", "t"),
    "es": ("o", "aba", "ia", "a", "e"),
    "pt": ("ou", "eu", "iu", "ava", "ia", "a"),
    "it": ("ato", "ava", "eva", "a", "e"),
    "fr": ("ait", "a", "e"),
    "ru": ("л", "ла", "ет", "ит"),
}


def _german_noun(word: _Word, before: _Word | None) -> bool:
    """German writes every noun with a capital: after an article or an inflected adjective, or
    with an ending that makes nouns, it is more likely a common one."""
    if word.key.endswith(NOUN_ENDINGS) or re.search("-[A-Z]", word.text):
        return True
    if before is None or before.capital:
        return False
    return before.key in DETERMINERS or before.key.endswith(("en", "er", "es", "em", "e"))


def _without_compound(name: str, language: str | None) -> str:
    """ "Embedding Spaces-Projekt" names Embedding Spaces: German joins the class with a hyphen."""
    if language == "de" and " " in name and "-" in name.rpartition(" ")[2]:
        return name.rpartition("-")[0]
    return name
