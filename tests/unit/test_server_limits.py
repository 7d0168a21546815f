"""Token buckets: rates, bursts, bounded memory, and what counts as one address."""

from __future__ import annotations

import pytest

from cofire.errors import LimitedError
from cofire.server.access import Caller, local_caller
from cofire.server.limits import HELD, Buckets, Limits


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def caller(key: bytes | None = None, name: str = "ada") -> Caller:
    made = local_caller(name=name)
    return Caller(
        name=made.name, tenant=made.tenant, identities=None, users=None, projects=None,
        scopes=made.scopes, key=key,
    )  # fmt: skip


def test_a_bucket_gives_its_burst_and_then_its_rate(clock: Clock) -> None:
    buckets = Buckets(2.0, 3, clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    clock.seconds += 0.5
    assert buckets.take("a") == 0
    assert buckets.take("a") == pytest.approx(0.5)
    clock.seconds += 1_000
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_clock_that_goes_back_gives_nothing(clock: Clock) -> None:
    buckets = Buckets(1.0, 1, clock=clock)
    assert buckets.take("a") == 0
    clock.seconds -= 100
    assert buckets.take("a") == pytest.approx(1.0)


def test_memory_is_bounded_whoever_comes(clock: Clock) -> None:
    buckets = Buckets(1.0, 1, clock=clock)
    for number in range(HELD + 500):
        buckets.take(f"address {number}")
    assert len(buckets) == HELD


def test_a_key_has_a_limit_of_its_own_and_is_told_how_long_to_wait(clock: Clock) -> None:
    limits = Limits(rate=0.5, burst=1, failures=0, clock=clock)
    one, other = caller(b"1" * 16), caller(b"2" * 16)
    limits.admit(one)
    limits.admit(other)
    with pytest.raises(LimitedError, match="wait 2 seconds") as raised:
        limits.admit(one)
    assert raised.value.retry_after == pytest.approx(2.0)
    assert not raised.value.overloaded


def test_tokens_of_an_issuer_count_by_tenant_and_principal(clock: Clock) -> None:
    limits = Limits(rate=1, burst=1, failures=0, clock=clock)
    limits.admit(caller(name="token:ada"))
    limits.admit(caller(name="token:bob"))
    with pytest.raises(LimitedError):
        limits.admit(caller(name="token:ada"))


def test_no_limit_where_none_is_set(clock: Clock) -> None:
    limits = Limits(rate=0, burst=1, failures=0, clock=clock)
    for _ in range(1_000):
        limits.admit(caller())
        limits.failed("192.0.2.1")
        limits.require_few_failures("192.0.2.1")


@pytest.mark.parametrize(
    ("address", "neighbour", "stranger"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"),
        ("fe80::1%eth0", "fe80::2%eth0", "fe80:1::1"),
        ("", "", "192.0.2.1"),
        (":no address:", ":no address:", "::1"),
    ],
)
def test_failures_count_by_network(
    clock: Clock, address: str, neighbour: str, stranger: str
) -> None:
    limits = Limits(rate=0, burst=1, failures=2, clock=clock)
    for _ in range(2):
        limits.require_few_failures(address)
        limits.failed(address)
    with pytest.raises(LimitedError, match="wait 30 seconds"):
        limits.require_few_failures(neighbour)
    limits.require_few_failures(stranger)
    clock.seconds += 30
    limits.require_few_failures(neighbour)
