"""`answer`: recall, put a context together, ask a model, read what it says.

In three steps, because the second may take minutes and needs neither store nor lock: `prepare`
(recall, gate, context, the request), a generator's work, `completed` (what the reply says). Without
a request there is nothing to generate: the gate refused, nothing was recalled, or no model is to
be asked. Roles of the papers' appendices: HeLa-Mem's response generation (A, prompt 2), Synapse's
gate and "strict evidence" instruction (section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter

from cofire import learning, views
from cofire.answering import prompts
from cofire.answering.context import compose
from cofire.answering.dates import today_named, with_dates
from cofire.answering.extractive import extract
from cofire.answering.replies import LETTERS, Reply, read_reply
from cofire.answers import NOT_MENTIONED, Answer, Citation, Context, Entry, Reason, Usage
from cofire.encoding.expressions import event_times
from cofire.errors import InputError, NotFoundError
from cofire.fences import fenced_line
from cofire.models.generator import Generated, Generation
from cofire.models.prompt_files import Prompt
from cofire.recalling import Question, recall
from cofire.retrieval import opening
from cofire.retrieval.engine import NOW
from cofire.retrieval.profiles import COFIRE, Profile
from cofire.types import Filters, Learned, Recall, Recalled, to_micros
from cofire.workings import Workings

OF_PEOPLE = 4
"""Traits and persona that stand in a context whatever the question, at most."""

FROM_OUTSIDE = "the answer rests on what comes from outside (untrusted)"
"""The warning of an answer that cites such a memory."""

_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRule:
    """How to answer. `tokens`: wordpieces of the context (None: all that was recalled); `k`,
    `semantic`, `profile`: as in `Memory.recall`. `gate`: refuse where the recall's gate abstains.
    `prompt`: "answer", "short", "choice", or one in the folder `prompts`. `max_tokens` bounds the
    reply; `temperature` is in [0, 2]. `seed` is passed to the model. `choices` are those of the
    prompt "choice", in order. `recent` are the turns of a conversation that the question is the
    next of (None: it stands alone): then a model is asked though nothing was recalled."""

    tokens: int | None = 1000
    k: int = 60
    semantic: int = 5
    profile: Profile = COFIRE
    gate: bool = True
    prompt: str = "answer"
    prompts: str | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int | None = None
    choices: tuple[str, ...] = ()
    recent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question, what was recalled, and the request that is due (None: no model is to be asked).
    `reason`: why there is no answer already. `seconds` were spent so far."""

    question: Question
    rule: AnswerRule
    recall: Recall
    context: Context
    prompt: Prompt
    request: Generation | None = None
    reason: Reason = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the tokens of a model cost, per million, in the currency of the settings."""

    input_price: float = 0.0
    output_price: float = 0.0

    def cost(self, generated: Generated) -> float:
        """Of one reply."""
        sent = generated.input_tokens * self.input_price
        return (sent + generated.output_tokens * self.output_price) / 1e6


def prepare(
    workings: Workings, question: Question, rule: AnswerRule, *, with_model: bool
) -> Prepared:
    """Recall, and the context with the request that asks a model of it (`with_model`). Raises
    InputError, ConfigurationError, StoreError, EmbeddingError."""
    started = perf_counter()
    prompt = prompts.load(rule.prompt, rule.prompts)
    # A budget says by itself how much is wanted: what is unlikely to matter fills what is left.
    profile = rule.profile if rule.tokens is None else replace(rule.profile, cutoff=None)
    found = recall(workings, question, rule.k, profile=profile, semantic=rule.semantic)
    people = _of_people(workings, question) if rule.semantic else ()
    context = compose(
        found, budget=rule.tokens, count=workings.embedder.count_tokens, of_people=people
    )
    prepared = prepared_with(question, rule, found, context, prompt, with_model=with_model)
    return replace(prepared, seconds=perf_counter() - started)


def prepared_with(
    question: Question,
    rule: AnswerRule,
    found: Recall,
    context: Context,
    prompt: Prompt | None = None,
    *,
    with_model: bool,
) -> Prepared:
    """`prepare` for a context of one's own making."""
    prompt = prompts.load(rule.prompt, rule.prompts) if prompt is None else prompt
    reason: Reason = ""
    if not context and not (with_model and rule.recent is not None):
        reason = "nothing"
    elif rule.gate and found.abstain and not found.shapes:
        reason = "gate"
    due = with_model and not reason
    return Prepared(
        question=question, rule=rule, recall=found, context=context, prompt=prompt,
        request=_request(question, rule, context, prompt) if due else None, reason=reason,
    )  # fmt: skip


def _request(question: Question, rule: AnswerRule, context: Context, prompt: Prompt) -> Generation:
    choices = (f"{letter}) {text}" for letter, text in zip(LETTERS, rule.choices, strict=False))
    day = question.now.date()
    asked = with_dates(question.text, event_times(question.text, question.now), day)
    # Nobody who asks needs marks or control tokens, and many who ask pass on what others wrote.
    request = prompt.about(
        {
            "context": context.text,
            "question": fenced_line(asked, untrusted=True),
            "today": today_named(question.now),
            "choices": "\n".join(fenced_line(choice, untrusted=True) for choice in choices),
            "recent": "\n".join(
                fenced_line(line, untrusted=True) for line in (rule.recent or "").splitlines()
            ),
        },
        max_tokens=rule.max_tokens,
        temperature=rule.temperature,
    )
    return replace(request, seed=rule.seed)


