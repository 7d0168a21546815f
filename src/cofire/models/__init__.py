"""Embedding models behind one seam; `make_embedder` alone knows the concrete classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cofire.models.embedder import Embedded, Embedder, Vector

if TYPE_CHECKING:
    from cofire.models.caching import CachingEmbedder
    from cofire.settings import Settings

__all__ = ["Embedded", "Embedder", "Vector", "make_embedder"]


def make_embedder(settings: Settings) -> CachingEmbedder:
    """The embedder that the settings choose, behind a cache. Nothing is loaded or asked yet."""
    from cofire.models.caching import CachingEmbedder

    inner, query_prefix, passage_prefix = _inner(settings)
    return CachingEmbedder(
        inner,
        max_bytes=settings.embedding_cache_mb * 1_000_000,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )


def _inner(settings: Settings) -> tuple[Embedder, str, str]:
    """The bare embedder and the prefixes it puts before questions and passages."""
    choice, _, argument = settings.embedder.partition(":")
    if choice == "openai":
        from cofire.models.openai_compatible import OpenAICompatible

        key = settings.embedding_api_key
        prefixes = (settings.embedding_query_prefix, settings.embedding_passage_prefix)
        remote = OpenAICompatible(
            argument,
            base_url=settings.embedding_base_url,
            api_key=key.get_secret_value() if key is not None else None,
            dimension=settings.embedding_dimension,
            query_prefix=prefixes[0],
            passage_prefix=prefixes[1],
            timeout=settings.embedding_timeout,
            batch=settings.embedding_batch,
            encoding=settings.embedding_encoding,
        )
        return remote, *prefixes
    if choice == "hashing":
        from cofire.models.hashing import HashingEmbedder

        return HashingEmbedder(int(argument)), "", ""
    from cofire.models.minilm import MiniLM

    return MiniLM(threads=settings.threads), "", ""
