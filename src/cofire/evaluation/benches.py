"""Conversations as memories to be measured: each in a temporary store of its own."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cofire.interchange.locomo import Conversation, Question
from cofire.memory import Memory
from cofire.models import Embedder
from cofire.types import Progress
from cofire.workings import Workings, open_workings

SCORED = (1, 2, 3, 4)
"""Categories that have evidence to find; 5 asks for what the conversation does not hold."""
IDENTITY = "evaluation"


@dataclass(slots=True)
class Bench:
    """One conversation, remembered: its questions with their evidence as memory ids."""

    conversation: Conversation
    memory: Memory
    workings: Workings
    questions: tuple[Question, ...]
    evidence: tuple[tuple[str, ...], ...]
    session_of: dict[str, str]
    """By memory id, in the order of the conversation."""
    closeness: tuple[float, ...]
    """Cosine of the nearest evidence turn to each question."""
    now: datetime

    def asked(self) -> list[str]:
        """The questions' texts."""
        return [question.question for question in self.questions]


@contextmanager
def remembered(
    conversations: Sequence[Conversation],
    embedder: Embedder | str | None,
    told: Progress,
    *,
    slept: bool = False,
    database: str | None = None,
) -> Iterator[list[Bench]]:
    """A memory per conversation, for as long as the context lasts; `slept`: consolidated
    once, as a whole and without a language model. `database`: the URL of a PostgreSQL store, in
    which each is a tenant of its own and empty afterwards; None: SQLite files."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cofire-")))
        run = secrets.token_hex(4)
        benches = []
        for index, conversation in enumerate(conversations):
            if database is None:
                workings = opened(folder / f"{index}.db", embedder)
            else:
                workings = opened(database, embedder, tenant=f"evaluation {run} {index}")
            memory = stack.enter_context(Memory(workings))
            if database is not None:
                stack.callback(_leave, workings)
            bench = _bench(conversation, memory, workings)
            if slept:
                memory.consolidate(generator="none", now=bench.now)
            benches.append(bench)
            told(index + 1, len(conversations))
        yield benches


def _leave(workings: Workings) -> None:
    """Leaves nothing in a database that others use, too."""
    workings.log.flush()
    workings.store.forget_space(workings.spaces.own)


def opened(
    where: Path | str,
    embedder: Embedder | str | None,
    trusted: Sequence[str] = (),
    *,
    tenant: str = "default",
) -> Workings:
    """The workings of a store that may be lost: nothing waits for the disk."""
    from cofire.settings import load_settings

    name = embedder if isinstance(embedder, str) else None
    settings = load_settings(embedder=name).model_copy(update={"durability": "normal"})
    workings = open_workings(
        where, IDENTITY, None, (),
        tenant=tenant, create=True, vectors=True, redact=None, settings=settings,
        embedder=None if isinstance(embedder, str) else embedder, trusted=trusted,
    )  # fmt: skip
    workings.log.teaching = False  # what is learned is what an arm teaches
    return workings


@contextmanager
def copied(
    source: Path, embedder: Embedder | str | None, trusted: Sequence[str]
) -> Iterator[tuple[Memory, Workings]]:
    """A copy of a store that may be taught what it likes; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cofire-") as folder:
        path = Path(folder) / "copy.db"
        shutil.copyfile(source, path)
        workings = opened(path, embedder, trusted)
        with Memory(workings) as memory:
            yield memory, workings


def _bench(conversation: Conversation, memory: Memory, workings: Workings) -> Bench:
    messages = conversation.messages
    receipt = memory.remember(messages)
    ids = {
        str(message.metadata["dia_id"]): id
        for message, id in zip(messages, receipt.ids, strict=True)
    }
    sessions = {id: str(message.session) for message, id in zip(messages, receipt.ids, strict=True)}
    questions = tuple(
        question
        for question in conversation.questions
        if question.category in SCORED and question.evidence
    )
    texts = {str(message.metadata["dia_id"]): message.content for message in messages}
    times = [session.time for session in conversation.sessions if session.time is not None]
    return Bench(
        conversation=conversation,
        memory=memory,
        workings=workings,
        questions=questions,
        evidence=tuple(tuple(ids[dia] for dia in question.evidence) for question in questions),
        session_of=sessions,
        closeness=tuple(
            memory.similarity(question.question, [texts[dia] for dia in question.evidence])
            for question in questions
        ),
        now=max(times) + timedelta(days=1),
    )
