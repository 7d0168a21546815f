"""Write docs/reference/openapi.json, what REST's routes take and answer; `--check` only says if it
is stale."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from cofire.memories import Memories
from cofire.server.access import local_caller
from cofire.server.app import create_app
from cofire.server.authentication import Authenticator
from cofire.server.service import Service

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "openapi.json"


def document() -> str:
    """The OpenAPI document of a server as it is now, without the version of Cofire."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Memories.open(Path(folder) / "memory.db", embedder="hashing:64") as memories,
    ):
        service = Service(memories)
        authenticator = Authenticator(memories.store, local=local_caller())
        described = create_app(service, authenticator).openapi()
        authenticator.close()
    described["info"]["version"] = "1"  # of the routes; a release that changes none changes nothing
    return json.dumps(described, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    text = document()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET} is stale; run python {sys.argv[0]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
