"""Copying spaces from one store to another, whatever is behind each, row by row.

A copy holds everything that a space has, under the same numbers, ids, revisions and times, so that
it recalls and learns as the original. Each space is read from one snapshot and written in portions;
how far that has come is kept in the settings of the target's space, in the same transaction as the
rows, until everything is read back and found equal. So a copy that is killed goes on when it is
started again, and nobody takes half a space for a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import select

from cofire.errors import ConfigurationError, InputError, NotFoundError, StoreUnavailableError
from cofire.store.copier import Copier
from cofire.store.copy_report import CopyReport, Job
from cofire.store.records import SpaceInfo
from cofire.store.schema import tenants
from cofire.store.session import Backend, Query, Row, Scope
from cofire.store.spaces import COPYING, FIND_TENANT, list_spaces, remove_space
from cofire.types import Progress, SpaceRef

if TYPE_CHECKING:
    from cofire.store.store import Store

ALL_TENANTS = Query(lambda _: select(tenants.c.id, tenants.c.name).order_by(tenants.c.id))


def copyable(source: Store, tenants: Sequence[str] | None = None) -> list[Job]:
    """What there is to copy. `tenants` None: of every tenant.

    Raises InputError for that where the database keeps tenants apart, NotFoundError for a tenant
    who has nothing there, ConfigurationError for an encrypted space whose key is not here,
    StoreUnavailableError for a space that is itself not copied whole.
    """
    backend = source._backend
    jobs = []
    for tenant, name in _tenants(backend, tenants):
        found = backend.read(Scope(tenant=name), partial(list_spaces, tenant=name))
        for space in found:
            _require_copyable(backend, space)
        jobs.append(Job(tenant=tenant, name=name, spaces=tuple(found)))
    return jobs


def _tenants(backend: Backend, names: Sequence[str] | None) -> list[Row]:
    if names is None:
        if backend.shared:
            raise InputError(
                f"{backend.description}: tenants are kept apart here, and none is seen without "
                "being named: name those to copy (`--tenant NAME`, which may be repeated)"
            )
        return backend.glance(Scope(), ALL_TENANTS)
    found = []
    for name in dict.fromkeys(names):
        rows = backend.glance(Scope(tenant=name), FIND_TENANT, name=name)
        if not rows:
            raise NotFoundError(f"{backend.description}: there is no tenant {name!r}")
        found.append((rows[0][0], name))
    return found


def _require_copyable(backend: Backend, space: SpaceInfo) -> None:
    if COPYING in space.settings:
        raise StoreUnavailableError(
            f"{space.ref}: in {backend.description} this is itself a copy that was not finished; "
            "finish it, or remove it with --discard"
        )
    locked = backend.vault.locked(space.tenant_id, space.space_id)
    if locked is not None:
        raise ConfigurationError(f"{locked}. Nothing was copied")


def copy_store(
    source: Store,
    target: Store,
    tenants: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copies every space of these tenants (None: of all), with ids, events and what was learned,
    and reads all of it back; the copy of a tenant is seen when all of its spaces are there.

    Run again after an interruption it goes on, and begins those spaces anew that changed in the
    source meanwhile. Ids of spaces are kept where the tenant is new in the target. What is
    encrypted in the source is sealed anew under the target's key; `encrypt_new` of the target
    encrypts the rest too.

    Raises what `copyable` does, InputError for a space that the target has already (nothing is
    merged), ConfigurationError for encrypted spaces without a key for the target,
    StoreCorruptError if something read back is not what was copied, StoreBusyError if somebody
    else copies into the same space.
    """
    jobs = copyable(source, tenants)
    return Copier(source._backend, target._backend, jobs, progress).run()


def discard_copies(target: Store, tenants: Sequence[str] | None = None) -> tuple[SpaceRef, ...]:
    """Removes what interrupted copies left in a store; returns which spaces. Raises InputError for
    `tenants` None where the database keeps tenants apart, NotFoundError."""
    backend = target._backend
    gone: list[SpaceRef] = []
    for _, name in _tenants(backend, tenants):
        for info in backend.read(Scope(tenant=name), partial(list_spaces, tenant=name)):
            if COPYING in info.settings:
                scope = Scope(tenant=info.tenant_id, spaces=(info.space_id,))
                backend.write(scope, partial(remove_space, space=info))
                gone.append(info.ref)
    return tuple(gone)
