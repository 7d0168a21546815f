"""How use changes the strength of a link: learning rules as pure functions.

A strength is a fold over the log of events: `apply` is one step of it, the same for an event that
happens now and for one that is replayed. It is plain float64 arithmetic on Python numbers, so the
same events in the same order give the same bits on the same machine, and within 1e-12 on any
other (`2 ** x` is the C library's). `plasticity_reference` has readable twins.

Cofire's own rule is Atamaia's asymptotic one with credit, decay, rejection and a daily cap; the
papers' rules are `Rule`s too (`RULES`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from types import MappingProxyType
from typing import Literal, NamedTuple

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
"""Times are µs since 1970, UTC; a quota's day is `time // DAY_US`."""

SIGNALS = ("used", "explicit", "cited", "opened", "background", "retrieved", "similar")
"""What an event rests on: feedback on what was used; a call to strengthen; a citation in a
generated answer; two results opened; a consolidation step; mere co-retrieval; mere likeness of two
texts. A rule that says nothing of "similar", which came later, gives it no rate."""


class LinkState(NamedTuple):
    """What the fold knows of a link.

    strength: in [0, 1] as of `last`; what decayed since is not taken off yet (`current` does).
    coactivations, rejections: events with positive and with negative credit.
    last: µs of the last change. tick: how many co-retrievals the space had seen then (HeLa-Mem's
    clock). day: the day, `µs // DAY_US`, that `moved` speaks of: by how much each principal moved
    the strength on it, sorted by principal ("" where none was named).
    """

    strength: float
    coactivations: int
    last: int
    tick: int
    rejections: int
    day: int
    moved: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Constants of a learning rule.

    kind: "asymptotic" S + (1 - S)·α·credit; "linear" S + α·credit; "hela_mem" S + η·α·credit
        with retention per co-retrieval instead of per time.
    alpha: rate of every signal, in [0, 1]; 0 switches the signal off. For "linear" the step, for
        "hela_mem" a factor to `eta`.
    alpha_rejected: rate at which a negative credit weakens, in [0, 1], whatever the signal.
    graded: whether the size of a credit counts, or only its sign (the papers know no credit).
    initial: strength that the first positive event creates a link at, in [0, 1]. Above 0 it is
        all that this event does (Atamaia, section 3.4).
    half_life_days: days in which an unused strength halves, > 0; None: no decay by time.
    cap_per_day: most that one principal moves one link on one day, up and down added up, in
        (0, 1]; None: no cap.
    links_per_item: most learned links that may lead to an item, ≥ 1 (K); None: no bound.
    retention, eta: HeLa-Mem's, see `hela_mem`; in [0, 1].
    cue_alpha: rate of links from a question to what answered it, for the signal with the
        highest rate, in [0, 1]; 0: no cues are learned. See `cue_rule`.
    cue_fan: exponent ≥ 0; a question's credit is divided by (items used) ** cue_fan.
    most_cues: most cues in a space, ≥ 0.
    window_gaps, window_least_seconds, window_most_seconds: see `coactivation_window`.

    Raises:
        ValueError: a constant is out of its range.
    """

    name: str
    kind: Literal["asymptotic", "linear", "hela_mem"]
    alpha: Mapping[str, float]
    alpha_rejected: float = 0.2
    graded: bool = True
    initial: float = 0.0
    half_life_days: float | None = 180.0
    cap_per_day: float | None = 0.2
    links_per_item: int | None = 15
    retention: float = 0.995
    eta: float = 0.02
    cue_alpha: float = 0.5
    cue_fan: float = 0.5
    most_cues: int = 2000
    window_gaps: float = 5.0
    window_least_seconds: float = 60.0
    window_most_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name must not be empty")
        if self.kind not in ("asymptotic", "linear", "hela_mem"):
            raise ValueError(f"kind must be asymptotic, linear or hela_mem, got {self.kind!r}")
        object.__setattr__(self, "alpha", {"similar": 0.0, **self.alpha})
        if set(self.alpha) != set(SIGNALS):
            raise ValueError(f"alpha must have a rate for each of {', '.join(SIGNALS)}")
        for signal, rate in self.alpha.items():
            _check_share(f"alpha of {signal}", rate)
        for name in ("alpha_rejected", "initial", "retention", "eta", "cue_alpha"):
            _check_share(name, getattr(self, name))
        if self.half_life_days is not None:
            _check_positive("half_life_days", self.half_life_days)
        if self.cap_per_day is not None and not 0.0 < self.cap_per_day <= 1.0:
            raise ValueError(f"cap_per_day must be in (0, 1] or None, got {self.cap_per_day}")
        if self.links_per_item is not None and self.links_per_item < 1:
            raise ValueError(f"links_per_item must be ≥ 1 or None, got {self.links_per_item}")
        if not (math.isfinite(self.cue_fan) and self.cue_fan >= 0.0):
            raise ValueError(f"cue_fan must be a finite number ≥ 0, got {self.cue_fan}")
        if self.most_cues < 0:
            raise ValueError(f"most_cues must be ≥ 0, got {self.most_cues}")
        _check_positive("window_gaps", self.window_gaps)
        _check_positive("window_least_seconds", self.window_least_seconds)
        _check_positive("window_most_seconds", self.window_most_seconds)
        if self.window_least_seconds > self.window_most_seconds:
            raise ValueError("window_least_seconds must not be above window_most_seconds")
        object.__setattr__(self, "alpha", MappingProxyType(dict(self.alpha)))


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value}")


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be a positive number, got {value}")


COFIRE_RULE = Rule(
    name="cofire",
    kind="asymptotic",
    alpha={
        "used": 0.3,  # two uses pass ½: a judgement on this very recall is the best evidence
        "explicit": 0.1,  # Atamaia's rate; it names a pair without a question it answered
        "cited": 0.15,  # half of used: an answer can cite what it did not need
        "opened": 0.05,  # Atamaia's rate for what is only inferred from behaviour
        "background": 0.05,  # Atamaia's
        "retrieved": 0.0,  # off: rehearsing what was retrieved cost 5.8 points of R@30
        "similar": 0.05,  # a candidate link (Atamaia, section 3.7): below what is pruned
    },
)
"""The default. A rejection (0.2) weighs less than a use, so one dissent does not undo a habit;
180 days: half a year of disuse halves; 0.2 a day: one principal needs three days to pass ½; K = 15
is Synapse's."""

