"""English sentences as clauses: who does it, what is said of them, and how far it is asserted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cofire.consolidation import wording as w
from cofire.consolidation.asserting import denials_of, moods_of
from cofire.consolidation.parties import Party, Reader, addressed, calls
from cofire.consolidation.tokens import QUOTES, Token, is_question, tokens_of, without_titles
from cofire.encoding.stopwords import stop_words


class Word(NamedTuple):
    """A content word of a clause: its key and stem, how it is denied ("", "not", "ceased"), how
    far it is asserted ("fact", "future", "possible"), and who vouches for it if not the speaker."""

    key: str
    stem: str
    denied: str
    mood: str
    reporter: Party | None


@dataclass(slots=True)
class Clause:
    """A clause. `agents` do it (empty: not told), `patients` have it done to them where it is
    in the passive. `words` are its content words, `plain` all of them as written, `subject` the
    stems inside its subject, `spoken_of` those of its names apart from who is addressed by name.
    `question`: its sentence asks. `asks`: it tells that somebody asked."""

    tokens: list[Token]
    agents: list[Party] = field(default_factory=list)
    patients: list[Party] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    subject: frozenset[str] = frozenset()
    spoken_of: frozenset[str] = frozenset()
    question: bool = False
    plain: frozenset[str] = frozenset()
    asks: bool = False


def read(text: str, speaker: frozenset[str], *, subject: Party | None = None) -> list[Clause]:
    """The clauses of one sentence.

    `speaker` are the stems of who says it: "I" is that person. `subject` is whom "he", "she" and
    "they" mean in a record; elsewhere they mean whoever was spoken of last.
    """
    known = speaker if subject is None else speaker | subject.names
    tokens = without_titles(tokens_of(text, known))
    reader = Reader(speaker, subject)
    clauses = [_clause(reader, part) for part in _split(tokens)]
    asks = is_question(text)
    _assert(clauses, reader)
    for clause in clauses:
        clause.question = asks
    return clauses


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens clause by clause; quotation marks are clauses of their own."""
    part: list[Token] = []
    for index, token in enumerate(tokens):
        if token.word in QUOTES:
            if part:
                yield part
            yield [token]
            part = []
            continue
        if part and _starts(tokens, index, part):
            yield part
            part = []
        part.append(token)
    if part:
        yield part


def _starts(tokens: list[Token], index: int, part: list[Token]) -> bool:  # noqa: PLR0911 - one return per form
    """Whether a clause begins at the token, after those of `part`."""
    token = tokens[index]
    before = tokens[index - 1].word
    if any(mark in token.gap for mark in ";:\u2014\u2013(\u2026") or ". " in token.gap:
        return True
    if token.word in w.SPLITTERS:
        return token.word != "that" or before in w.SPEECH | w.ATTITUDES | _FACTS or _told(part)
    if "," in token.gap and (_heads(tokens, index) or token.word in {"so", "and", "or"}):
        return _has_verb(part) or token.word == "so"
    if token.word in w.NOMINATIVES:
        joined = before in {"and", "or", "than", "as"} and not _has_verb(part[:-1])
        return not joined and _has_subject(part)
    if token.word in {"and", "or", "so"} and index + 1 < len(tokens):
        return _heads(tokens, index + 1) and _verb_follows(tokens, index + 1) and _has_verb(part)
    if before in w.SPEECH or _told(part):
        return _heads(tokens, index) and _verb_follows(tokens, index)
    return False


_FACTS = frozenset("true fact sure certain aware know knows knew glad happy sorry so".split())


def _told(part: list[Token]) -> bool:
    """Whether the clause so far ends in "told me", "tells people"."""
    return len(part) > 1 and part[-2].word in w.SPEECH and part[-2].word[:2] in {"te", "to"}


def _heads(tokens: list[Token], index: int) -> bool:
    """Whether a subject may begin at the token: a pronoun, a name, "my sister"."""
    token = tokens[index]
    if token.word in w.NOMINATIVES or token.word in {"you", "it"} or token.word in w.POSSESSIVES:
        return True
    return token.name or token.word in {"the", "nobody", "everyone", "people", "there"}


def _verb_follows(tokens: list[Token], index: int) -> bool:
    """Whether what begins at the token goes on as a clause, not as a list or its end."""
    size = 1
    if tokens[index].word in w.POSSESSIVES or tokens[index].word == "the":
        size = 2
    while index + size < len(tokens) and tokens[index + size].name:
        size += 1
    if index + size >= len(tokens) or tokens[index + size].gap.strip():
        return False
    word = tokens[index + size].word
    return word not in w.PREPOSITIONS and word not in {"and", "or", "'s", "but"}


def _has_subject(part: list[Token]) -> bool:
    for place, token in enumerate(part):
        if token.word in w.NOMINATIVES or token.word in {"you", "it"}:
            return True
        if token.word in w.POSSESSIVES or token.name or token.word in w.DETERMINERS:
            return not place or part[place - 1].word not in w.PREPOSITIONS
        if token.word in w.INDEFINITE and part[-1].word in w.SPEECH:
            return True
        if token.word in w.ELLIPTICAL | {"imagine", "suppose", "maybe", "glad"}:
            return True
    return False


