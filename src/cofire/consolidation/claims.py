"""Whether English sentences say what a record claims: who, whether, and how surely.

Each clause of the record is laid beside the clauses of the quotes that share its words. What has
no words in common is left to the count of support (`verifying`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cofire.consolidation import wording as w
from cofire.consolidation.clauses import Clause, Word, read
from cofire.consolidation.parties import Party, addressed, calls, conflict, opposed


class Said(NamedTuple):
    """A quoted sentence, and the stems of who said it."""

    text: str
    speaker: frozenset[str]


class Reading(NamedTuple):
    """The clauses of a record and those of its quotes; the stems of whom the record is about, and
    whether that is one of those who speak in the quotes."""

    record: list[Clause]
    quotes: list[Clause]
    subject: frozenset[str]
    speaks: bool


def read_all(content: Sequence[str], subject: frozenset[str], said: Sequence[Said]) -> Reading:
    """The clauses of a record's sentences about `subject` and of what was said."""
    party = Party("person", subject)
    record = [clause for sentence in content for clause in read(sentence, subject, subject=party)]
    quotes = [clause for one in said for clause in read(one.text, one.speaker)]
    speaks = any(subject & one.speaker for one in said)
    return Reading(record, quotes, subject, speaks)


def faults(reading: Reading, names: frozenset[str]) -> list[str]:
    """The reasons for which the claims fail; `names` are stems that name persons."""
    found: dict[str, None] = {}
    told = [clause for clause in reading.quotes if not clause.question]
    for clause in reading.record:
        for reason in _clause_faults(clause, reading, told, names):
            found[reason] = None
    if _denies(reading.record) and not _denies(told):
        found["negation: nothing quoted denies what the record denies"] = None
    return list(found)


def _denies(clauses: Iterable[Clause]) -> bool:
    return any(
        word.denied in {"not", "ceased"} for clause in clauses for word in clause.words
    ) or any(clause.plain & (w.NEGATORS | w.CEASED | w.DISLIKES) for clause in clauses)


def _clause_faults(
    clause: Clause, reading: Reading, told: list[Clause], names: frozenset[str]
) -> list[str]:
    content = [word for word in clause.words if word.stem not in names]
    wanted = [word for word in content if word.key not in w.NEUTRAL] or content
    places = _places(reading.quotes)
    common = [word for word in wanted if word.key in places]
    found: list[str] = []
    if common:
        found += _assertion_faults(clause, common, places)
        if _is_present(clause) and all(
            _is_over(clause, other) for word in common for other, _ in places[word.key]
        ):
            found.append("date: the quotes tell of the past what the record tells of now")
    if told and _wrong_person(clause, content, told, reading.subject, reading.speaks):
        found.append("subject: the quotes say it of somebody else")
    return found


Places = dict[str, list[tuple[Clause, Word]]]


def _places(quotes: list[Clause]) -> Places:
    """Where each key stands in the quotes."""
    places: Places = defaultdict(list)
    for clause in quotes:
        for word in clause.words:
            places[word.key].append((clause, word))
    return places


def _assertion_faults(clause: Clause, common: list[Word], places: Places) -> list[str]:
    """Denied, supposed, asked or hearsay in every place where the quotes have the words."""
    hedged = bool(clause.plain & w.PLANS)
    asks = hedged or clause.asks
    attributed = bool(clause.plain & w.ATTRIBUTES)
    past = _is_past(clause)
    denied = supposed = hearsay = 0
    for word in common:
        spots = places[word.key]
        agreeing = [
            spot for spot in spots if _agrees(word.denied, spot[1].denied, past, _is_past(spot[0]))
        ]
        denied += not agreeing
        sure = [spot for spot in agreeing or spots if _as_sure(spot, word, hedged, asks)]
        supposed += not sure
        backed = [spot for spot in sure or agreeing or spots if vouched(spot)]
        hearsay += not backed
    found = []
    if _most(denied, common):
        found.append("negation: the quotes deny it, or the record does")
    if _most(supposed, common):
        found.append("hypothetical: the quotes suppose, wish or ask what the record asserts")
    if _most(hearsay, common) and not attributed and not word_of(clause):
        found.append("reported: the quotes only pass on what somebody else said")
    return found


