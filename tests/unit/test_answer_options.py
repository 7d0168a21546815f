"""Servers pass on options of answers by their names."""

from __future__ import annotations

from cofire.answers import AnswerOptions
from cofire.server.mcp.answering import FILTERS
from cofire.server.rest.answering import NOT_OPTIONS
from cofire.server.rest.bodies import AnswerQuestion

NAMES = frozenset(AnswerOptions.__annotations__)
NOT_OF_CALLERS = {"by", "recent"}
"""Who asks is known by the key; conversations are held by `cofire chat`."""


def test_a_body_says_what_the_options_are_called() -> None:
    assert set(AnswerQuestion.model_fields) - NOT_OPTIONS == NAMES - NOT_OF_CALLERS


def test_filters_of_the_tool_are_options() -> None:
    assert set(FILTERS) <= NAMES
