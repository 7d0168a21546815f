"""Verification: a proposed record against the very words it claims to rest on.

Nothing a model says about its own record counts. A draft holds when every quote is whole
sentences of its turn, its subject said it or is spoken of in them, its numbers, names and times are
theirs, most of its words are theirs, and, in English, they assert it: not of somebody else, not
denied, not supposed or asked, not passed on as hearsay. In other languages the last part is left
out. Rules, no model: the same draft always gets the same verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cofire.consolidation import wording as w
from cofire.consolidation.citing import (
    FIRST,
    Cited,
    is_verbatim,
    kind_faults,
    said_in,
    speaker_of,
    verbatim_faults,
)
from cofire.consolidation.claims import Said, faults, read_all
from cofire.consolidation.dating import dated, hull_agrees, start_agrees
from cofire.consolidation.drafts import DISTILLED, Draft, Span, Turn, Verdict
from cofire.consolidation.filled import filling_faults, value_words
from cofire.consolidation.quantities import Quantity, quantities
from cofire.consolidation.quoting import locate, sentences
from cofire.consolidation.tokens import is_question, names_of, tokens_of
from cofire.encoding.analysis import analyse
from cofire.encoding.concepts import concepts
from cofire.encoding.expressions import event_times
from cofire.encoding.language import detect
from cofire.encoding.names import NAME_PARTICLES, TIME_NAMES
from cofire.encoding.stopwords import stop_words
from cofire.encoding.text import aligned, fold
from cofire.types import Kind

SUPPORT = 0.5
"""Least share of a record's content words that the quotes must have."""

WEIGHT_SESSION = 0.5
"""How far the first turn of a session convinces, in (0, 1)."""
WEIGHT_SPEAKER = 0.3
"""How far the first turn of each further speaker of that session does."""
WEIGHT_TURN = 0.15
"""How far every further turn of the same speaker in the same session does."""
HIGHEST = 0.99
"""Confidence is below 1 however much evidence there is."""

_PLAIN_SUBJECTS = frozenset("i me my myself user assistant".split())
_WORD = re.compile(r"[^\W_]+")
_PROPER = re.compile(r"[^\s\"'()\[\]\u201c\u201d,;]*[@/_\d][^\s\"'()\[\]\u201c\u201d,;]*|[^\W_]+")


def verify(draft: Draft, turns: Mapping[str, Turn]) -> Verdict:
    """Whether `draft` holds by the words of `turns` (label → turn), and how far to trust it.

    Reasons copy no words of the conversation, so that they may be kept when it is forgotten.
    `confidence` is `confidence(…)` of the turns quoted, 0 where the draft fails. The order of the
    quotes changes neither. What tools and documents say is no evidence, and not among the spans,
    where anything else is; a trait or a persona must not so much as cite it. Never raises.
    """
    cited, reasons = _locate(draft, turns)
    if draft.kind not in DISTILLED:
        reasons.append("kind: not a kind of record that is distilled")
    reasons += kind_faults(draft, cited)
    tools = draft.kind is Kind.PROCEDURE
    trusted = [one for one in cited if _counts(one.turn, tools)]
    if draft.kind in _LASTING and len(trusted) < len(cited):
        reasons.append("support: it rests on tools or documents in part")
    if cited and not trusted:
        reasons.append("support: it rests on tools or documents alone")
    if trusted:
        reasons += _content_faults(draft, trusted, turns)
    spans = tuple(
        Span(number=one.turn.number, version=one.turn.version, start=one.start, end=one.end)
        for one in sorted(trusted or cited, key=lambda one: (one.turn.number, one.start))
    )
    if reasons:
        return Verdict(reasons=tuple(dict.fromkeys(reasons)), spans=spans)
    return Verdict(
        reasons=(), confidence=confidence((one.turn for one in trusted), tools=tools), spans=spans
    )


_LASTING = (Kind.TRAIT, Kind.PERSONA)


