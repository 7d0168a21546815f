"""What a sentence says of its speaker, without a model: few patterns, which abstain when in doubt.

Each gives a draft whose content is the sentence itself, so that nothing can be invented; the slot
and value read from it let a later statement take an earlier one's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cofire.consolidation.dating import day_of, times_in
from cofire.consolidation.drafts import Draft, Quote, Turn
from cofire.consolidation.framing import doubtful, joked, quoted
from cofire.consolidation.plausible import plausible
from cofire.consolidation.quantities import quantities
from cofire.consolidation.quoting import sentences
from cofire.consolidation.slots import DISLIKES, LIKES, value_key
from cofire.consolidation.tokens import is_question
from cofire.consolidation.wording import KIN
from cofire.encoding.stems import default_stem
from cofire.encoding.text import aligned, fold
from cofire.types import Kind

LONGEST = 200
"""Characters: longer sentences say several things at once and are left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a sentence says of its speaker: `slot`, `value`, whether the slot is `single`, and
    whether it tells how things came to be ("I moved to …") rather than how they are."""

    slot: str
    value: str
    single: bool
    event: bool = False


_DOUBT = re.compile(
    r"\b(?:if|unless|would|could|might|maybe|perhaps|probably|wish|hope|hoping|imagine|suppose|"
    r"says?|said|thinks?|told|heard|used to|almost|nearly|should|wanted?|wanna|dream|pretend|"
    r"kidding|joking|lol|sometimes|not sure|guess|(?-i:may)|formerly|until|will|gonna|"
    r"going to|planning|considering)\b"
    r"|[\"\u201c\u201d\u00ab\u00bb]|'(?:d|ll)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|cannot|no longer|anymore|any more)\b|n't\b", re.IGNORECASE)
_LEAD = (
    r"(?:(?:hi|hey|hello|well|so|oh|yes|yeah|and|but|also|actually|honestly|by the way|btw|fyi|now|"
    r"currently|these days|nowadays|to be honest|for the record)[,!]? ){0,3}"
)
_ADVERB = (
    r"(?:(?:now|currently|still|really|absolutely|just|also|always|recently|actually|finally) )?"
)
_CAPITAL = r"[A-Z\u00c0-\u00de](?:[\w'&-]|\.(?=\w))*"
_NAME = rf"{_CAPITAL}(?:(?: (?:of|the|de|la|van|von|am|and|&))? {_CAPITAL}){{0,4}}"
_PLACE = rf"(?:the )?{_NAME}(?:, {_NAME})?"
_THING = r"[\w'-]+(?: [\w'-]+){0,4}?"
_TAIL = (
    r"(?P<tail>(?:,? (?:now|again|too|as well|these days|at the moment|very much|so much|a lot|"
    r"(?:and|but|with|because|so|since|for|which|where|who|when|in|on|near|right|just|as|from|by|after"
    r"|last|this) .*))?|, .*)[.!\u2026 ]*"
)
_END = (
    r"(?P<tail>(?: (?:now|again|too|as well|these days|very much|so much|a lot|at all|any ?more))*)"
    r"[.!\u2026 ]*"
)
_KIN = "|".join(sorted(KIN))


_NOT_SO = re.compile(
    r"\b(?:dreams?|games?|novel|story|stories|book|movie|film|show|play|imagination|mind|head|left|"
    r"then|only|or|hardly|barely|rarely|seldom|haha\w*|less|anyway)\b|\(not\)",
    re.IGNORECASE,
)
"""Words in what follows a value that take it back, or put it in a story."""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(_LEAD.replace("(?:(?:hi", "(?i:(?:hi") + text)


def _first(text: str) -> str:
    """A pattern of the sentence's own start, whatever its case."""
    return rf"(?i:{text})"


Maker = Callable[[re.Match[str]], Statement | None]


def _single(slot: str, *, event: bool = False) -> Maker:
    return lambda match: Statement(slot=slot, value=match["value"], single=True, event=event)


def _many(slot: str) -> Maker:
    return lambda match: Statement(slot=slot, value=match["value"], single=False)


def _likes(value: str) -> Maker:
    def make(match: re.Match[str]) -> Statement | None:
        what = match["value"]
        if fold(what).split()[0] in _NO_THING or not value_key(what):
            return None
        return Statement(slot=f"likes:{fold(what)}", value=value, single=True)

    return make


_NO_THING = frozenset(
    """up still down around back here there you your yours losing
    to it that this these those how when what you your him her them his their being having it's
    everything nothing one some any my our seeing hearing getting going doing the a an""".split()
)


def _favourite(match: re.Match[str]) -> Statement | None:
    what = fold(match["what"])
    return Statement(slot=f"favourite:{what}", value=match["value"], single=True)


