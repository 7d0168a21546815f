"""`evaluate longmemeval` without an answerer: tables to read, figures to keep, clear refusals."""

from __future__ import annotations

import json

import pytest
from cofire_process import Cofire

ENTRIES = [
    {
        "question_id": name,
        "question_type": "multi-session",
        "question": "Which instrument did I buy?",
        "answer": "a violin",
        "question_date": "2023/05/30 (Tue) 09:00",
        "haystack_session_ids": ["answer_1", "s2"],
        "haystack_dates": ["2023/05/10 (Wed) 10:00", "2023/05/11 (Thu) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I bought an instrument, a violin.",
                 "has_answer": True},
                {"role": "assistant", "content": "Enjoy it."},
            ],
            [{"role": "user", "content": "The soup was too hot."}],
        ],
        "answer_session_ids": ["answer_1"],
    }
    for name in ("q1", "q2", "q3_abs")
]  # fmt: skip


@pytest.fixture
def haystacks(cofire: Cofire) -> Cofire:
    (cofire.folder / "lme.json").write_text(json.dumps(ENTRIES), encoding="utf-8")
    return cofire


def test_tables_and_a_file(haystacks: Cofire) -> None:
    done = haystacks.ok("evaluate", "longmemeval", "lme.json", "--k", "1,5", "--json", "out.json")
    assert "3 questions, 6 turns remembered" in done.out
    assert "Left out: 1 abstention." in done.out
    assert "cofire, user turns: by type" in done.out
    assert done.err == "Figures written to out.json.\n"
    figures = json.loads((haystacks.folder / "out.json").read_text(encoding="utf-8"))
    row = figures["profiles"]["cofire"]["levels"]["user turns"]["multi-session"]
    assert (row["questions"], row["all"]) == (2, [100.0, 100.0])
    assert not haystacks.store.exists(), "it works in a store of its own"


def test_limit_processes_and_json_alone(haystacks: Cofire) -> None:
    done = haystacks.ok(
        "evaluate", "longmemeval", "lme.json", "--limit", "1", "--jobs", "2",
        "--profiles", "lexical", "--json", "-",
    )  # fmt: skip
    assert done.err == ""
    assert (done.json["questions"], done.json["jobs"]) == (1, 2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--jobs", "0"), "--jobs takes a whole number from 1"),
        (("--limit", "0"), "--limit takes a whole number from 1"),
        (("--judge", "openai:x"), "--judge goes with --answer or --model"),
        (("--ablations",), "--ablations goes with --answer or --model"),
        (("--profiles", "nonsense"), "nonsense"),
    ],
)
def test_what_means_nothing_is_refused(
    haystacks: Cofire, options: tuple[str, ...], reason: str
) -> None:
    done = haystacks.run("evaluate", "longmemeval", "lme.json", *options)
    assert done.code == 2
    assert reason in done.err