def _counts(turn: Turn, tools: bool) -> bool:
    """Whether a turn is evidence: what a tool did is, of how a task is done and of nothing else."""
    return not turn.untrusted or (tools and turn.kind is Kind.TOOL_EVENT)


def confidence(turns: Iterable[Turn], *, tools: bool = False) -> float:
    """How far evidence convinces: 1 − Π(1 − w) over distinct turns, in [0, 0.99].

    In each session the first turn weighs `WEIGHT_SESSION`, the first of every further speaker
    `WEIGHT_SPEAKER`, the rest `WEIGHT_TURN` each: what one person repeats on one day says little
    more than what they said once. Turns without a session count as one. One turn gives 0.5, two
    sessions 0.75, three 0.875. Untrusted turns weigh nothing, except what tools did where `tools`:
    each run weighs as a turn does. Fewer turns never give more.
    """
    sessions: dict[str | None, dict[int, str | None]] = {}
    for turn in turns:
        if _counts(turn, tools):
            sessions.setdefault(turn.session, {})[turn.number] = turn.speaker or turn.role
    doubt = 1.0
    for said in sessions.values():
        speakers = len(set(said.values()))
        doubt *= 1.0 - WEIGHT_SESSION
        doubt *= (1.0 - WEIGHT_SPEAKER) ** (speakers - 1)
        doubt *= (1.0 - WEIGHT_TURN) ** (len(said) - speakers)
    return min(round(1.0 - doubt, 6), HIGHEST)


def _locate(draft: Draft, turns: Mapping[str, Turn]) -> tuple[list[Cited], list[str]]:
    """The quotes found, each once, in the order of turns; and what is wrong with the others."""
    found: dict[tuple[str, int, int], Cited] = {}
    reasons = [] if draft.quotes else ["quote: none is given"]
    for quote in draft.quotes:
        turn = turns.get(quote.label)
        if turn is None:
            reasons.append("quote: of a turn that was not offered")
            continue
        place = locate(quote.text, turn.content)
        if place is None:
            reasons.append("quote: not whole sentences of its turn")
            continue
        found[quote.label, *place] = Cited(turn, *place)
    return [found[key] for key in sorted(found)], sorted(set(reasons))


def _content_faults(draft: Draft, cited: list[Cited], turns: Mapping[str, Turn]) -> list[str]:
    language, reasons = _language(draft, cited)
    english = language in (None, "en")
    reasons += _subject_faults(draft, cited, turns)
    reasons += _number_faults(draft, cited, language)
    reasons += _name_faults(draft, cited, turns, language)
    reasons += _date_faults(draft, cited)
    if english:
        reasons += _english_faults(draft, cited)
    elif _foreign_support(draft.content, cited, language) < SUPPORT:
        reasons.append("support: too few of its words are in the quotes")
    return reasons


def _language(draft: Draft, cited: list[Cited]) -> tuple[str | None, list[str]]:
    """The language of the quotes, and whether the record is in another."""
    quoted = detect(" ".join(one.text for one in cited)) or detect(
        " ".join(one.turn.content for one in cited)
    )
    quoted = quoted or next((one.turn.language for one in cited if one.turn.language), None)
    own = detect(draft.content)
    if own is not None and quoted is not None and own != quoted:
        return quoted, ["language: not that of the turns"]
    return quoted or own, []


def _subject_faults(draft: Draft, cited: list[Cited], turns: Mapping[str, Turn]) -> list[str]:
    names = names_of(draft.subject)
    if not names:
        return ["subject: none is given"]
    speakers: frozenset[str] = frozenset().union(*(speaker_of(one.turn) for one in cited))
    stems = {w.stem(word) for one in cited for word in _words(one.text)}
    if not (names & speakers or names <= FIRST or names <= stems | speakers):
        addressed = any(token.word in w.SECOND for one in cited for token in tokens_of(one.text))
        others = {stem for turn in turns.values() for stem in speaker_of(turn)}
        if not (addressed and names <= others):
            return ["subject: neither who speaks nor spoken of in the quotes"]
    content = {w.stem(word) for word in _words(draft.content)}
    if names & content or names <= FIRST | speakers:
        return []
    return ["subject: the record does not speak of it"]


