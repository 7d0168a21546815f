"""Speed of the local embedding model: loading, one question, batches, and the cache.

    python benchmarks/embedding.py [--threads N] [--texts N]

Texts are turns of ordinary length; medians and rates are printed, lower and higher is better.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import numpy as np

from cofire.models.caching import CachingEmbedder
from cofire.models.minilm import MiniLM

WORDS = (
    *("I", "we", "the", "a", "kiln", "pottery", "glaze", "friend", "yesterday", "garden"),
    *("walked", "talked", "about", "mountain", "remember", "lovely", "weekend", "project"),
    *("painting", "because", "really", "thinking", "family", "dinner"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=int, default=400)
    given = parser.parse_args()
    random.seed(7)
    texts = [" ".join(random.choices(WORDS, k=random.randint(3, 60))) for _ in range(given.texts)]
    embedder = MiniLM(threads=given.threads)

    started = time.perf_counter()
    tokens = [embedder.count_tokens(text) for text in texts]
    counting = time.perf_counter() - started
    started = time.perf_counter()
    embedder.embed_query("warm up")
    print(f"threads {given.threads}, {len(texts)} texts, mean {np.mean(tokens):.0f} wordpieces")
    print(f"load and check the model       {time.perf_counter() - started:8.3f} s")
    print(f"count wordpieces, first included {counting / len(texts) * 1e3:6.3f} ms a text")

    short = "When did Caroline go to the support group?"
    print(f"one question                   {median(lambda: embedder.embed_query(short)):8.2f} ms")
    started = time.perf_counter()
    together = embedder.embed_passages(texts).vectors
    batched = time.perf_counter() - started
    started = time.perf_counter()
    alone = np.concatenate([embedder.embed_passages([text]).vectors for text in texts])
    single = time.perf_counter() - started
    print(f"passages in batches            {batched / len(texts) * 1e3:8.2f} ms a text")
    print(f"passages one by one            {single / len(texts) * 1e3:8.2f} ms a text")
    print(f"largest difference             {np.abs(together - alone).max():8.1e}")

    cache = CachingEmbedder(embedder, max_bytes=64_000_000)
    cache.embed_query(short)
    print(
        f"cached question                {median(lambda: cache.embed_query(short)) * 1e3:8.2f} µs"
    )


def median(call: Callable[[], object], runs: int = 50) -> float:
    """Milliseconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    main()
