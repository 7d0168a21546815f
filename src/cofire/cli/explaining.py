"""Why a memory was recalled, in plain words.

Everything said here is read from the trace: how it was found (its anchors), which turns around it
or memories with the same subject passed activation on, and every addend of its score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from cofire.cli.output import say, shortened, table
from cofire.errors import NotFoundError
from cofire.types import Item, ItemTrace, Path, Recall

if TYPE_CHECKING:
    from cofire.memory import Memory

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "similarity": "what it means is close to the question",
        "bm25": "it has rare words of the question",
        "coverage": "it has many words of the question",
        "spread_coverage": "the question's words are in or around it",
        "similarity_before": "the turn before it is close to the question",
        "similarity_before_2": "the turn two before it is close to the question",
        "similarity_after": "the turn after it is close to the question",
        "similarity_after_2": "the turn two after it is close to the question",
        "session_bm25": "its conversation has the question's words",
        "session_similarity": "its conversation has a turn close to the question",
        "concepts": "it names the same things as other strong hits",
        "gist": "a gist of it, or a fact it supports, is close to the question",
        "kin": "it has words akin to the question's",
        "speaker": "it was said by the person asked about",
        "speaker_first": "it was said by the person named first",
        "in_range": "it is from, or tells of, the time asked about",
        "near_range": "it was said near the time asked about",
        "time_for_when": "it tells of a time, and the question asks when",
        "name_for_who": "it has a name, and the question asks for one",
        "question_only": "it only asks",
        "asks": "it asks something",
        "tells_time": "it tells of a time",
        "first_person": "the speaker tells of themselves",
        "embedded": "it has a vector to compare (a cosine of 0 counts as one half)",
        "keywords": "it has words of the question",
        "age": "it was said long ago",
        "passed_on": "strong hits around it or learned with it pass something on",
        "activation": "activation came to it over turns and concepts",
        "pagerank": "much in the memory leads to it",
        "importance": "it was marked as important",
        "recency": "it was said lately",
        "linked": "it is linked to another hit",
        "cue": "it answered a question like this one before",
        "association": "it was used together with a strong hit before",
    }
)
"""What each term of a score says of a memory; `cofire.retrieval.features.TERMS` has their names."""

_GIVERS = {
    "cue": "a question that it answered before",
    "coactivation": "a memory that was used together with it",
}
_STEPS = {2: "two ", 3: "three "}
PASSED_ON = 3
"""Turns that passed activation on, named for each memory."""
SHOWN = 0.0005
"""Contributions below this would print as zero."""
QUOTED = 56
"""Columns of a quotation."""


class Explainer:
    """Explains the items of one recall that has a trace. `memory` finds the turns around them."""

    def __init__(self, recall: Recall, memory: Memory) -> None:
        if recall.trace is None:
            raise ValueError("this recall was made without explain=True")
        self._recall = recall
        self._trace = recall.trace
        self._memory = memory
        self._known: dict[str, Item | None] = {hit.id: hit.item for hit in recall}

    def print(self, place: int) -> None:
        """Everything about one item: how it was found, what was passed on, all terms."""
        item = self._trace.items[place]
        say(("Why: ", "bold"), f"{self.found(place)}.", indent=4, hang=2)
        for sentence in self.passed_on(place, limit=PASSED_ON):
            say(sentence, indent=6, hang=2)
        rows = [
            (
                f"{term.contribution:+.3f}",
                f"{term.value:.3f} × {term.weight:.3f}",
                MEANINGS.get(term.name, term.name),
            )
            for term in item.terms
            if abs(term.contribution) >= SHOWN
        ]
        table([*rows, (f"{item.score:.3f}", "", "in all")], indent=6, right=frozenset({0, 1}))

    def found(self, place: int) -> str:
        """'Found by its meaning and by its words ("moons", "Jupiter")'"""
        item = self._trace.items[place]
        shared = self.shared_words(place)
        quoted = f" ({', '.join(f'“{word}”' for word in shared)})" if shared else ""
        ways = []
        if "dense" in item.anchors:
            ways.append("by its meaning")
        if "lexical" in item.anchors:
            ways.append(f"by its words{quoted}")
        if not ways:
            return "Found only over its links; by itself it does not stand out"
        return f"Found {' and '.join(ways)}"

    def shared_words(self, place: int, limit: int = 5) -> list[str]:
        """Words of the memory that the question has too, as they stand in it."""
        from cofire.encoding.analysis import analyse

        text = self._recall[place].content
        wanted = set(self._trace.terms)
        words: dict[str, str] = {}
        for token in analyse(text).tokens:
            if token.term in wanted:
                words.setdefault(token.term, text[token.start : token.end])
        return list(words.values())[:limit]

    def reasons(self, place: int, limit: int) -> list[tuple[float, str]]:
        """What spoke most for it: (2.41, "what it means is close to the question")."""
        terms = [term for term in self._trace.items[place].terms if term.contribution > 0]
        return [(term.contribution, MEANINGS.get(term.name, term.name)) for term in terms[:limit]]

    def passed_on(self, place: int, *, limit: int) -> Iterator[str]:
        """Which turns or memories gave activation, most first:
        '+0.36 from the turn after it (Juno: “Galileo probably said it too.”)'."""
        item = self._trace.items[place]
        told = {item.id}
        for path in item.paths:
            giver = self._look(path.via[0])
            if giver is None or giver.id in told:
                continue
            told.add(giver.id)
            who = giver.speaker or giver.role
            text = shortened(giver.content, QUOTED)
            yield (
                f"{path.activation:+.2f} from {self._where(item, path, giver)} "
                f"({f'{who}: ' if who else ''}“{text}”)"
            )
            if len(told) > limit:
                return

    def _where(self, item: ItemTrace, path: Path, giver: Item) -> str:
        """ "the turn before it" """
        if path.type != "temporal":
            return _GIVERS.get(path.type, "a memory of the same things")
        own = self._look(item.id)
        steps = _STEPS.get(len(path.via) - 1, "")
        if own is None or own.id == giver.id:
            return "a part of the same text"
        before = (giver.time, giver.id) < (own.time, own.id)
        return f"the turn {steps}{'before' if before else 'after'} it"

    def _look(self, id: str) -> Item | None:
        if id not in self._known:
            self._known[id] = None
            with suppress(NotFoundError):  # a part of a long text, or forgotten meanwhile
                self._known[id] = self._memory.get(id)
        return self._known[id]
