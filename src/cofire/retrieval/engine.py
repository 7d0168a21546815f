"""`Recaller`: one question over several spaces, from words to ranked memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from time import perf_counter

import numpy as np

from cofire import fences, views
from cofire.dynamics.arrays import F64
from cofire.encoding.terms import canonical_json, facet, term_hash
from cofire.errors import ConfigurationError, EmbeddingError, EmbeddingMismatchError
from cofire.graph.active import ActiveGraph
from cofire.graph.masks import RowFilter, row_mask
from cofire.ids import new_uuid7
from cofire.models import Embedder
from cofire.retrieval.features import TERMS
from cofire.retrieval.gating import confidence
from cofire.retrieval.learned import same_question
from cofire.retrieval.loading import Graphs
from cofire.retrieval.looking_up import sought
from cofire.retrieval.profiles import COFIRE, Profile, asked_of
from cofire.retrieval.question import Asked, Question, read_question
from cofire.retrieval.ranking import Ranked, rank
from cofire.retrieval.room import Room, cost_of
from cofire.retrieval.semantic import find_records, find_shapes, told_records, told_shapes
from cofire.retrieval.tracing import Placed, trace
from cofire.store import Store
from cofire.store.large_spaces import Sought
from cofire.store.records import KIND_CODES, Finding, ItemRow, RecallHit, RecallRecord, SpaceInfo
from cofire.types import (
    INTERNAL_KINDS,
    Filters,
    Kind,
    Recall,
    Recalled,
    SemanticRecord,
    Shape,
    from_micros,
    line_header,
    to_micros,
    told_lines,
)

Entries = list[tuple[SpaceInfo, RecallRecord]]
GIST = KIND_CODES[Kind.GIST.value]
HIDDEN = tuple(KIND_CODES[kind.value] for kind in INTERNAL_KINDS)
"""Kinds that are never returned as memories."""


_NUMBER = (1 << 32) - 1
SEMANTIC_SHARE = 0.25
"""Part of a token budget that semantic records may take (the papers: 5 of 15 and 5 of 20)."""
MOST_NAMES = 10_000
"""Names of speakers in spaces that indexes serve that are kept in mind, by tenant."""
PAGE = 500
"""Memories listed at a time for an empty question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Two ways to look back: at what held by `as_of`, and with what had been recorded by
    `known_at` (None: now)."""

    as_of: datetime | None = None
    known_at: datetime | None = None


NOW = Moments()


class Recaller:
    """Reads; never writes a memory. Safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        counter: Embedder,
        graph_bytes: int,
        *,
        space_bytes: int | None = None,
    ) -> None:
        """`graph_bytes`: of active graphs kept; `space_bytes`: of one, from which on the
        database's indexes serve its space (None: none is so large)."""
        self._store = store
        self._space_bytes = space_bytes
        self._names: dict[tuple[tuple[int, int], ...], set[int]] = {}
        self._embedder = embedder
        self._graph_bytes = graph_bytes
        self._graphs = Graphs(store, embedder, graph_bytes, most=space_bytes)
        self._counter = counter
        self._header_tokens = lru_cache(maxsize=1 << 14)(counter.count_tokens)
        self.watcher: Callable[[Mapping[str, float]], None] | None = None
        """Who is told of each recall how long its stages took (ms)."""

    @property
    def nbytes(self) -> int:
        """Bytes of active graphs in memory."""
        return self._graphs.nbytes

    def forget(self, space: SpaceInfo) -> None:
        """After a deletion in `space`."""
        self._graphs.forget(space)
        gone = (space.tenant_id, space.space_id)
        for asked in [asked for asked in self._names.copy() if gone in asked]:
            self._names.pop(asked, None)
        self._header_tokens.cache_clear()

    def use(self, embedder: Embedder) -> None:
        """From now on embed questions with another model."""
        self._graphs.close()
        self._embedder = embedder
        self._graphs = Graphs(self._store, embedder, self._graph_bytes, most=self._space_bytes)
        self._counter = embedder
        self._header_tokens = lru_cache(maxsize=1 << 14)(embedder.count_tokens)

    def header_tokens(self, text: str) -> int:
        """Wordpieces of what many rendered lines begin with; the last many are kept in mind."""
        return self._header_tokens(text)

    def graph(self, space: SpaceInfo) -> ActiveGraph:
        """The active graph of a space as it is now. Raises NotFoundError, StoreError."""
        return self._graphs.get(space)

    def check(self, space: SpaceInfo) -> list[Finding]:
        """Whether the graph in memory (and so the sidecar it came from) is what the store holds."""
        return self._graphs.check(space)

    def close(self) -> None:
        self._graphs.close()

    def recall(
        self,
        spaces: Sequence[SpaceInfo],
        query: str,
        k: int,
        *,
        profile: Profile,
        now: datetime,
        filters: Filters,
        token_budget: int | None = None,
        semantic: int = 0,
        moments: Moments = NOW,
        explain: bool = False,
    ) -> tuple[Recall, Entries]:
        """The recall, and what is to be recorded of it. Of a token budget, semantic records get
        at most `SEMANTIC_SHARE`."""
        if not query.strip():
            return self._newest(
                spaces, query, k, now=now, filters=filters, token_budget=token_budget
            ), []
        started = perf_counter()
        graphs = self._looked_at(spaces, query, now, profile, _within(filters, moments))
        profile = _asked_of(graphs, profile)
        if k > profile.depth:  # each leg must be able to fill the list
            profile = replace(profile, depth=k)
        wanted = self._row_filters(spaces, filters, now, moments)
        refreshed = perf_counter()
        ranked, asked, warnings, timings = self._rank(
            spaces, graphs, query, profile=profile, now=now, wanted=wanted
        )
        timings = {"refresh": 1e3 * (refreshed - started), **timings}
        ranking = perf_counter()
        sure = confidence(ranked, profile)
        abstain = sure is not None and profile.gate is not None and profile.gate.abstains(sure)
        room = self._room(token_budget)
        records, shapes = self._semantic(
            spaces, ranked, asked, wanted, room,
            most=semantic, token_budget=token_budget, trust=_trust(sure, profile),
        )  # fmt: skip
        chosen, rows = self._chosen(ranked, k, room, ranked.worthwhile(profile))
        if profile.order == "time":
            chosen, rows = _oldest_first(chosen, rows)
        hits = [
            _recalled(ranked.spaces[ranked.space[place]], row, float(ranked.score[place]))
            for place, row in zip(chosen, rows, strict=True)
        ]
        timings["fetch"] = 1e3 * (perf_counter() - ranking)
        timings["total"] = 1e3 * (perf_counter() - started)
        if self.watcher is not None:
            self.watcher(timings)
        uid = new_uuid7()
        recall = Recall(
            id=str(uid),
            query=query,
            items=tuple(hits),
            profile=profile.name,
            tokens=self._tokens([record for _, record in records], hits),
            semantic=tuple(record for _, record in records),
            shapes=shapes,
            warnings=warnings,
            confidence=sure,
            abstain=abstain,
            trace=trace(_placed(ranked, chosen, hits), profile, asked.question, timings)
            if explain
            else None,
        )
        record = RecallRecord(
            uid=uid.bytes, query=query, time=to_micros(now), profile=profile.name, hits=()
        )
        return recall, _entries(record, ranked, chosen, rows, records)

    def _semantic(
        self,
        spaces: Sequence[SpaceInfo],
        ranked: Ranked,
        asked: Asked,
        wanted: Sequence[RowFilter],
        room: Room,
        *,
        most: int,
        token_budget: int | None,
        trust: float,
    ) -> tuple[list[tuple[int, SemanticRecord]], tuple[Shape, ...]]:
        """The semantic records that fit into their part of the room, which they take, each with the
        index of its space; and the shapes."""
        graphs = [found.graph for found in ranked.candidates]
        found = find_records(graphs, asked, ranked, wanted, most, trust=trust)
        records = told_records(self._store, spaces, found) if found else []
        if token_budget is not None and room.left is not None:
            given = min(int(token_budget * SEMANTIC_SHARE), room.left)
            part = Room(given, room.fence)
            records = [
                (index, record)
                for index, record in records
                if part.take(
                    cost_of(self._record_tokens(record), record.item.content),
                    untrusted=record.untrusted,
                )
            ]
            room.left, room.fence = room.left - given + (part.left or 0), part.fence
        shapes = find_shapes(graphs, asked, wanted) if most else []
        return records, told_shapes(self._store, spaces, shapes) if shapes else ()

    def _newest(
        self,
        spaces: Sequence[SpaceInfo],
        query: str,
        k: int,
        *,
        now: datetime,
        filters: Filters,
        token_budget: int | None,
    ) -> Recall:
        """What an empty question brings: the newest memories that pass the filters."""
        hits: list[Recalled] = []
        room = self._room(token_budget)
        after: tuple[int, bytes] | None = None
        while len(hits) < k:
            page = self._store.list(
                spaces, filters, after=after, limit=min(k, PAGE), with_derived=False
            )
            if not page:
                break
            after = (page[-1].item.time, page[-1].item.uid)
            for space, row in page:
                hidden = row.kind in INTERNAL_KINDS
                if hidden or (row.expires is not None and row.expires <= to_micros(now)):
                    continue
                cost = self._cost(row)
                if room.take(cost, untrusted=row.untrusted):
                    hits.append(_recalled(space, row, 0.0))
        return Recall(
            id=str(new_uuid7()),
            query=query,
            items=tuple(hits[:k]),
            profile="newest",
            tokens=self._tokens((), hits[:k]),
            warnings=("the question is empty: these are the newest memories",),
        )

    def rank(
        self,
        spaces: Sequence[SpaceInfo],
        query: str,
        *,
        profile: Profile,
        now: datetime,
        filters: Filters,
    ) -> tuple[Ranked, Question, tuple[str, ...], dict[str, float]]:
        """Every candidate with its score; also the question as read, warnings and timings."""
        graphs = self._looked_at(spaces, query, now, profile, filters)
        wanted = self._row_filters(spaces, filters, now, NOW)
        ranked, asked, warnings, timings = self._rank(
            spaces, graphs, query, profile=_asked_of(graphs, profile), now=now, wanted=wanted
        )
        return ranked, asked.question, warnings, timings

    def _looked_at(
        self,
        spaces: Sequence[SpaceInfo],
        query: str,
        now: datetime,
        profile: Profile,
        filters: Filters,
    ) -> list[ActiveGraph]:
        """The graphs of spaces; of those that indexes serve, the parts that the question needs."""
        states = [self._graphs.standing(space) for space in spaces]
        known = [
            None if state.indexed else self._graphs.get(space, state.revision)
            for space, state in zip(spaces, states, strict=True)
        ]
        graphs = [graph for graph in known if graph is not None]
        if len(graphs) == len(known):
            return graphs
        # Who speaks in such a space is known from its parts alone. Names of theirs are taken out of
        # the question, which is then looked up once more, without them; they are kept in mind.
        together = tuple((space.tenant_id, space.space_id) for space in spaces)
        met = self._names.setdefault(together, set())
        question = _read(graphs, query, now, profile, met)
        for _ in range(2):
            asked = sought(self._asked(question, profile)[0], filters)
            graphs = [
                graph if graph is not None else self._graphs.part(space, asked)
                for space, graph in zip(spaces, known, strict=True)
            ]
            again = _read(graphs, query, now, profile)
            if set(again.names) <= set(question.names):
                break
            if len(met) < MOST_NAMES:
                met.update(again.names)
            question = again
        return graphs

    def _rank(
        self,
        spaces: Sequence[SpaceInfo],
        graphs: list[ActiveGraph],
        query: str,
        *,
        profile: Profile,
        now: datetime,
        wanted: Sequence[RowFilter],
    ) -> tuple[Ranked, Asked, tuple[str, ...], dict[str, float]]:
        """`rank` of graphs at hand, with what each space is to be looked at for."""
        started = perf_counter()
        question = _read(graphs, query, now, profile)
        asked, warnings = self._asked(question, profile)
        asked = replace(asked, now=to_micros(now))
        if asked.vector is not None:
            graphs = self._graphs.fitting(spaces, graphs, len(asked.vector))
        embedded = perf_counter()
        searched = [
            (graph, row_mask(graph, replace(own, derived=False)))
            for graph, own in zip(graphs, wanted, strict=True)
        ]
        ranked = rank(spaces, searched, asked, profile)
        done = perf_counter()
        return (
            ranked,
            asked,
            warnings,
            {
                "embed": 1e3 * (embedded - started),
                "rank": 1e3 * (done - embedded),
            },
        )

    def asked(self, spaces: Sequence[SpaceInfo], query: str, now: datetime) -> Asked:
        """A question as the default profile reads it; without a vector where it has none."""
        graphs = self._looked_at(spaces, query, now, COFIRE, Filters())
        return self._asked(_read(graphs, query, now, COFIRE), COFIRE)[0]

    def wholes(self, space: SpaceInfo, numbers: Sequence[int]) -> dict[int, bytes]:
        """By number the uid of the memory that it is, or is a segment of; what is not there any
        more is left out."""
        state = self._graphs.standing(space)
        if state.indexed:
            graph = self._graphs.part(space, Sought(numbers=tuple(numbers)))
        else:
            graph = self._graphs.get(space, state.revision)
        parents = graph.column("parent")
        found: dict[int, bytes] = {}
        for number in numbers:
            row = graph.row(number)
            if row >= 0 and parents[row]:
                row = graph.row(int(parents[row]))
            if row >= 0:
                found[number] = graph.uid(row)
        return found

    def cue_like(self, space: SpaceInfo, asked: Asked) -> int | None:
        """The number of the cue in `space` that asks the same."""
        state = self._graphs.standing(space)
        if state.indexed:
            cues = Filters(kinds=(Kind.CUE,))
            return same_question(self._graphs.part(space, sought(asked, cues)), asked)
        return same_question(self._graphs.get(space, state.revision), asked)

    def candidates(
        self, spaces: Sequence[SpaceInfo], query: str, *, profile: Profile, now: datetime
    ) -> tuple[tuple[str, ...], F64]:
        """Ids and terms of every candidate, best first. A segment goes by its whole's id."""
        ranked, _, _, _ = self.rank(spaces, query, profile=profile, now=now, filters=Filters())
        ids = np.empty(len(ranked), object)
        parts = []
        done = 0
        for space, found in zip(ranked.spaces, ranked.candidates, strict=True):
            parts.append(found.matrix(TERMS))
            numbers = found.graph.column("number")[found.rows].tolist()
            uids = {row.number: row.whole for row in self._store.fetch(space, numbers)}
            for place, number in enumerate(numbers, done):
                ids[place] = views.public_id(uids[number])
            done += len(numbers)
        order = ranked.first(len(ranked))
        return tuple(ids[order]), np.concatenate(parts)[order]

    def _asked(self, question: Question, profile: Profile) -> tuple[Asked, tuple[str, ...]]:
        """The question with its vector, or the reason why it has none."""
        if not profile.uses("similarity") or not question.embedded.strip():
            return Asked(question=question, vector=None), ()
        if self._embedder is None:
            return Asked(question=question, vector=None), (
                "vectors are off: this recall went by words only",
            )
        try:
            vector, good = self._embedder.embed_query(question.embedded)
        except EmbeddingMismatchError:
            raise
        except (EmbeddingError, ConfigurationError) as exc:
            return Asked(question=question, vector=None), (
                f"this recall went by words only, because embedding the question failed: {exc}",
            )
        if not good:
            return Asked(question=question, vector=None), (
                "this recall went by words only: the question has no usable vector",
            )
        return Asked(question=question, vector=vector), ()

    def _chosen(
        self, ranked: Ranked, k: int, room: Room, limit: int
    ) -> tuple[list[int], list[ItemRow]]:
        """Indices of what is returned among the best `limit`, and the rows behind them."""
        chosen: list[int] = []
        rows: list[ItemRow] = []
        order = ranked.first(min(k, limit))
        at = 0
        while len(chosen) < k and at < len(order):
            places = order[at : at + k - len(chosen)].tolist()
            at += len(places)
            for place, row in self._fetched(ranked, places):
                # Whole items only; a shorter one further down may still fit.
                if room.left is None or room.take(self._cost(row), untrusted=row.untrusted):
                    chosen.append(place)
                    rows.append(row)
            if room.full:
                break
            if at == len(order) < limit:  # the best k were not enough
                order = ranked.first(limit)
        return chosen, rows

    def _fetched(self, ranked: Ranked, places: Sequence[int]) -> list[tuple[int, ItemRow]]:
        """Rows of candidates; what another process forgot meanwhile is left out."""
        found: dict[int, ItemRow] = {}
        for index, (space, candidates) in enumerate(
            zip(ranked.spaces, ranked.candidates, strict=True)
        ):
            here = [place for place in places if ranked.space[place] == index]
            if not here:
                continue
            column = candidates.graph.column("number")
            numbers = column[candidates.rows[ranked.at[here]]].tolist()
            fetched = {row.number: row for row in self._store.fetch(space, numbers)}
            for place, number in zip(here, numbers, strict=True):
                if number in fetched:
                    found[place] = fetched[number]
        return [(place, found[place]) for place in places if place in found]

    def _row_filters(
        self, spaces: Sequence[SpaceInfo], filters: Filters, now: datetime, moments: Moments
    ) -> list[RowFilter]:
        """What each space is to be looked at for."""
        wanted = _row_filter(filters, now, moments)
        known_at = wanted.known_at
        if known_at is None:
            return [wanted] * len(spaces)
        return [
            replace(wanted, reopened=self._store.closed_after(space, known_at)) for space in spaces
        ]

    def _record_tokens(self, record: SemanticRecord) -> int:
        return record.item.tokens + self._header_tokens(record.header)

    def _room(self, token_budget: int | None) -> Room:
        """The room in a budget, less what the marks around a rendering take at most."""
        marks, around = (
            sum(map(self._header_tokens, lines(fences.LONGEST_NUMBER)))
            for lines in (fences.marks, fences.fences)
        )
        return Room(None if token_budget is None else token_budget - marks, around)

    def _tokens(self, records: Sequence[SemanticRecord], hits: Sequence[Recalled]) -> int:
        """Wordpieces of the whole rendering."""
        lines = sum(hit.item.tokens + self._header_tokens(hit.header) for hit in hits)
        lines += sum(self._record_tokens(record) for record in records)
        around = fences.frame(*told_lines([*records, *hits]))
        return lines + self._counter.count_tokens("\n".join(around))

    def _cost(self, row: ItemRow) -> int:
        header = line_header(from_micros(row.time), row.offset, row.speaker or row.role)
        return cost_of(row.tokens, row.content) + self._header_tokens(header)


