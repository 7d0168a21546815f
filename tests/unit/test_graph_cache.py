"""The cache of active graphs: refresh, eviction, threads, fork."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from graph_rows import Changes, row, vector

from cofire.graph.active import ActiveGraph
from cofire.graph.cache import GraphCache


def at(revision: int, rows: int = 1) -> ActiveGraph:
    items = [row(n + 1, terms={1: 1}, vector=vector(1, n)) for n in range(rows)]
    return ActiveGraph.empty(2).apply(Changes(revision=revision, rows=items))


def test_refreshes_only_when_the_revision_moved() -> None:
    cache = GraphCache()
    calls: list[ActiveGraph | None] = []

    def refresh(held: ActiveGraph | None) -> ActiveGraph:
        calls.append(held)
        return at(len(calls))

    first = cache.get("a", 1, refresh)
    assert cache.get("a", 1, refresh) is first
    second = cache.get("a", 2, refresh)
    assert calls == [None, first]
    assert cache.peek("a") is second
    assert cache.peek("b") is None


def test_a_lower_revision_refreshes_too() -> None:
    """A restored backup has a lower revision than the graph held."""
    cache = GraphCache()
    cache.get("a", 9, lambda _: at(9))
    assert cache.get("a", 4, lambda _: at(4)).revision == 4


def test_the_least_recently_used_goes_first() -> None:
    size = at(1, 50).nbytes
    cache = GraphCache(budget=2 * size + size // 2)
    for key in ("a", "b"):
        cache.get(key, 1, lambda _: at(1, 50))
    cache.get("a", 1, lambda _: at(1, 50))
    cache.get("c", 1, lambda _: at(1, 50))
    assert cache.peek("b") is None
    assert cache.peek("a") is not None
    assert cache.nbytes == 2 * size
    assert len(cache) == 2


def test_a_graph_above_the_budget_is_kept_while_it_is_the_last() -> None:
    cache = GraphCache(budget=0)
    cache.get("a", 1, lambda _: at(1))
    assert cache.peek("a") is not None
    cache.get("b", 1, lambda _: at(1))
    assert cache.peek("a") is None
    with pytest.raises(ValueError, match="budget"):
        GraphCache(budget=-1)


def test_a_failed_refresh_keeps_the_old_snapshot() -> None:
    cache = GraphCache()
    old = cache.get("a", 1, lambda _: at(1))

    def fail(_: ActiveGraph | None) -> ActiveGraph:
        raise ConnectionError("store is gone")

    with pytest.raises(ConnectionError):
        cache.get("a", 2, fail)
    assert cache.peek("a") is old
    assert cache.get("a", 2, lambda _: at(2)).revision == 2


def test_what_was_discarded_during_a_refresh_does_not_come_back() -> None:
    cache = GraphCache()

    def refresh(_: ActiveGraph | None) -> ActiveGraph:
        cache.discard("a")
        return at(1)

    assert cache.get("a", 1, refresh).revision == 1
    assert cache.peek("a") is None
    cache.get("a", 1, lambda _: at(1))
    cache.clear()
    assert len(cache) == 0
    assert cache.nbytes == 0


def test_one_thread_refreshes_while_others_wait_for_its_result() -> None:
    cache = GraphCache()
    running, most, calls = 0, 0, 0
    guard = threading.Lock()

    def refresh(_: ActiveGraph | None) -> ActiveGraph:
        nonlocal running, most, calls
        with guard:
            running, calls = running + 1, calls + 1
            most = max(most, running)
        time.sleep(0.02)
        with guard:
            running -= 1
        return at(1)

    found: list[ActiveGraph] = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.get("a", 1, refresh))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, calls) == (1, 1)
    assert len({id(graph) for graph in found}) == 1


def test_readers_never_see_half_a_refresh() -> None:
    """Row n has term 1 and a link from n - 1: every snapshot must agree with itself."""
    cache = GraphCache()
    newest = 400
    stop = threading.Event()
    faults: list[str] = []

    def refresh(held: ActiveGraph | None) -> ActiveGraph:
        graph = held or at(1)
        number = graph.revision + 1
        changes = Changes(
            revision=number,
            rows=[row(number, terms={1: 1}, vector=vector(1, number))],
            links=[(number - 1, number, 0, 0.5, number)],
            removed_items=[number - 20] if number > 20 else [],
        )
        return graph.apply(changes)

    def read() -> None:
        while not stop.is_set():
            graph = cache.peek("a")
            if graph is None:
                continue
            live = np.flatnonzero(graph.column("live"))
            terms = graph.term_rows(1).rows.tolist()
            dense = sorted(graph.dense(np.array([1.0, 0.0]))[0].tolist())
            if not live.tolist() == terms == dense or len(live) != min(graph.revision, 20):
                faults.append(f"revision {graph.revision}: {len(live)} {len(terms)} {len(dense)}")
            if len(graph.neighbours(live, inward=False)) != len(live) - 1:
                faults.append(f"revision {graph.revision}: links")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for revision in range(1, newest):
        cache.get("a", revision + 1, refresh)
    stop.set()
    for reader in readers:
        reader.join()
    assert faults == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_not_stuck_on_the_parents_locks() -> None:
    cache = GraphCache()
    cache.get("a", 1, lambda _: at(1))
    reader, writer = os.pipe()
    with cache._lock, cache._slots["a"].lock:
        child = os.fork()
        if child == 0:
            graph = cache.get("a", 2, lambda held: (held or at(1)).apply(Changes(revision=2)))
            os.write(writer, str(graph.revision).encode())
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 10) == b"2"
    os.close(reader)
    assert os.waitpid(child, 0)[1] == 0
