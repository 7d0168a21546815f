"""What an import says of the places it could not use."""

from __future__ import annotations

from cofire.interchange import ImportReport, Problem
from cofire.interchange.report import KEPT_PLACES, Places
from cofire.types import Message


def test_places_are_those_of_the_messages_taken() -> None:
    places = Places()

    def reader() -> object:
        for line in range(1, 6):
            places.now = f"x, line {line}"
            yield Problem(where="x", reason="") if line == 2 else Message(content=str(line))

    found = list(ImportReport(source="x").messages(reader(), places))  # type: ignore[arg-type]
    assert [message.content for message in found] == ["1", "3", "4", "5"]
    assert [places.of(number) for number in range(5)] == [
        *(f"x, line {line}" for line in (1, 3, 4, 5)),
        "",
    ]


def test_only_the_last_places_are_kept() -> None:
    places = Places()
    for line in range(KEPT_PLACES + 5):
        places.now = str(line)
        places.take()
    assert places.of(4) == ""
    assert places.of(5) == "5"
    assert places.of(KEPT_PLACES + 4) == str(KEPT_PLACES + 4)
