"""What became of one question, and the file that has one line for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from cofire.errors import FormatError


class OutcomeKey(NamedTuple):
    """Which question it was: of what arm, under what seed."""

    arm: str
    task: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question under one arm and seed; a line of outcomes.jsonl.

    `reason` as in `Answer`; `f1`, `bleu1` in [0, 1] (None: there is no answer to compare with);
    `right`: of a choice, of the oracle, of a question without an answer whether it was refused
    (None: only scores and the judge can say). `judged`: one per run of the judge, None where its
    reply was unusable. `evidence`: turns that the answer rests on, `evidence_found`: how many of
    them stand in the context. `confidence` in [0, 1], None where the profile has no gate. Tokens as
    the endpoint counted them (`judge_…`: of all runs of the judge), `context_tokens` in wordpieces;
    `cost` of the answer, without the judge's, by the prices in the settings, whether it was paid
    now or kept from before; `recall_ms` milliseconds up to the prompt, `seconds` of generation.
    `malformed`: why the model's reply was unusable, `failed`: why there was none ("": there was).
    """

    arm: str
    task: str
    material: str
    group: str
    seed: int
    question: str
    gold: str | None
    text: str
    abstained: bool
    reason: str
    unanswerable: bool
    f1: float | None = None
    bleu1: float | None = None
    right: bool | None = None
    judged: tuple[bool | None, ...] = ()
    judge_input_tokens: int = 0
    judge_output_tokens: int = 0
    evidence: int = 0
    evidence_found: int = 0
    confidence: float | None = None
    context_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    recall_ms: float = 0.0
    seconds: float = 0.0
    malformed: str = ""
    failed: str = ""

    @property
    def key(self) -> OutcomeKey:
        return OutcomeKey(self.arm, self.task, self.seed)


_NAMES = frozenset(field.name for field in fields(Outcome))


def outcome_line(outcome: Outcome) -> str:
    """The outcome as one line of JSON; lone surrogates of a model's text are escaped."""
    return json.dumps(asdict(outcome), allow_nan=False) + "\n"


def outcome_of(given: dict[str, Any]) -> Outcome:
    """The outcome of a line's JSON; what later versions add is passed over. Raises TypeError."""
    values = {name: value for name, value in given.items() if name in _NAMES}
    return Outcome(**{**values, "judged": tuple(values.get("judged", ()))})


def read_outcomes(path: Path) -> tuple[Outcome, ...]:
    """The outcomes of a file, the last of each question, in the order in which they first came.
    A line that was cut off by a kill is left out. Raises FormatError for any other line that is no
    outcome."""
    if not path.exists():
        return ()
    return latest(_read(path))


def latest(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The last outcome of each question, in the order in which they first came."""
    found: dict[OutcomeKey, Outcome] = {}
    for outcome in outcomes:
        found[outcome.key] = outcome
    return tuple(found.values())


def _read(path: Path) -> Iterator[Outcome]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield outcome_of(json.loads(line))
            except (ValueError, TypeError, AttributeError) as exc:
                raise FormatError(f"{path}, line {number}, is no outcome of a question") from exc