def _within(filters: Filters, moments: Moments) -> Filters:
    """Filters that also keep out what happened after the moment that is looked back at."""
    if moments.as_of is None:
        return filters
    end = moments.as_of + timedelta(microseconds=1)
    return replace(filters, until=end if filters.until is None else min(end, filters.until))


def _asked_of(graphs: Sequence[ActiveGraph], profile: Profile) -> Profile:
    return asked_of(profile, slept=any(GIST in graph.kinds for graph in graphs))


def _trust(confidence: float | None, profile: Profile) -> float:
    """How far a good place in the ranking says anything: 1, or less where the recall is so unsure
    that it would abstain."""
    if confidence is None or profile.gate is None or profile.gate.threshold <= 0.0:
        return 1.0
    return min(1.0, confidence / profile.gate.threshold)


def _read(
    graphs: Sequence[ActiveGraph],
    query: str,
    now: datetime,
    profile: Profile,
    met: set[int] | frozenset[int] = frozenset(),
) -> Question:
    """`met`: names that are known besides those of who speaks in the graphs."""
    return read_question(
        query,
        now,
        known_names=lambda names: met.union(*(g.known_facets(names) for g in graphs)),
        take_names_out=profile.take_names_out,
    )


def _recalled(space: SpaceInfo, row: ItemRow, score: float) -> Recalled:
    item = views.item(space, row)
    return Recalled(
        id=item.id, content=row.content, score=score, item=item, segment=views.segment(row)
    )


