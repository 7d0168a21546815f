"""Run as a process of its own: serves one GGUF file over OpenAI's protocol on 127.0.0.1.

The first line of its standard input is a JSON object with `path`, `context` (tokens), `threads` and
`key`. It answers with one line, its address, once the model is loaded, and ends when its input
does: with the process that started it, however that ends. It imports nothing of Cofire.
"""

from __future__ import annotations

import json
import os
import sys


def serve() -> None:
    """Serve until the input ends. What goes wrong before the address is told, ends the process."""
    import xllamacpp

    wanted = json.loads(sys.stdin.readline())
    params = xllamacpp.CommonParams()
    params.model.path = wanted["path"]
    params.n_ctx = wanted["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = wanted["threads"]
    params.cpuparams.poll = 0  # threads that spin while they wait are slow on a busy machine
    params.api_keys = [wanted["key"]]  # other users of this machine reach the port, too
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # at once, also in the middle of an answer that nobody waits for


if __name__ == "__main__":
    serve()
