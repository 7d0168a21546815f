"""Who is meant in an English sentence: names, "my brother", "she", and who is addressed.

No parser: word order, a few hundred words, and the habits of people who write messages. What
cannot be told is left open, and nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cofire.consolidation import wording as w
from cofire.consolidation.tokens import Token
from cofire.encoding.stopwords import stop_words


class Party(NamedTuple):
    """Somebody or something in a clause. `names` are stems of what they are called. `sort`:
    person (one of `names`), other (anybody but `names`), thing, or group (speaker and others).
    `owner` are stems of whose it is ("my sister", "Ana's flat"), empty where that is not told."""

    sort: str
    names: frozenset[str]
    owner: frozenset[str] = frozenset()


def conflict(one: Party, other: Party) -> bool:
    """Whether two parties are certainly not the same person, or not the same person's."""
    if one.owner and other.owner and one.owner.isdisjoint(other.owner):
        return not one.names.isdisjoint(other.names) or one.sort == other.sort == "person"
    if one.sort == other.sort == "person":
        return one.names.isdisjoint(other.names)
    if {one.sort, other.sort} == {"person", "other"}:
        return not one.names.isdisjoint(other.names)
    return False


def opposed(ours: list[Party], theirs: list[Party]) -> bool:
    """Whether nobody of one side can be anybody of the other."""
    return bool(ours and theirs) and all(conflict(a, b) for a in ours for b in theirs)


