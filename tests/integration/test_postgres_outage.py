"""PostgreSQL goes away, refuses, or lets others go first: every call ends well or says why."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from cofire.errors import (
    InputError,
    StoreBusyError,
    StoreError,
    StoreUnavailableError,
)
from cofire.store import Store, open_store
from cofire.store.records import SpaceInfo
from cofire.store.session import Query, Session, of_space, of_spaces
from cofire.testing import an_item, make_space
from cutting_proxy import CuttingProxy, cutting_proxy
from postgres_fixtures import make_store
from postgres_server import Address, Database, PostgresServer, database_at, fresh_database

TENANT = "SELECT set_config('cofire.tenant', %s, false)"


def run(session: Session, sql: str) -> None:
    session.all(Query(lambda _: text(sql)))


def contents(store: Store, space: SpaceInfo) -> list[str]:
    return sorted(row.content for row in store.iterate_items(space))


@contextmanager
def raw(database: Database, space: SpaceInfo) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of the application's role that sees the space's tenant, in a transaction."""
    with psycopg.connect(database.app_url) as connection:
        connection.execute(TENANT, (str(space.tenant_id),))
        yield connection


def hold(connection: psycopg.Connection[tuple[object, ...]], space: SpaceInfo) -> None:
    connection.execute(
        "SELECT FROM cofire.spaces WHERE tenant = %s AND id = %s FOR UPDATE",
        (space.tenant_id, space.space_id),
    )


@pytest.fixture
def store(postgres_store: Database) -> Iterator[Store]:
    with open_store(postgres_store.app_url, busy_timeout=5.0) as store:
        yield store


# The server goes


class Load:
    """Threads that write, and what became of each call."""

    def __init__(self, store: Store, spaces: list[SpaceInfo], threads: int = 4) -> None:
        self.acknowledged: list[str] = []
        self.failed: list[tuple[str, Exception]] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(store, spaces, name))
            for name in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, store: Store, spaces: list[SpaceInfo], name: int) -> None:
        index = 0
        while not self._stop.is_set():
            content = f"{name}-{index}"
            try:
                store.append(spaces[(name + index) % len(spaces)], [an_item(content)])
                self.acknowledged.append(content)
            except Exception as exc:  # noqa: BLE001 - looked at by the test
                self.failed.append((content, exc))
            index += 1

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60.0)
        assert not any(thread.is_alive() for thread in self._threads)


def test_a_wait_longer_than_the_outage_hides_it(own_server: PostgresServer) -> None:
    with fresh_database(own_server.address) as database:
        make_store(database)
        with open_store(database.app_url, busy_timeout=30.0, durability="full") as store:
            spaces = [make_space(store, identity=name) for name in ("a", "b")]
            load = Load(store, spaces)
            for outage in (0.0, 0.4, 0.0):
                time.sleep(0.4)
                own_server.kill()
                time.sleep(outage)
                own_server.start()
            time.sleep(0.4)
            own_server.stop()  # an orderly end, too
            own_server.start()
            time.sleep(0.3)
            load.end()
            assert load.failed == []
            assert len(load.acknowledged) > 50
            found = [row for space in spaces for row in contents(store, space)]
            assert sorted(found) == sorted(load.acknowledged)
            assert store.check("default") == []


def test_a_wait_shorter_than_the_outage_says_so_in_time(own_server: PostgresServer) -> None:
    with fresh_database(own_server.address) as database:
        make_store(database)
        with open_store(database.app_url, busy_timeout=0.5, durability="full") as store:
            space = make_space(store)
            load = Load(store, [space])
            time.sleep(0.3)
            own_server.kill()
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                store.revision(space)
            assert time.monotonic() - began < 2.0
            time.sleep(0.7)
            own_server.start()
            time.sleep(0.5)
            load.end()
            assert load.failed
            assert {type(exc) for _, exc in load.failed} <= {StoreUnavailableError, StoreBusyError}
            found = contents(store, space)
            assert len(set(found)) == len(found)
            assert set(load.acknowledged) <= set(found)
            unknown = {name for name, exc in load.failed if "is not known" in str(exc)}
            assert set(found) - set(load.acknowledged) <= unknown
            assert store.check("default") == []


def test_a_server_that_starts_up_is_waited_for(own_server: PostgresServer) -> None:
    with fresh_database(own_server.address) as database:
        make_store(database)
        with open_store(database.app_url, busy_timeout=0.0) as store:
            space = make_space(store)
            own_server.stop()
            own_server.start()
            # The pool's connection is dead, and says nothing about the server that is there.
            assert store.append(space, [an_item("at once")]).revision == 1
            own_server.stop()
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                store.revision(space)
            own_server.start()