def _has(match: re.Match[str]) -> Statement | None:
    """ "I have two dogs": how many there are; "I have a dog": that there is one. Of what people
    keep and of relatives alone: one has a point, a cough and a deadline as well."""
    amount, thing = match["amount"], match["value"]
    if default_stem(fold(thing).split()[-1]) not in _POSSESSIONS:
        return None
    if fold(amount) in {"a", "an"}:
        return Statement(slot="has", value=thing, single=False)
    numbers = quantities(amount)
    if not numbers:
        return None
    return Statement(slot=f"number of:{fold(thing)}", value=numbers[0].value, single=True)


_POSSESSIONS = frozenset(
    default_stem(word)
    for word in (
        *(KIN - {"doctor", "dentist", "people", "match", "client", "customer", "student"}),
        *"""car bike bicycle motorbike motorcycle boat sailboat kayak canoe house flat apartment
        cabin cottage garden balcony piano guitar violin cello drum flute trumpet camera laptop
        computer tablet printer phone telescope bird fish goldfish goat sheep cow pig hen chicken
        duck goose donkey pony tortoise turtle snake lizard budgie canary guinea ferret bee
        beehive greenhouse farm van truck lorry caravan tractor sauna bookshop shop bakery
        tattoo""".split(),
    )
)


def _kin_name(match: re.Match[str]) -> Statement | None:
    kin = fold(match["kin"])
    slot = {"husband": "spouse", "wife": "spouse", "spouse": "spouse"}.get(kin, f"{kin}'s name")
    single = slot == "spouse" or kin in {
        "mother",
        "father",
        "mum",
        "mom",
        "dad",
        "fiance",
        "fiancee",
    }
    return Statement(slot=slot, value=match["value"], single=single)


_I_AM = _first(r"i(?:'m| am)")
_HAVE = _first(r"i(?:'ve| have)(?: got)?")
_PATTERNS: tuple[tuple[re.Pattern[str], Maker], ...] = tuple(
    (_pattern(text), make)
    for text, make in (
        (rf"{_first('i')} {_ADVERB}live in (?P<value>{_PLACE}){_TAIL}", _single("lives in")),
        (rf"{_I_AM} {_ADVERB}(?:living|based) in (?P<value>{_PLACE}){_TAIL}", _single("lives in")),
        (rf"{_HAVE} lived in (?P<value>{_PLACE}) (?P<tail>since .*)", _single("lives in")),
        (
            rf"{_first('(?:i|we)')} (?:have )?{_ADVERB}(?:moved|relocated) to "
            rf"(?P<value>{_PLACE}){_TAIL}",
            _single("lives in", event=True),
        ),
        (rf"{_first('i')} {_ADVERB}work (?:at|for) (?P<value>{_PLACE}|the {_THING}){_TAIL}",
         _single("works at")),
        (rf"{_I_AM} {_ADVERB}working (?:at|for) (?P<value>{_PLACE}|the {_THING}){_TAIL}",
         _single("works at")),
        (rf"{_HAVE} (?:worked|been working) (?:at|for) (?P<value>{_PLACE}|the {_THING}) "
         r"(?P<tail>since .*)", _single("works at")),
        (rf"{_first('i')} {_ADVERB}work as (?:a|an) (?P<value>{_THING}){_TAIL}", _single("job")),
        (rf"{_I_AM} (?P<value>\d{{1,3}}|[a-z]+(?:-[a-z]+)?) years? old{_TAIL}", _single("age")),
        (rf"{_first('my age is')} (?P<value>\d{{1,3}}){_END}", _single("age")),
        (rf"{_first('my name is')} (?P<value>{_NAME}){_END}", _single("name")),
        (rf"{_first('my (?:e-?mail|email)(?: address)? is')} (?P<value>\S+@\S+?){_END}",
         _single("email")),
        (rf"{_first('my (?:phone|mobile)(?: number)? is')} (?P<value>[+\d][\d ()/-]+\d){_END}",
         _single("phone")),
        (rf"{_first('my birthday is')} (?:on )?(?P<value>{_THING}){_END}", _single("birthday")),
        (rf"{_first('my favou?rite')} (?P<what>{_THING}) is (?:the |a |an )?"
         rf"(?P<value>{_THING}){_END}", _favourite),
        (rf"{_first('my')} (?P<kin>{_KIN}) is (?:called|named) (?P<value>{_NAME}){_TAIL}",
         _kin_name),
        (rf"{_first('my')} (?P<kin>{_KIN})'s name is (?P<value>{_NAME}){_TAIL}", _kin_name),
        (rf"(?P<value>{_NAME}) is my (?P<kin>husband|wife|spouse|fiance|fiancee){_END}", _kin_name),
        (rf"{_I_AM} married to (?P<value>{_NAME}){_TAIL}", _single("spouse")),
        (rf"{_I_AM} {_ADVERB}allergic to (?P<value>{_THING}){_END}", _many("allergic to")),
        (rf"{_first('i')} {_ADVERB}speak (?P<value>[A-Z]\w+){_END}", _many("speaks")),
        (rf"{_first('i')} {_ADVERB}(?:love|like|enjoy|adore) (?P<value>{_THING}){_END}",
         _likes(LIKES)),
        (rf"{_first('i')} {_ADVERB}(?:hate|dislike|detest|loathe) (?P<value>{_THING}){_END}",
         _likes(DISLIKES)),
        (rf"{_first('i')} (?:(?:do not|don't) (?:really |even )?(?:like|enjoy)|"
         rf"can't stand|cannot stand) (?P<value>{_THING}){_END}", _likes(DISLIKES)),
        (rf"{_HAVE} (?P<amount>a|an|\d+|[a-z]+(?:-[a-z]+)?) (?P<value>[a-z]+(?: [a-z]+)??)"
         rf"{_END}", _has),
    )
)  # fmt: skip


