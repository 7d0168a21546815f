"""English words that the rules for time expressions know."""

from __future__ import annotations

from cofire.encoding.temporal.spans import Tense, Unit
from cofire.encoding.temporal.words import Words

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
).split()
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
MONTH_ABBREVIATIONS = {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
ALL_MONTHS = MONTH_ABBREVIATIONS | MONTHS
DOUBTFUL_MONTHS = frozenset({"may", "march", "mar"})
"""Also common words: counted as months only with further evidence."""

_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAY_NAMES)}
WEEKDAY_ABBREVIATIONS = {
    "mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4,
    "sat": 5, "sun": 6,
}  # fmt: skip
ALL_WEEKDAYS = WEEKDAY_ABBREVIATIONS | WEEKDAYS

SEASONS = {
    "spring": "spring", "summer": "summer", "autumn": "autumn", "fall": "autumn",
    "winter": "winter",
}  # fmt: skip

UNITS: dict[str, Unit] = {
    "hour": "hour", "hours": "hour", "hr": "hour", "hrs": "hour",
    "day": "day", "days": "day", "night": "day", "nights": "day",
    "week": "week", "weeks": "week", "wk": "week", "wks": "week",
    "fortnight": "fortnight", "fortnights": "fortnight",
    "weekend": "weekend", "weekends": "weekend",
    "month": "month", "months": "month", "mon": "month", "mo": "month",
    "quarter": "quarter", "quarters": "quarter",
    "year": "year", "years": "year", "yr": "year", "yrs": "year",
    "decade": "decade", "decades": "decade",
}  # fmt: skip
PERIODS = frozenset({"week", "weekend", "month", "quarter", "year", "decade", "fortnight"})
"""Units that "last", "this" and "next" go with as a single word."""

NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        1,
    )
} | {"a": 1, "an": 1, "thirty": 30, "forty": 40, "fifty": 50}
VAGUE = {"couple": (1, 3), "few": (2, 5), "several": (3, 7)}
"""Vague amounts as (least, most)."""

ORDINALS = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
    "last": -1,
}  # fmt: skip
DECADE_WORDS = {"fifties": 1950, "sixties": 1960, "seventies": 1970, "eighties": 1980,
                "nineties": 1990}  # fmt: skip

MEASURES = frozenset(
    "people persons dollars euros pounds bucks meters metres miles km kilometers kilometres feet "
    "steps tokens words points users files lines times items calories kcal mah mb gb kb mg ml "
    "grams kg customers followers views votes seats copies units pieces pages rows subscribers "
    "dollar euro mile hours minutes seconds days weeks months years percent bytes bits kids "
    "students members guests attendees employees books photos records entries iterations "
    "samples gallons pixels rpm hp watts volts degrees square cubic others thousand "
    "million".split()
)
"""What a number before it counts: "in 2000 meters" is no year."""

FOLLOWS_A_DATE = frozenset(
    "and at in for to with i we he she they it you is was were are am will after before so but "
    "because when if or that then my our his her their the a an this as since until by from of "
    "on due we've had has have did do does can could would should".split()
)
"""Words that may follow "the 15th"; a noun would make it an ordinal ("the 2nd floor")."""

DATE_PREPOSITIONS = frozenset(
    "on by in since until till til before after from between through to of during around for "
    "early late mid and".split()
)

PAST = frozenset(
    "was were had did went got came saw met took made gave found bought began left felt told said "
    "wrote won lost ran sat ate drank drove flew grew knew kept led heard held paid sent slept "
    "spent spoke stood swam taught thought threw wore broke built caught chose fell forgot hung "
    "sang sold shot stuck understood woke been didn wasn weren hadn became brought fought hid "
    "rode rose struck swore tore dealt dug fed laid lent lit meant sought shook shone stole swept "
    "did".split()
)
_NOT_PAST = frozenset(
    "need indeed speed feed seed breed exceed proceed excited interested tired scheduled planned "
    "expected thrilled pumped stoked psyched hundred worried supposed embed succeed united naked "
    "bleed weed greed agreed shred sacred wicked booked invited".split()
)
FUTURE = frozenset(
    "will ll gonna shall tomorrow upcoming plan plans planning hope hoping hopefully should must "
    "need let due deadline scheduled soon next going wait forward might planned booked invited "
    "reminder remind".split()
)
PRESENT = frozenset("is are am re m starts start begins opens closes works work".split())
"""Present tense before a day means a coming day: "the fair is on Friday"."""

_REACH = 25


def tense_at(words: Words, index: int, *, question: bool) -> Tense | None:
    """What the verbs of the sentence say of the words at `index`.

    The nearest marker before them counts, else the first one after them.
    """
    for i in range(index - 1, max(-1, index - _REACH), -1):
        if words.sentence_breaks(i) or _new_clause(words, i + 1):
            break
        tense = _marker(words, i, question=question)
        if tense is not None:
            return tense
    for i in range(index, min(words.size, index + _REACH)):
        if i > index and words.sentence_breaks(i - 1):
            break
        tense = _marker(words, i, question=question)
        if tense is not None:
            return tense
    return None


def _new_clause(words: Words, index: int) -> bool:
    """Whether word `index` begins a clause of its own: ", and in two weeks …"."""
    if words.words[index] not in {"and", "but", "so", "then", "now"}:
        return False
    return words.text[words.ends[index - 1] : words.starts[index]].lstrip().startswith(",")


def _marker(words: Words, index: int, *, question: bool) -> Tense | None:
    word = words.words[index]
    if word == "won" and words.next(index) == "t":
        return "future"
    if word in PAST or (len(word) > 3 and word.endswith("ed") and word not in _NOT_PAST):
        return "past"
    if word in FUTURE or (not question and word in PRESENT):
        return "future"
    return None