def _words(text: str) -> list[str]:
    return [fold(word) for word in _WORD.findall(aligned(text))]


def _number_faults(draft: Draft, cited: list[Cited], language: str | None) -> list[str]:
    """Numbers that no cited turn has, or that count something else there."""
    spans = _date_spans(draft.content, cited)
    own = [
        number
        for number in quantities(f"{draft.content}", language)
        if not any(first <= number.start < last for first, last in spans)
    ]
    if draft.value:
        own += [n for n in quantities(draft.value, language) if not _date_spans(draft.value, cited)]
    turns = {one.turn.label: one.turn.content for one in cited}
    theirs = [number for text in turns.values() for number in quantities(text, language)]
    values = {number.value for number in theirs}
    if any(number.value not in values and number.value != "1" for number in own):
        return ["number: one that is in no cited turn"]
    if any(_counts_other(number, theirs) for number in own):
        return ["number: it counts something else in the quotes"]
    return []


def _counts_other(number: Quantity, theirs: list[Quantity]) -> bool:
    """Whether the quotes count what `number` counts, but never with that number."""
    for word in number.words:
        if word in stop_words("en"):
            break
        counted = w.stem(word)
        rivals = {other.value for other in theirs if counted in map(w.stem, _noun(other.words))}
        if rivals:
            return number.value not in rivals
    return False


def _noun(words: tuple[str, ...]) -> list[str]:
    """What a number counts: the words after it up to a function word."""
    found: list[str] = []
    for word in words:
        if word in stop_words("en"):
            break
        found.append(word)
    return found


def _date_spans(text: str, cited: list[Cited]) -> set[tuple[int, int]]:
    return {
        event.span
        for one in cited
        for event in event_times(text, one.turn.time, one.turn.offset, one.turn.language)
    }


def _name_faults(
    draft: Draft, cited: list[Cited], turns: Mapping[str, Turn], language: str | None
) -> list[str]:
    """Names that neither a cited turn nor its speaker has."""
    known: set[str] = set(_PLAIN_SUBJECTS)
    for one in cited:
        for text in (one.turn.content, one.turn.speaker or "", one.turn.role or ""):
            known.update(_words(text))
    if any(token.word in w.SECOND for one in cited for token in tokens_of(one.text)):
        known.update(word for turn in turns.values() for word in _words(turn.speaker or ""))
    spans = _date_spans(draft.content, cited)
    for name, start in _proper(draft.content, language):
        if any(first <= start < last for first, last in spans):
            continue
        if not set(_words(name)) - known - NAME_PARTICLES - TIME_NAMES - _DAYS:
            continue
        return ["name: one that is in no cited turn"]
    capitals = {
        word
        for token in tokens_of(draft.value or "")
        if token.text[:1].isupper()
        for word in _words(token.text)
    }
    if language in (None, "en") and capitals - known - TIME_NAMES - stop_words("en"):
        return ["name: its value has one that is in no cited turn"]
    return []


_DAYS = frozenset(f"{name}s" for name in TIME_NAMES)


def _proper(text: str, language: str | None) -> list[tuple[str, int]]:
    """What is a name by its form: concepts, capitals inside of a sentence, handles, codes."""
    text = aligned(text)
    found = [
        (concept.name, concept.start)
        for concept in concepts(text, language)
        if concept.sort != "topic"
    ]
    if language in (None, "en"):
        found += [
            (token.text.removesuffix("'s"), token.start) for token in tokens_of(text) if token.name
        ]
    found += [
        (match.group().rstrip(".:!?"), match.start())
        for match in _PROPER.finditer(text)
        if re.search(r"[@/_]|\d[^\W\d_]{2}|[^\W\d_]\d", match.group())
        and not re.fullmatch(r"\d+(?:st|nd|rd|th|s|am|pm|km|kg)?", match.group())
    ]
    return found


