"""Whether the value that a pattern read of a sentence may be one of its slot: a place and no plan,
a date and no "tomorrow". Lists of words that people use otherwise; what is on none of them passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cofire.consolidation.quantities import quantities
from cofire.encoding.names import TIME_NAMES
from cofire.encoding.text import fold


def plausible(slot: str, value: str, tail: str) -> bool:
    """Whether `value` may fill `slot`, `tail` being what follows it in the sentence."""
    if slot.startswith("likes:"):
        return not _MIXED.search(value)
    if slot.startswith("favourite:"):
        return fold(value).split()[0] not in _NO_FAVOURITE
    test = _TESTS.get(slot)
    return test is None or test(value, tail)


_MIXED = re.compile(r"\b(?:but|more|less|than|hate|hates|rather|you|your|when|if|how)\b", re.I)
_NO_FAVOURITE = frozenset("next last first one same other that this it yours".split())


def _is_age(value: str, tail: str) -> bool:
    numbers = quantities(value)
    return bool(numbers) and 0 < int(numbers[0].value) < 130 and not re.search(
        r"\b(?:again|in|for|as)\b", tail
    )  # fmt: skip


def _is_place(value: str, tail: str) -> bool:
    """Whether it may be a place: no plan, programme or month, and one place alone."""
    words = fold(value).replace(",", "").split()
    several = {"and", "&"} & set(words) or re.match(r",? (?:and|to)\b", tail)
    return not (several or set(words) & _NO_PLACE or words[0] in TIME_NAMES)


_NO_PLACE = frozenset(
    """plan chapter team channel page level slide phase slack linux windows ubuntu debian android
    ios macos python java rust excel teams discord zoom github gitlab jira notion signal telegram
    whatsapp chrome firefox vim emacs word outlook gmail part section step stage round version
    group room table line lane tab row column fear hope peace sin denial style luxury poverty
    minecraft skyrim narnia gotham hogwarts azure aws kubernetes docker postgres mysql sqlite
    react typescript javascript kotlin swift""".split()
)


def _is_employer(value: str, tail: str) -> bool:
    words = fold(value).split()
    return words[0] != "the" or not set(words) & _NO_EMPLOYER


_NO_EMPLOYER = frozenset(
    """moment money fun time same best day days week weekend weekends night nights sake future good
    love experience benefit first last purpose kids people thrill pay challenge beach table desk
    office computer kitchen top bottom other right left end speed level pace""".split()
)


def _is_job(value: str, tail: str) -> bool:
    return not set(fold(value).split()) & _NO_JOB


_NO_JOB = frozenset(
    """team unit group pair duo couple charm example expected usual one whole joke hobby favour
    favor treat dream rule result spy pirate""".split()
)


def _is_birthday(value: str, tail: str) -> bool:
    """Whether it is a date: tomorrow's is another day's tomorrow."""
    return any(letter.isdigit() for letter in value) or any(
        word in TIME_NAMES and not word.endswith("day") for word in fold(value).split()
    )


def _is_allergen(value: str, tail: str) -> bool:
    return not set(fold(value).split()) & _NO_ALLERGEN


_NO_ALLERGEN = frozenset(
    """work stupidity nonsense mondays people idiots fun you your his her their drama exercise
    housework commitment politics bullshit""".split()
)
_LANGUAGE = re.compile(
    r"[a-z]+(?:nish|dish|lish|mish|rish|kish|lsh|tish|wish|ese|ian|ean|aic|bic|ndic|ench|utch|zech|"
    r"ali|ati)|thai|greek|hebrew|hindi|urdu|tamil|telugu|malay|tagalog|zulu|xhosa|basque|yoruba|"
    r"igbo|hausa|swahili|latin|german|sami|mandarin|cantonese|pashto|farsi|punjabi|marathi|somali|"
    r"catalan|galician|afrikaans|welsh|gaelic|mongolian|uzbek|kazakh|lao|khmer|slovak|slovene"
)


def _is_language(value: str, tail: str) -> bool:
    return _LANGUAGE.fullmatch(fold(value)) is not None


def _is_spouse(value: str, tail: str) -> bool:
    return fold(value) not in {"work", "music", "science", "art", "god", "money", "football"}


def _is_name(value: str, tail: str) -> bool:
    return fold(value).split()[0] not in {"mud", "legion", "nobody", "trouble", "bond"}


_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "age": _is_age,
    "lives in": _is_place,
    "works at": _is_employer,
    "job": _is_job,
    "birthday": _is_birthday,
    "allergic to": _is_allergen,
    "speaks": _is_language,
    "spouse": _is_spouse,
    "name": _is_name,
}
"""What the value of a slot, with what follows it in the sentence, must be."""
