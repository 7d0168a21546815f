"""One PostgreSQL store, real processes: what `test_store_processes` and `test_memory_processes`
promise of a file, of a database."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from test_learning_processes import LEARNER
from test_memory_processes import finish, fork, needs_fork, start, wait

from cofire import Memory
from cofire.errors import CofireError
from cofire.store import Store, open_store
from cofire.store.records import SpaceInfo
from cofire.testing import an_item, make_space
from forked_interpreter import Process
from postgres_fixtures import make_store
from postgres_server import APPLICATION, Database

WRITER = """
    import gc, sys
    from cofire.store import open_store
    from cofire.testing import an_item, make_space
    name, count = sys.argv[2], int(sys.argv[3])
    with open_store(path, durability="normal") as store:
        shared, own = make_space(store), make_space(store, identity=name)
        for index in range(count):
            done = store.append(shared, [an_item(f"{name}-{index}", session=name)])
            store.append(own, [an_item(f"own {name}-{index}")])
            if index % 10 == 9:
                store.forget(shared, [done.numbers[0]])
                store.update(own, index, an_item("changed"), now=5)
            say(index)
"""


def told(processes: list[Process]) -> list[list[str]]:
    return [finish(process) for process in processes]


class Follower:
    """What a reader knows of a space that only asks for what is new."""

    def __init__(self) -> None:
        self.revision = 0
        self.rows: dict[int, tuple[object, ...]] = {}
        self.links: dict[tuple[int, int], tuple[object, ...]] = {}

    def follow(self, store: Store, space: SpaceInfo) -> None:
        new = store.changes(space, self.revision)
        if new.rebuild:
            self.rows, self.links = {}, {}
        for number in new.removed_items:
            self.rows.pop(number, None)
            self.links = {pair: link for pair, link in self.links.items() if number not in pair}
        for pair in new.removed_links:
            self.links.pop(pair, None)
        self.rows |= {row[0]: row for row in new.rows}
        self.links |= {(link[0], link[1]): link for link in new.links}
        assert new.revision >= self.revision
        self.revision = new.revision


def test_four_writers_and_a_reader_that_follows(postgres_store: Database) -> None:
    names, count = "abcd", 120
    with open_store(postgres_store.app_url) as store:
        shared = make_space(store)
        follower, turns = Follower(), 0
        writers = [start(WRITER, postgres_store.app_url, name, count) for name in names]
        ends = threading.Thread(target=lambda: results.extend(told(writers)))
        results: list[list[str]] = []
        ends.start()
        while ends.is_alive():
            follower.follow(store, shared)
            turns += 1
            time.sleep(0.002)
        ends.join()
        assert results == [[str(index) for index in range(count)]] * 4
        follower.follow(store, shared)
        whole = Follower()
        whole.follow(store, shared)
        assert turns > 20
        assert vars(follower) == vars(whole)
        kept = {f"{name}-{index}" for name in names for index in range(count) if index % 10 != 9}
        rows = list(store.iterate_items(shared))
        assert {row.content for row in rows} == kept
        assert len(rows) == len(kept)
        assert follower.revision == 4 * count + 4 * count // 10  # each write has its own
        for name in names:
            assert store.counts(make_space(store, identity=name)).items == count
        assert store.check("default") == []


def test_many_make_the_same_things_at_once(postgres_store: Database) -> None:
    # Tenant, spaces, model and session are there only when one of them has made them.
    code = """
        import fakes
        sys.stdin.readline()
        model = fakes.StubEmbedder(name="M", dimension=16)
        with Memory.open(path, "agent", tenant="new", projects=["p"], embedder=model) as memory:
            for index in range(5):
                id = memory.remember(f"{sys.argv[2]}-{index}", session="one").id
                memory.remember(f"{sys.argv[2]}-{index} in p", project="p", session="one")
            recall = memory.recall(f"a question of {sys.argv[2]}")
            say(memory.feedback(recall, [recall.ids[0]]).counted)
    """
    makers = [start(code, postgres_store.app_url, name, stdin=subprocess.PIPE) for name in range(6)]
    time.sleep(1.0)  # they have imported what they need
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    assert told(makers) == [["True"]] * 6
    with open_store(postgres_store.app_url) as store:
        spaces = store.spaces("new")
        assert [store.counts(space).by_kind["episode"] for space in spaces] == [30, 30]
        assert sorted(space.space_id for space in spaces) == [1, 2]
        assert len({space.model for space in spaces}) == 1
        assert all(store.replay(space) == 0 for space in spaces)
        assert store.check("new") == []


def test_two_processes_learn_everything(postgres_store: Database) -> None:
    with open_store(postgres_store.app_url) as store:
        space = make_space(store)
        store.append(space, [an_item(str(number)) for number in range(1, 41)])
        learners = [start(LEARNER, postgres_store.app_url, name, 60) for name in ("a", "b")]
        numbers = [[int(line) for line in lines] for lines in told(learners)]
        assert all(lines == sorted(set(lines)) for lines in numbers)
        assert not set(numbers[0]) & set(numbers[1])
        events = list(store.iterate_events(space))
        assert sum(event.type == "feedback" for event in events) == 120
        assert store.replay(space) == 0
        assert store.check("default") == []


def test_two_processes_give_feedback_on_one_recall(postgres_store: Database) -> None:
    with Memory.open(postgres_store.app_url, embedder="hashing:64") as memory:
        memory.remember([f"note {index}" for index in range(5)])
        recall = memory.recall("note", 5)
        memory.stats()  # flushes the record
        code = """
            with Memory.open(path, embedder="hashing:64") as memory:
                ids = json.loads(sys.argv[3])
                done = memory.feedback(sys.argv[2], ids, by="one", interaction="the same")
                say(done.counted)
        """
        givers = [
            start(code, postgres_store.app_url, recall.id, json.dumps(recall.ids[:2]))
            for _ in range(3)
        ]
        counted = [lines[0] for lines in told(givers)]
        assert sorted(counted) == ["False", "False", "True"]
        assert memory.replay() == 0
        assert memory.check() == []


def test_records_of_several_spaces_in_opposite_orders(postgres_store: Database) -> None:
    code = """
        from cofire.store import open_store
        from cofire.testing import a_recall, make_space
        from cofire.ids import new_uuid7
        with open_store(path) as store:
            spaces = [make_space(store, identity=name) for name in sys.argv[2]]
            for index in range(100):
                store.record_recalls(
                    [(space, a_recall(uid=new_uuid7().bytes, numbers=(1,), time=index))
                     for space in spaces], teach=True)
    """
    with open_store(postgres_store.app_url) as store:
        spaces = [make_space(store, identity=name) for name in "abc"]
        for space in spaces:
            store.append(space, [an_item()])
        assert told([start(code, postgres_store.app_url, order) for order in ("abc", "cba")])
        with psycopg.connect(postgres_store.admin_url) as admin:
            deadlocks = admin.execute(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        assert deadlocks == (0,)
        for space in spaces:
            assert len(list(store.iterate_recalls(space))) == 200
            row = store.get(space, 1)
            assert row is not None
            assert row.access_count == 200
        assert store.check("default") == []


def test_two_processes_upgrade_at_once(postgres_database: Database) -> None:
    code = """
        from cofire.store.postgres_schema import upgrade
        say(upgrade(path, app_roles=[sys.argv[2]], partitions=2))
    """
    upgraders = [start(code, postgres_database.owner_url, APPLICATION) for _ in range(2)]
    said = sorted(line for lines in told(upgraders) for line in lines)
    assert [line.startswith("(None, ") for line in said] == [False, True]
    make_store(postgres_database)
    with open_store(postgres_database.app_url) as store:
        assert store.append(make_space(store), [an_item()]).revision == 1


def test_a_killed_writer_lets_others_go_on_at_once(postgres_store: Database) -> None:
    code = """
        from cofire.store import open_store
        from cofire.store.session import of_space
        from cofire.testing import make_space
        store = open_store(path)
        store._backend.write(of_space(make_space(store)), lambda _: (say("in"), time.sleep(60)))
    """
    with open_store(postgres_store.app_url) as store:
        space = make_space(store)
        holder = start(code, postgres_store.app_url)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "in\n"
        holder.kill()
        holder.communicate()
        began = time.monotonic()
        assert store.append(space, [an_item()]).revision == 1
        assert time.monotonic() - began < 5.0


# Forks


@needs_fork
def test_a_forked_child_and_its_parent_both_go_on(postgres_store: Database) -> None:
    with Memory.open(postgres_store.app_url, embedder="hashing:64") as memory:
        for index in range(5):
            memory.remember(f"parent before {index}")
        memory.recall("parent")  # a record waits, and a thread to write it

        def child() -> None:
            for index in range(10):
                id = memory.remember(f"child {index}").id
                assert memory.recall(f"child {index}", 1).ids == (id,)
            memory.forget(id)
            memory.close()

        process = fork(child)
        for index in range(10):
            memory.remember(f"parent {index}")
            memory.recall("parent")
        assert wait(process) == 0
        assert memory.stats().items == 5 + 9 + 10
        ids = [item.id for item in memory.list(limit=1000)]
        assert len(set(ids)) == len(ids)
        assert list(memory.check()) == []


@needs_fork
def test_forks_amid_working_threads_leave_the_parents_sessions_alone(
    postgres_store: Database,
) -> None:
    with open_store(postgres_store.app_url, busy_timeout=10.0) as store:
        space = make_space(store)
        stop, failed = threading.Event(), list[Exception]()
        written: list[int] = []

        def write() -> None:
            try:
                while not stop.is_set():
                    written.append(store.append(space, [an_item()]).revision)
            except CofireError as exc:
                failed.append(exc)

        def child() -> None:
            store.append(space, [an_item()])
            store.close()

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        with psycopg.connect(postgres_store.admin_url, autocommit=True) as admin:
            before = _sessions(admin)
            for _ in range(8):
                process = fork(child)
                assert wait(process) == 0
            assert before & _sessions(admin)
        stop.set()
        for thread in threads:
            thread.join()
        assert failed == []
        assert store.counts(space).items == len(written) + 8
        assert all(former < later for former, later in pairwise(sorted(written)))
        assert store.check("default") == []


def _sessions(admin: psycopg.Connection[tuple[object, ...]]) -> set[object]:
    sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    own = (admin.info.backend_pid,)
    return {pid for (pid,) in admin.execute(sessions + " AND pid <> %s", own).fetchall()}


# Closing


def test_nothing_is_left_open(postgres_store: Database, tmp_path: Path) -> None:
    code = """
        import os
        memory = Memory.open(path, embedder="hashing:64")
        memory.remember(["one", "two"])
        memory.recall("one", explain=True)
        memory.close()
        memory.close()
        for wrong in (path.replace("cofire_app@", "postgres@"), path + "&port=1"):
            try:
                Memory.open(wrong, embedder="hashing:32")
            except Exception as exc:
                say(type(exc).__name__)
        del memory
        gc.collect()
        if os.path.exists("/proc"):
            left = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                    if os.path.exists(f"/proc/self/fd/{fd}")]
            say([name for name in left if "socket" in name])
    """
    said = finish(start(code, postgres_store.app_url))
    assert said[:2] == ["ConfigurationError", "StoreUnavailableError"]
    assert said[2:] in ([], ["[]"])


@pytest.mark.parametrize("ending", ["", "del memory; gc.collect()"])
def test_a_program_that_forgets_to_close_ends_in_silence(
    postgres_store: Database, ending: str
) -> None:
    code = f"""
        memory = Memory.open(path, embedder="hashing:64")
        say(memory.remember("kept").id)
        {ending}
    """
    (id,) = finish(start(code, postgres_store.app_url))
    with Memory.open(postgres_store.app_url, embedder="hashing:64") as memory:
        assert memory.get(id).content == "kept"
