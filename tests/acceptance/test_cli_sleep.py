"""What consolidation made and did, as the command line shows it."""

from __future__ import annotations

import re

import pytest
from cofire_process import Cofire

SAID = (
    ("I live in Leeds.", "2023-05-08"),
    ("My sister Mona is a nurse and I adore her cooking.", "2023-05-09"),
    ("I moved to York last week, so I live in York now.", "2024-06-03"),
    ("My favourite colour is green.", "2024-06-04"),
    ("I am allergic to peanuts.", "2024-06-04"),
)
WHERE = "Where does Ada live?"
MONA = "What does Mona the nurse, Ada's sister, cook, and where does Ada live now?"
NIGHT = ("--now", "2024-07-01")


@pytest.fixture(scope="module")
def slept(tmp_path_factory: pytest.TempPathFactory) -> Cofire:
    """A store after a night. Its tests change nothing."""
    cofire = Cofire(tmp_path_factory.mktemp("slept"))
    for text, day in SAID:
        cofire.ok(
            "remember",
            text,
            "--speaker",
            "Ada" if day < "2024-06-04" else "Ben",
            "--time",
            day,
            "--session",
            day[:4],
        )
    told = cofire.ok("consolidate", *NIGHT).out
    assert "facts          filed 4, new 3, replaced 1" in told
    return cofire


@pytest.fixture(scope="module")
def ids(slept: Cofire) -> tuple[str, str]:
    """The ids of the records: of Leeds, where she lived, and of York, where she lives."""
    leeds, york, *_ = slept.ok("records", "--json").json
    return leeds["id"], york["id"]


def test_recall_tells_what_is_known_before_the_memories(
    slept: Cofire, ids: tuple[str, str]
) -> None:
    lines = slept.ok("recall", MONA, "-k", "1", *NIGHT).out.splitlines()
    assert lines[:3] == [
        "Known: I moved to York last week, so I live in York now.",
        f"    fact, since 27 May 2024, 1 quote  {ids[1]}",
        "",
    ]
    assert lines[3].startswith(" 1  9 May 2023 Ada")
    assert re.fullmatch(r"1 memory, 1 record, \d+ tokens", lines[-2])
    explained = slept.ok("recall", MONA, "-k", "1", "--explain", *NIGHT).out.splitlines()
    assert re.fullmatch(
        r"    “I moved to York last week.*” \(3 June 2024 Ada\)  [0-9a-f-]{36}", explained[2]
    )


def test_a_record_that_repeats_a_memory_is_not_told_twice(slept: Cofire) -> None:
    out = slept.ok("recall", WHERE, *NIGHT).out
    assert "Known:" not in out
    assert out.count("I moved to York") == 1
    assert re.search(r"3 June 2024 Ada .*  \[known: fact\]\n", out)
    assert re.search(r"\n5 memories, \d+ tokens\n", out)


def test_recall_looks_back(slept: Cofire) -> None:
    then = slept.ok("recall", WHERE, "--as-of", "2023-12-01", *NIGHT).out
    assert "[known: fact, until 27 May 2024]" in then
    assert "York" not in then
    assert "Known" not in slept.ok("recall", MONA, "-k", "1", "--semantic", "0", *NIGHT).out
    unknown = slept.ok("recall", WHERE, "--known-at", "2022-01-01", *NIGHT).out
    assert unknown == "Nothing found. The filters may leave nothing.\n"


def test_a_record_is_shown_with_its_evidence(slept: Cofire, ids: tuple[str, str]) -> None:
    out = slept.ok("show", ids[0]).out
    for line in (
        "about       Ada", "slot        lives in", "value       Leeds",
        "holds       since 8 May 2023 until 27 May 2024",
        "ended       as recorded 2024-07-01 00:00 UTC", "made by     extractive",
        "state       current", "Rests on 1 quote",
    ):  # fmt: skip
        assert f"\n{line}\n" in out
    assert re.search(r"\nconfidence  0\.\d\d\n", out)
    assert "  “I live in Leeds.” (8 May 2023 Ada)  " in out
    record = slept.ok("show", ids[0], "--json").json["record"]
    assert (record["subject"], record["value"]) == ("Ada", "Leeds")
    assert record["evidence"][0]["text"] == "I live in Leeds."
    said = record["evidence"][0]["id"]
    assert "record" not in slept.ok("show", said, "--json").json


