"""The documentation is true: every block of it runs, every list in it is complete."""

from __future__ import annotations

import getpass
import inspect
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import annotated_types
import pytest
from documents import ROOT, Session, blocks, clean_environment
from pydantic.fields import FieldInfo

import cofire
from cofire import AsyncMemory, Memory, errors, types
from cofire.cli import exit_code
from cofire.interchange.native_records import item_to_json
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval.features import TERMS
from cofire.retrieval.profiles import MECHANISMS, PROFILES
from cofire.settings import Settings
from cofire.store.schema import metadata
from postgres_server import APPLICATION, OWNER
from serving import running_server

DOCS = ROOT / "docs"
GENERATED = {DOCS / "reference" / "cli.md"}
"""Made and tested elsewhere; here only its links and its manners are looked at."""
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
ENDPOINT = "http://localhost:8080/v1"
"""The address that documents use for an embedding server; one answers there in these tests."""
SERVER = "http://127.0.0.1:8321"
"""The address at which `cofire serve` listens; one does for a page that says `SERVED`."""
SERVED = "<!-- tested with a server -->"
DATABASE = "db.example.org/cofire"
"""The PostgreSQL database that documents use; one is made where they do."""
HOSTS = {
    "localhost:8080", "localhost:11434", "127.0.0.1:8321", "api.openai.com", "example.org",
    "huggingface.co", "keepachangelog.com", "semver.org", "arxiv.org", "github.com",
    "www.apache.org",
}  # fmt: skip
INSTALLED = re.compile(r"/(opt|etc|var/lib)/cofire\b|/etc/systemd/system\b")
"""Where deploy/ puts Cofire, on any machine."""
PRIVATE = (
    r"(?<![\w.~])/(?:work|home|root|Users|tmp|var|opt|mnt|etc)/[\w.]",
    r"\b[A-Z]:\\Users",
    r"\b(?!127\.0\.0\.1\b|0\.0\.0\.0\b)(?:\d{1,3}\.){3}\d{1,3}\b",  # those mean any machine's own
)
"""What a page says of the machine it was written on."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Running


class _Endpoint(BaseHTTPRequestHandler):
    """An OpenAI-compatible embedding server whose every model hashes words."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = HashingEmbedder(128).embed_passages(body["input"]).vectors
        data = [
            {"object": "embedding", "index": index, "embedding": [float(x) for x in vector]}
            for index, vector in enumerate(vectors)
        ]
        answer = json.dumps({"object": "list", "model": body["model"], "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


CORRECTIONS = {"sample-0": {"1": {"kind": "wrong_citation", "evidence": ["D1:3"]}}}


def small_locomo() -> list[Mapping[str, Any]]:
    """Two conversations in LoCoMo's format, invented, so that the real data need not be here."""
    samples: list[Mapping[str, Any]] = []
    for number, (first, second) in enumerate((("Mara", "Ilse"), ("Joris", "Wiebke"))):
        turns = [
            (first, "I finally painted the boathouse green last Friday."),
            (second, "Green! And what became of the old rowing boat?"),
            (first, "Sold it to the ferryman for forty euros."),
            (second, f"My sister Tilda moved to Emden in year {number}."),
        ]
        samples.append(
            {
                "sample_id": f"sample-{number}",
                "conversation": {
                    "speaker_a": first,
                    "speaker_b": second,
                    "session_1_date_time": "1:56 pm on 8 May, 2025",
                    "session_1": [
                        {"speaker": who, "dia_id": f"D1:{place}", "text": text}
                        for place, (who, text) in enumerate(turns, start=1)
                    ],
                },
                "qa": [
                    {
                        "question": f"When did {first} paint the boathouse?",
                        "answer": "2 May 2025", "evidence": ["D1:1"], "category": 2,
                    },
                    {
                        "question": f"Who bought {first}'s rowing boat?",
                        "answer": "the ferryman", "evidence": ["D1:2", "D1:3"], "category": 1,
                    },
                    {
                        "question": f"Where does {second}'s sister live?",
                        "answer": "Emden", "evidence": ["D1:4"], "category": 4,
                    },
                ],
            }
        )  # fmt: skip
    return samples


@pytest.mark.parametrize("page", [p for p in PAGES if p not in GENERATED], ids=named)
def test_everything_shown_happens(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
    request: pytest.FixtureRequest,
) -> None:
    text = page.read_text(encoding="utf-8")
    chosen = re.search(r"<!-- tested with: (\S+) -->", text)
    clean_environment(tmp_path, chosen[1] if chosen else "hashing:256", monkeypatch)
    (tmp_path / "locomo10.json").write_text(json.dumps(small_locomo()), encoding="utf-8")
    (tmp_path / "corrections.json").write_text(json.dumps(CORRECTIONS), encoding="utf-8")
    session = Session(folder=tmp_path, monkeypatch=monkeypatch, replaced={ENDPOINT: endpoint})
    if f"@{DATABASE}" in text:
        # Where it does not matter, the tables are there already: making them takes seconds.
        makes = ": made with schema" in text
        database = request.getfixturevalue("postgres_database" if makes else "postgres_store")
        session.reader = database.admin_url
        for role, url in ((OWNER, database.owner_url), (APPLICATION, database.app_url)):
            session.replaced[f"postgresql://{role}@{DATABASE}"] = url
    with ExitStack() as serving:
        if SERVED in text:
            served = serving.enter_context(running_server(tmp_path / "served.db"))
            session.replaced[SERVER] = served.url
        session.run(page)
    shows = {"python", "console", "sh", "sql"}
    expected = any(block.language in shows for block in blocks(page))
    assert (session.ran > 0) is expected


# Saying all


def test_settings_are_all_explained() -> None:
    rows = table(DOCS / "reference" / "settings.md")
    wanted = {
        f"`COFIRE_{name.upper()}`": (default_of(name, field), range_of(field))
        for name, field in Settings.model_fields.items()
    }
    assert {name: tuple(cells[:2]) for name, *cells in rows if name in wanted} == wanted


def test_every_variable_is_explained() -> None:
    text = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    read = {
        name
        for source in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"COFIRE_[A-Z]+(?:_[A-Z]+)*", source.read_text(encoding="utf-8"))
    } - {"COFIRE_RULE"}  # a constant of Python
    assert {name for name in read if f"`{name}`" not in text} == set()


def table(page: Path) -> list[list[str]]:
    """The cells of every table row of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if line.startswith("|")
    ]


def default_of(name: str, field: FieldInfo) -> str:
    if field.default_factory is not None:
        return {
            "store": "`memory.db` in the platform's data folder",
            "threads": "the smaller of 2 and the number of cores",
        }[name]
    if field.default is None or field.default == "":
        return "none"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{str(field.default).removesuffix('.0')}`"


def range_of(field: FieldInfo) -> str:
    """The bounds of a number, or the words that may be given."""
    if field.annotation is bool:
        return "`true`, `false`"
    choices = getattr(field.annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return ", ".join(f"`{choice}`" for choice in choices)
    bounds = []
    for bound in field.metadata:
        match bound:
            case annotated_types.Ge(ge=least):
                bounds.append(f"from {least:,}")
            case annotated_types.Gt(gt=least):
                bounds.append(f"above {least:,}")
            case annotated_types.Le(le=most):
                bounds.append(f"to {most:,}")
    return " ".join(bounds) or "text"


def test_the_api_reference_is_current() -> None:
    script = ROOT / "scripts" / "make_api_reference.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def public(module: Any) -> set[str]:
    """The names that a module defines for others."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def test_the_api_reference_is_complete() -> None:
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    names = set(cofire.__all__) | public(types) | public(errors)
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()
    for owner in (Memory, AsyncMemory):
        parts = [part for part in owner.__mro__ if part is not object]
        methods = {name for part in parts for name in vars(part) if not name.startswith("_")}
        shown = set(re.findall(rf"^### {owner.__name__}\.(\w+)$", text, re.MULTILINE))
        if owner is AsyncMemory:
            shown = set(re.findall(r"`AsyncMemory\.(\w+)`", text))
        assert methods == shown
    for name, method in inspect.getmembers(Memory, callable):
        if not name.startswith("_"):
            section = text.split(f"\n### Memory.{name}\n", 1)[1].split("\n### ", 1)[0]
            parameters = set(inspect.signature(method).parameters) - {"self"}
            assert {one for one in parameters if one not in section} == set(), name


def test_errors_are_all_explained() -> None:
    rows = table(DOCS / "reference" / "errors-and-exit-codes.md")
    shown = {cells[0]: cells[1] for cells in rows if cells[0].startswith("`") and len(cells) == 4}
    wanted = {f"`{name}`": str(exit_code(getattr(errors, name)("x"))) for name in public(errors)}
    assert shown == wanted


def test_tables_and_columns_are_all_explained() -> None:
    text = (DOCS / "reference" / "store-schema.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert sections.keys() == metadata.tables.keys()
    missing = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if f"`{column.name}`" not in sections[table.name]
    }
    assert missing == set()


def test_the_export_format_is_explained() -> None:
    text = (DOCS / "reference" / "export-format.md").read_text(encoding="utf-8")
    source = inspect.getsource(inspect.getmodule(item_to_json))  # type: ignore[arg-type]
    written = set(re.findall(r"^\s+(\w+)=", source.split("def record_from_json")[0], re.MULTILINE))
    assert {name for name in written if f"`{name}`" not in text} == set()


def test_terms_and_profiles_are_explained() -> None:
    text = (DOCS / "explanation" / "how-recall-works.md").read_text(encoding="utf-8")
    assert {name for name in (*TERMS, *PROFILES, *MECHANISMS) if f"`{name}`" not in text} == set()
    chosen = PROFILES["cofire"]
    assert f"`depth` ({chosen.depth})" in text
    assert f"k₁ = {chosen.bm25.k1}, b = {chosen.bm25.b}" in text
    assert "three turns back and one forward" in text
    assert (min(chosen.window), max(chosen.window)) == (-3, 1)


def test_figures_have_their_places() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    places = re.findall(r"^<!-- figures:(\w+) -->\n.+?^<!-- /figures -->$", text, re.M | re.S)
    assert places == ["locomo", "answers", "speed"]


# Manners


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", without_fences(page)):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        there = found.exists() and found.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_nothing_of_this_machine_is_told(page: Path) -> None:
    text = INSTALLED.sub("", page.read_text(encoding="utf-8"))
    found = {match for pattern in PRIVATE for match in re.findall(pattern, text)}
    found |= {host for host in re.findall(r"https?://([^/\s)`\"'>]+)", text) if host not in HOSTS}
    for name in (socket.gethostname(), getpass.getuser()):
        if name not in {"root", "localhost"} and re.search(rf"\b{re.escape(name)}\b", text):
            found.add(name)
    assert found == set()


def test_every_page_can_be_reached() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }
    assert {named(page) for page in DOCS.rglob("*.md") if page not in linked} == set()


def without_fences(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors that headings give, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_fences(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
