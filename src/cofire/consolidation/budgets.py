"""What a consolidation may spend on a language model, counted and never exceeded."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from cofire.models.generator import Generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Calls of the model, tokens sent and received, and what they cost by the prices given."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class Budget:
    """Limits on calls, tokens (sent and received together) and cost; None: no limit.

    Prices are for a million tokens, in any currency. Before a call the most that it may take is
    held back, so that calls running at once cannot exceed a limit together; afterwards what it did
    take is counted. A call that failed counts with the tokens it sent, because some endpoints
    charge for it. May be used from several threads.
    """

    def __init__(
        self,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        input_price: float = 0.0,
        output_price: float = 0.0,
    ) -> None:
        self._limits = (calls, tokens, cost)
        self._prices = (input_price / 1e6, output_price / 1e6)
        self._spent = Spent()
        self._held = Spent()
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spent:
        """What has been counted so far."""
        return self._spent

    def hold(self, input_tokens: int, output_tokens: int) -> Spent | None:
        """What a call may take, held back until `settle`; None where a limit would not bear it."""
        held = self._priced(input_tokens, output_tokens)
        with self._lock:
            expected = _sum(_sum(self._spent, self._held), held)
            tokens = expected.input_tokens + expected.output_tokens
            amounts = (expected.calls, tokens, expected.cost)
            if any(
                limit is not None and amount > limit
                for amount, limit in zip(amounts, self._limits, strict=True)
            ):
                return None
            self._held = _sum(self._held, held)
        return held

    def settle(self, held: Spent, answer: Generated | None) -> Spent:
        """Count a call: what the endpoint said it took, else what was held back for it; without an
        answer, what was sent. Gives what was counted."""
        sent = received = 0
        if answer is not None:
            sent, received = answer.input_tokens, answer.output_tokens
            received = received or (held.output_tokens if answer.text else 0)
        taken = self._priced(sent or held.input_tokens, received)
        with self._lock:
            self._held = _sum(self._held, held, -1)
            self._spent = _sum(self._spent, taken)
        return taken

    def _priced(self, input_tokens: int, output_tokens: int) -> Spent:
        cost = input_tokens * self._prices[0] + output_tokens * self._prices[1]
        return Spent(calls=1, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


def _sum(one: Spent, other: Spent, sign: int = 1) -> Spent:
    return Spent(
        calls=one.calls + sign * other.calls,
        input_tokens=one.input_tokens + sign * other.input_tokens,
        output_tokens=one.output_tokens + sign * other.output_tokens,
        cost=one.cost + sign * other.cost,
    )
