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
from cofire.consolidation.parties import Party, conflict, opposed


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
        vouched = [spot for spot in sure or agreeing or spots if _vouched(spot)]
        hearsay += not vouched
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


def _vouched(spot: tuple[Clause, Word]) -> bool:
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
