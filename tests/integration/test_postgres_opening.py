"""A PostgreSQL store is opened only as a role, and in a database, that keep tenants apart.

Each refusal is seen to end with its cause: a test that is refused for another reason would fail.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest

from cofire.errors import (
    CofireError,
    ConfigurationError,
    NotFoundError,
    SchemaVersionError,
    StoreUnavailableError,
)
from cofire.store import open_store
from cofire.store.postgres_schema import grant
from postgres_server import APPLICATION, OWNER, Database, PostgresServer, fresh_database

PASSWORD = "hunter2-is-secret"  # noqa: S105 - nobody's


class Applicant:
    """A role of its own that may open the store: roles belong to the whole server."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.name = f"app_{uuid.uuid4().hex[:12]}"
        self.url = database.app_url.replace(f"{APPLICATION}@", f"{self.name}@")
        self.others: list[str] = []

    def tell(self, *statements: str) -> None:
        """Runs statements as a superuser; {r} is the role, {o} one more, {owner} who owns all."""
        names = {"r": self.name, "o": f"{self.name}_other", "owner": OWNER}
        with psycopg.connect(self.database.admin_url, autocommit=True) as admin:
            for statement in statements:
                admin.execute(statement.format(**names).encode())

    def grant(self) -> None:
        with psycopg.connect(self.database.owner_url) as owner:
            grant(owner, self.name)

    def opens(self) -> None:
        open_store(self.url).close()


@pytest.fixture
def applicant(postgres_store: Database) -> Iterator[Applicant]:
    role = Applicant(postgres_store)
    role.tell("CREATE ROLE {r} LOGIN")
    role.grant()
    yield role
    role.tell("DROP OWNED BY {r}", "DROP ROLE {r}", "DROP ROLE IF EXISTS {o}")


ROLES = {
    "superuser": ("superuser", ["ALTER ROLE {r} SUPERUSER"], ["ALTER ROLE {r} NOSUPERUSER"]),
    "bypasses": ("BYPASSRLS", ["ALTER ROLE {r} BYPASSRLS"], ["ALTER ROLE {r} NOBYPASSRLS"]),
    "owner": (
        "owns the table items",
        ["ALTER TABLE cofire.items OWNER TO {r}"],
        ["ALTER TABLE cofire.items OWNER TO {owner}"],
    ),
    "owner-of-a-part": (
        "owns the table items_p0",
        ["ALTER TABLE cofire.items_p0 OWNER TO {r}"],
        ["ALTER TABLE cofire.items_p0 OWNER TO {owner}"],
    ),
    "member-of-the-owner": ("owns", ["GRANT {owner} TO {r}"], ["REVOKE {owner} FROM {r}"]),
    "member-that-inherits-nothing": (
        "owns",
        ["GRANT {owner} TO {r} WITH INHERIT FALSE"],
        ["REVOKE {owner} FROM {r}"],
    ),
    "noinherit-member": (
        "owns",
        ["ALTER ROLE {r} NOINHERIT", "GRANT {owner} TO {r}"],
        ["REVOKE {owner} FROM {r}"],
    ),
    "member-of-a-member": (
        "owns",
        ["CREATE ROLE {o}", "GRANT {owner} TO {o}", "GRANT {o} TO {r} WITH INHERIT FALSE"],
        ["REVOKE {owner} FROM {o}"],
    ),
    "member-of-a-superuser": (
        "superuser",
        ["CREATE ROLE {o} SUPERUSER", "GRANT {o} TO {r} WITH INHERIT FALSE"],
        ["REVOKE {o} FROM {r}"],
    ),
    "member-of-who-bypasses": (
        "BYPASSRLS",
        ["CREATE ROLE {o} BYPASSRLS", "GRANT {o} TO {r} WITH INHERIT FALSE"],
        ["REVOKE {o} FROM {r}"],
    ),
    "runs-programs": (
        "pg_execute_server_program",
        ["GRANT pg_execute_server_program TO {r}"],
        ["REVOKE pg_execute_server_program FROM {r}"],
    ),
    "owner-of-the-schema": (
        "CREATE",
        ["ALTER SCHEMA cofire OWNER TO {r}"],
        ["ALTER SCHEMA cofire OWNER TO {owner}"],
    ),
    "makes-tables": (
        "CREATE",
        ["GRANT CREATE ON SCHEMA cofire TO {r}"],
        ["REVOKE CREATE ON SCHEMA cofire FROM {r}"],
    ),
    **{
        f"may-{right.lower()}-{table}": (
            table,
            [f"GRANT {right} ON cofire.{table} TO {{r}}"],
            [f"REVOKE {right} ON cofire.{table} FROM {{r}}"],
        )
        for right, table in (
            ("TRUNCATE", "items"),
            ("TRUNCATE", "items_p1"),
            ("REFERENCES", "spaces"),
            ("TRIGGER", "links"),
            ("UPDATE", "alembic_version"),
        )
    },
    "may-not-write": (
        "may not read and write items",
        ["REVOKE INSERT ON cofire.items FROM {r}"],
        ["GRANT INSERT ON cofire.items TO {r}"],
    ),
}

