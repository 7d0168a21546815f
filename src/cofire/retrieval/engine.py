"""`Recaller`: one question over several spaces, from words to ranked memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from time import perf_counter

import numpy as np

from cofire import views
from cofire.dynamics.arrays import F64, Rows
from cofire.dynamics.ranking import order, round_scores
from cofire.encoding.terms import canonical_json, facet, term_hash
from cofire.errors import EmbeddingError
from cofire.graph.masks import RowFilter, row_mask
from cofire.models import Embedder
from cofire.retrieval.features import TERMS, Candidates, find_candidates
from cofire.retrieval.loading import Graphs
from cofire.retrieval.profiles import Profile
from cofire.retrieval.question import Asked, Question, read_question
from cofire.retrieval.tracing import Placed, trace
from cofire.store import Store
from cofire.store.records import KIND_CODES, Finding, ItemRow, RecallHit, RecallRecord, SpaceInfo
from cofire.types import (
    INTERNAL_KINDS,
    Filters,
    Recall,
    Recalled,
    from_micros,
    line_header,
    new_uuid7,
    to_micros,
)

Entries = list[tuple[SpaceInfo, RecallRecord]]
HIDDEN = tuple(KIND_CODES[kind.value] for kind in INTERNAL_KINDS)
"""Kinds that are never returned as memories."""


@dataclass(slots=True)
class Ranked:
    """All candidates of all spaces, best first: `space[i]`, position `at[i]` among that space's
    candidates, and the `score[i]`, rounded to 1e-6."""

    spaces: tuple[SpaceInfo, ...]
    candidates: tuple[Candidates, ...]
    space: Rows
    at: Rows
    score: F64


class Recaller:
    """Reads; never writes a memory. Safe to use from several threads."""

    def __init__(
        self, store: Store, embedder: Embedder | None, counter: Embedder, graph_bytes: int
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._graph_bytes = graph_bytes
        self._graphs = Graphs(store, embedder, graph_bytes)
        self._header_tokens = lru_cache(maxsize=1 << 14)(counter.count_tokens)

    @property
    def nbytes(self) -> int:
        """Bytes of active graphs in memory."""
        return self._graphs.nbytes

    def forget(self, space: SpaceInfo) -> None:
        """After a deletion in `space`."""
        self._graphs.forget(space)
        self._header_tokens.cache_clear()

    def use(self, embedder: Embedder) -> None:
        """From now on embed questions with another model."""
        self._graphs.close()
        self._embedder = embedder
        self._graphs = Graphs(self._store, embedder, self._graph_bytes)
        self._header_tokens = lru_cache(maxsize=1 << 14)(embedder.count_tokens)

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
        explain: bool = False,
    ) -> tuple[Recall, Entries]:
        """The recall, and what is to be recorded of it."""
        started = perf_counter()
        ranked, question, warnings, timings = self.rank(
            spaces, query, profile=profile, now=now, filters=filters
        )
        ranking = perf_counter()
        chosen, rows = self._chosen(ranked, k, token_budget)
        hits = [
            Recalled(
                id=views.public_id(row.whole),
                content=row.content,
                score=float(ranked.score[place]),
                item=views.item(ranked.spaces[ranked.space[place]], row),
                segment=views.segment(row),
            )
            for place, row in zip(chosen, rows, strict=True)
        ]
        timings["fetch"] = 1e3 * (perf_counter() - ranking)
        timings["total"] = 1e3 * (perf_counter() - started)
        uid = new_uuid7()
        recall = Recall(
            id=str(uid),
            query=query,
            items=tuple(hits),
            profile=profile.name,
            tokens=sum(self._tokens(hit) for hit in hits),
            warnings=warnings,
            trace=trace(_placed(ranked, chosen, hits), profile, question, timings)
            if explain
            else None,
        )
        record = RecallRecord(
            uid=uid.bytes, query=query, time=to_micros(now), profile=profile.name, hits=()
        )
        return recall, _entries(record, ranked, chosen, rows)

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
        started = perf_counter()
        graphs = [self._graphs.get(space) for space in spaces]
        refreshed = perf_counter()
        question = read_question(
            query,
            now,
            known_name=lambda name: any(len(g.facets.rows(name, g.live)) for g in graphs),
            take_names_out=profile.take_names_out,
        )
        asked, warnings = self._asked(question, profile)
        embedded = perf_counter()
        wanted = _row_filter(filters, now)
        candidates = tuple(
            find_candidates(graph, asked, profile, row_mask(graph, wanted)) for graph in graphs
        )
        ranked = _ranked(tuple(spaces), candidates, profile)
        done = perf_counter()
        return (
            ranked,
            question,
            warnings,
            {
                "refresh": 1e3 * (refreshed - started),
                "embed": 1e3 * (embedded - refreshed),
                "rank": 1e3 * (done - embedded),
            },
        )

    def candidates(
        self, spaces: Sequence[SpaceInfo], query: str, *, profile: Profile, now: datetime
    ) -> tuple[tuple[str, ...], F64]:
        """Ids and terms of every candidate, best first. A segment goes by its whole's id."""
        ranked, _, _, _ = self.rank(spaces, query, profile=profile, now=now, filters=Filters())
        matrices = [found.matrix() for found in ranked.candidates]
        terms = np.zeros((len(ranked.score), len(TERMS)), np.float64)
        ids: list[str] = [""] * len(ranked.score)
        for index, (space, found) in enumerate(zip(ranked.spaces, ranked.candidates, strict=True)):
            places = np.flatnonzero(ranked.space == index)
            rows = ranked.at[places]
            terms[places] = matrices[index][rows]
            numbers = found.graph.column("number")[found.rows[rows]].tolist()
            uids = {row.number: row.whole for row in self._store.fetch(space, numbers)}
            for place, number in zip(places.tolist(), numbers, strict=True):
                ids[place] = views.public_id(uids[number])
        return tuple(ids), terms

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
        except EmbeddingError as exc:
            return Asked(question=question, vector=None), (
                f"this recall went by words only, because embedding the question failed: {exc}",
            )
        if not good:
            return Asked(question=question, vector=None), (
                "this recall went by words only: the question has no usable vector",
            )
        return Asked(question=question, vector=vector), ()

    def _chosen(
        self, ranked: Ranked, k: int, token_budget: int | None
    ) -> tuple[list[int], list[ItemRow]]:
        """Places of what is returned, and the rows behind them, in rank order."""
        chosen: list[int] = []
        rows: list[ItemRow] = []
        left = token_budget
        at = 0
        while len(chosen) < k and at < len(ranked.score):
            places = range(at, min(at + k - len(chosen), len(ranked.score)))
            at = places.stop
            for place, row in self._fetched(ranked, places):
                if left is not None:
                    cost = row.tokens + self._header_cost(row)
                    if cost > left:  # whole items only; a shorter one further down may still fit
                        continue
                    left -= cost
                chosen.append(place)
                rows.append(row)
            if left is not None and left <= 0:
                break
        return chosen, rows

    def _fetched(self, ranked: Ranked, places: Sequence[int]) -> list[tuple[int, ItemRow]]:
        """Rows of ranked places; what another process forgot meanwhile is left out."""
        found: dict[tuple[int, int], ItemRow] = {}
        numbers: dict[tuple[int, int], int] = {}
        for index, (space, candidates) in enumerate(
            zip(ranked.spaces, ranked.candidates, strict=True)
        ):
            here = [place for place in places if ranked.space[place] == index]
            if not here:
                continue
            column = candidates.graph.column("number")
            wanted = [int(column[candidates.rows[ranked.at[place]]]) for place in here]
            for place, number in zip(here, wanted, strict=True):
                numbers[index, place] = number
            for row in self._store.fetch(space, wanted):
                found[index, row.number] = row
        result = []
        for place in places:
            index = int(ranked.space[place])
            fetched = found.get((index, numbers[index, place]))
            if fetched is not None:
                result.append((place, fetched))
        return result

    def _tokens(self, hit: Recalled) -> int:
        return hit.item.tokens + self._header_tokens(hit.header)

    def _header_cost(self, row: ItemRow) -> int:
        header = line_header(from_micros(row.time), row.offset, row.speaker or row.role)
        return self._header_tokens(header)