def slot_of(sentence: str) -> Statement | None:
    """What a first-person English sentence says of its speaker; None where it is not one of the
    patterns, asks, doubts, supposes or reports. Never raises."""
    text = " ".join(aligned(sentence).split())
    if len(text) > LONGEST or is_question(text) or _DOUBT.search(text):
        return None
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        statement = make(match)
        if statement is None or not _sound(statement, text, match):
            return None
        return statement
    return None


def _sound(statement: Statement, text: str, match: re.Match[str]) -> bool:
    """Whether nothing in the sentence takes back what the pattern read."""
    if statement.value != DISLIKES and _DENIED.search(text):
        return False
    tail = match.groupdict().get("tail") or ""
    if _NOT_SO.search(tail):
        return False
    value = match["value"].strip()
    return bool(value) and plausible(statement.slot, value, tail)


def drafts_of(turn: Turn) -> tuple[Draft, ...]:
    """A draft for each sentence of a turn that says something of its speaker, in order.

    None from turns that are not trusted, whose speaker is not known or is an assistant, or that
    might not speak for their speaker (`framing`). `valid_from` is the start of the time a sentence
    gives ("since 2019", "from 1 April on"), else the moment it was said.
    """
    subject = turn.speaker or turn.role
    if turn.untrusted or not subject or (turn.role or "").casefold() in _NOT_PEOPLE:
        return ()
    if doubtful(turn.content):
        return ()
    found = []
    for start, end in sentences(turn.content):
        sentence = turn.content[start:end]
        statement = slot_of(sentence)
        if (
            statement is None
            or _unsaid(turn, start, end)
            or _leaves_open(statement, sentence, turn)
        ):
            continue
        found.append(
            Draft(
                kind=Kind.FACT,
                content=sentence,
                subject=subject,
                quotes=(Quote(label=turn.label, text=sentence),),
                slot=statement.slot,
                value=statement.value,
                single=statement.single,
                valid_from=_since(statement, sentence, turn),
                language=turn.language or "en",
            )
        )
    return tuple(found)


_NOT_PEOPLE = frozenset({"assistant", "system", "tool"})


def _unsaid(turn: Turn, start: int, end: int) -> bool:
    return quoted(turn.content, start) or joked(turn.content, start, end)


_FROM = re.compile(r"\b(?:from|starting|beginning|as of|effective)\b", re.IGNORECASE)


def _leaves_open(statement: Statement, sentence: str, turn: Turn) -> bool:
    """Whether it names a time to come, other than a birthday or one from which on it holds."""
    if statement.slot == "birthday":
        return False
    coming = [time for time in times_in(sentence, turn) if time.start > turn.time]
    return bool(coming) and not _FROM.search(sentence)


def since(sentence: str, turn: Turn) -> datetime:
    """From when what a sentence of a turn says of its speaker holds."""
    statement = slot_of(sentence)
    return turn.time if statement is None else _since(statement, sentence, turn) or turn.time


def _since(statement: Statement, sentence: str, turn: Turn) -> datetime | None:
    """From when it holds; None where the sentence gives a time of something else."""
    times = times_in(sentence, turn)
    if not times:
        return turn.time
    if times[0].start > turn.time and _FROM.search(sentence):
        return times[0].start
    if statement.event or times[0].since or re.search(r"\bfor\b", sentence):
        return min(times[0].start, turn.time)
    return None if not day_of(turn).start <= times[0].start <= turn.time else turn.time