class Reader:
    """Who is meant, from clause to clause of a sentence."""

    def __init__(self, speaker: frozenset[str], subject: Party | None) -> None:
        self.speaker = speaker
        self.subject = subject
        self.last: Party | None = None
        self.agents: list[Party] = []

    def agents_of(self, tokens: list[Token]) -> tuple[list[Party], list[Token]]:
        """Whom the clause is about, and the tokens that say so."""
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if token.word in w.PREPOSITIONS:
                place += 1
                while (
                    place < len(tokens)
                    and not tokens[place].gap.strip()
                    and (tokens[place].word not in w.NOMINATIVES and place < len(tokens) - 1)
                    and tokens[place].word not in w.BE
                    and not _pause(tokens, place)
                ):
                    place += 1
                continue
            if token.word in w.OPENERS or token.word in w.SPLITTERS:
                place += 1
                continue
            break
        if place >= len(tokens):
            return [], []
        party, size = self.phrase(tokens, place)
        later = next((p for p, t in enumerate(tokens) if t.word in w.NOMINATIVES), None)
        if party is None and later is not None:
            place = later
            party, size = self.phrase(tokens, place)
        if party is None:
            elliptical = tokens[place].word in w.ELLIPTICAL or tokens[place].word.endswith("ed")
            if elliptical and not self.agents:
                return [self.me], []
            return [], []
        parties, used = [party], tokens[place : place + size]
        after = place + size
        if after + 1 < len(tokens) and tokens[after].word == "and":
            second, more = self.phrase(tokens, after + 1)
            ends = after + 1 + more
            if second is not None and ends < len(tokens) and second.sort != "thing":
                parties.append(second)
                used = tokens[place:ends]
        return parties, used

    @property
    def me(self) -> Party:
        """Who speaks."""
        return Party("person", self.speaker)

    def phrase(self, tokens: list[Token], at: int) -> tuple[Party | None, int]:  # noqa: PLR0911 - one return per form
        """The person or thing whose name begins at token `at`, and how many tokens it takes."""
        token = tokens[at]
        word = token.word
        if word in {"i", "me", "myself"}:
            return self.me, 1
        if word in {"we", "us"}:
            return Party("group", self.speaker), 1
        if word in {"you"}:
            return Party("other", self.speaker), 1
        if word in {"he", "she", "they", "him", "them"}:
            return self._third(word), 1
        if word in w.POSSESSIVES | w.DETERMINERS:
            names = self._noun(tokens, at + 1)
            owner = self.speaker if word in {"my", "our"} else frozenset()
            return (self._named(names, owner), len(names) + 1) if names else (None, 0)
        if token.name or word in {"user", "assistant"}:
            return self._owned_or_named(tokens, at)
        if word in w.KIN or (word.endswith("s") and word not in stop_words("en")):
            return self._named([token]), 1
        return None, 0

    def _owned_or_named(self, tokens: list[Token], at: int) -> tuple[Party, int]:
        """ "Ana Lund", "Ana's brother Tom": whom the phrase as a whole names."""
        end = at + 1
        while end < len(tokens) and tokens[end].name and not tokens[end].gap.strip():
            end += 1
        if end < len(tokens) and tokens[end].word == "'s":
            names = self._noun(tokens, end + 1)
            if names:
                owner = self._named(tokens[at:end]).names
                return self._named(names, owner), end + 1 + len(names) - at
        return self._named(tokens[at:end]), end - at

    def _noun(self, tokens: list[Token], at: int) -> list[Token]:
        """The tokens of a noun after "my" or "the": an adjective or two, the noun, a name."""
        end = at
        while end < len(tokens) and end - at < 4 and not (end > at and tokens[end].gap.strip()):
            word = tokens[end].word
            if word in w.BE | w.NOMINATIVES | w.PREPOSITIONS or (
                word in stop_words("en") and word not in w.POSSESSIVES
            ):
                break
            named = end > at and tokens[end].name
            if end > at and not named and tokens[end - 1].word in w.KIN:
                break
            if (
                end > at
                and not named
                and (word.endswith("s") or w.is_past(word))
                and (tokens[end - 1].word not in {"old", "new", "little", "big", "best"})
            ):
                break
            end += 1
        if end < len(tokens) and tokens[end].word == "'s" and end > at:
            return self._noun(tokens, end + 1) or tokens[at:end]
        return tokens[at:end]

    def _named(self, tokens: list[Token], owner: frozenset[str] = frozenset()) -> Party:
        names = frozenset(w.stem(token.word) for token in tokens)
        person = any(t.name or t.word in w.KIN or t.word in _ROLES for t in tokens)
        if names & self.speaker:
            return self.me
        if self.subject is not None and names & self.subject.names:
            return Party("person", self.subject.names | names)
        return Party("person" if person else "thing", names, owner)

    def _third(self, word: str) -> Party:
        """Whom "she" means; "they" may be anybody else, or in a record anything at all."""
        plural = word in {"they", "them"}
        if self.subject is not None:
            return Party("thing", frozenset()) if plural else self.subject
        if (
            not plural
            and self.last is not None
            and self.last.sort == "person"
            and not (self.last.names & self.speaker)
        ):
            return self.last
        return Party("other", self.speaker)

    def mentions(self, tokens: list[Token]) -> Iterator[Party]:
        """Everybody named in the tokens, the speaker apart."""
        place = 0
        while place < len(tokens):
            word = tokens[place].word
            if word in w.THIRD or word in w.FIRST | w.PLURAL_FIRST - w.POSSESSIVES | w.SECOND:
                place += 1
                continue
            party, size = self.phrase(tokens, place)
            if party is not None and party.sort == "person" and not (party.names & self.speaker):
                yield party
            place += max(size, 1)


_ROLES = frozenset({"user", "assistant", "speaker"})


def addressed(tokens: list[Token]) -> list[Token]:
    """The tokens from where the clause itself begins: without "Hey Ana," before it."""
    place = 0
    while place < len(tokens) and (tokens[place].word in w.OPENERS or tokens[place].name):
        place += 1
        if place < len(tokens) and tokens[place - 1].name and "," in tokens[place].gap:
            return addressed(tokens[place:])
        if place == len(tokens) and tokens[place - 1].name:
            return []
    return tokens


def calls(tokens: list[Token], place: int) -> bool:
    """Whether the name at the end of a clause, after a comma, addresses somebody."""
    return place == len(tokens) - 1 and "," in tokens[place].gap


def _pause(tokens: list[Token], place: int) -> bool:
    return "," in tokens[place].gap
