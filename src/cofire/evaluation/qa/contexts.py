"""A material, remembered: the stores that its questions are asked of.

It is remembered once. Each way to sleep works on a copy, and so does each arm and seed that learns,
so that no column of a table sees what another did. Copies are made when they are first asked for,
and everything is gone when the bench is closed: gigabytes of data take the room of one material.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from cofire.answering.context import compose
from cofire.answers import Context
from cofire.evaluation.arms import TRUSTED
from cofire.evaluation.benches import opened
from cofire.evaluation.qa.arms import FULL, KEEPING_STEPS, Arm
from cofire.evaluation.qa.tasks import Material, Task
from cofire.fences import fenced_line
from cofire.memory import Memory
from cofire.models import Embedder
from cofire.types import Recall, Recalled
from cofire.workings import Workings


class _State(NamedTuple):
    """How a store came to be, before anybody teaches it."""

    slept: bool
    forgetting: bool


class MaterialBench:
    """One material in temporary stores; `ids` are those of its messages by their keys, once it is
    remembered."""

    def __init__(self, material: Material, embedder: Embedder | str | None = None) -> None:
        self.material = material
        self.ids: dict[str, str] = {}
        self._embedder = embedder
        self._stack = ExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="cofire-"))
        self._folder = Path(folder)
        self._bases: dict[_State, Path] = {}
        self._opened: dict[tuple[_State, str], tuple[Memory, Workings]] = {}
        self._whole: dict[int, tuple[Recall, Context]] = {}

    def __enter__(self) -> MaterialBench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the stores."""
        self._opened.clear()
        self._stack.close()

    def workings(self, arm: Arm, seed: int = 0) -> Workings:
        """Those of the memory that an arm asks; one that learns has its own for each seed. To be
        called by one thread at a time; what it returns may be used by several."""
        return self._at(arm, seed)[1]

    def memory(self, arm: Arm, seed: int = 0) -> Memory:
        """The memory itself."""
        return self._at(arm, seed)[0]

    def whole(self, arm: Arm, window: int) -> tuple[Recall, Context]:
        """Everything that was said as a context: the newest that fits into `window` wordpieces,
        in order of time. `left_out` of the context counts what is cut from its beginning."""
        if window not in self._whole:
            memory = self.memory(arm)
            items = [memory.get(id) for id in self.ids.values()]
            items.sort(key=lambda item: (item.time, item.id))
            hits = [
                Recalled(id=item.id, content=item.content, score=float(place), item=item)
                for place, item in enumerate(items)
            ]
            context = compose(self._newest(hits, 0), budget=None, count=memory.count_tokens)
            room = len(hits)
            while context.tokens > window and room:
                room = min(room - 1, int(room * window / context.tokens))
                kept = self._newest(hits, len(hits) - room)
                context = compose(kept, budget=None, count=memory.count_tokens)
            kept = self._newest(hits, len(hits) - room)
            self._whole[window] = kept, replace(context, left_out=len(hits) - room)
        return self._whole[window]

    def _newest(self, hits: Sequence[Recalled], first: int) -> Recall:
        return Recall(id="", query="", items=tuple(hits[first:]), profile=FULL, tokens=0)

    def _at(self, arm: Arm, seed: int) -> tuple[Memory, Workings]:
        state = _State(arm.slept, arm.forgetting or not arm.slept)
        pupil = f"{arm.name}, {seed}" if arm.learn else ""
        if (state, pupil) not in self._opened:
            path = self._folder / f"{len(self._opened)}.db"
            shutil.copyfile(self._base(state), path)
            workings = opened(path, self._embedder, (TRUSTED,))
            memory = self._stack.enter_context(Memory(workings))
            for space in workings.spaces.all():  # no question is to pay for the first look
                workings.recaller.graph(space)
            self._opened[state, pupil] = memory, workings
        return self._opened[state, pupil]

    def embed(self, arm: Arm, task: Task) -> None:
        """Have a question's vector at hand, so that no arm is slower for being the first."""
        workings = self.workings(arm)
        text = workings.encoder.clean(task.question)
        workings.recaller.asked(workings.spaces.all(), text, self.now(task))

    def now(self, task: Task) -> datetime:
        """When a question is asked."""
        return task.asked or self.material.now

    def evidence(self, task: Task) -> tuple[str, ...]:
        """The ids of the memories that the answer rests on."""
        return tuple(dict.fromkeys(self.ids[key] for key in task.evidence if key in self.ids))

    def _base(self, state: _State) -> Path:
        """The file of a store in that state. Nobody has it open, so that it holds everything."""
        if state not in self._bases:
            path = self._folder / f"{state.slept:d}{state.forgetting:d}.base"
            if state.slept:
                shutil.copyfile(self._base(_State(slept=False, forgetting=True)), path)
                self._sleep(path, state)
            else:
                self._remember(path)
            self._bases[state] = path
        return self._bases[state]

    def _remember(self, path: Path) -> None:
        with Memory(opened(path, self._embedder)) as memory:
            receipt = memory.remember(self.material.messages)
        for message, id in zip(self.material.messages, receipt.ids, strict=True):
            self.ids[str(message.key)] = id

    def _sleep(self, path: Path, state: _State) -> None:
        """Consolidate once, as a whole and without a language model."""
        steps = () if state.forgetting else KEEPING_STEPS
        with Memory(opened(path, self._embedder)) as memory:
            memory.consolidate(steps, generator="none", now=self.material.now)


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many memories an answer rests on, and the ids of those that its context shows."""

    wanted: int
    found: tuple[str, ...]

    @property
    def all(self) -> bool:
        return 0 < self.wanted == len(self.found)

    @property
    def any(self) -> bool:
        return bool(self.found)


@dataclass(frozen=True, slots=True)
class Shown:
    """The ids of memories that a context shows in their own words."""

    ids: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def by(cls, context: Context) -> Shown:
        """Memories that are among the entries and whose line stands in the text: what a reader of
        the prompt sees, not what was recalled. A record that rests on a memory does not show it."""
        return cls(
            frozenset(
                entry.id
                for entry in context.entries
                if entry.section == "said"
                and fenced_line(f"{entry.label}) {entry.text}", untrusted=entry.untrusted)
                in context.text
            )
        )

    def of(self, wanted: tuple[str, ...]) -> Evidence:
        """How much of the evidence it shows."""
        return Evidence(len(wanted), tuple(id for id in wanted if id in self.ids))
