"""Models behind two seams, one to embed and one to generate; `make_embedder` and `make_generator`
alone know the concrete classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cofire.models.embedder import Embedded, Embedder, Vector
from cofire.models.generator import Generated, Generation, Generator

if TYPE_CHECKING:
    from cofire.settings import Settings

__all__ = [
    "Embedded",
    "Embedder",
    "Generated",
    "Generation",
    "Generator",
    "Vector",
    "make_embedder",
    "make_generator",
]


def make_embedder(settings: Settings, stored: tuple[str, int] | None = None) -> Embedder:
    """The embedder that the settings choose, behind a cache; nothing is loaded or asked yet.

    Within a process the same choice is one embedder with one cache, held until its last user
    closes it. `stored` are the name and the dimension of the vectors it is to go with: where the
    name is the same, a model that only its server knows need not be asked for its dimension.
    """
    from cofire.models.sharing import SharedEmbedder

    choice = tuple(
        value
        for name, value in settings
        if name in {"embedder", "threads"} or name.startswith("embedding_")
    )
    return SharedEmbedder((*choice, stored), lambda: _cached(settings, stored))


def make_generator(settings: Settings, spec: str | None = None) -> Generator | None:
    """The language model that the settings choose, or that `spec` ("none", "openai:MODEL", "local",
    "local:PATH") names in their place; None where there is to be none. Nothing is asked or started
    yet.

    Raises ConfigurationError where it cannot be used with the settings, or is not there.
    """
    if spec == "none":  # without reading all settings anew
        return None
    from cofire.settings import with_generator

    settings = settings if spec is None else with_generator(settings, spec)
    choice, _, model = settings.generator.partition(":")
    if choice == "none":
        return None
    if choice == "local":
        from cofire.models.local_generator import LocalGenerator, local_weights

        return LocalGenerator(
            local_weights(model or settings.local_model),
            context=settings.local_context,
            threads=settings.threads,
            timeout=settings.generator_timeout,
            max_tokens=settings.generator_max_tokens,
        )
    from cofire.models.openai_generator import OpenAIGenerator

    key = settings.generator_api_key
    return OpenAIGenerator(
        model,
        base_url=settings.generator_base_url,
        api_key=key.get_secret_value() if key is not None else None,
        timeout=settings.generator_timeout,
        retries=settings.generator_retries,
        max_tokens=settings.generator_max_tokens,
    )


def _cached(settings: Settings, stored: tuple[str, int] | None) -> Embedder:
    from cofire.models.caching import CachingEmbedder

    inner, query_prefix, passage_prefix = _inner(settings, stored)
    return CachingEmbedder(
        inner,
        max_bytes=settings.embedding_cache_mb * 1_000_000,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )


def _inner(settings: Settings, stored: tuple[str, int] | None) -> tuple[Embedder, str, str]:
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
            stored=stored,
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
    from cofire.models.sharing import SharedEmbedder

    threads = settings.threads  # caches of different sizes share the model all the same
    return SharedEmbedder(("minilm", threads), lambda: MiniLM(threads=threads)), "", ""
