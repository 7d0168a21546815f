"""Asking a language model about turns: as often as it takes within bounds, at what cost, and what
became of every turn. No store and no lock: a call may take minutes."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cofire.consolidation.budgets import Budget, Spent
from cofire.consolidation.drafts import ConceptDraft, Draft, RelationDraft, Turn
from cofire.consolidation.fencing import estimated_tokens, fenced
from cofire.consolidation.replies import PARSERS, Parsed
from cofire.errors import GenerationError, PromptTooLongError
from cofire.models.generator import Generated, Generator
from cofire.models.prompt_files import Prompt

NONSENSE = 2
"""How often the same turns are asked about again after an answer that cannot be used."""

WARMER = 0.3
"""Added to the temperature each time: at 0 the model would give the same answer again."""

_DRAFT = re.compile(r"D([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bounds of one request, in tokens: `turns` of all turns together (≥ 1), `turn` of the text of
    each (longer ones are cut between sentences), `answer` of the answer, and `longest_answer`,
    which an answer about a single turn may grow to when it was cut off. `timeout` is in seconds
    per attempt, None: the generator's own."""

    turns: int = 6_000
    turn: int = 1_000
    answer: int = 2_000
    longest_answer: int = 4_000
    timeout: float | None = None


ROOM = Room()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a model said about turns, and what that took.

    `dropped` counts what was left out of the answers (see `Parsed`), `failures` the answers that
    could not be used, by reason. `calls` of the model, `retries` of them on account of a failure,
    `spent` what they took, `seconds` waited for them. `unanswered` are labels of turns that no
    usable answer covers. `stopped` says why the rest was not asked: "budget", "error" (`error`,
    which no other question to the same endpoint would have escaped), or None.
    """

    drafts: tuple[Draft, ...] = ()
    concepts: tuple[ConceptDraft, ...] = ()
    relations: tuple[RelationDraft, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    unanswered: tuple[str, ...] = ()
    stopped: str | None = None
    error: GenerationError | None = None

    @property
    def calls(self) -> int:
        return self.spent.calls


def ask(
    generator: Generator,
    prompt: Prompt,
    turns: Sequence[Turn],
    budget: Budget,
    *,
    room: Room = ROOM,
) -> Asked:
    """Asks the model the prompt about the turns, in as many requests as there is need for.

    An answer that is cut off, a prompt that is too long and a request that is declined are asked
    again with half the turns each, not with the same. About a single turn, a cut answer is given
    more room once, and warmth: what makes an answer endless is mostly that it repeats itself. An
    answer that is nonsense is asked for `NONSENSE` more times. Causes of drafts ("D2") count over
    all the drafts returned. GenerationError ends the asking and is in the result;
    ConfigurationError is raised.
    """
    asking = _Asking(generator, prompt, budget, room)
    waiting = deque(_Part(turns=group) for group in _groups(turns, room))
    while waiting:
        part = waiting.popleft()
        try:
            waiting.extendleft(reversed(asking.about(part)))
        except _StoppedError:
            asking.unanswered += [turn.label for rest in (part, *waiting) for turn in rest.turns]
            break
    return asking.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Turns to ask about: how often that brought nothing usable, and the room for the answer in
    tokens (None: the usual)."""

    turns: tuple[Turn, ...]
    nonsense: int = 0
    answer: int | None = None


class _StoppedError(Exception):
    """No more is to be asked."""