# A COMMIT without an answer


@pytest.fixture
def proxy(own_server: PostgresServer) -> Iterator[CuttingProxy]:
    with (
        tempfile.TemporaryDirectory() as folder,
        cutting_proxy(own_server.address, Path(folder)) as proxy,
    ):
        yield proxy


@contextmanager
def behind(
    proxy: CuttingProxy, server: PostgresServer, *, wait: float = 60.0, pool_size: int = 8
) -> Iterator[Store]:
    """A store whose connections the proxy can cut."""
    with fresh_database(server.address) as database:
        make_store(database)
        url = database_at(proxy.address, database.name).app_url + "&pooler=transaction"
        with open_store(url, durability="full", busy_timeout=wait, pool_size=pool_size) as store:
            yield store


def test_a_commit_without_answer_takes_place_once(
    own_server: PostgresServer, proxy: CuttingProxy
) -> None:
    with behind(proxy, own_server, pool_size=1) as store:
        space = make_space(store)
        written: list[str] = []
        for cut in ("lost", "kept", "late", "dead") * 3:
            for kind in (cut, "nothing cut"):
                if kind == cut:
                    proxy.arm(cut, pause=0.3)
                written.append(f"{len(written)} {kind}")
                done = store.append(space, [an_item(written[-1])])
                assert done.revision == done.numbers[0] == len(written)
        assert proxy.cuts == 12
        assert contents(store, space) == sorted(written)
        # What belongs to no space yet, too.
        for cut in ("lost", "kept"):
            proxy.arm(cut)
            assert make_space(store, identity=cut, tenant=f"new {cut}").space_id == 1
        assert store.check("default") == []


def test_a_crash_that_gives_a_transactions_number_to_another(
    own_server: PostgresServer, proxy: CuttingProxy
) -> None:
    def crash() -> None:
        own_server.kill()
        own_server.start()
        with psycopg.connect(own_server.address.url("postgres"), autocommit=True) as other:
            for _ in range(50):
                other.execute("SELECT pg_current_xact_id()")  # committed, each under a new number

    with behind(proxy, own_server) as store:
        space = make_space(store)
        for turn in range(3):
            proxy.arm("lost", meanwhile=crash)
            store.append(space, [an_item(f"turn {turn}")])
            assert contents(store, space) == [f"turn {number}" for number in range(turn + 1)]