def _oldest_first(
    chosen: Sequence[int], rows: Sequence[ItemRow]
) -> tuple[list[int], list[ItemRow]]:
    order = sorted(range(len(rows)), key=lambda at: (rows[at].time, rows[at].uid))
    return [chosen[at] for at in order], [rows[at] for at in order]


def _placed(ranked: Ranked, chosen: Sequence[int], hits: Sequence[Recalled]) -> list[Placed]:
    return [
        Placed(ranked.candidates[ranked.space[place]], int(ranked.at[place]), hit)
        for place, hit in zip(chosen, hits, strict=True)
    ]


def _row_filter(filters: Filters, now: datetime, moments: Moments) -> RowFilter:
    """The caller's filters as the graph knows them. What has expired by `now` never ranks."""

    def group(name: str, values: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        return (tuple(term_hash(facet(name, value)) for value in values),) if values else ()

    return RowFilter(
        any_of=(*group("speaker", filters.speakers), *group("session", filters.sessions)),
        all_of=(
            *(term_hash(facet("tag", tag)) for tag in filters.tags),
            *(
                term_hash(facet("meta", key, canonical_json(value)))
                for key, value in filters.metadata.items()
            ),
        ),
        kinds=tuple(KIND_CODES[kind.value] for kind in filters.kinds),
        without_kinds=HIDDEN,
        since=None if filters.since is None else to_micros(filters.since),
        until=None if filters.until is None else to_micros(filters.until),
        now=to_micros(now),
        holds_at=to_micros(moments.as_of or now),
        as_of=None if moments.as_of is None else to_micros(moments.as_of),
        known_at=None if moments.known_at is None else to_micros(moments.known_at),
        trusted_only=filters.trusted_only,
    )


def _entries(
    record: RecallRecord,
    ranked: Ranked,
    chosen: Sequence[int],
    rows: Sequence[ItemRow],
    records: Sequence[tuple[int, SemanticRecord]],
) -> Entries:
    """One record per space that gave something; of a recall that found nothing, one of none."""
    entries: Entries = []
    spaces, at, scores = (part[chosen].tolist() for part in (ranked.space, ranked.at, ranked.score))
    for index, space in enumerate(ranked.spaces):
        found = ranked.candidates[index]
        anchors = found.dense_anchor | found.lexical_anchor
        hits = tuple(
            RecallHit(
                row.number,
                position,
                scores[position],
                not anchors[at[position]],
                found.via(at[position]),
            )
            for position, row in enumerate(rows)
            if spaces[position] == index
        )
        hits += tuple(
            RecallHit(known.item.number & _NUMBER, len(rows) + place, known.score, False)
            for place, (at_space, known) in enumerate(records)
            if at_space == index
        )
        if hits or (index == 0 and not chosen):
            entries.append((space, replace(record, hits=hits)))
    return entries