def _date_faults(draft: Draft, cited: list[Cited]) -> list[str]:
    pairs = [(one.turn, one.text) for one in cited]
    if not dated(draft.content, pairs):
        return ["date: one that the quotes do not give"]
    if draft.happened is not None and not hull_agrees(draft.happened, pairs):
        return ["date: it happened at another time by the quotes"]
    if draft.valid_from is not None and not start_agrees(draft.valid_from, pairs):
        return ["date: it holds from another time by the quotes"]
    return []


def _english_faults(draft: Draft, cited: list[Cited]) -> list[str]:
    said = said_in(cited)
    if not said:
        return ["hypothetical: what is quoted is a joke, a task or taken back"]
    told = [one for one in said if not is_question(one.text)]
    if not told:
        return ["hypothetical: a question asserts nothing"]
    subject = _subject_names(draft, cited)
    names = subject.union(*(speaker_of(one.turn) for one in cited))
    filling = filling_faults(draft, said, subject, names)
    if is_verbatim(draft, cited, said):
        return filling + verbatim_faults(draft, subject, told)
    content = [draft.content[first:last] for first, last in sentences(draft.content)]
    reading = read_all(content, subject, said)
    return faults(reading, names) + filling + _support_faults(draft, told, names)


def _subject_names(draft: Draft, cited: Sequence[Cited]) -> frozenset[str]:
    """The stems of the record's subject; all names of the speaker where it is a speaker."""
    names = names_of(draft.subject)
    for one in cited:
        speaker = speaker_of(one.turn)
        if names & speaker or names <= FIRST:
            return names | speaker if len(names) == 1 or names <= speaker else names
    return names


def _support_faults(draft: Draft, told: list[Said], names: frozenset[str]) -> list[str]:
    stems: dict[str, str] = {}
    general: set[str] = set()
    spoken = {token.word for one in told for token in tokens_of(one.text)}
    bearing = {w.GENERAL[word] for word in spoken if word in w.GENERAL}
    for token in tokens_of(draft.content):
        if token.word in w.GENERAL:
            general.add(w.GENERAL[token.word])
        passed = (
            token.word in stop_words("en") | _PLAIN_SUBJECTS
            or token.word == "'s"
            or token.word[0].isdigit()
        )
        if not passed:
            key = w.key("like") if token.word in w.DISLIKES else w.key(token.word)
            if key not in w.NEUTRAL and w.stem(token.word) not in names and key not in _TIMES:
                stems[token.word] = key
    theirs = {w.key(word) for word in spoken} | {
        w.key("like") for word in spoken if word in w.DISLIKES | {"stand", "bear"}
    }
    if any(not w.BEARS[sort] & bearing for sort in general):
        return ["support: it says more in general than the quotes bear"]
    wanted = set(stems.values())
    if w.key("like") in wanted and not {w.key("like"), w.key("great")} & theirs:
        return ["support: the quotes express no such liking"]
    theirs.add(w.key("like"))
    if wanted and len(wanted & theirs) < SUPPORT * len(wanted):
        return ["support: too few of its words are in the quotes"]
    own = {w.key(word) for word in _words(draft.content)}
    value = {w.key(word) for word in value_words(draft)} - names
    if value and len(value & own) < SUPPORT * len(value):
        return ["support: its value is not in the record"]
    return []


_TIMES = frozenset(w.key(word) for word in TIME_NAMES)


def _foreign_support(content: str, cited: list[Cited], language: str | None) -> float:
    """The share of a record's terms that the quotes have; names of speakers left out."""
    names = {fold(word) for one in cited for word in _words(one.turn.speaker or "")}
    own = {term for term in analyse(content, language).terms if term.split("|")[-1] not in names}
    theirs = {term for one in cited for term in analyse(one.text, language).terms}
    return len(own & theirs) / len(own) if own else 0.0