def _is_past(clause: Clause) -> bool:
    return any(w.is_past(token.word) for token in clause.tokens)


def _is_present(clause: Clause) -> bool:
    """Whether a clause of a record tells of now."""
    return not (_is_past(clause) or clause.plain & (_HISTORIC | w.FORMER | {"used", "been"}))


_HISTORIC = frozenset("once previously earlier ago past childhood history".split())


def is_over(clause: Clause) -> bool:
    """Whether a clause tells of what was at a time that is over: by "ago", "once", "as a child",
    in the past tense; not of what began then ("I moved ten years ago") or has gone on since."""
    if clause.plain & _SINCE or any(token.word in _BEGINS for token in clause.tokens):
        return False
    words = [token.word for token in clause.tokens]
    text = " ".join(words)
    if any(phrase in f" {text} " for phrase in _BACK_THEN):
        return True
    past = any(w.is_past(word) for word in words)
    return past and ("ago" in words or ("once" in words and words[0] != "once"))


def _is_over(ours: Clause, theirs: Clause) -> bool:
    """Whether a clause quoted is over, or has in the past the very verb that the record has in the
    present ("I was a nurse", "Mira is a nurse")."""
    if is_over(theirs):
        return True
    if theirs.plain & (_SINCE | w.CEASED) or any(one.word in _BEGINS for one in theirs.tokens):
        return False
    states = {w.stem(one.word) for one in theirs.tokens if w.is_past(one.word)} - _TASTES
    if states & {w.stem(one.word) for one in ours.tokens}:
        return True
    return bool(theirs.plain & {"was", "were"} and ours.plain & {"is", "are", "am"}) and not any(
        one.word in w.PARTICIPLES or one.word.endswith("ed") for one in theirs.tokens
    )


def speaks_of(clause: Clause, subject: frozenset[str]) -> bool:
    """Whether a clause has one of the stems, other than in addressing somebody."""
    told = addressed(clause.tokens)
    return any(
        w.stem(token.word) in subject and not calls(told, place) for place, token in enumerate(told)
    )


def was(clause: Clause) -> bool:
    """Whether a clause tells of a state in the past tense: "I lived in Oslo"."""
    if clause.plain & (_SINCE | w.CEASED) or any(one.word in _BEGINS for one in clause.tokens):
        return False
    past = any(w.is_past(one.word) and w.stem(one.word) not in _TASTES for one in clause.tokens)
    return past or is_over(clause)


_SINCE = frozenset("have has since still been now".split())
_TASTES = frozenset(w.stem(word) for word in "love like enjoy hate dislike".split())
_BACK_THEN = tuple(
    f" {phrase} "
    for phrase in (
        "as a child", "as a kid", "as a boy", "as a girl", "as a teenager", "as a student",
        "as children", "as kids", "when i was", "when we were", "in my youth", "in my childhood",
        "in my teens", "in my twenties", "in my thirties", "back then", "back in the day",
        "in those days", "at that time", "years ago i was", "growing up",
    )
)  # fmt: skip
_BEGINS = frozenset(
    """moved relocated settled bought got adopted married began started joined became took hired
    born signed opened founded made learned learnt met found bring brought received inherited
    given gave won finished graduated passed quit left stopped decided changed switched
    returned came engaged retired rented acquired built set turned gone taught told earned
    hurt broke lost had promoted diagnosed named called""".split()
)
"""Verbs whose past has left something that may still be so."""


def _most(count: int, common: list[Word]) -> bool:
    """Whether so many of the words in common speak against the record: more than half, or one of
    two."""
    return 2 * count > len(common) or (count == 1 and len(common) == 2)


