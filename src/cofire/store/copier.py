"""One run of a copy: its order, what it writes, what it reads back. See `copying`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from cofire.errors import ConfigurationError, InputError, NotFoundError, StoreCorruptError
from cofire.store import copied_rows
from cofire.store.copied_receipts import copy_receipts
from cofire.store.copied_rows import (
    COPIED,
    ONE_SPACE,
    CopiedTable,
    Place,
    Tally,
    canonical,
    placed,
    portions,
    row_count,
    state_of,
)
from cofire.store.copied_serving import copy_serving
from cofire.store.copied_spaces import (
    MODELS,
    SPACE_COLUMNS,
    make_marked,
    make_models,
    models_of,
    space_row,
    tally_of_row,
)
from cofire.store.copy_marker import (
    BEGIN,
    COUNTERS,
    SPACE_ROW,
    Marker,
    Unfinished,
    advance,
    find,
    finish,
    raise_counters,
)
from cofire.store.copy_report import CopiedSpace, CopyReport, Job, as_rows, sums
from cofire.store.records import SpaceInfo, tenant_number
from cofire.store.sealing import SETTING
from cofire.store.session import Backend, Row, Scope, Session
from cofire.store.spaces import ADD_TENANT, EMPTY_TABLES, FIND_TENANT, next_id
from cofire.types import Progress, SpaceRef


class Copier:
    """One run of `copy_store`."""

    def __init__(
        self, source: Backend, target: Backend, jobs: Sequence[Job], progress: Progress | None
    ) -> None:
        self.source = source
        self.target = target
        self.jobs = jobs
        self.resumed: list[SpaceRef] = []
        self.restarted: list[SpaceRef] = []
        self._progress = progress
        self._done = 0
        self._total = 0

    def run(self) -> CopyReport:
        jobs, finished = self._to_do()
        if any(space.encrypted for job in jobs for space in job.spaces):
            self.target.vault.require_master()
        if self._progress is not None:
            self._total = 2 * sum(self._rows(space) for job in jobs for space in job.spaces)
        made = {job.name: self._reserve(job) for job in jobs}
        for job in jobs:
            for space in job.spaces:
                copied = self._copied(space, made[job.name][space.ref])
                made[job.name][space.ref] = copied
                self._verify(copied)
        more = [self._close(job, made[job.name]) for job in jobs]
        return self._report(jobs, made, more, finished)

    def _report(
        self,
        jobs: Sequence[Job],
        made: Mapping[str, Mapping[SpaceRef, Unfinished]],
        more: Sequence[Mapping[str, Tally]],
        finished: Sequence[str],
    ) -> CopyReport:
        each = {
            space.ref: _tallies(made[job.name][space.ref]) for job in jobs for space in job.spaces
        }
        return CopyReport(
            source=self.source.description,
            target=self.target.description,
            spaces=tuple(
                CopiedSpace(space=ref, tables=as_rows(tallies)) for ref, tallies in each.items()
            ),
            tables=as_rows(sums([*each.values(), *more])),
            resumed=tuple(self.resumed),
            restarted=tuple(self.restarted),
            finished_before=tuple(finished),
        )

    # Before anything is written

    def _to_do(self) -> tuple[list[Job], list[str]]:
        """The tenants to copy, and those that an earlier run finished. Raises InputError.

        A run makes all of its tenants' spaces before it copies, and finishes tenant by tenant when
        everything is copied: so where a tenant is there that is finished, while each of the others
        is marked and whole, a run was interrupted while it finished.
        """
        finished: list[str] = []
        there: list[SpaceRef] = []
        markers: list[Marker] = []
        for job in self.jobs:
            found = self.target.read(Scope(tenant=job.name), partial(find, tenant=job.name))
            mine = [found[space.ref] for space in job.spaces if space.ref in found]
            ready = [one.ref for one in mine if one.marker is None]
            there += ready
            markers += [one.marker for one in mine if one.marker is not None]
            if ready and len(ready) == len(job.spaces):
                finished.append(job.name)
            elif ready:
                raise self._refused(ready)
        ending = bool(markers) and all(marker.whole for marker in markers)
        if there and not ending:
            raise self._refused(there)
        return [job for job in self.jobs if job.name not in finished], finished

    def _refused(self, there: Sequence[SpaceRef]) -> InputError:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        return InputError(
            f"{there[0]}{more}: this space is in {self.target.description} already, and a copy is "
            "merged with nothing: forget it there first, or copy into another store"
        )

    def _rows(self, space: SpaceInfo) -> int:
        place = Place(tenant=space.tenant_id, space=space.space_id, models={})
        return self.source.read(
            Scope(tenant=place.tenant), lambda session: row_count(session, place)
        )

    # Making the spaces

    def _reserve(self, job: Job) -> dict[SpaceRef, Unfinished]:
        """Makes a tenant's spaces in the target as far as they are not there, marked."""
        given = self.source.glance(Scope(tenant=job.name), COUNTERS, tenant=job.tenant)

        def work(session: Session) -> dict[SpaceRef, Unfinished]:
            row = session.one(FIND_TENANT, name=job.name)
            tenant: int = tenant_number(job.name) if row is None else row[0]
            if row is None:
                session.run(ADD_TENANT, id=tenant, name=job.name)
            found = find(session, job.name)
            known: dict[str, int] = dict(session.all(COUNTERS, tenant=tenant))
            begun = [one.marker.offset for one in found.values() if one.marker is not None]
            offset = begun[0] if begun else known.get("space", 0)
            # Other counters are a back end's own.
            shift = {"space": offset, "model": 0}
            least = {name: value + shift[name] for name, value in given if name in shift}
            raise_counters(session, tenant, least)
            taken = {one.space for one in found.values()}
            for space in job.spaces:
                if space.ref not in found:
                    id = space.space_id + offset
                    if id in taken:  # made in the target while a copy was interrupted
                        id = next_id(session, tenant, "space")
                    make_marked(session, space, tenant, id, offset)
            return find(session, job.name)

        former = self.target.read(Scope(tenant=job.name), partial(find, tenant=job.name))
        self.resumed += [space.ref for space in job.spaces if space.ref in former]
        made = self.target.write(Scope(tenant=job.name), work)
        mine = {space.ref: made[space.ref] for space in job.spaces}
        for space in job.spaces:
            self._require_ours(space, mine[space.ref])
        return mine

    def _require_ours(self, space: SpaceInfo, made: Unfinished) -> None:
        if made.marker is None:
            raise self._refused([made.ref])
        if space.encrypted and made.entry is None:
            raise ConfigurationError(
                f"{space.ref}: this space is encrypted, and the copy begun in "
                f"{self.target.description} is not: remove that with --discard"
            )
        self.target.vault.key(made.tenant, made.space)

    # Copying

    def _copied(self, space: SpaceInfo, made: Unfinished) -> Unfinished:
        """Copies what is left to copy of a space, from one snapshot of it."""

        def work(session: Session) -> Unfinished:
            return self._copy(session, space, self._now(made))

        return self.source.read(Scope(tenant=space.tenant_id), work)

    def _now(self, made: Unfinished) -> Unfinished:
        """The target's space as it is: further on, if this is tried again."""
        found = self.target.read(
            Scope(tenant=made.tenant), lambda session: find(session, made.ref.tenant)
        ).get(made.ref)
        if found is None or found.marker is None:
            raise NotFoundError(f"{made.ref}: the unfinished copy was removed meanwhile")
        return found

    def _copy(self, session: Session, space: SpaceInfo, made: Unfinished) -> Unfinished:
        known = models_of(session, space.tenant_id)
        source = Place(tenant=space.tenant_id, space=space.space_id, models=known)
        state = state_of(session, source)
        if made.marker is None or made.marker.state != state:
            made = self._begin(session, source, made, state)
        self._tell(sum(one.rows for one in _tallies(made).values()))  # by an earlier run
        target = Place(
            tenant=made.tenant,
            space=made.space,
            models=self.target.read(Scope(tenant=made.tenant), lambda s: models_of(s, made.tenant)),
        )
        marker = made.marker or Marker()
        batch = _Batch()
        for name, copied in COPIED.items():
            if marker.has(name):
                continue
            after = marker.after if marker.table == name else None
            tally = marker.tallies.get(name, Tally()) if after is not None else Tally()
            for portion in portions(session, source, copied, after):
                tally = tally.counted(portion.encoded)
                marker = marker.moved(name, tally, portion.after)
                batch.add(copied, placed(copied, portion.rows, source, target), portion.encoded)
                if batch.full:
                    made = self._write(made, marker, batch)
                    batch = _Batch()
        return self._write(made, marker, batch)

    def _begin(self, session: Session, source: Place, made: Unfinished, state: str) -> Unfinished:
        """Readies the target's space for this state of the source's, empty."""
        row = session.one(ONE_SPACE, **source.here)
        if row is None:
            raise NotFoundError(f"{made.ref}: the space was forgotten in the source meanwhile")
        values = dict(zip(SPACE_COLUMNS, row, strict=True))
        settings = json.loads(values["settings"])
        settings.pop(SETTING, None)
        former = made.marker or Marker()
        if former.state is not None and made.ref not in self.restarted:
            self.restarted.append(made.ref)
        named = source.models.get(values["model"])
        tally = Tally().counted([space_row(made.ref, values, named, settings)])
        begun = made.at(
            Marker(offset=former.offset, state=state, settings=settings, tallies={SPACE_ROW: tally})
        )

        def work(there: Session) -> None:
            if former.state is not None:
                for query in EMPTY_TABLES:
                    there.run(query, tenant=made.tenant, space=made.space)
            ids = make_models(there, made.tenant, source.models)
            new = {name: values[name] for name in ("revision", "floor", "last_number", "created")}
            new["model"] = None if named is None else ids[named]
            here = {"in_tenant": made.tenant, "in_space": made.space}
            there.run(BEGIN, **here, **{f"new_{name}": value for name, value in new.items()})
            advance(there, made, begun.text)

        self.target.write(made.scope, work)
        return begun

    def _write(self, made: Unfinished, marker: Marker, batch: _Batch) -> Unfinished:
        if marker == made.marker:
            return made
        further = made.at(marker)

        def work(session: Session) -> None:
            advance(session, made, further.text)
            for copied, rows in batch.parts:
                session.many(copied.add, rows, ("tenant", "space", *copied.columns))

        self.target.write(made.scope, work)
        self._tell(batch.rows)
        return further

    def _tell(self, rows: int) -> None:
        if self._progress is not None:
            self._done = min(self._total, self._done + rows)
            self._progress(self._done, self._total)

    # Reading back

    def _verify(self, made: Unfinished) -> None:
        """Reads a copied space and compares it. Raises StoreCorruptError."""
        marker = made.marker or Marker()

        def work(session: Session) -> dict[str, Tally]:
            place = Place(
                tenant=made.tenant, space=made.space, models=models_of(session, made.tenant)
            )
            found = {SPACE_ROW: tally_of_row(session, place, made.ref, marker.settings)}
            for name, copied in COPIED.items():
                found[name] = Tally()
                for portion in portions(session, place, copied):
                    found[name] = found[name].counted(portion.encoded)
            return found

        found = self.target.read(Scope(tenant=made.tenant), work)
        for name, wanted in marker.tallies.items():
            if found[name] != wanted:
                raise self._differs(str(made.ref), name, found[name], wanted)
        self._tell(sum(one.rows for one in found.values()))

    def _differs(self, what: str, table: str, found: Tally, wanted: Tally) -> StoreCorruptError:
        return StoreCorruptError(
            f"{what}: the table {table} in {self.target.description} is not what was copied: "
            f"{found.rows:,} rows with digest {found.digest[:16]}… in place of {wanted.rows:,} "
            f"with {wanted.digest[:16]}…. The copy is not finished; remove it with --discard, and "
            "copy again"
        )

    # Finishing

    def _close(self, job: Job, made: Mapping[SpaceRef, Unfinished]) -> dict[str, Tally]:
        """Copies what is a tenant's own, then makes its spaces ones like others."""
        tenant = self.target.glance(Scope(tenant=job.name), FIND_TENANT, name=job.name)[0][0]
        ids = {space.space_id: made[space.ref].space for space in job.spaces}
        markers = [one.marker for one in made.values() if one.marker is not None]
        offset = markers[0].offset if markers else 0
        way = (self.source, self.target, job.tenant, tenant, lambda id: ids.get(id, id + offset))
        copied = {"receipts": copy_receipts(*way), **copy_serving(*way)}
        for name, (found, wanted) in copied.items():
            if found != wanted:
                raise self._differs(job.name, name, found, wanted)
        scope = Scope(tenant=tenant, spaces=tuple(sorted(one.space for one in made.values())))
        rows = self.source.glance(Scope(tenant=job.name), MODELS, tenant=job.tenant)
        known = {id: (name, dimension) for id, name, dimension in rows}

        def work(session: Session) -> None:
            make_models(session, tenant, known)
            for space in made.values():
                finish(session, space)

        self.target.write(scope, work)
        return {
            "tenants": Tally().counted([canonical((job.name,))]),
            "models": Tally().counted([canonical(named) for named in known.values()]),
            **{name: wanted for name, (_, wanted) in copied.items()},
        }


class _Batch:
    """Rows that will be written as one transaction."""

    def __init__(self) -> None:
        self.parts: list[tuple[CopiedTable, list[Row]]] = []
        self.rows = 0
        self._bytes = 0

    def add(self, copied: CopiedTable, rows: list[Row], encoded: Iterable[bytes]) -> None:
        if rows:
            self.parts.append((copied, rows))
        self.rows += len(rows)
        self._bytes += sum(map(len, encoded))

    @property
    def full(self) -> bool:
        return self.rows >= copied_rows.PAGE or self._bytes >= copied_rows.PAGE_BYTES


def _tallies(made: Unfinished) -> Mapping[str, Tally]:
    return {} if made.marker is None else made.marker.tallies
