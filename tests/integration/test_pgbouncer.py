"""The whole product behind pgbouncer in transaction mode: each transaction has another session."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from cofire import Memory
from cofire.errors import ConfigurationError, StoreError
from cofire.settings import Settings
from cofire.store import open_store
from cofire.testing import an_item, make_space
from confirming import forget_all
from pgbouncer_server import pgbouncer
from postgres_fixtures import require_pgbouncer
from postgres_server import Address, Database, database_at

SERVER_CONNECTIONS = 2


@pytest.fixture
def pooler(postgres_server: Address) -> Iterator[Address]:
    require_pgbouncer()
    with pgbouncer(postgres_server, default_pool_size=SERVER_CONNECTIONS) as address:
        yield address


@pytest.fixture
def pooled(pooler: Address, postgres_store: Database) -> Database:
    return database_at(pooler, postgres_store.name)


def transacting(pooled: Database) -> str:
    return f"{pooled.app_url}&pooler=transaction"


def live(memory: Memory, tenant: str, other: str) -> None:
    """A short life of one tenant, which never meets another's."""
    ids = []
    for index in range(12):
        ids.append(memory.remember(f"{tenant} keeps note {index}", session=tenant).id)
        recall = memory.recall(f"keeps note {index}", 20)
        assert all(tenant in hit.content for hit in recall), recall
        assert len(recall) == index + 1
        assert memory.feedback(recall, [recall.ids[0]]).counted
    memory.update(ids[0], content=f"{tenant} changed it")
    memory.consolidate()
    memory.forget(ids[1])
    assert all(other not in item.content for item in memory.list(limit=100))
    assert memory.check() == []


def test_two_tenants_share_few_sessions(pooled: Database, postgres_store: Database) -> None:
    failed: list[BaseException] = []

    def run(tenant: str, other: str, identity: str) -> None:
        try:
            with Memory.open(
                transacting(pooled), identity, tenant=tenant, embedder="hashing:64",
                settings=Settings(pool_size=2),
            ) as memory:  # fmt: skip
                live(memory, tenant, other)
                if identity == "first":
                    forget_all(memory)
                    assert memory.stats().items == 0
        except BaseException as exc:  # noqa: BLE001 - raised again by the test
            failed.append(exc)

    threads = [
        threading.Thread(target=run, args=(tenant, other, identity))
        for tenant, other in (("apple", "pear"), ("pear", "apple"))
        for identity in ("first", "second")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for exc in failed:
        raise exc
    with open_store(postgres_store.app_url) as store:
        for tenant in ("apple", "pear"):
            spaces = {space.ref.identity: space for space in store.spaces(tenant)}
            assert set(spaces) == {"first", "second"}
            assert store.counts(spaces["second"]).by_kind["episode"] == 11
            assert store.replay(spaces["second"]) == 0


def test_nothing_stays_in_the_sessions(pooled: Database) -> None:
    with Memory.open(transacting(pooled), tenant="apple", embedder="hashing:64") as memory:
        live(memory, "apple", "pear")
        # Sessions of the pooler, as the next transaction of somebody else finds them.
        for _ in range(4):
            with psycopg.connect(pooled.app_url, autocommit=True, prepare_threshold=None) as other:
                seen = other.execute(
                    "SELECT current_setting('cofire.tenant', true), current_setting('search_path'),"
                    " current_setting('statement_timeout'), current_setting('lock_timeout'),"
                    " current_setting('idle_in_transaction_session_timeout'),"
                    " (SELECT count(*) FROM pg_prepared_statements),"
                    " (SELECT count(*) FROM pg_cursors),"
                    " (SELECT count(*) FROM pg_listening_channels()),"
                    " (SELECT count(*) FROM pg_locks"
                    "  WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
                    " pg_my_temp_schema()::int, (SELECT count(*) FROM cofire.items)"
                ).fetchone()
            assert seen is not None
            assert seen[0] in {None, ""}
            assert seen[1:] == ('"$user", public', "0", "0", "0", 0, 0, 0, 0, 0, 0)


def test_an_interrupted_transaction_leaks_nothing(pooled: Database) -> None:
    with open_store(transacting(pooled), statement_timeout=0.2) as store:
        space = make_space(store, tenant="apple")

        def fail(_: object) -> None:
            raise KeyboardInterrupt

        for transaction in (store._backend.write, store._backend.read):
            with pytest.raises(KeyboardInterrupt):
                transaction(store._scope(space), fail)
        with open_store(transacting(pooled)) as other:
            assert other.spaces("pear") == []
        assert store.append(space, [an_item()]).revision == 1


def test_sessions_that_end_behind_the_pooler(pooled: Database, postgres_store: Database) -> None:
    with (
        open_store(transacting(pooled), busy_timeout=10.0) as store,
        psycopg.connect(postgres_store.admin_url, autocommit=True) as admin,
    ):
        space = make_space(store)
        for turn in range(1, 6):
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert store.append(space, [an_item()]).revision == turn


def test_without_the_parameter_the_error_names_it(pooled: Database) -> None:
    said = None
    try:
        with open_store(pooled.app_url) as one, open_store(pooled.app_url) as two:
            for store, tenant in ((one, "apple"), (two, "pear")) * 30:
                space = make_space(store, tenant=tenant)
                store.append(space, [an_item()])
                store.counts(space)
    except ConfigurationError as exc:
        said = str(exc)
    assert said is None or "add pooler=transaction" in said


def test_an_option_that_the_pooler_refuses(pooled: Database) -> None:
    with pytest.raises((ConfigurationError, StoreError), match="leave the parameter away"):
        open_store(f"{transacting(pooled)}&options=-c%20statement_timeout%3D5s")