def test_history_names_the_records_that_were_replaced(slept: Cofire, ids: tuple[str, str]) -> None:
    out = slept.ok("history", ids[1]).out
    assert out == (
        f"Former texts\n  a replaced record, since 8 May 2023 until 27 May 2024  {ids[0]}\n"
        "    I live in Leeds.\n"
    )
    assert [one["id"] for one in slept.ok("history", ids[1], "--json").json] == [ids[0]]
    assert slept.ok("history", ids[0]).out.startswith("No former texts")


def test_records_are_listed_by_kind(slept: Cofire, ids: tuple[str, str]) -> None:
    out = slept.ok("records").out
    assert f"{ids[0]}  fact, Ada, since 8 May 2023 until 27 May 2024, 1 quote\n" in out
    concepts = slept.ok("records", "--kind", "concept", "--json").json
    assert {one["subject"] for one in concepts} >= {"Leeds", "Mona", "York"}
    assert slept.ok("records", "--kind", "trait").out == "none\n"


def test_reports_tell_what_the_nights_did(slept: Cofire, cofire: Cofire) -> None:
    lines = slept.ok("reports", "-n", "1").out.splitlines()
    assert re.fullmatch(r"2024-07-01 00:00 UTC  default/default: done in \d+\.\d s", lines[0])
    assert lines[1].startswith("  facts          filed 4")
    assert re.fullmatch(r"  \d+ steps with nothing to do", lines[-1])
    (report,) = slept.ok("reports", "--json").json
    assert report["status"] == "done"
    cofire.ok("remember", "something")
    assert cofire.ok("reports").out.startswith("Nothing was consolidated yet")


def test_what_was_once_here_is_told_and_comes_back(cofire: Cofire) -> None:
    ids = [
        cofire.ok("remember", f"The garden has a tall {tree} by the pond.", "--speaker", "Ada",
                  "--time", "2023-05-08", "--json").json["ids"][0]
        for tree in ("oak", "elm", "ash")
    ]  # fmt: skip
    cofire.ok("archive", *ids)
    cofire.ok("consolidate", "--step", "shapes", *NIGHT)
    (shape,) = cofire.ok("shapes", "--json").json
    out = cofire.ok("recall", "Which tall trees are by the pond in the garden?").out
    assert out.startswith("Once here: 3 memories about ")
    assert f"were archived; `cofire unarchive {shape['id']}` brings it back\n" in out
    assert "No memories found." in out
    assert "Probably nothing" not in out
    assert "archived    " in cofire.ok("show", ids[0]).out
    assert cofire.ok("unarchive", shape["id"]).out == "brought back 3 memories\n"


def test_a_record_that_is_not_trusted_is_named_by_its_id(cofire: Cofire) -> None:
    cofire.ok("remember", "I live in Leeds.", "--speaker", "Ada", "--time", "2023-05-08")
    cofire.ok("consolidate", "--step", "facts", *NIGHT)
    (record,) = cofire.ok("records", "--json").json
    said = record["evidence"][0]["id"]
    cofire.ok("update", said, "--content", "I live in Hull.")
    listed = cofire.ok("quarantine").out
    assert f"{record['id']}  fact, Ada" in listed
    assert "\n  stale" in listed
    assert "\nstate       stale\n" in cofire.ok("show", record["id"]).out
    refused = cofire.run("unarchive", record["id"])
    assert refused.code == 2
    assert refused.err.startswith(f"cofire: record {record['id']} is stale: verification decides")
