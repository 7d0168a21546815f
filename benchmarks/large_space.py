"""One space on PostgreSQL, held in memory and served by the database's indexes.

    python -m benchmarks.large_space --sizes 20000,100000

For each size: recall@10 of the HNSW index against exact search, how many of the ten memories of a
whole recall are the same both ways, the time of a recall both ways, and what the index takes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.corpus import ConstantTimeEmbedder, messages, questions
from benchmarks.recall import NOW, Figures, K, timed
from benchmarks.serving import database, encoded, serving
from cofire.retrieval.engine import Recaller
from cofire.retrieval.profiles import profile_named
from cofire.store import Store, open_store
from cofire.store.large_spaces import NEAREST, nearest, scan
from cofire.store.reading import SPACE_STATE
from cofire.store.records import SpaceInfo
from cofire.store.session import Session, of_space
from cofire.types import Filters, SpaceRef

CHUNK = 5_000
"""Memories stored in one transaction."""


def figures_of(size: int, asked: int, folder: Path | None) -> Figures:
    """What one size gives."""
    embedder, texts = ConstantTimeEmbedder(), messages(size)
    wanted = questions(texts, asked)
    embedder.prepare([*(message.content for message in texts), *wanted])
    with (
        serving(folder, shared_buffers="512MB", max_wal_size="4GB") as server,
        database(server) as made,
        open_store(made.app_url) as store,
    ):
        space = store.space(SpaceRef(tenant="large", identity="one"), create=True)
        assert space is not None
        space = store.set_model(space, embedder.name, embedder.dimension)
        for start in range(0, size, CHUNK):
            chunk = encoded(texts[start : start + CHUNK], embedder)
            store.append(space, [item for items in chunk for item in items])
        return _both_ways(store, space, embedder, wanted, made.admin_url)


def _both_ways(
    store: Store, space: SpaceInfo, embedder: ConstantTimeEmbedder, wanted: list[str], admin: str
) -> Figures:
    recaller = Recaller(store, embedder, embedder, 4 << 30)
    before, times_before = _recalls(recaller, space, wanted)
    graph = recaller.graph(space)
    exact = []
    for question in wanted:
        rows, _ = graph.dense(embedder.embed_query(question)[0], top=K)
        exact.append(set(graph.column("number")[rows].tolist()))
    figures: Figures = {"graph in memory [MB]": graph.nbytes / 1e6}
    started = time.perf_counter()
    store.set_indexed(space, True)
    figures["building the index [s]"] = time.perf_counter() - started
    figures["index [MB]"] = _index_bytes(admin) / 1e6
    figures |= _searched(store, space, embedder, wanted, exact)
    after, times_after = _recalls(recaller, space, wanted)
    same = [len(set(one) & set(other)) / max(1, len(one))
            for one, other in zip(before, after, strict=True)]  # fmt: skip
    figures["whole recall: the same of the top 10"] = float(np.mean(same))
    figures["whole recall: the same first"] = float(
        np.mean([one[:1] == other[:1] for one, other in zip(before, after, strict=True)])
    )
    for name, times in (("in memory", times_before), ("by indexes", times_after)):
        for share in (50, 95):
            figures[f"recall {name}, p{share} [ms]"] = float(np.percentile(times, share))
    recaller.close()
    return figures


def _recalls(
    recaller: Recaller, space: SpaceInfo, wanted: Sequence[str]
) -> tuple[list[list[str]], list[float]]:
    profile = profile_named("cofire")
    found: list[list[str]] = []

    def ask(question: str) -> None:
        recall, _ = recaller.recall(
            (space,), question, K, profile=profile, now=NOW, filters=Filters()
        )
        found.append([item.id for item in recall.items])

    for question in wanted[:3]:
        ask(question)
    found.clear()
    times = [timed(partial(ask, question)) for question in wanted]
    return found, times


def _searched(
    store: Store,
    space: SpaceInfo,
    embedder: ConstantTimeEmbedder,
    wanted: Sequence[str],
    exact: Sequence[set[int]],
) -> Figures:
    """The index alone: recall@10 is the share of the ten nearest that are among those found."""
    shares, times = [], []
    for question, best in zip(wanted, exact, strict=True):
        vector = embedder.embed_query(question)[0].astype("<f2").tobytes()

        def search(session: Session, vector: bytes = vector) -> set[int]:
            here = {"tenant": space.tenant_id, "space": space.space_id}
            state = session.one(SPACE_STATE, **here)
            assert state is not None
            scan(session)
            query = nearest(embedder.dimension, None)
            rows = session.all(query, model=state[2], asked=vector, most=NEAREST, **here)
            return {row[0] for row in rows}

        started = time.perf_counter()
        found = store._backend.read(of_space(space), search)  # the index alone
        times.append(1e3 * (time.perf_counter() - started))
        shares.append(len(best & found) / max(1, len(best)))
    return {
        "HNSW: recall@10 against exact": float(np.mean(shares)),
        f"HNSW: {NEAREST} nearest, p50 [ms]": float(np.median(times)),
    }


def _index_bytes(admin: str) -> int:
    import psycopg

    with psycopg.connect(admin) as connection:
        rows = connection.execute(
            "SELECT sum(pg_relation_size(part.relid)) "
            "FROM pg_partition_tree('cofire.ix_vectors_384') AS part WHERE part.isleaf"
        ).fetchall()
    return int(rows[0][0])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures each size, and writes one JSON object per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20000,100000")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args(arguments)
    for size in map(int, given.sizes.split(",")):
        figures = figures_of(size, given.questions, given.folder)
        told = {name: round(value, 3) for name, value in figures.items()}
        sys.stdout.write(json.dumps({"memories": size, **told}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
