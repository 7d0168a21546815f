"""What a model's reply says, whatever the model wrote."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cofire.answering.replies import Citations, choice_of, read_reply
from cofire.answers import Entry

ENTRIES = tuple(
    Entry(
        label=label, id=f"id-{label}", text=f"Ada: line {label}", quote=f"line {label}",
        section="said", time=datetime(2023, 5, 8, tzinfo=UTC),
    )
    for label in range(1, 13)
)  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "text", "marked", "labels"),
    [
        ("In Oslo [3].", "In Oslo.", "In Oslo [1].", (3,)),
        ("In Oslo [3, 7], later [7].", "In Oslo, later.", "In Oslo [1, 2], later [2].", (3, 7)),
        ("Tea [4][2]", "Tea", "Tea [1][2]", (4, 2)),
        ("Tea [#4; 2]", "Tea", "Tea [1, 2]", (4, 2)),
        ("Tea \u30103\u3011", "Tea", "Tea [1]", (3,)),
        ("All of it [3-5]", "All of it", "All of it [1, 2, 3]", (3, 4, 5)),
        ("Since [2016]", "Since [2016]", "Since [2016]", ()),
        ("No source", "No source", "No source", ()),
        ("yesterday [7 May] [2]", "yesterday [7 May]", "yesterday [7 May] [1]", (2,)),
        ("Answer: a kite [1]", "a kite", "a kite [1]", (1,)),
        ("**Answer:** a kite", "a kite", "a kite", ()),
        ('"a kite"', "a kite", "a kite", ()),
        ('"a" and "b"', '"a" and "b"', '"a" and "b"', ()),
        ("```\na kite [2]\n```", "a kite", "a kite [1]", (2,)),
        ("<think>[5] is wrong</think>a kite [2]", "a kite", "a kite [1]", (2,)),
        ("One [1].\n\nTwo [2].", "One.\n\nTwo.", "One [1].\n\nTwo [2].", (1, 2)),
    ],
)
def test_replies(reply: str, text: str, marked: str, labels: tuple[int, ...]) -> None:
    read = read_reply(reply, ENTRIES, "stop")
    assert (read.text, read.marked, read.labels) == (text, marked, labels)
    assert read.malformed == ""


@pytest.mark.parametrize(
    ("reply", "finish", "malformed"),
    [
        ("", "stop", "empty"),
        (" \n ", "stop", "empty"),
        ("[3]", "stop", "empty"),
        ("<think>and so on", "length", "thinking"),
        ("He went to", "length", "cut"),
        ("I can't help with that.", "refusal", "refusal"),
        ("", "filter", "filter"),
        ('{"answer": "a kite [2]"}', "stop", "json"),
        ('{"n": 1}', "stop", "json"),
        ("x" * 1_000_000, "stop", "long"),
    ],
)
def test_what_cannot_be_used_is_said(reply: str, finish: str, malformed: str) -> None:
    read = read_reply(reply, ENTRIES, finish)  # type: ignore[arg-type]
    assert read.malformed == malformed
    assert len(read.text) <= 20_000


def test_json_where_text_was_due_is_read() -> None:
    assert read_reply('{"answer": "a kite [2]"}', ENTRIES, "stop").text == "a kite"


@pytest.mark.parametrize(
    "text",
    [
        "Not mentioned", "Not mentioned.", "not mentioned [3]", "Not explicitly mentioned.",
        "It is not mentioned in the memory.", "No information available",
        "The memory does not mention where she lives.", "The lines don\u2019t say.",
        "Not mentioned, I fear.", "I don't know.", "Unknown",
        "There is no mention of that in the conversation.",
    ],
)  # fmt: skip
def test_abstentions(text: str) -> None:
    assert read_reply(text, ENTRIES, "stop").unmentioned


@pytest.mark.parametrize(
    "text",
    [
        "She has not mentioned it to Bob [3].", "A note that is not signed", "Nothing much",
        "Not stated explicitly, but she moved to Bergen in 2021.",
        "Not mentioned, but probably Oslo.",
        "Not mentioned by Ada, but Bob says that they met in Oslo in the spring of 2021 and moved "
        "in together a year after that; the lines of June give the address, the street, the house "
        "number and the colour of the door, which was painted twice in that summer [3].",
    ],
)  # fmt: skip
def test_no_abstentions(text: str) -> None:
    assert not read_reply(text, ENTRIES, "stop").unmentioned


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("B", 1), ("b", None), ("(C)", 2), ("C) the third", 2), ("The answer is B.", 1),
        ("Answer: D", 3), ("A or B", None), ("A, because B is wrong", 0), ("", None),
        ("E", None), ("**B**", 1), ("I think option C fits", 2), ("A kite", None),
        ("A or B are right", None),
    ],
)  # fmt: skip
def test_choices(text: str, choice: int | None) -> None:
    assert choice_of(text, 4) == choice


def test_pieces_give_what_the_whole_gives() -> None:
    whole = "In Oslo [3, 7], and [x] later [7-9]."
    for size in range(1, 9):
        citations = Citations(ENTRIES)
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        told = "".join(citations.feed(piece) for piece in pieces) + citations.end()
        assert told == "In Oslo [1, 2], and [x] later [2, 3, 4]."
        assert citations.labels == [3, 7, 8, 9]