_OWN = "NULLIF(current_setting('cofire.tenant', true), '')::bigint"
TRIGGER = (
    "CREATE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RETURN NEW; END'"
)  # fmt: skip
DATABASES = {
    **{
        f"{table}-{off}": (
            f"row-level security of {table} is not on and forced",
            [f"ALTER TABLE cofire.{table} {off} ROW LEVEL SECURITY"],
            [f"ALTER TABLE cofire.{table} {on} ROW LEVEL SECURITY"],
        )
        for table in ("items", "tenants", "counters", "receipts_p1")
        for off, on in (("DISABLE", "ENABLE"), ("NO FORCE", "FORCE"))
    },
    "policy-dropped": (
        "the policies of links",
        ["DROP POLICY own_tenant ON cofire.links"],
        [f"CREATE POLICY own_tenant ON cofire.links USING (tenant = {_OWN}) "
         f"WITH CHECK (tenant = {_OWN})"],
    ),
    "policy-changed": (
        "the policies of links",
        ["ALTER POLICY own_tenant ON cofire.links USING (true)"],
        [f"ALTER POLICY own_tenant ON cofire.links USING (tenant = {_OWN})"],
    ),
    "policy-writes-anywhere": (
        "the policies of links",
        ["ALTER POLICY own_tenant ON cofire.links WITH CHECK (true)"],
        [f"ALTER POLICY own_tenant ON cofire.links WITH CHECK (tenant = {_OWN})"],
    ),
    "policy-of-some": (
        "the policies of links",
        ["ALTER POLICY own_tenant ON cofire.links TO {r}"],
        ["ALTER POLICY own_tenant ON cofire.links TO PUBLIC"],
    ),
    "policy-added": (
        "the policies of links",
        ["CREATE POLICY more ON cofire.links FOR SELECT USING (true)"],
        ["DROP POLICY more ON cofire.links"],
    ),
    "policy-for-the-owner": (
        "the policies of jobs",
        ["ALTER POLICY due_work ON cofire.jobs TO PUBLIC"],
        ["ALTER POLICY due_work ON cofire.jobs TO {owner}"],
    ),
    "function": (
        "the function cofire.told() runs with its owner's rights",
        ["CREATE FUNCTION cofire.told() RETURNS bigint LANGUAGE sql SECURITY DEFINER "
         "AS 'SELECT 1::bigint'"],
        ["DROP FUNCTION cofire.told()"],
    ),
    "policy-of-a-part": (
        "the part links_p0",
        ["CREATE POLICY more ON cofire.links_p0 USING (true)"],
        ["DROP POLICY more ON cofire.links_p0"],
    ),
    "trigger": (
        "items has a trigger",
        [TRIGGER, "CREATE TRIGGER spy BEFORE INSERT ON cofire.items FOR EACH ROW "
                  "EXECUTE FUNCTION public.spy()"],
        ["DROP FUNCTION public.spy CASCADE"],
    ),
    "trigger-of-a-part": (
        "items_p0 has a trigger",
        [TRIGGER, "CREATE TRIGGER spy BEFORE INSERT ON cofire.items_p0 FOR EACH ROW "
                  "EXECUTE FUNCTION public.spy()"],
        ["DROP FUNCTION public.spy CASCADE"],
    ),
    "rule": (
        "claims has a trigger or a rule",
        ["CREATE RULE spy AS ON INSERT TO cofire.claims DO ALSO SELECT 1"],
        ["DROP RULE spy ON cofire.claims"],
    ),
    "table-missing": (
        "the table claims is missing",
        ["ALTER TABLE cofire.claims RENAME TO gone"],
        ["ALTER TABLE cofire.gone RENAME TO claims"],
    ),
    "view": (
        "the view v_links",
        ["ALTER VIEW cofire.v_links RESET (security_invoker)"],
        ["ALTER VIEW cofire.v_links SET (security_invoker = true)"],
    ),
    "copy-of-everything": (
        "the view copied",
        ["CREATE MATERIALIZED VIEW cofire.copied AS SELECT * FROM cofire.items"],
        ["DROP MATERIALIZED VIEW cofire.copied"],
    ),
}  # fmt: skip
CAUSES = {**ROLES, **DATABASES}


