"""Other memory libraries behind one small interface, each with the embedder it is given.

Each is used as its documentation shows, on disk, with everything in one store and the filter by
user that every shared store needs. None may use the network: telemetry is off, and sockets to
anywhere are refused.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.corpus import DIMENSION, ConstantTimeEmbedder

USER = "nora"


class Side(Protocol):
    """One library with an open store."""

    name: str

    def add(self, texts: Sequence[str]) -> None:
        """Keep texts, durably."""

    def search(self, question: str, k: int) -> int:
        """Search as a user would; returns how many came back."""

    def close(self) -> None: ...


class Unavailable(Exception):  # noqa: N818 - a state, not an error
    """A library is not installed, or cannot be used here; the text says why."""


def refuse_network() -> None:
    """Switch telemetry off, and refuse connections to other machines if something tries."""
    os.environ.update(
        ANONYMIZED_TELEMETRY="False", MEM0_TELEMETRY="False", HF_HUB_OFFLINE="1",
        LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false", DO_NOT_TRACK="1",
        OPENAI_API_KEY="none",
    )  # fmt: skip
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            raise OSError(f"a benchmark uses no network, but something connects to {address}")
        connect(self, address)

    socket.socket.connect = guarded  # type: ignore[method-assign, assignment]


def required(name: str) -> Any:
    """An installed module. Raises Unavailable."""
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise Unavailable(f"not installed ({exc})") from exc


class LangGraph:
    """LangGraph's SqliteStore with a vector index (sqlite-vec)."""

    name = "langgraph SqliteStore"

    def __init__(self, folder: Path, embedder: ConstantTimeEmbedder) -> None:
        sqlite, vec = required("pysqlite3"), required("sqlite_vec")
        store = required("langgraph.store.sqlite").SqliteStore
        self._put = required("langgraph.store.base").PutOp
        path = str(folder / "langgraph.db")
        self._connection = sqlite.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.enable_load_extension(True)
        vec.load(self._connection)

        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [embedder.vector(text).tolist() for text in texts]

        index = {"dims": DIMENSION, "embed": embed, "fields": ["text"]}
        self._store = store(self._connection, index=index)
        self._store.setup()
        self._count = 0

    def add(self, texts: Sequence[str]) -> None:
        operations = []
        for text in texts:
            self._count += 1
            operations.append(self._put((USER, "memories"), str(self._count), {"text": text}))
        for start in range(0, len(operations), 100):  # SQLite's limit of parameters
            self._store.batch(operations[start : start + 100])

    def search(self, question: str, k: int) -> int:
        return len(self._store.search((USER, "memories"), query=question, limit=k))

    def close(self) -> None:
        self._connection.close()


class Chroma:
    """Chroma's persistent client; one collection, a `where` for the user."""

    name = "chromadb, where"

    def __init__(self, folder: Path, embedder: ConstantTimeEmbedder) -> None:
        chromadb = required("chromadb")
        settings = required("chromadb.config").Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(folder / "chroma"), settings=settings)
        self._collection = client.create_collection(
            "memories", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )
        self._embedder = embedder
        self._count = 0

    def add(self, texts: Sequence[str]) -> None:
        first = self._count
        self._count += len(texts)
        self._collection.add(
            ids=[str(number) for number in range(first, self._count)],
            documents=list(texts),
            embeddings=[self._embedder.vector(text) for text in texts],
            metadatas=[{"user": USER}] * len(texts),
        )

    def search(self, question: str, k: int) -> int:
        found = self._collection.query(
            query_embeddings=[self._embedder.vector(question)],
            n_results=k,
            where={"user": USER},
        )
        return len(found["ids"][0])

    def close(self) -> None:
        """It has no way to be closed."""


class _Mem0Embedder:
    """What mem0 asks of an embedding model."""

    def __init__(self, embedder: ConstantTimeEmbedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._embedder.vector(text).tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> Any:
        return [self.embed(text) for text in texts]


class Mem0:
    """mem0 without a language model (infer=False), Qdrant in a local folder."""

    name = "mem0ai, local Qdrant"

    def __init__(self, folder: Path, embedder: ConstantTimeEmbedder) -> None:
        os.environ["MEM0_DIR"] = str(folder / "mem0")
        memory = required("mem0").Memory
        self._memory = memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "memories",
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": DIMENSION,
                    },
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Mem0Embedder(embedder)

    def add(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._memory.add(text, user_id=USER, infer=False)

    def search(self, question: str, k: int) -> int:
        found = self._memory.search(question, top_k=k, filters={"user_id": USER})
        return len(found["results"] if isinstance(found, dict) else found)

    def close(self) -> None:
        self._memory.vector_store.client.close()


PEERS: tuple[Callable[[Path, ConstantTimeEmbedder], Side], ...] = (LangGraph, Chroma, Mem0)


def open_peers(folder: Path, embedder: ConstantTimeEmbedder) -> tuple[list[Side], dict[str, str]]:
    """Those that can be used here, and why the others cannot."""
    sides: list[Side] = []
    skipped: dict[str, str] = {}
    for peer in PEERS:
        name: str = peer.name  # type: ignore[attr-defined]
        try:
            sides.append(peer(folder, embedder))
        except Unavailable as exc:
            skipped[name] = str(exc)
        except Exception as exc:  # noqa: BLE001 - foreign code: report it and measure the others
            skipped[name] = f"could not be opened: {json.dumps(repr(exc))}"
    return sides, skipped