HELA_MEM_RULE = Rule(
    name="hela_mem",
    kind="hela_mem",
    alpha={**dict.fromkeys(SIGNALS, 1.0), "similar": 0.0},
    alpha_rejected=0.0,
    graded=False,
    half_life_days=None,
    cap_per_day=None,
    links_per_item=None,
    cue_alpha=0.0,
    most_cues=0,
)
"""HeLa-Mem (arXiv 2604.16839, eq. 1): η = 0.02, retention 0.995. The paper knows one signal, to be
in the retrieval set together; every signal counts as that. A new link starts at 0 (the paper's
"small weights" are those of consecutive turns)."""

ATAMAIA_RULE = replace(
    HELA_MEM_RULE,  # as to what no paper has: rejection, size of credit, decay, caps, cues
    name="atamaia",
    kind="asymptotic",
    alpha={
        "used": 0.1,  # an agent's own word, as explicit
        "explicit": 0.1,
        "cited": 0.05,  # inferred, as background
        "opened": 0.05,  # mechanism 3, specified without a rate: inferred, as background
        "background": 0.05,
        "retrieved": 0.05,  # mechanism 2: appeared in the same window of interactions
    },
    initial=0.5,
)
"""Atamaia, sections 3.4 and 4.2: 0.1 explicit, 0.05 background, links start at 0.5 and only grow.
The event that creates a link counts as a co-activation here (the paper: count 0)."""