def test_a_commit_of_which_nothing_can_be_known(
    own_server: PostgresServer, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cofire.store.postgres.LEAST_LOOK", 0.5)
    with behind(proxy, own_server, wait=0.5) as store:
        space = make_space(store)
        proxy.arm("kept", meanwhile=own_server.stop)
        with pytest.raises(StoreUnavailableError, match=r"is not known\. Look before you repeat"):
            store.append(space, [an_item("perhaps")])
        own_server.start()
        assert contents(store, space) == ["perhaps"]


# Others hold what a call needs


def test_the_lock_wait_is_bounded(postgres_store: Database) -> None:
    with ExitStack() as stack:
        patient, hasty, third = (
            stack.enter_context(open_store(postgres_store.app_url, busy_timeout=wait))
            for wait in (10.0, 0.3, 0.0)
        )
        space = make_space(patient)
        with raw(postgres_store, space) as other:
            hold(other, space)
            for store, most in ((hasty, 0.7), (third, 0.3)):
                began = time.monotonic()
                with pytest.raises(StoreBusyError, match="COFIRE_WRITE_WAIT"):
                    store.append(space, [an_item()])
                assert time.monotonic() - began < most
                assert store.counts(space).items == 0  # readers never wait
            timer = threading.Timer(0.3, other.rollback)
            timer.start()
            assert patient.append(space, [an_item()]).revision == 1
            timer.join()
        assert third.append(space, [an_item()]).revision == 2


def test_a_statement_that_takes_too_long_is_stopped(postgres_store: Database) -> None:
    with open_store(postgres_store.app_url, statement_timeout=0.2) as store:
        space = make_space(store)

        def sleep(session: Session) -> None:
            run(session, "SELECT pg_sleep(5)")

        for transaction in (store._backend.read, store._backend.write):
            began = time.monotonic()
            with pytest.raises(StoreBusyError, match="COFIRE_STATEMENT_TIMEOUT"):
                transaction(of_space(space), sleep)
            assert time.monotonic() - began < 1.0
        with pytest.raises(StoreBusyError, match="COFIRE_STATEMENT_TIMEOUT"):
            store._backend.glance(of_space(space), Query(lambda _: text("SELECT pg_sleep(5)")))
        assert store.append(space, [an_item()]).revision == 1


def test_a_paused_writer_does_not_hold_its_space_for_ever(postgres_store: Database) -> None:
    with (
        open_store(postgres_store.app_url, statement_timeout=0.3, busy_timeout=0.1) as stopped,
        open_store(postgres_store.app_url) as other,
    ):
        space = make_space(other)

        def pause(session: Session) -> None:
            run(session, "SELECT 1")
            time.sleep(0.6)
            run(session, "SELECT 1")

        with pytest.raises(StoreBusyError, match="let a transaction wait"):
            stopped._backend.write(of_space(space), pause)
        assert other.append(space, [an_item()]).revision == 1


def test_a_deadlock_is_run_again(postgres_store: Database, store: Store) -> None:
    one, two = (make_space(store, identity=name) for name in "ab")
    tries: list[threading.Thread] = []
    update = "UPDATE spaces SET created = created + 1 WHERE identity = 'b' RETURNING id"
    with psycopg.connect(postgres_store.admin_url) as other:
        other.execute("SET deadlock_timeout = '30s'")  # so that it is us who are stopped
        hold(other, two)

        def both() -> None:
            hold(other, one)
            other.rollback()

        def cross(session: Session) -> int:
            tries.append(threading.Thread(target=both))
            if len(tries) == 1:
                tries[0].start()
                time.sleep(0.05)
            run(session, update)
            return len(tries)

        assert store._backend.write(of_space(one), cross) == 2
        tries[0].join()
    assert store.refreshed(two).created == 1


def test_a_serialisation_failure_is_run_again_within_the_wait(store: Store) -> None:
    space = make_space(store)
    tries: list[float] = []
    fail = "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$"

    def work(session: Session) -> int:
        tries.append(time.monotonic())
        run(session, "UPDATE spaces SET created = created + 1 RETURNING id")
        if len(tries) < 4:
            session.cursor.execute(fail, ())
        return len(tries)

    assert store._backend.write(of_space(space), work) == 4
    assert store.refreshed(space).created == 1
    store._backend.wait = 0.5  # type: ignore[attr-defined]
    tries.clear()

    def never(session: Session) -> None:
        tries.append(time.monotonic())
        session.cursor.execute(fail, ())

    for transaction in (store._backend.write, store._backend.read):
        began = time.monotonic()
        with pytest.raises(StoreBusyError, match=r"0\.5 s"):
            transaction(of_space(space), never)
        assert time.monotonic() - began < 1.5
    assert 4 < len(tries) < 60


# Connections run out


def test_all_connections_of_the_process_are_in_use(postgres_store: Database) -> None:
    with open_store(postgres_store.app_url, busy_timeout=0.3, pool_size=2) as store:
        space = make_space(store)
        entered, leave = threading.Barrier(3), threading.Event()

        def stay(_: Session) -> None:
            entered.wait()
            leave.wait()

        threads = [
            threading.Thread(target=store._backend.read, args=(of_space(space), stay))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        entered.wait()
        with pytest.raises(StoreBusyError, match="COFIRE_POOL_SIZE"):
            store.revision(space)
        leave.set()
        for thread in threads:
            thread.join()
        assert store.revision(space) == 0


def test_the_server_has_no_connection_left(postgres_store: Database) -> None:
    with psycopg.connect(postgres_store.admin_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {postgres_store.name} CONNECTION LIMIT 4".encode())
        with ExitStack() as stack:
            patient = stack.enter_context(open_store(postgres_store.app_url, busy_timeout=10.0))
            space = make_space(patient)
            taken = [psycopg.connect(postgres_store.app_url) for _ in range(2)]
            with pytest.raises(StoreUnavailableError, match="max_connections"):
                open_store(postgres_store.app_url)
            entered, leave = threading.Event(), threading.Event()

            def stay(_: Session) -> None:
                entered.set()
                leave.wait()

            thread = threading.Thread(target=patient._backend.read, args=(of_space(space), stay))
            thread.start()
            entered.wait()
            patient._backend.wait = 0.3  # type: ignore[attr-defined]
            with pytest.raises(StoreUnavailableError, match=r"no connection left.*max_connections"):
                patient.revision(space)
            patient._backend.wait = 10.0  # type: ignore[attr-defined]
            timer = threading.Timer(0.3, taken[0].close)
            timer.start()
            assert patient.revision(space) == 0
            leave.set()
            thread.join()
            timer.join()
            taken[1].close()


# Refusals


def test_a_read_only_database_says_so(postgres_store: Database, store: Store) -> None:
    space = make_space(store)
    with psycopg.connect(postgres_store.admin_url, autocommit=True) as admin:
        admin.execute(
            f"ALTER DATABASE {postgres_store.name} SET default_transaction_read_only = on".encode()
        )
    store._backend._connections.renew()  # type: ignore[attr-defined]
    assert store.revision(space) == 0
    with pytest.raises(StoreUnavailableError, match="read-only"):
        store.append(space, [an_item()])


def test_what_is_refused_for_good_is_not_waited_for(
    postgres_server: Address, postgres_store: Database
) -> None:
    user = postgres_store.app_url.replace("cofire_app@", "nobody@")
    database = postgres_server.url("cofire_app", "no_such")
    for url, said in ((user, "refuses this user"), (database, "no such database")):
        with pytest.raises(StoreUnavailableError, match=said):
            open_store(url, busy_timeout=60.0)
    with open_store(postgres_store.app_url, busy_timeout=60.0) as store:
        space = make_space(store)
        with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as admin:
            name = postgres_store.name
            end_sessions(admin, name)
            admin.execute(f"ALTER DATABASE {name} RENAME TO {name}_moved".encode())
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError, match="no such database"):
                store.revision(space)
            assert time.monotonic() - began < 5.0
            admin.execute(f"ALTER DATABASE {name}_moved RENAME TO {name}".encode())
        assert store.revision(space) == 0


def end_sessions(admin: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Ends every session of a database, and waits until they are gone."""
    sessions = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"
    while admin.execute(sessions, (name,)).fetchone() != (0,):
        time.sleep(0.01)


# What `work` raises


def test_what_work_raises_rolls_back_and_is_not_repeated(store: Store) -> None:
    space = make_space(store)
    for error in (InputError("no"), KeyboardInterrupt(), ValueError("no"), SystemExit()):
        tries: list[int] = []

        def work(session: Session, error: BaseException = error, tries: list[int] = tries) -> None:
            tries.append(1)
            run(session, "UPDATE spaces SET created = 9 RETURNING id")
            raise error

        with pytest.raises(type(error)):
            store._backend.write(of_space(space), work)
        assert tries == [1]
        assert store.refreshed(space).created == 0
    assert store.append(space, [an_item()]).revision == 1


def test_a_statement_that_failed_unnoticed_is_not_acknowledged(store: Store) -> None:
    space = make_space(store)

    def work(session: Session) -> None:
        run(session, "UPDATE spaces SET created = 9 RETURNING id")
        with suppress(psycopg.Error):
            run(session, "SELECT 1 / 0")

    with pytest.raises(StoreError, match="nothing was kept"):
        store._backend.write(of_space(space), work)
    assert store.refreshed(space).created == 0


def test_closing_amid_work_lets_it_end(postgres_store: Database) -> None:
    store = open_store(postgres_store.app_url, pool_size=1)
    space = make_space(store)
    entered, leave = threading.Event(), threading.Event()
    said: list[object] = []

    def stay(session: Session) -> None:
        entered.set()
        leave.wait()
        run(session, "UPDATE spaces SET created = 9 RETURNING id")

    def wait_in_line() -> None:
        try:
            store.revision(space)
        except StoreError as exc:
            said.append(str(exc))

    threads = [
        threading.Thread(target=store._backend.write, args=(of_space(space), stay)),
        threading.Thread(target=wait_in_line),
    ]
    threads[0].start()
    entered.wait()
    threads[1].start()
    time.sleep(0.05)
    store.close()
    threads[1].join(5.0)
    assert [str(text).endswith("this store is closed; open it again") for text in said] == [True]
    leave.set()
    threads[0].join()
    with pytest.raises(StoreError, match="closed"):
        store.revision(space)
    store.close()
    with open_store(postgres_store.app_url) as store:
        assert store.refreshed(space).created == 9


def test_scopes_of_several_spaces_are_taken_in_order(store: Store) -> None:
    one, two = (make_space(store, identity=name) for name in "ab")
    done: list[int] = []

    def work(session: Session) -> int:
        run(session, "SELECT pg_sleep(0.001)")
        return 1

    def write(spaces: list[SpaceInfo]) -> None:
        done.extend(store._backend.write(of_spaces(spaces), work) for _ in range(30))

    threads = [threading.Thread(target=write, args=(both,)) for both in ([one, two], [two, one])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 60
