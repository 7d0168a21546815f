"""What is cited of turns: by whom it was said and meant, and what a record in the very words of
its quote still has to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from cofire.consolidation import wording as w
from cofire.consolidation.claims import Said, speaks_of, vouched
from cofire.consolidation.clauses import read
from cofire.consolidation.drafts import Draft, Turn
from cofire.consolidation.framing import quoted, unmeant
from cofire.consolidation.parties import Party
from cofire.consolidation.quoting import sentences, spelled
from cofire.consolidation.tokens import names_of
from cofire.consolidation.turns import tells_failure
from cofire.encoding.text import fold
from cofire.types import Kind

FIRST = frozenset(w.stem(word) for word in w.FIRST)
"""Stems of the words by which somebody speaks of themselves."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A quote found in its turn."""

    turn: Turn
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.turn.content[self.start : self.end]


def speaker_of(turn: Turn) -> frozenset[str]:
    """The stems of what the speaker of a turn may be called."""
    names = names_of(turn.speaker or "")
    return names | names_of(turn.role or ("" if names else "user"))


def kind_faults(draft: Draft, cited: list[Cited]) -> list[str]:
    """What a kind of record needs of the turns it rests on."""
    roles = [fold(one.turn.role or "user") for one in cited]
    subject = names_of(draft.subject)
    if draft.kind is Kind.PERSONA:
        own = all(subject & speaker_of(one.turn) or subject <= FIRST for one in cited)
        if cited and (set(roles) != {"assistant"} or not own):
            return ["kind: a persona is what an assistant says of itself"]
    if draft.kind is Kind.TRAIT:
        machines = {
            stem
            for one, role in zip(cited, roles, strict=True)
            if role in _MACHINES
            for stem in speaker_of(one.turn)
        }.union(*map(names_of, _MACHINES))
        if subject & machines:
            return ["kind: a trait is of a person"]
    if draft.kind is Kind.PROCEDURE and any(
        one.turn.kind is Kind.TOOL_EVENT and tells_failure(one.turn.content) for one in cited
    ):
        return ["support: the tool failed"]
    return []


_MACHINES = frozenset({"assistant", "system", "tool"})


def said_in(cited: list[Cited]) -> list[Said]:
    """The sentences quoted, without those that are surely not meant; what stands in quotation
    marks opened before it is not the speaker's own."""
    found: list[Said] = []
    for one in cited:
        text = one.turn.content
        for first, last in sentences(one.text):
            start, end = one.start + first, one.start + last
            if not unmeant(text, start, end):
                found.append(Said(text[start:end], _voice(one.turn, start)))
    return found


def _voice(turn: Turn, start: int) -> frozenset[str]:
    return _NOBODY if quoted(turn.content, start) else speaker_of(turn)


_NOBODY = frozenset({"\u201d"})
"""The name of whoever wrote what a speaker cites: no name that anybody has."""


def is_verbatim(draft: Draft, cited: list[Cited], said: list[Said]) -> bool:
    """Whether a record is what was quoted, word for word: its support needs no count."""
    texts = {spelled(one.text) for one in cited} | {spelled(one.text) for one in said}
    return spelled(draft.content) in texts


def verbatim_faults(draft: Draft, subject: frozenset[str], told: list[Said]) -> list[str]:
    """What is wrong with a record in the very words of its quote. It denies, supposes and passes on
    what they do, for all to see; but it must be of its speaker or name its subject, it must not be
    hearsay about them, and a trait or a persona must be asserted."""
    party = Party("person", subject)
    clauses = [clause for one in told for clause in read(one.text, one.speaker, subject=party)]
    if not any(subject & one.speaker for one in told) and not any(
        speaks_of(clause, subject) for clause in clauses
    ):
        return ["subject: the quotes say it of somebody else"]
    own = [(clause, word) for clause in clauses for word in clause.words]
    lasting = draft.kind in (Kind.TRAIT, Kind.PERSONA)
    found = []
    if lasting and all(word.mood == "possible" for _, word in own):
        found.append("hypothetical: the quotes suppose, wish or ask what the record asserts")
    told_of = [
        word.reporter
        for clause, word in own
        if word.reporter is not None
        and not vouched((clause, word))
        and any(party.names & subject for party in (*clause.agents, *clause.patients))
    ]
    if any(lasting or reporter.sort != "person" for reporter in told_of):
        found.append("reported: the quotes only pass on what somebody else said")
    return found