ECHOMCP_RULE = replace(
    ATAMAIA_RULE,
    name="echomcp",
    kind="linear",
    alpha={**dict.fromkeys(SIGNALS, 0.1), "similar": 0.0},
)
"""EchoMCP, section 4.6: S ← min(1, S + 0.1) for every pair co-activated. It gives no strength for
a new link; 0.5 is Atamaia's, and its "maximum in only 5 reinforcements" (section 5.2) needs it."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for rule in (COFIRE_RULE, HELA_MEM_RULE, ATAMAIA_RULE, ECHOMCP_RULE)}
)


def cue_rule(rule: Rule) -> Rule:
    """The rule by which links from a cue move: `rule` with rates scaled so that its strongest
    signal has `cue_alpha`, that is α_cue(signal) = cue_alpha · α(signal) / max α."""
    top = max(rule.alpha.values())
    scale = rule.cue_alpha / top if top > 0.0 else 0.0
    return replace(
        rule, alpha={signal: min(1.0, rate * scale) for signal, rate in rule.alpha.items()}
    )


# -- One equation each ---------------------------------------------------------------------------


def decayed(strength: float, elapsed_us: int, half_life_days: float | None) -> float:
    """S · 2^(-Δt / h): what is left of `strength` after `elapsed_us` µs without change.

    Decay over a and then b is decay over a + b. Time that runs backwards, and no half-life, leave
    it alone.
    """
    if half_life_days is None or elapsed_us <= 0:
        return strength
    return float(strength * 2.0 ** (-elapsed_us / (half_life_days * DAY_US)))


def reinforced(strength: float, alpha: float, credit: float) -> float:
    """min(1, S + (1 - S)·α·credit), Atamaia's asymptotic rule (section 3.4; credit is ours, 1
    there). From 0.5 at α = 0.1 it passes 0.9 at the 16th step."""
    return min(1.0, strength + (1.0 - strength) * alpha * credit)


def weakened(strength: float, alpha: float, credit: float) -> float:
    """S·(1 - α·|credit|): the anti-Hebbian step, towards 0 as `reinforced` goes towards 1. None of
    the papers has one (Atamaia lists it as future work)."""
    return max(0.0, strength * (1.0 - alpha * abs(credit)))


def linear(strength: float, step: float) -> float:
    """min(1, S + step), EchoMCP's rule (Atamaia paper, section 4.6; step 0.1)."""
    return min(1.0, strength + step)


def hela_mem(
    weight: float, ticks_elapsed: int, active: bool, retention: float = 0.995, eta: float = 0.02
) -> float:
    """min(1, ρ^n · w + η·1[active]): HeLa-Mem (arXiv 2604.16839, eq. 1) over n = `ticks_elapsed`
    retrievals, the pair in the last of them if `active`.

    The paper calls 0.995 a decay rate λ and multiplies by 1 - λ; its code multiplies by 0.995, so
    `retention` is that. A pair always active would reach η / (1 - ρ) = 4, hence the code's cap.
    """
    kept = weight * retention ** max(0, ticks_elapsed)
    return min(1.0, kept + eta) if active else kept


# -- The fold ------------------------------------------------------------------------------------


