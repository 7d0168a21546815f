"""A conversation with a memory: both sides are remembered, what bears on each turn is recalled.

No screen is known here: `cofire chat` is one. What a person says is on disk before anything else is
done with it. What a model replies is remembered, too; a sentence of a memory that was only shown
again, and that there is no answer, are not: they would come back as if they had been said twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType

from cofire.answering.asking import asks
from cofire.answering.pending import PendingAnswer
from cofire.answers import Answer, AnswerOptions, Entry
from cofire.errors import InputError
from cofire.fences import fenced_line
from cofire.ids import new_uuid7
from cofire.memory import Memory
from cofire.models import Generator
from cofire.types import Deletion, Hydration, Learned, Recall, Receipt

RECENT = 8
"""Turns of the conversation that a model is shown beside what was recalled."""
LONGEST_RECENT = 1_000
"""Characters of each of them."""
OPENING_TOKENS = 400
"""Wordpieces of what the conversation opens with."""
BESIDE = 10
"""Memories beside the cited ones that feedback may name, best first."""

_TICK = timedelta(microseconds=1)


def system_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a reply rests on, or may have: `number` is that of its mark in the reply where it is
    `cited`; the others follow, best first. `ids` are the memories that feedback on it reaches."""

    number: int
    id: str
    text: str
    time: datetime
    offset: int | None
    speaker: str | None
    cited: bool
    untrusted: bool
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A turn of the conversation, of the person or the assistant; `untrusted`: text from outside
    has influenced it."""

    who: str
    text: str
    untrusted: bool = False


class Turn:
    """A turn of the person, stored by now (`receipt`), and the reply to it: iterate over it for the
    pieces of the reply; `answer` is there afterwards. A turn that only tells something has none
    where there is no model. Use it as a context manager: what is left of a reply is stopped."""

    def __init__(
        self, conversation: Conversation, receipt: Receipt, pending: PendingAnswer | None
    ) -> None:
        self.receipt = receipt
        self.answer: Answer | None = None
        self.reply: str | None = None
        """The id under which the reply is remembered, if it is."""
        self._conversation = conversation
        self._pending = pending

    @property
    def replies(self) -> bool:
        """Whether there is a reply to come."""
        return self._pending is not None

    def __iter__(self) -> Iterator[str]:
        if self._pending is None:
            return
        yield from self._pending
        self.answer = self._pending.answer
        self.reply = self._conversation.hear(self.answer)

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pending is not None:
            self._pending.close()


class Conversation:
    """One session of a person with an assistant that has `memory`.

    `model` writes the replies (None: the sentence that fits best is shown in their place); it may
    be changed between turns, and is closed by whoever made it. `speaker` is the person's name.
    `session` is the name of one that goes on; its last turns are read. `options` say how to answer.
    `clock` gives the times of turns, and none of them the same as another.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        model: Generator | None = None,
        speaker: str | None = None,
        session: str | None = None,
        options: AnswerOptions | None = None,
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        self.memory = memory
        self.model = model
        self.speaker = speaker
        self.opening: Hydration | None = None
        self.last: Answer | None = None
        self.turns = 0
        self._clock = clock
        self._latest: datetime | None = None
        self._options: AnswerOptions = options or {}
        self._recent: deque[Said] = deque(maxlen=RECENT)
        self._asked: tuple[str, datetime] | None = None
        self._gone: set[str] = set()
        self._citing: dict[str, tuple[str, ...]] = {}
        self.session = session or self._new_session()
        if session is not None:
            self._read_recent(session)

    def _new_session(self) -> str:
        return f"chat-{self._now():%Y%m%d-%H%M%S}-{str(new_uuid7())[-4:]}"

    def _read_recent(self, session: str) -> None:
        for item in reversed(self.memory.list(sessions=session, limit=RECENT).items):
            who = item.speaker or item.role or "user"
            self._recent.append(Said(who, item.content, item.untrusted))

    def _now(self) -> datetime:
        moment = self._clock()
        if self._latest is not None and moment <= self._latest:
            moment = self._latest + _TICK
        self._latest = moment
        return moment

    @property
    def recent(self) -> tuple[Said, ...]:
        """The turns that a model is shown, oldest first."""
        return tuple(self._recent)

    def open(self) -> Hydration:
        """What the conversation opens with; a model is shown it from now on. Raises StoreError."""
        self.opening = self.memory.hydrate(token_budget=OPENING_TOKENS, now=self._now())
        return self.opening

    def has_later(self) -> bool:
        """Whether there are memories of a later time than it is, which are not recalled."""
        return bool(self.memory.list(since=self._now(), limit=1).items)

    # Turns

    def turn(self, text: str) -> Turn:
        """Remember what the person says, and prepare the reply: without a model, only to what asks
        something. Raises InputError (nothing is stored), StoreError; what the model raises comes
        while the reply is read, and then the turn is stored all the same."""
        asked = self._now()
        receipt = self._remember(text, asked, role="user", speaker=self.speaker)
        before = self._shown_before()
        self._recent.append(Said(self.speaker or "user", text))
        pending = None
        if self.model is not None or asks(text):
            self._asked = (text, asked)
            self.last = None
            pending = self._pending(text, asked, before)
        return Turn(self, receipt, pending)

    def remember(self, text: str) -> Receipt:
        """Remember something without a reply. Raises InputError, StoreError."""
        receipt = self._remember(text, self._now(), role="user", speaker=self.speaker)
        self._recent.append(Said(self.speaker or "user", text))
        return receipt

    def hear(self, answer: Answer) -> str | None:
        """Take in a complete reply; gives the id under which it is remembered, if it is. What text
        from outside has influenced, in the context or in the turns before, is from outside
        itself: a model that repeats a page must not make it trusted."""
        self.last = answer
        outside = any(entry.untrusted for entry in answer.context.entries)
        outside = outside or any(said.untrusted for said in self._recent)
        self._recent.append(Said("assistant", answer.text, outside))
        if answer.extractive or answer.abstained:
            return None
        receipt = self._remember(
            answer.text, self._now(), role="assistant", model=answer.model, untrusted=outside
        )
        for id in receipt.ids:
            self._citing[id] = answer.cited
        return receipt.ids[0] if receipt.ids else None

    def _remember(
        self,
        text: str,
        time: datetime,
        *,
        role: str,
        speaker: str | None = None,
        model: str | None = None,
        untrusted: bool = False,
    ) -> Receipt:
        receipt = self.memory.remember(
            text, role=role, speaker=speaker, session=self.session, time=time, now=time,
            metadata=None if model is None else {"model": model}, untrusted=untrusted or None,
        )  # fmt: skip
        self.turns += 1
        return receipt

    def _pending(self, text: str, asked: datetime, before: str) -> PendingAnswer:
        """What was just said is no answer to itself, so only what is older is recalled."""
        options: AnswerOptions = {"by": self.speaker, **self._options, "now": asked, "until": asked}
        if self.model is None:
            return self.memory.answering(text, model="none", **options)
        options |= {"prompt": "chat", "gate": False, "recent": before}
        return self.memory.answering(text, model=self.model, **options)

    def _shown_before(self) -> str:
        """What a model is shown of the conversation: what it opened with, and the last turns."""
        lines = []
        if self.opening:
            lines.append("(What was in mind when it began:)")
            lines += [fenced_line(entry.line, bullet="- ") for entry in self.opening]
        lines += [
            fenced_line(f"{one.who}: {_cut(one.text)}", untrusted=one.untrusted)
            for one in self._recent
        ]
        return "\n".join(lines) or "(It begins now.)"

    # What a reply rests on, and what is said of it

    @property
    def sources(self) -> tuple[Source, ...]:
        """What the last reply cites, numbered as its marks are, and the best of what else was
        before it. Empty if there is no reply."""
        answer = self.last
        if answer is None:
            return ()
        entries = {entry.id: entry for entry in answer.context.entries}
        best = sorted(answer.recall, key=lambda hit: -hit.score)
        offsets = {hit.id: hit.item.offset for hit in best}
        beside = [hit.id for hit in best if hit.id in entries and hit.id not in answer.cited]
        ids = (*answer.cited, *beside[:BESIDE])
        return tuple(
            _source(number, entries[id], offsets, cited=number <= len(answer.cited))
            for number, id in enumerate(ids, start=1)
        )

    def source(self, number: int) -> Source:
        """The source of that number. Raises InputError where there is none, or it was forgotten."""
        sources = self.sources
        if not sources:
            raise InputError("there is no reply with sources yet; ask something first")
        if not 1 <= number <= len(sources):
            raise InputError(f"there is no source {number}; there are 1 to {len(sources)}")
        if sources[number - 1].id in self._gone:
            raise InputError(f"source {number} was forgotten")
        return sources[number - 1]

    def judge(self, outcome: float) -> Learned:
        """Say that the last reply was good (1) or bad (-1): what it cites gains or loses by it.
        Raises InputError where it cites nothing."""
        cited = [one.number for one in self.sources if one.cited and one.id not in self._gone]
        if not cited:
            raise InputError(
                "the last reply cites nothing that could learn from this; `/used NUMBER` says "
                "which of /sources would have helped"
            )
        return self.feedback(used=cited, outcome=outcome)

    def feedback(
        self, *, used: Sequence[int] = (), wrong: Sequence[int] = (), outcome: float = 1.0
    ) -> Learned:
        """Say by number which sources of the last reply helped, and which were wrong; in their
        place the others that it cites count as used. Raises InputError, StoreError."""
        if wrong and not used:
            used = [
                one.number
                for one in self.sources
                if one.cited and one.number not in wrong and one.id not in self._gone
            ]
        rejected = [id for number in wrong for id in self.source(number).ids]
        helped = [id for number in used for id in self.source(number).ids if id not in rejected]
        if self.last is None or not (helped or rejected):
            raise InputError("say the numbers of sources, as in 1 3; /sources lists them")
        return self.memory.feedback(
            self.last.recall, list(dict.fromkeys(helped)), list(dict.fromkeys(rejected)),
            outcome=outcome, by=self.speaker, interaction=self.session, now=self._now(),
        )  # fmt: skip

    def explain(self) -> Recall:
        """The last question recalled once more, with the trace of every score. Raises InputError
        where nothing was asked yet."""
        if self._asked is None:
            raise InputError("nothing was asked yet")
        text, asked = self._asked
        most = self._options.get("k", 60)
        return self.memory.recall(
            text, most, now=asked, until=asked, explain=True,
            profile=self._options.get("profile", "cofire"),
        )  # fmt: skip

    def forget(self, number: int) -> Deletion:
        """Delete a source for good, with the replies of this conversation that cite it; a model is
        shown nothing more of what was said so far. Raises InputError, NotFoundError, StoreError."""
        source = self.source(number)
        citing = [id for id, cited in self._citing.items() if source.id in cited]
        gone = self.memory.forget([source.id, *citing], now=self._now())
        self._gone |= {source.id, *citing}
        for id in citing:
            del self._citing[id]
        self._recent.clear()
        self.opening = None
        return gone


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_RECENT else f"{text[:LONGEST_RECENT]}…"


def _source(number: int, entry: Entry, offsets: Mapping[str, int | None], *, cited: bool) -> Source:
    """`offsets` of the calendars of the memories that were recalled."""
    recalled = entry.id in offsets
    ids = (entry.id,) if recalled else tuple(id for id in entry.evidence if id in offsets)
    return Source(
        number=number, id=entry.id, text=entry.quote, time=entry.time,
        offset=offsets.get(entry.id), speaker=entry.speaker, cited=cited,
        untrusted=entry.untrusted, ids=ids,
    )  # fmt: skip