def test_who_could_see_past_the_tenants_is_refused(applicant: Applicant) -> None:
    applicant.opens()
    for name, (said, cause, remedy) in CAUSES.items():
        applicant.tell(*cause)
        try:
            with pytest.raises(ConfigurationError) as refused:
                applicant.opens()
        except BaseException as exc:
            exc.add_note(f"with the cause {name!r}")
            raise
        assert said in str(refused.value), name
        assert "cofire db upgrade" in str(refused.value), name
        applicant.tell(*remedy, "DROP ROLE IF EXISTS {o}")
        applicant.grant()  # a change of owner takes its rights along
        applicant.opens()


@pytest.mark.parametrize("kind", ["owner_url", "admin_url"])
def test_the_other_roles_of_a_server_are_refused(postgres_store: Database, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=r"superuser|owns the table"):
        open_store(getattr(postgres_store, kind))
    # Nor in the disguise of another, which they can take off.
    disguise = quote(f"-c role={APPLICATION}")
    open_store(f"{postgres_store.app_url}&options={disguise}").close()
    if kind == "admin_url":
        with pytest.raises(ConfigurationError, match="superuser"):
            open_store(f"{postgres_store.admin_url}&options={disguise}")


# What else is wrong, and what to do


@contextmanager
def revision(database: Database, revision: str | None) -> Iterator[None]:
    with psycopg.connect(database.admin_url, autocommit=True) as admin:
        admin.execute("CREATE TABLE public.kept AS TABLE cofire.alembic_version")
        if revision is None:
            admin.execute("DELETE FROM cofire.alembic_version")
        else:
            admin.execute("UPDATE cofire.alembic_version SET version_num = %s", (revision,))
        yield
        admin.execute("DELETE FROM cofire.alembic_version")
        admin.execute("INSERT INTO cofire.alembic_version TABLE public.kept")
        admin.execute("DROP TABLE public.kept")


@pytest.mark.parametrize(
    ("number", "error", "advice"),
    [
        ("0003", SchemaVersionError, "have its owner run `cofire db upgrade`"),
        ("9999", SchemaVersionError, "Upgrade Cofire"),
        (None, NotFoundError, "run `cofire db upgrade`"),
    ],
)
def test_another_schema_is_refused(
    postgres_store: Database, number: str | None, error: type[CofireError], advice: str
) -> None:
    with revision(postgres_store, number):
        refuses(postgres_store.app_url, error, advice)
    open_store(postgres_store.app_url).close()


def with_password(url: str, password: str = PASSWORD) -> str:
    return url.replace("@", f":{password}@", 1)