def apply(
    rule: Rule,
    state: LinkState | None,
    credit: float,
    signal: str,
    time: int,
    *,
    principal: str | None = None,
    trusted: bool = False,
    tick: int = 0,
) -> LinkState:
    """The link after one event: decay to `time`, move by the rule, keep within the cap, count.

    `state` None: no link yet. `credit` in [-1, 1] is of the pair (`credit.pair_credits`). `time`
    is µs; one before the link's last change counts as that (time never runs backwards, nor does
    `tick`). A principal moves the strength by at most `cap_per_day` a day, up and down added up;
    what is over is lost, though the event still counts. A `trusted` one has no cap and uses up
    none. Credit 0, or a signal whose rate is 0, changes nothing at all.

    Raises:
        ValueError: the credit is outside [-1, 1] or not a number; the signal is unknown.
    """
    if not -1.0 <= credit <= 1.0:
        raise ValueError(f"a credit must be in [-1, 1], got {credit}")
    rate = rule.alpha.get(signal)
    if rate is None:
        raise ValueError(f"the signal must be one of {', '.join(SIGNALS)}, got {signal!r}")
    if credit == 0.0 or rate == 0.0:
        return state or LinkState(0.0, 0, time, tick, 0, time // DAY_US, ())
    before, coactivations, rejections = 0.0, 0, 0
    moved: tuple[tuple[str, float], ...] = ()
    if state is not None:
        _, coactivations, last, last_tick, rejections, moved_day, quotas = state
        time = max(time, last)
        tick = max(tick, last_tick)
        if time // DAY_US == moved_day:
            moved = quotas
        before = current(rule, state, time, tick)
    day = time // DAY_US
    after = _target(rule, before, credit, rate, coactivations == 0)
    if rule.cap_per_day is not None and not trusted and after != before:
        after, moved = _capped(before, after, rule.cap_per_day, moved, principal or "")
    if credit > 0.0:
        coactivations += 1
    else:
        rejections += 1
    return LinkState(after, coactivations, time, tick, rejections, day, moved)


def current(rule: Rule, state: LinkState, now: int, tick: int = 0) -> float:
    """The strength at `now` (µs) and `tick`, in [0, 1]: decay since the last change taken off."""
    strength = decayed(state.strength, now - state.last, rule.half_life_days)
    if rule.kind == "hela_mem":
        strength = hela_mem(strength, tick - state.tick, False, rule.retention)
    return strength


def _target(rule: Rule, before: float, credit: float, rate: float, first: bool) -> float:
    """Where the event would take the strength if there were no cap."""
    if not rule.graded:
        credit = 1.0 if credit > 0.0 else -1.0
    if credit < 0.0:
        return weakened(before, rule.alpha_rejected, credit)
    if first and before == 0.0 and rule.initial > 0.0:
        return rule.initial
    if rule.kind == "asymptotic":
        return reinforced(before, rate, credit)
    if rule.kind == "linear":
        return linear(before, rate * credit)
    return hela_mem(before, 0, True, rule.retention, rule.eta * rate * credit)


def _capped(
    before: float, after: float, cap: float, moved: tuple[tuple[str, float], ...], principal: str
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """(strength, quota) with the movement from `before` to `after` held within what `principal`
    has left of `cap`."""
    others = moved
    so_far = 0.0
    for quota in moved:
        if quota[0] == principal:
            others = tuple(other for other in moved if other is not quota)
            so_far = quota[1]
            break
    room = cap - so_far
    movement = abs(after - before)
    if movement < room:
        so_far += movement
    elif room > 0.0:
        after = min(1.0, before + room) if after > before else max(0.0, before - room)
        so_far = cap
    else:
        return before, moved
    if not others:
        return after, ((principal, so_far),)
    return after, tuple(sorted((*others, (principal, so_far))))


# -- The window of co-activation -----------------------------------------------------------------


def coactivation_window(times: Sequence[int], rule: Rule = COFIRE_RULE) -> int:
    """Width, in µs, of the window within which events of an interaction count as co-activated:
    `window_gaps` (5) times the median gap between its turns, within [`window_least_seconds`,
    `window_most_seconds`] (a minute, a day).

    So it spans about five turns at any pace, and one long pause does not widen it. Atamaia counts
    the last 10 interactions whatever their pace and lists "windows of variable width" as open; its
    window of 10 reaches five turns to either side. `times` are µs of the turns in any order; fewer
    than two have no pace, and get the least window.
    """
    ordered = sorted(times)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    least = int(rule.window_least_seconds * SECOND_US)
    if not gaps:
        return least
    most = int(rule.window_most_seconds * SECOND_US)
    return min(most, max(least, int(rule.window_gaps * median(gaps))))