class _Asking:
    """The sum of what has been asked and answered so far."""

    def __init__(self, generator: Generator, prompt: Prompt, budget: Budget, room: Room) -> None:
        self._generator = generator
        self._prompt = prompt
        self._schema = json.dumps(prompt.schema)
        self._budget = budget
        self._room = room
        self._drafts: list[Draft] = []
        self._concepts: list[ConceptDraft] = []
        self._relations: list[RelationDraft] = []
        self._dropped: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._asked: list[Spent] = []
        self._retries = 0
        self._seconds = 0.0
        self._stopped: str | None = None
        self._error: GenerationError | None = None
        self.unanswered: list[str] = []

    def about(self, part: _Part) -> list[_Part]:
        """Asks about the turns of a part; what is to be asked in its place, in order. Raises
        _StoppedError where nothing more is to be asked."""
        try:
            answer = self._answer(part)
        except PromptTooLongError:
            return self._smaller(part, "too long")
        parsed = PARSERS[self._prompt.name](
            answer.text, part.turns, answer.finish, self._generator.name, str(self._prompt)
        )
        self._dropped.update(parsed.dropped)
        if parsed.failed is None:
            self._take(parsed)
            return []
        if parsed.failed == "cut":
            return self._smaller(part, "cut", self._more_room(part))
        if parsed.failed == "refusal":
            return self._smaller(part, "refusal")
        again = replace(part, nonsense=part.nonsense + 1)
        return self._failed(parsed.failed, part, [again] if part.nonsense < NONSENSE else [])

    def result(self) -> Asked:
        return Asked(
            drafts=tuple(self._drafts),
            concepts=tuple(self._concepts),
            relations=tuple(self._relations),
            dropped=dict(sorted(self._dropped.items())),
            failures=dict(sorted(self._failures.items())),
            retries=self._retries,
            spent=Spent(
                calls=len(self._asked),
                input_tokens=sum(spent.input_tokens for spent in self._asked),
                output_tokens=sum(spent.output_tokens for spent in self._asked),
                cost=sum(spent.cost for spent in self._asked),
            ),
            seconds=self._seconds,
            unanswered=tuple(self.unanswered),
            stopped=self._stopped,
            error=self._error,
        )

    def _answer(self, part: _Part) -> Generated:
        """The model's answer, paid for."""
        mark, text = fenced(part.turns, self._room.turn)
        request = self._prompt.about(
            {"mark": mark, "turns": text},
            max_tokens=part.answer or self._room.answer,
            temperature=part.nonsense * WARMER,
            timeout=self._room.timeout,
        )
        texts = (request.system, request.user, self._schema)
        held = self._budget.hold(sum(map(estimated_tokens, texts)), request.max_tokens)
        if held is None:
            self._stopped = "budget"
            raise _StoppedError
        answer: Generated | None = None
        try:
            answer = self._generator.generate(request)
            self._seconds += answer.seconds
        except PromptTooLongError:
            raise
        except GenerationError as exc:
            self._stopped, self._error = "error", exc
            self._failures["error"] += 1
            raise _StoppedError from exc
        finally:
            self._asked.append(self._budget.settle(held, answer))
        return answer

    def _take(self, parsed: Parsed) -> None:
        before = len(self._drafts)
        for draft in parsed.drafts:
            self._drafts.append(replace(draft, causes=_shifted(draft.causes, before)))
        self._concepts += parsed.concepts
        self._relations += parsed.relations

    def _more_room(self, part: _Part) -> int | None:
        """Tokens for another answer about a single turn, once."""
        longest = self._room.longest_answer
        return longest if part.answer is None and longest > self._room.answer else None

    def _smaller(self, part: _Part, reason: str, more_room: int | None = None) -> list[_Part]:
        middle = len(part.turns) // 2
        if middle:
            halves = [_Part(turns=part.turns[:middle]), _Part(turns=part.turns[middle:])]
            return self._failed(reason, part, halves)
        if more_room is None:
            return self._failed(reason, part, [])
        wider = replace(part, answer=more_room, nonsense=part.nonsense + 1)
        return self._failed(reason, part, [wider])

    def _failed(self, reason: str, part: _Part, instead: list[_Part]) -> list[_Part]:
        self._failures[reason] += 1
        self._retries += len(instead)
        if not instead:
            self.unanswered += [turn.label for turn in part.turns]
        return instead


def _groups(turns: Sequence[Turn], room: Room) -> list[tuple[Turn, ...]]:
    """The turns, in order, in groups that fit into one request each."""
    groups: list[list[Turn]] = []
    filled = 0
    for turn in turns:
        tokens = min(estimated_tokens(turn.content), room.turn)
        if not groups or filled + tokens > room.turns:
            groups.append([])
            filled = 0
        groups[-1].append(turn)
        filled += tokens
    return [tuple(group) for group in groups]


def _shifted(causes: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Causes with drafts counted from `by` on; a turn's label is left as it is."""
    matches = ((cause, _DRAFT.fullmatch(cause)) for cause in causes)
    return tuple(f"D{int(match[1]) + by}" if match else cause for cause, match in matches)