def word_of(clause: Clause) -> bool:
    """Whether the record itself passes it on as somebody's word."""
    return any(word.reporter is not None for word in clause.words)


def _agrees(ours: str, theirs: str, past: bool, was: bool) -> bool:
    """Whether a word denied as `ours` in the record and `theirs` in the quote says the same;
    `past`, `was`: the record's clause or the quote's is in the past."""
    if ours == theirs:
        return True
    if ours == "former":
        return theirs == "ceased" or (not theirs and was)
    if theirs in {"ceased", "former"}:
        return ours in {"not", "ceased"} or past
    return False


def _as_sure(spot: tuple[Clause, Word], ours: Word, hedged: bool, asks: bool) -> bool:
    """Whether the quote asserts the word at least as surely as the record."""
    clause, word = spot
    if clause.question:
        return asks
    return word.mood == "fact" or ours.mood != "fact" or hedged


def vouched(spot: tuple[Clause, Word]) -> bool:
    """Whether the speaker vouches for the word, or somebody speaks of themselves."""
    clause, word = spot
    if word.reporter is None:
        return True
    reporter = word.reporter
    if reporter.sort != "person":
        return False
    return any(not conflict(reporter, agent) and agent.sort == "person" for agent in clause.agents)


def _wrong_person(
    clause: Clause, wanted: list[Word], told: list[Clause], subject: frozenset[str], speaks: bool
) -> bool:
    """Whether the clauses that say it best all say it of somebody else. Of a subject who does not
    speak in the quotes they must say it; of one who does they must not say otherwise."""
    keys = {word.key for word in wanted}
    head = next((word.key for word in wanted if word.stem not in clause.subject), None)
    if not keys or not (clause.agents or clause.patients):
        return False
    scored = [(_overlap(keys, head, other), other) for other in told]
    best = max((score for score, _ in scored), default=(False, 0))
    closest = [other for score, other in scored if score == best]
    of_another = any((party.names | party.owner) & subject for party in clause.agents)
    if of_another and not speaks and not (best[1] and any(_about(c, subject) for c in closest)):
        return True
    if not best[0] and (best[1] < 2 or 2 * best[1] < len(keys)):
        return False
    return all(_opposed(clause, other) for other in closest)


def _about(clause: Clause, subject: frozenset[str]) -> bool:
    """Whether a clause can be about somebody who did not say it: by name, or as "you" or "she"."""
    if clause.spoken_of & subject or clause.plain & {"your", "yours"}:
        return True
    return any(
        party.sort == "other" or (party.sort == "person" and party.names & subject)
        for party in (*clause.agents, *clause.patients)
    )


def _overlap(keys: set[str], head: str | None, other: Clause) -> tuple[bool, int]:
    """Whether a clause has the first word said of the record's subject, and how many in all."""
    theirs = {word.key for word in other.words if word.stem not in other.subject}
    return head in theirs, len(keys & theirs)


def _opposed(ours: Clause, theirs: Clause) -> bool:
    if _converse(ours, theirs):
        return bool(
            ours.agents and theirs.agents and not opposed(ours.agents, theirs.agents)
        ) and _known(ours, theirs)
    if ours.patients and theirs.patients and opposed(ours.patients, theirs.patients):
        return True
    if bool(ours.patients) != bool(theirs.patients) and not (ours.agents and theirs.agents):
        return False
    return opposed(ours.agents, theirs.agents)


def _known(ours: Clause, theirs: Clause) -> bool:
    return all(party.sort == "person" for party in (*ours.agents, *theirs.agents))


def _converse(ours: Clause, theirs: Clause) -> bool:
    """Whether the two tell one deed from its two ends ("lent me", "borrowed from")."""
    mine = {w.stem(token.word) for token in ours.tokens}
    other = {w.stem(token.word) for token in theirs.tokens}
    return any(
        len(pair & mine) == 1 and len(pair & other) == 1 and pair & mine != pair & other
        for pair in w.CONVERSE
    )
