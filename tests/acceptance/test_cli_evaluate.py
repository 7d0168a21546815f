"""`evaluate locomo` on a small conversation: a table to read, figures to keep."""

from __future__ import annotations

import json

import pytest
from cofire_process import Cofire

CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I planted a plum tree today."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "In the yard, or by the river?"},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "By the river, next to the boats."},
            {"speaker": "Ben", "dia_id": "D1:4", "text": "My sister repairs boats for a living."},
        ],
    },
    "qa": [
        {"question": "What did Ada plant?", "answer": "a plum tree", "category": 4,
         "evidence": ["D1:1"]},
        {"question": "Who repairs boats?", "answer": "Ben's sister", "category": 4,
         "evidence": ["D1:4"]},
    ],
}  # fmt: skip


@pytest.fixture
def locomo(cofire: Cofire) -> Cofire:
    (cofire.folder / "locomo.json").write_text(json.dumps([CONVERSATION]))
    return cofire


def test_a_table_and_a_file(locomo: Cofire) -> None:
    done = locomo.ok(
        "evaluate", "locomo", "locomo.json", "--profiles", "cofire,lexical", "--k", "1,2",
        "--json", "figures.json",
    )  # fmt: skip
    assert "2 questions" in done.out
    assert "lexical" in done.out
    assert "\x1b" not in done.out
    assert done.err == "Figures written to figures.json.\n"
    figures = json.loads((locomo.folder / "figures.json").read_text())
    assert figures["ks"] == [1, 2]
    assert {"cofire", "lexical", "cofire without dense"} <= set(figures["profiles"])
    assert [path.name for path in locomo.folder.glob(".*partial")] == []
    assert not locomo.store.exists(), "it works in a store of its own"


def test_json_alone(locomo: Cofire) -> None:
    done = locomo.ok("evaluate", "locomo", "locomo.json", "--profiles", "lexical", "--json", "-")
    assert done.err == ""
    assert done.json["questions"] == 2


def test_what_goes_wrong(locomo: Cofire) -> None:
    assert locomo.run("evaluate", "locomo", "missing.json").code == 3
    assert locomo.run("evaluate", "locomo", "locomo.json", "--profiles", "none").code == 2
    (locomo.folder / "odd.json").write_text("not JSON")
    assert locomo.run("evaluate", "locomo", "odd.json").code == 1