def shortened(workings: Workings, prepared: Prepared) -> Prepared | None:
    """The same with a context of half the size, for a model whose window did not hold it; None
    where that would leave nothing."""
    budget = prepared.context.tokens // 2
    context = compose(prepared.recall, budget=budget, count=workings.embedder.count_tokens)
    if not context or len(context.entries) >= len(prepared.context.entries):
        return None
    return replace(
        prepared,
        context=context,
        request=_request(prepared.question, prepared.rule, context, prepared.prompt),
    )


def completed(
    prepared: Prepared,
    generated: Generated | None,
    *,
    model: str = "extractive",
    spending: Spending | None = None,
) -> Answer:
    """The answer that a reply makes (None: there is no model, or it was not asked). Nothing a
    model writes raises; where it cannot be used, the answer is extractive and says so."""
    usage = Usage(context_tokens=prepared.context.tokens, recall_seconds=prepared.seconds)
    if generated is not None:
        usage = replace(
            usage,
            input_tokens=generated.input_tokens,
            output_tokens=generated.output_tokens,
            cost=(spending or Spending()).cost(generated),
            calls=generated.attempts,
            model_seconds=generated.seconds,
        )
    bare = Answer(
        question=prepared.question.text, text=NOT_MENTIONED, marked=NOT_MENTIONED,
        confidence=prepared.recall.confidence, abstained=True, reason=prepared.reason,
        model=model, prompt=str(prepared.prompt) if generated is not None else "",
        usage=usage, recall=prepared.recall, context=prepared.context,
        warnings=prepared.recall.warnings,
    )  # fmt: skip
    if prepared.reason:
        return bare
    if generated is None:
        return _extracted(prepared, bare)
    reply = read_reply(generated.text, prepared.context.entries, generated.finish)
    return _of_reply(prepared, bare, reply)


def _of_reply(prepared: Prepared, bare: Answer, reply: Reply) -> Answer:
    bare = replace(bare, malformed=reply.malformed)
    if reply.declined:
        told = reply.text or "The model declined to answer."
        return replace(bare, text=told, marked=told, reason="refusal")
    if not reply.text:
        warning = (
            f"the reply of {bare.model} could not be used ({reply.malformed}); this is the "
            "sentence that fits best instead"
        )
        told_of = replace(bare, reason="failed", warnings=(*bare.warnings, warning))
        return replace(_extracted(prepared, told_of), model=bare.model)
    if reply.unmentioned:
        return replace(bare, reason="evidence")
    warnings = bare.warnings
    if reply.malformed == "cut":
        warnings = (*warnings, "the answer is cut: the model ran out of tokens (max_tokens)")
    by_label = {entry.label: entry for entry in prepared.context.entries}
    cited = tuple(_citation(by_label[label]) for label in reply.labels)
    if any(one.untrusted for one in cited):
        warnings = (*warnings, FROM_OUTSIDE)
    return replace(
        bare, text=reply.text, marked=reply.marked, citations=cited, abstained=False,
        warnings=warnings,
    )  # fmt: skip


def _extracted(prepared: Prepared, bare: Answer) -> Answer:
    """The answer of the sentence that fits best, of what stands in the context."""
    there = {entry.id: entry for entry in prepared.context.entries}
    hits = [hit for hit in prepared.recall if hit.id in there and not hit.untrusted]
    found = extract(prepared.question.text, hits)
    if found is None:
        return replace(bare, extractive=True, reason="nothing")
    cited = _citation(there[found.hit.id])
    return replace(
        bare, text=found.quoted, marked=f"{found.quoted} [1]", citations=(cited,),
        abstained=False, reason="", extractive=True,
    )  # fmt: skip


def _citation(entry: Entry) -> Citation:
    return Citation(
        id=entry.id, text=entry.quote, time=entry.time, label=entry.label,
        speaker=entry.speaker, section=entry.section, untrusted=entry.untrusted,
    )  # fmt: skip


def learned(workings: Workings, answer: Answer, *, by: str | None, now: datetime) -> Answer:
    """The answer with what its citations taught: weak positive feedback on its recall, for the
    memories that a model cited; nothing where one of them was forgotten meanwhile. An extractive
    answer cites what came first anyway, which teaches nothing; nor does one that rests on what is
    not trusted, which could have told the model what else to cite."""
    known = frozenset(answer.recall.ids)
    used = [id for id in answer.cited if id in known]
    outside = any(citation.untrusted for citation in answer.citations)
    if answer.extractive or answer.abstained or outside or not used:
        return answer
    try:
        told: Learned = learning.feedback(
            workings, answer.recall, credits=dict.fromkeys(used, 1.0), outcome=1.0, by=by,
            signal="cited", interaction=None, now=now,
        )  # fmt: skip
    except (InputError, NotFoundError):  # some of it was forgotten while the model was writing
        return answer
    return replace(answer, learned=told)


def _of_people(workings: Workings, question: Question) -> tuple[Recalled, ...]:
    """Traits and persona that hold, where the question speaks of whoever asks it. What filters
    leave out of a recall does not come back this way."""
    words = {word.strip(".,;:!?'\u2019").casefold() for word in question.text.split()}
    until = question.filters.until
    narrowed = replace(question.filters, until=None, trusted_only=False) != Filters()
    if not words & _FIRST_PERSON or narrowed or question.moments != NOW:
        return ()
    moment = to_micros(question.now)
    found: list[Recalled] = []
    for space in workings.spaces.all():
        graph = workings.recaller.graph(space)
        within = opening.scope(graph, moment, None, trusted_only=True)
        rows = opening.persona(within, OF_PEOPLE)
        numbers = graph.column("number")[rows].tolist()
        for row in workings.store.fetch(space, numbers) if numbers else ():
            item = views.item(space, row)
            if until is not None and item.time >= until:
                continue
            found.append(Recalled(id=item.id, content=item.content, score=0.0, item=item))
    return tuple(found[:OF_PEOPLE])