def _has_verb(part: list[Token]) -> bool:
    """Whether there is more than the beginning of a subject: two words beyond it, say."""
    words = [token for token in part if token.word not in w.OPENERS | {"'s"}]
    lead = 0
    for token in words:
        if token.word in w.POSSESSIVES | w.DETERMINERS | w.NOMINATIVES or token.name:
            lead += 1
        elif token.word in w.KIN and lead:
            continue
        else:
            return True
    return any(token.word in w.BE | {"have", "has", "had", "do", "does", "did"} for token in part)


def _clause(reader: Reader, tokens: list[Token]) -> Clause:
    """A clause with its parties; words follow in `_assert`."""
    clause = Clause(tokens)
    clause.plain = frozenset(token.word for token in tokens)
    told = addressed(tokens)
    agents, used = reader.agents_of(told)
    clause.spoken_of = frozenset(
        w.stem(token.word)
        for place, token in enumerate(told)
        if token.name and not calls(told, place)
    )
    if tokens[0].word in {"who", "whose"} and reader.last is not None:
        agents = [reader.last]
    if not agents and tokens[0].word not in w.SPLITTERS - {"but", "and"} and not used:
        agents = reader.agents
    clause.subject = frozenset(w.stem(token.word) for token in used)
    clause.agents = agents
    _turn_passive(reader, clause)
    reader.agents = agents
    for token_party in reader.mentions(tokens):
        reader.last = token_party
    return clause


def _turn_passive(reader: Reader, clause: Clause) -> None:
    """ "I was hired by Wido": the agent is Wido, or nobody that is told."""
    tokens = clause.tokens
    for place, token in enumerate(tokens[:-1]):
        if token.word not in w.BE or (place and tokens[place - 1].word == "to"):
            continue
        follower = tokens[place + 1]
        if follower.word in w.OPENERS and place + 2 < len(tokens):
            follower = tokens[place + 2]
        if not (follower.word.endswith("ed") or follower.word in w.PARTICIPLES):
            continue
        by = [p for p in range(place + 2, len(tokens) - 1) if tokens[p].word == "by"]
        agent = reader.phrase(tokens, by[0] + 1)[0] if by else None
        if agent is not None and agent.sort != "thing":
            clause.patients, clause.agents = clause.agents, [agent]
        return


def _assert(clauses: list[Clause], reader: Reader) -> None:
    """Give every clause its words: denied or not, how far asserted, and on whose word."""
    supposed = conditional = False
    reporter: Party | None = None
    quoted: Party | None = None
    inside = False
    for clause in clauses:
        first = clause.tokens[0].word
        if first in QUOTES:
            inside = not inside
            quoted = (reporter or Party("other", reader.speaker)) if inside else None
            continue
        if inside and quoted is not None and len(clause.tokens) > 2:
            clause.agents = [quoted if _first(party, reader) else party for party in clause.agents]
        if first == "but":
            supposed, reporter = False, None
        iffy = first in w.CONDITIONS or bool(clause.plain & {"if", "unless"})
        conditional = conditional or iffy
        denials = denials_of(clause.tokens)
        mood = moods_of(clause.tokens, supposed, conditional, iffy)
        voice = quoted if inside and len(clause.tokens) > 2 else reporter
        for place, token in enumerate(clause.tokens):
            if token.word in stop_words("en") and token.word not in {"like", "own"}:
                continue
            if token.word == "'s" or token.word in w.NEGATORS:
                continue
            key, stem = w.key(token.word), w.stem(token.word)
            if token.word in w.DISLIKES or _stands(clause.tokens, place):
                key = stem = w.key("like")
            clause.words.append(Word(key, stem, denials[place], mood[place], voice))
        clause.asks = bool(clause.plain & {"ask", "asks", "asked", "wonders", "wondered"})
        supposed = supposed or bool(clause.plain & w.ATTITUDES)
        reporter = _reports(clause, reader) or reporter


def _stands(tokens: list[Token], place: int) -> bool:
    """Whether the token is the verb of "can't stand", "can't bear"."""
    return place > 0 and tokens[place].word in {"stand", "bear"} and tokens[place - 1].word == "not"


def _first(party: Party, reader: Reader) -> bool:
    return party.names == reader.speaker and party.sort in {"person", "group"}


def _reports(clause: Clause, reader: Reader) -> Party | None:
    """Who vouches for what follows the clause, if not the speaker."""
    if clause.plain & w.HEARSAY or "according" in clause.plain:
        return Party("other", reader.speaker)
    if not clause.plain & w.SPEECH:
        return None
    if not clause.agents or clause.tokens[0].word in w.INDEFINITE:
        return Party("other", reader.speaker)
    agent = clause.agents[0]
    if _first(agent, reader) and agent.sort == "person":
        told = "told" in clause.plain and clause.plain & {"was", "am", "been"}
        heard = clause.plain & {"heard", "hear", "read"} and not clause.plain & {"you"}
        return Party("other", reader.speaker) if heard or told else None
    return agent
