"""What a judge's reply says, however it comes."""

from __future__ import annotations

import json

import pytest

from cofire.evaluation.qa.verdicts import read_verdict
from cofire.models.generator import Finish
from scripts_of_models import VERDICTS


@pytest.mark.parametrize(("text", "right", "unusable"), VERDICTS.values(), ids=VERDICTS)
def test_replies(text: str, right: bool | None, unusable: str) -> None:
    verdict = read_verdict(text)
    assert (verdict.right, verdict.unusable) == (right, unusable)


@pytest.mark.parametrize(
    ("text", "finish", "right", "unusable"),
    [
        ('{"why": "x", "right": true}', "refusal", None, "refusal"),
        ("", "filter", None, "refusal"),
        ('{"why": "it says so and', "length", None, "cut"),
        ("Let me go through it. The answer", "length", None, "cut"),
        ('{"why": "x", "right": true} and then', "length", True, ""),
        ('{"right": false, "why": "cut', "length", False, ""),
        ("yes", "other", True, ""),
    ],
)
def test_how_a_reply_ended(text: str, finish: Finish, right: bool | None, unusable: str) -> None:
    verdict = read_verdict(text, finish)
    assert (verdict.right, verdict.unusable) == (right, unusable)


def test_a_quoted_verdict_in_a_cut_reply_is_none() -> None:
    cut = '{"why": "The answer says {\\"right\\": true, and then'
    assert read_verdict(cut).right is None


def test_reasons_are_short_and_can_be_written() -> None:
    reply = json.dumps({"why": "a \ud83d\n" + "very " * 200, "right": True})
    why = read_verdict(reply).why
    assert len(why) <= 300
    assert why.startswith("a ? very")
    assert why.endswith("…")