def refuses(url: str, error: type[CofireError], advice: str) -> None:
    """The error says what to do, and the password nowhere, nor do its causes."""
    places = [with_password(url), f"{url}&password={PASSWORD}"]
    for place in places:
        with pytest.raises(error) as refused:
            open_store(place, busy_timeout=2.0)
        assert advice in str(refused.value)
        one: BaseException | None = refused.value
        while one is not None:
            assert PASSWORD not in f"{one} {one!r}"
            one = one.__cause__ or one.__context__


def test_an_empty_database_is_refused(postgres_database: Database) -> None:
    refuses(postgres_database.app_url, NotFoundError, "run `cofire db upgrade`")


def test_a_role_that_was_granted_nothing_is_refused(applicant: Applicant) -> None:
    applicant.tell("REVOKE USAGE ON SCHEMA cofire FROM {r}")
    refuses(applicant.url, ConfigurationError, "cofire db upgrade --app-role")
    applicant.grant()
    applicant.opens()


def test_a_role_that_serves_need_not_look_for_work(applicant: Applicant) -> None:
    for function in ("due_spaces(bigint, bigint, bigint, bigint)", "dead_jobs(bigint)"):
        applicant.tell(f"REVOKE EXECUTE ON FUNCTION cofire.{function} FROM {{r}}")
    with open_store(applicant.url) as store:
        assert store.spaces("default") == []
        with pytest.raises(ConfigurationError, match="this role may not do that"):
            store.due_spaces(1, every=1, idle=1)
    applicant.grant()
    with open_store(applicant.url) as store:
        assert store.due_spaces(1, every=1, idle=1) == []


def test_an_unknown_database_or_role_is_refused(postgres_store: Database) -> None:
    url = postgres_store.app_url
    missing = url.replace(postgres_store.name, "no_such_database")
    refuses(missing, StoreUnavailableError, "make it, then run `cofire db upgrade`")
    nobody = url.replace(f"{APPLICATION}@", "nobody_at_all@")
    refuses(nobody, StoreUnavailableError, "check the user")


def test_a_database_without_pgvector_is_refused(postgres_database: Database) -> None:
    with psycopg.connect(postgres_database.admin_url) as admin:
        admin.execute("DROP EXTENSION vector")
    refuses(postgres_database.app_url, ConfigurationError, "CREATE EXTENSION vector")


def test_a_database_of_another_encoding_is_refused(postgres_database: Database) -> None:
    other = f"{postgres_database.name}_latin"
    with psycopg.connect(postgres_database.admin_url, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {other} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' "
            "TEMPLATE template0".encode()
        )
        try:
            there = postgres_database.admin_url.replace(postgres_database.name, other)
            with psycopg.connect(there) as made:
                made.execute("CREATE EXTENSION vector")
            url = postgres_database.app_url.replace(postgres_database.name, other)
            refuses(url, ConfigurationError, "make one with ENCODING 'UTF8'")
        finally:
            admin.execute(f"DROP DATABASE {other} WITH (FORCE)".encode())


def test_a_wrong_password_is_refused_and_never_shown(own_server: PostgresServer) -> None:
    from postgres_fixtures import make_store

    with fresh_database(own_server.address) as database:
        make_store(database)
        with psycopg.connect(database.admin_url, autocommit=True) as admin:
            admin.execute(f"ALTER ROLE {APPLICATION} PASSWORD 'the-right-one'".encode())
            rules = own_server.folder / "data" / "pg_hba.conf"
            rules.write_text(f"local all {APPLICATION} scram-sha-256\nlocal all all trust\n")
            admin.execute("SELECT pg_reload_conf()")
            admin.execute("SELECT pg_sleep(0.2)")
        refuses(database.app_url, StoreUnavailableError, "check the user and the password")
        open_store(with_password(database.app_url, "the-right-one")).close()
        with pytest.raises(StoreUnavailableError, match="password"):
            open_store(database.app_url)
