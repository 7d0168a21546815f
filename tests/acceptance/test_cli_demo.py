"""The demo is the first thing anybody sees: it runs with the real model and reads well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cofire_process import Cofire, Done

from cofire.cli.explaining import MEANINGS
from cofire.cli.output import columns


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    cofire = Cofire(tmp_path_factory.mktemp("demo"))
    # No key, server or network: these would fail if it asked for any.
    cofire.env |= {"COFIRE_EMBEDDER": "minilm", "HTTPS_PROXY": "http://127.0.0.1:9"}
    result = cofire.ok("demo", "--keep", "kept.db")
    assert not cofire.store.exists(), "the demo touches nothing of the user's"
    assert cofire.ok("stats", "--store", "kept.db", "--json").json["items"] == 165
    assert cofire.run("demo", "--keep", "kept.db").code == 2
    return result


def test_it_reads_well_in_a_pipe(done: Done) -> None:
    assert done.err == ""
    assert "\x1b" not in done.out
    assert max(map(columns, done.out.splitlines())) <= 80
    assert all(line == line.rstrip() for line in done.out.splitlines())


def test_it_shows_questions_turns_reasons_and_a_summary(done: Done) -> None:
    assert "1. When did Nora see the moons of Jupiter?" in done.out
    assert re.search(r" 1 ✓ 17 March 2026,? Nora: And another thing", done.out)
    assert done.out.count("Why the first?") == 12
    assert "Found by its meaning and by its words (“Jupiter”, “Moons”)." in done.out
    assert re.search(r"\+\d\.\d\d from the turn (before|after) it \(", done.out)
    for line in ("answers found", "tokens used", "ms per recall", "Try next", "cofire recall"):
        assert line in done.out


def test_it_leaves_nothing_behind_and_sends_nothing(cofire: Cofire, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    document = cofire.ok("demo", "--json").json
    assert set(tmp_path.iterdir()) == before
    assert len(document["questions"]) == 12
    summary = document["summary"]
    assert summary["in_first_10"] >= summary["evidence_turns"] / 2
    assert summary["tokens_per_recall"] < summary["tokens_of_everything"] / 5


def test_every_term_of_a_score_has_plain_words() -> None:
    from cofire.retrieval.features import TERMS

    assert set(TERMS) == set(MEANINGS)
