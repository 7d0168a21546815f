"""The verbs that answer; part of `Memory`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Unpack

from cofire.answering.answer import AnswerRule, Spending, prepare
from cofire.answering.pending import PendingAnswer, Teaching
from cofire.answering.replies import LETTERS
from cofire.answers import Answer, AnswerOptions
from cofire.arguments import (
    as_count,
    as_moment,
    as_principal,
    as_profile,
    as_question,
    as_temperature,
    make_filters,
)
from cofire.errors import InputError
from cofire.models import Generator, make_generator
from cofire.models.verifying import VerifiedGenerator
from cofire.recalling import Question
from cofire.workings import Workings

_FILTERS = frozenset(
    {"kinds", "speakers", "sessions", "tags", "metadata", "since", "until", "trusted_only"}
)

_PROMPT = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_TOKENS = 1_000_000_000
"""Wordpieces of a context at most."""


class AnswerVerbs:
    """Answers from what is remembered."""

    _workings: Workings

    def answer(
        self,
        question: str,
        *,
        model: Generator | str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> Answer:
        """Answer a question from what is remembered, with its sources, or say that it is not there.

        What was recalled is put before a language model, as much as fits into `tokens` wordpieces:
        what was said in order of time under its days, relative dates resolved, before it what
        consolidation made of it. `model` is "openai:MODEL", "local", "local:FILE", "none", or a
        generator of your own (default: COFIRE_ANSWER_MODEL, or else COFIRE_GENERATOR). Without one
        the answer is extractive: the sentence that fits best, marked as such. Where it is too
        unlikely that the memory holds an answer, no model is asked (`Answer.reason` "gate").
        `options`: see `AnswerOptions`.

        What the model cites becomes weak positive feedback, unless `learn` is False. An answer is a
        recall like any other: better feedback can be given on `Answer.recall`. Raises InputError,
        ConfigurationError, GenerationError (the model cannot be reached or refuses the request),
        EmbeddingError, StoreError. What a model writes never raises: see `Answer.malformed`.
        """
        with self.answering(question, model=model, **options) as pending:
            return pending.answer

    def answering(
        self,
        question: str,
        *,
        model: Generator | str | None = None,
        **options: Unpack[AnswerOptions],
    ) -> PendingAnswer:
        """As `answer`, under way: recall and context are done, the model is asked when you iterate
        over what this gives (pieces of text, as they are written) or call its `generate` and
        `finish`. Use it as a context manager. Raises as `answer` does."""
        settings = self._workings.settings
        given = dict(options)
        filters: dict[str, Any] = {name: given.pop(name) for name in _FILTERS & given.keys()}
        teaches, by = given.pop("learn", None), as_principal(options.get("by"))
        clock = as_moment(options.get("now"))
        text = self._workings.encoder.clean(as_question("a question", question))
        if not text.strip():
            raise InputError("a question must have text to be answered")
        rule = self._rule(options)
        asked = Question(text=text, now=clock, filters=make_filters(**filters))
        generator, owned = self._model(model)
        try:
            prepared = prepare(self._workings, asked, rule, with_model=generator is not None)
        except BaseException:
            if owned and generator is not None:
                generator.close()
            raise
        learns = settings.answer_learn if teaches is None else bool(teaches)
        return PendingAnswer(
            self._workings, prepared, generator,
            owned=owned,
            teaching=Teaching(by=by, now=clock) if learns else None,
            spending=Spending(
                input_price=settings.generator_input_price,
                output_price=settings.generator_output_price,
            ),
        )  # fmt: skip

    def _rule(self, options: AnswerOptions) -> AnswerRule:
        """How to answer, by the options and the settings. Raises InputError."""
        unknown = options.keys() - AnswerOptions.__annotations__.keys()
        if unknown:
            raise InputError(
                f"there is no option {min(unknown)!r}; there are "
                f"{', '.join(AnswerOptions.__annotations__)}"
            )
        settings = self._workings.settings
        tokens, longest = options.get("tokens"), options.get("max_tokens")
        temperature, seed = options.get("temperature"), options.get("seed")
        prompt = options.get("prompt", "answer")
        if not isinstance(prompt, str) or _PROMPT.fullmatch(prompt) is None:
            raise InputError(
                "a prompt has a name of 1 to 64 letters, digits, - and _: that of its file, "
                "without .md"
            )
        return AnswerRule(
            tokens=settings.answer_tokens
            if tokens is None
            else as_count("tokens", tokens, MOST_TOKENS),
            k=as_count("k", options.get("k", 60)),
            semantic=as_count("semantic", options.get("semantic", 5), least=0),
            profile=as_profile(options.get("profile", "cofire")),
            gate=bool(options.get("gate", True)),
            prompt=prompt,
            prompts=settings.answer_prompts,
            max_tokens=(
                settings.answer_max_tokens if longest is None else as_count("max_tokens", longest)
            ),
            temperature=(
                settings.answer_temperature if temperature is None else as_temperature(temperature)
            ),
            seed=None if seed is None else as_count("seed", seed, least=0),
            choices=_choices(prompt, options.get("choices", ())),
            recent=_recent(options.get("recent")),
        )

    def _model(self, model: Generator | str | None) -> tuple[Generator | None, bool]:
        """The model to ask, and whether it was made here."""
        settings = self._workings.settings
        if model is None or isinstance(model, str):
            return make_generator(settings, model or settings.answer_model or None), True
        return VerifiedGenerator(model), False


def _recent(turns: str | None) -> str | None:
    """Raises InputError."""
    return None if turns is None else as_question("what was said before", turns)


def _choices(prompt: str, choices: Sequence[str]) -> tuple[str, ...]:
    """Raises InputError where a prompt and its choices do not go together."""
    if not isinstance(choices, list | tuple) or not all(isinstance(one, str) for one in choices):
        raise InputError("choices are a list of texts")
    for one in choices:
        as_question("a choice", one)
    if len(choices) > len(LETTERS):
        raise InputError(f"there are at most {len(LETTERS)} choices")
    if prompt == "choice" and not 2 <= len(choices) <= len(LETTERS):
        raise InputError(f"the prompt 'choice' takes 2 to {len(LETTERS)} choices")
    return tuple(choices)
