"""An answer under way: prepared, not yet generated. Waiting for the model takes no lock of a store,
so whoever serves many can wait for it elsewhere."""

from __future__ import annotations

from collections.abc import Generator as Pieces
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType

from cofire.answering.answer import Prepared, Spending, completed, learned, shortened
from cofire.answering.replies import LONGEST, Citations
from cofire.answers import Answer, Context
from cofire.errors import PromptTooLongError
from cofire.models.generator import Generated, Generator
from cofire.models.streaming import streamed
from cofire.workings import Workings

SHORTENINGS = 3
"""How often a context that the model's window does not hold is cut to half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teaching:
    """In whose name, and when, what is cited gains by it."""

    by: str | None
    now: datetime


class PendingAnswer:
    """What `Memory.answering` gives: `generate` (slow: the model's reply), then `finish` (short:
    the answer, and what it teaches). Or iterate over it, which does both piece by piece, and take
    `answer` from it. `close` ends what is left, also in the middle of a stream. For one thread at
    a time.
    """

    def __init__(
        self,
        workings: Workings,
        prepared: Prepared,
        model: Generator | None,
        *,
        owned: bool,
        teaching: Teaching | None,
        spending: Spending,
    ) -> None:
        """`owned`: the model was made for this answer alone, and is closed with it."""
        self._workings = workings
        self._prepared = prepared
        self._model = model
        self._owned = owned
        self._teaching = teaching
        self._spending = spending
        self._answer: Answer | None = None
        self._stream: Pieces[str, None, None] | None = None
        self._closed = False

    def __enter__(self) -> PendingAnswer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def prepared(self) -> Prepared:
        """What was recalled, and the request (None: no model is to be asked)."""
        return self._prepared

    @property
    def context(self) -> Context:
        """What the model is given."""
        return self._prepared.context

    def generate(self) -> Generated | None:
        """The model's reply; None where none is to be asked. Of a context that its window does not
        hold, half is tried. Raises GenerationError, ConfigurationError."""
        if self._model is None:
            return None
        self._prepared, reply = generated(self._workings, self._prepared, self._model)
        return reply

    def finish(self, reply: Generated | None) -> Answer:
        """The answer that the reply makes, with what its citations taught. Raises StoreError."""
        name = "extractive" if self._model is None else self._model.name
        answer = completed(self._prepared, reply, model=name, spending=self._spending)
        if self._teaching is not None:
            teaching = self._teaching
            answer = learned(self._workings, answer, by=teaching.by, now=teaching.now)
        self._answer = answer
        return answer

    @property
    def answer(self) -> Answer:
        """The whole answer; what is left of it is waited for. Once it is there no model is asked
        again. Raises as `generate` does."""
        if self._answer is not None:
            return self._answer
        if self._stream is None and not self._closed:
            return self.finish(self.generate())
        for _ in self._stream or ():
            pass
        if self._answer is None:
            raise RuntimeError("this answer was closed, or failed, before it was complete")
        return self._answer

    def __iter__(self) -> Iterator[str]:
        """The pieces of `Answer.marked` as the model writes them. What it writes before it turns
        out that it has no answer is shown like anything else; `answer` then says so."""
        if self._stream is None:
            self._stream = self._pieces()
        return self._stream

    def close(self) -> None:
        """Stop the model and let go of it; closing again does nothing."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        if self._owned and self._model is not None:
            self._model.close()

    def written(self) -> Pieces[str, None, Generated | None]:
        """As `generate`, in pieces of `Answer.marked`: what it returns is for `finish`. Nothing is
        told where no model is to be asked. To close it early ends the request, and so does a model
        that writes more than is read of a reply. Raises as `generate` does, also in the middle."""
        if self._model is None or self._prepared.request is None:
            return None
        citations = Citations(self._prepared.context.entries)
        whole: Generated | None = None
        text = ""
        with closing(self._streamed(self._model)) as parts:
            for part in parts:
                if isinstance(part, Generated):
                    whole = part
                    break
                text += part[: LONGEST + 1 - len(text)]
                if told := citations.feed(part[:LONGEST]):
                    yield told
                if len(text) > LONGEST:
                    whole = Generated(text=text, finish="length")
                    break
        if rest := citations.end():
            yield rest
        return whole

    def _pieces(self) -> Pieces[str, None, None]:
        if self._answer is not None:
            yield self._answer.marked
        elif self._model is None or self._prepared.request is None:
            yield self.finish(None).marked
        else:
            self.finish((yield from self.written()))

    def _streamed(self, model: Generator) -> Pieces[str | Generated, None, None]:
        """As `generate`, in pieces: a window that is too small shows before the first."""
        for left in range(SHORTENINGS, -1, -1):
            request = self._prepared.request
            if request is None:
                return
            try:
                yield from streamed(model, request)
            except PromptTooLongError:
                shorter = shortened(self._workings, self._prepared) if left else None
                if shorter is None:
                    raise
                self._prepared = shorter
            else:
                return


def generated(
    workings: Workings, prepared: Prepared, model: Generator
) -> tuple[Prepared, Generated | None]:
    """The model's reply (None: none is due), and what it was asked in the end: of a context that
    its window does not hold, half is tried. Raises GenerationError, ConfigurationError."""
    for left in range(SHORTENINGS, -1, -1):
        if prepared.request is None:
            break
        try:
            return prepared, model.generate(prepared.request)
        except PromptTooLongError:
            shorter = shortened(workings, prepared) if left else None
            if shorter is None:
                raise
            prepared = shorter
    return prepared, None