def _placed(ranked: Ranked, chosen: Sequence[int], hits: Sequence[Recalled]) -> list[Placed]:
    return [
        Placed(ranked.candidates[ranked.space[place]], int(ranked.at[place]), hit)
        for place, hit in zip(chosen, hits, strict=True)
    ]


def _ranked(
    spaces: tuple[SpaceInfo, ...], candidates: tuple[Candidates, ...], profile: Profile
) -> Ranked:
    """Merge the spaces' candidates: scores on one scale, rounded, ties broken by uid."""
    best = max((found.best_bm25 for found in candidates), default=0.0)
    weights = np.array([profile.weights.get(term, 0.0) for term in TERMS])
    scores, space, at, high, low = [], [], [], [], []
    for index, found in enumerate(candidates):
        if best > 0.0:
            found.columns["bm25"] = found.bm25 / best
        total = np.zeros(len(found.rows), np.float64)
        for term, weight in zip(TERMS, weights, strict=True):
            column = found.columns.get(term)
            if weight and column is not None:
                total += weight * column
        scores.append(total)
        space.append(np.full(len(total), index, np.intp))
        at.append(np.arange(len(total), dtype=np.intp))
        high.append(found.graph.column("uid_high")[found.rows])
        low.append(found.graph.column("uid_low")[found.rows])
    joined = round_scores(np.concatenate(scores))
    ranking = order(joined, np.concatenate(high), np.concatenate(low))
    return Ranked(
        spaces,
        candidates,
        np.concatenate(space)[ranking],
        np.concatenate(at)[ranking],
        joined[ranking],
    )


def _row_filter(filters: Filters, now: datetime) -> RowFilter:
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
    )


def _entries(
    record: RecallRecord, ranked: Ranked, chosen: Sequence[int], rows: Sequence[ItemRow]
) -> Entries:
    """One record per space that gave something; of a recall that found nothing, one of none."""
    entries: Entries = []
    for index, space in enumerate(ranked.spaces):
        found = ranked.candidates[index]
        hits = tuple(
            RecallHit(
                number=row.number,
                position=position,
                score=float(ranked.score[place]),
                linked=not (
                    found.dense_anchor[ranked.at[place]] or found.lexical_anchor[ranked.at[place]]
                ),
            )
            for position, (place, row) in enumerate(zip(chosen, rows, strict=True))
            if ranked.space[place] == index
        )
        if hits or (index == 0 and not chosen):
            entries.append((space, replace(record, hits=hits)))
    return entries
