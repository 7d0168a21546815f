"""What `db check` looks at: a store by itself, without the model or the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cofire.cli.examination import Section, describe_file, examine_memories
from cofire.cli.output import many
from cofire.errors import MissingExtraError, NotFoundError

if TYPE_CHECKING:
    from cofire.cli.options import Common
    from cofire.settings import Settings
    from cofire.store.postgres_checking import DatabaseReport

_MEND_SCHEMA = "have the role that owns the store run `cofire db upgrade`"


def examine_store(common: Common, settings: Settings) -> list[Section]:
    """The sections about a store. Raises NotFoundError if there is none, and what keeps it from
    being looked at."""
    from cofire.store import is_postgres

    if is_postgres(settings.store):
        report = _report(settings.store)
        sections = [describe_database(report)]
        if report.unfit is None and not report.problems:
            sections.append(_examine_tenant(common.tenant or "default", settings))
        return sections
    return _examine_file(common, settings)


def _examine_file(common: Common, settings: Settings) -> list[Section]:
    from cofire.store import schema_of
    from cofire.store.migrations import HEAD

    revision = schema_of(settings.store)
    if revision is None:
        raise NotFoundError(f"{settings.store}: the file is empty; `cofire remember TEXT` fills it")
    section = describe_file(settings)
    section.facts["schema"] = revision
    if revision != HEAD:
        section.wrong(
            f"the schema is {revision}, and this version of Cofire needs {HEAD}",
            "`cofire db upgrade` brings it up to date, and so does opening the store",
        )
        return [section]
    return [section, examine_memories(settings, common)]


def _report(url: str) -> DatabaseReport:
    from cofire.store import NEEDS_POSTGRES

    try:
        from cofire.store.postgres_checking import examine
    except ImportError as exc:
        raise MissingExtraError(NEEDS_POSTGRES) from exc
    return examine(url)


def describe_database(report: DatabaseReport) -> Section:
    """What a PostgreSQL database is like."""
    section = Section(name="Database")
    section.facts = {
        "url": report.where,
        "server": f"PostgreSQL {report.server}" + (", a replica" if report.replica else ""),
        "pgvector": report.vector or "none",
        "encoding": report.encoding,
        "commits": f"synchronous_commit = {report.synchronous_commit}",
        "schema": report.revision or "none",
        "partitions": str(report.partitions),
        "role": f"{report.role} "
        + ("may open the store" if report.unfit is None else f"{report.unfit}: for `db` commands"),
    }
    for problem in report.problems:
        section.wrong(problem, _MEND_SCHEMA)
    if not report.problems:
        section.facts["row-level security"] = "on and forced for every table"
    return section


def _examine_tenant(tenant: str, settings: Settings) -> Section:
    from cofire.store import open_store
    from cofire.store.records import tenant_number
    from cofire.workings import master_key

    section = Section(name=f"Tenant {tenant}")
    section.facts["number"] = str(tenant_number(tenant))
    with open_store(
        settings.store,
        create=False,
        busy_timeout=settings.write_wait,
        statement_timeout=settings.statement_timeout,
        pool_size=settings.pool_size,
        master_key=master_key(settings),
    ) as store:
        found = store.spaces(tenant)
        for space in found:
            counts = store.counts(space)
            section.facts[str(space.ref)] = (
                f"{many(counts.items, 'memory', 'memories')}, {many(counts.links, 'link')}"
            )
        if not found:
            section.facts["spaces"] = "none"
        section.report(store.check(tenant))
    return section
