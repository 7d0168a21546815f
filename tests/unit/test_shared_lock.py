"""A lock held by many or by one alone."""

from __future__ import annotations

import threading
import time

import pytest

from cofire.errors import InputError
from cofire.models.forking import SharedLock


def test_many_hold_it_at_once_and_one_alone_waits_for_them() -> None:
    lock = SharedLock()
    inside = threading.Barrier(4, timeout=10)
    leave = threading.Event()
    told: list[str] = []

    def share() -> None:
        with lock.shared():
            inside.wait()
            assert leave.wait(10)
            told.append("shared")

    def alone() -> None:
        with lock.alone("it"):
            told.append("alone")

    sharing = [threading.Thread(target=share) for _ in range(3)]
    for thread in sharing:
        thread.start()
    inside.wait()  # three at once
    waiting = threading.Thread(target=alone)
    waiting.start()
    while not lock._state.waiting:
        time.sleep(0.001)
    late = threading.Thread(target=lambda: _note(lock, told))  # comes after who wants it alone
    late.start()
    leave.set()
    for thread in (*sharing, waiting, late):
        thread.join(10)
    assert told == ["shared"] * 3 + ["alone", "late"]


def _note(lock: SharedLock, told: list[str]) -> None:
    with lock.shared():
        told.append("late")


def test_who_holds_it_may_hold_it_again() -> None:
    lock = SharedLock()
    told: list[str] = []

    def alone() -> None:
        with lock.alone("it"):
            told.append("alone")

    with lock.shared():
        waiting = threading.Thread(target=alone)
        waiting.start()
        while not lock._state.waiting:
            time.sleep(0.001)
        with lock.shared():  # does not wait behind the other
            told.append("again")
    waiting.join(10)
    assert told == ["again", "alone"]


def test_who_holds_it_alone_may_share_it_with_nobody_else() -> None:
    lock = SharedLock()
    with lock.alone("it"), lock.shared():
        pass
    with lock.shared():
        pass


def test_wanting_it_alone_while_holding_it_is_refused_instead_of_hanging() -> None:
    lock = SharedLock()
    with lock.shared(), pytest.raises(InputError, match="re-embedding cannot be started"):
        lock.alone("re-embedding").__enter__()
    with lock.alone("it"), pytest.raises(InputError), lock.alone("again"):
        pass
    with lock.alone("it"):
        pass


def test_a_forked_child_starts_anew() -> None:
    lock = SharedLock()
    with lock.shared():
        lock.renew_after_fork()
        with lock.alone("it"):
            pass
    with lock.alone("it"):
        pass
