"""Attributes by one name each, however a model words them, and values that can be compared.

"residence", "home city" and "lives in" are one slot; loving and hating one thing are two values of
one slot, so that one can replace the other.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cofire.consolidation.drafts import Draft
from cofire.consolidation.wording import DISLIKES as DISLIKING
from cofire.consolidation.wording import NEGATORS
from cofire.encoding.stems import default_stem
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold

LIKES, DISLIKES = "likes it", "does not like it"
"""The two values of a slot "likes:…"."""

_SINGLE = {
    "lives in": "lives in|living in|live in|lives at|residence|place of residence|home|home city|"
    "city|current city|location|current location|resides in|based in|moved to|home country",
    "works at": "works at|works for|work at|employer|current employer|workplace|place of work|"
    "company|employed by|employed at|works in company|joined company",
    "job": "job|occupation|profession|job title|works as|position|role|current job|career|"
    "is employed as",
    "age": "age|years old|is aged",
    "spouse": "spouse|husband|wife|married to|is married to|husband's name|wife's name",
    "partner": "partner|girlfriend|boyfriend|partner's name|is dating|fiance|fiancee|engaged to",
    "relationship": "relationship status|marital status|relationship|married",
    "phone": "phone|phone number|telephone|mobile|mobile number|telephone number",
    "email": "email|e-mail|email address|e-mail address|mail address",
    "address": "address|home address|postal address|street address",
    "name": "name|full name|is called|called|first name|preferred name|named",
    "birthday": "birthday|date of birth|birth date|birthdate|born on|was born on",
    "birthplace": "birthplace|place of birth|born in|was born in|hometown|home town",
    "studies at": "studies at|university|school|attends|college|enrolled at|goes to school at",
    "nationality": "nationality|citizenship",
    "native language": "native language|mother tongue|first language",
    "boss": "boss|manager|supervisor|reports to",
    "timezone": "timezone|time zone",
    "diet": "diet|eating habits",
    "car": "car|drives a",
    "height": "height",
    "weight": "weight",
}  # fmt: skip
_MANY = {
    "has": "has|owns|own|have|possesses",
    "pet": "pet|pets|has pet|owns pet|has a pet",
    "child": "child|children|has child|has children|son|daughter|kids",
    "sibling": "sibling|siblings|brother|sister|has brother|has sister",
    "speaks": "speaks|language|languages|language spoken|speaks language",
    "allergic to": "allergic to|allergy|allergies|is allergic to",
    "hobby": "hobby|hobbies|pastime|interest|interests|interested in|plays",
    "friend": "friend|friends|friend of",
    "goal": "goal|goals|wants to|plans to|ambition",
    "visited": "visited|travelled to|traveled to|has been to|trip to",
}  # fmt: skip
_NAMES: dict[str, tuple[str, bool]] = {
    name.strip(): (slot, single)
    for table, single in ((_SINGLE, True), (_MANY, False))
    for slot, names in table.items()
    for name in names.split("|")
}
_LIKING = frozenset(
    "like likes love loves enjoy enjoys preference likes_it adores fond of fan".split()
)
_DISLIKING = DISLIKING | frozenset("dislike dislikes hate hates detests loathes avoids".split())
_DENIED = re.compile(r"\b(?:not|n't|no longer|never|negative|hates?|dislikes?|does not like)\b")
_FAVOURITE = re.compile(r"(?:favou?rite|preferred|best-loved)[ _:-]+(.+)")
_LEAD = re.compile(r"^(?:(?:has|is|the|his|her|their|current|user'?s?|my) )+(?=\S)")


class Slot(NamedTuple):
    """A slot by its one name, the value in it, and whether it has one value at a time."""

    name: str
    value: str | None
    single: bool


def slot_named(name: str, value: str | None, *, single: bool = False) -> Slot:
    """The slot that a text names, with its value. `single` is what the draft says of a slot that
    is in no table here. Likes become "likes:what" with one of two values."""
    plain = " ".join(fold(name).replace("_", " ").split())
    head, colon, rest = plain.partition(":")
    head, rest = head.strip(), rest.strip()
    favourite = _FAVOURITE.fullmatch(plain.replace("favorite", "favourite"))
    if favourite:
        return Slot(f"favourite:{value_key(favourite.group(1))}", value, True)
    if head in _LIKING | _DISLIKING:
        return _liking(head, rest if colon else None, value)
    for candidate in (plain, _LEAD.sub("", plain)):
        if candidate in _NAMES:
            known, one = _NAMES[candidate]
            return Slot(known, value, one)
    if colon:
        return Slot(f"{head}:{value_key(rest)}", value, single)
    return Slot(plain, value, single)


def is_known(name: str) -> bool:
    """Whether a slot, by its one name, is in the tables here."""
    return name in _SINGLE or name in _MANY


def _liking(head: str, what: str | None, value: str | None) -> Slot:
    denied = head in _DISLIKING
    if what is None:  # "likes": "olives"
        what = value or ""
    elif value is not None and _DENIED.search(fold(aligned(value))):
        denied = not denied
    if not value_key(what):
        return Slot("likes", value, False)
    return Slot(f"likes:{value_key(what)}", DISLIKES if denied else LIKES, True)


def slot_filled(draft: Draft) -> Slot | None:
    """The slot a draft fills, as it is to be filed; None where it names none.

    A model may say "likes", "olives" of "Mira does not like olives": what the record's words deny,
    its slot denies.
    """
    if not draft.slot or not draft.slot.strip():
        return None
    slot = slot_named(draft.slot, draft.value, single=draft.single)
    if slot.value == LIKES and _denies(draft.content):
        return slot._replace(value=DISLIKES)
    return slot


def _denies(content: str) -> bool:
    words = fold(aligned(content)).replace("n't", " not").split()
    return sum(word in NEGATORS or word in DISLIKING for word in words) % 2 == 1


def value_key(value: str) -> str:
    """A value for comparison: its stems without articles and other function words."""
    words = re.findall(r"[^\W_]+(?:[.@+-][^\W_]+)*", fold(aligned(value)))
    telling = [word for word in words if word not in stop_words("en")] or words
    return " ".join(default_stem(word) for word in telling)


def subject_key(name: str, aliases: dict[str, str] | None = None) -> str:
    """A subject for comparison: NFC, case and white space folded, "the" dropped, its alias taken
    for it (`aliases` by such keys)."""
    key = " ".join(fold(name).split())
    key = key.removeprefix("the ")
    return (aliases or {}).get(key, key)
