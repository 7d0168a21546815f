"""An answer as people read it: its text, its sources, and how it came to be."""

from __future__ import annotations

import re
from datetime import datetime

from cofire.answers import Answer, Citation
from cofire.cli.output import many, note, say, shortened
from cofire.types import Recall, line_header

NEAREST = 5
"""Memories shown of what came nearest."""
BRIEF = 300
"""Columns of a source where it is told briefly."""

UNSURE = 0.5
"""Confidence below which what is quoted is more likely no answer than one."""
_LEFT_MARK = re.compile(r"[\[\u3010]\s*#?\d{1,4}(?:\s*[,;-]\s*#?\d{1,4})*\s*[\]\u3011]")


def when_and_who(time: datetime, offset: int | None, speaker: str | None) -> str:
    """ "8 May 2023, Ada" """
    who = f", {speaker}" if speaker else ""
    return line_header(time, offset, None).rstrip(":") + who


def print_text(answer: Answer) -> None:
    """The answer with its marks."""
    say(answer.marked)


def print_sources(answer: Answer, *, brief: bool = False) -> None:
    """What it rests on: number, day, speaker, id, and the text; `brief`: on a line each."""
    offsets = {hit.id: hit.item.offset for hit in answer.recall}
    for number, cited in enumerate(answer.citations, start=1):
        head = when_and_who(cited.time, offsets.get(cited.id), cited.speaker)
        outside = " (untrusted)" if cited.untrusted else ""
        if brief:
            text = f"[{number}] {head}{outside}: {cited.text}"
            say((shortened(text, BRIEF), "dim"), hang=4)
        else:
            say(f"[{number}] ", (head, "bold"), f"{outside}{_kind(cited)}  ", (cited.id, "dim"))
            say(cited.text.strip("\n"), indent=4)


def _kind(cited: Citation) -> str:
    return "" if cited.section == "said" else "  (made by consolidation)"


def print_warnings(answer: Answer, *, vectors: bool = True) -> None:
    """What is to be known of it beforehand, on standard error."""
    for warning in answer.warnings:
        if vectors or warning not in answer.recall.warnings:
            note(f"Note: {warning}")
    if answer.abstained or answer.extractive:
        return
    if _LEFT_MARK.search(answer.text):
        note("Note: the model names lines that it was not given; nothing stands behind those marks")
    if not answer.citations:
        note("Note: the model cites no source; nothing of this can be checked")


def why_not(answer: Answer) -> str:
    """In a sentence, why there is no answer."""
    lines = many(len(answer.context.entries), "line")
    sure = "" if answer.confidence is None else f" (confidence {answer.confidence:.2f})"
    nothing = "Nothing was recalled."
    if answer.recall:
        nothing = "Nothing of what was recalled fits in so few tokens; --tokens allows more."
    return {
        "gate": f"Most likely nothing of the kind was ever said{sure}; the gate refused.",
        "evidence": f"{answer.model} found no answer in the {lines} that it was given.",
        "nothing": nothing,
        "refusal": f"{answer.model} declined to answer, or its endpoint's filter stopped it.",
        "failed": "The model's reply could not be used.",
        "": "",
    }[answer.reason]


def unwritten(answer: Answer) -> str:
    """That no model wrote the answer, and where that is so, that it is hardly one."""
    text = "No language model: this is what fits best, in the words of who said it."
    if answer.confidence is not None and answer.confidence < UNSURE:
        text += " Most likely it is no answer."
    return text


def print_nearest(recall: Recall, most: int = NEAREST) -> None:
    """What came nearest to a question that has no answer, best first."""
    best = sorted(recall, key=lambda hit: -hit.score)[:most]
    for hit in best:
        item = hit.item
        head = when_and_who(item.time, item.offset, item.speaker or item.role)
        say("·   ", (head, "bold"), "  ", (hit.id, "dim"))
        say(hit.content.strip("\n"), indent=4)
    if not best:
        say("Nothing came near.")


def written_by(answer: Answer) -> str:
    """ "Written by llama3, prompt answer@1."; empty where no model wrote it."""
    if answer.extractive or not answer.prompt:
        return ""
    return f"Written by {answer.model}, prompt {answer.prompt}."


def figures(answer: Answer) -> str:
    """What it took, on one line."""
    usage = answer.usage
    sure = "" if answer.confidence is None else f"confidence {answer.confidence:.2f}; "
    context = (
        f"{many(usage.context_tokens, 'token')} in {many(len(answer.context.entries), 'line')}"
    )
    text = f"{sure}context {context}, recalled in {1e3 * usage.recall_seconds:.0f} ms"
    if usage.calls:
        parts = []
        if usage.input_tokens or usage.output_tokens:
            parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
        parts.append(f"{1e3 * usage.model_seconds:,.0f} ms")
        if usage.cost:
            parts.append(f"cost {usage.cost:.4f}")
        if usage.calls > 1:
            parts.append(f"{usage.calls} attempts")
        text += f"; model {', '.join(parts)}"
    return text[:1].upper() + text[1:]


def lesson(answer: Answer) -> str:
    """What its citations taught; empty where nothing was to be learned."""
    learned = answer.learned
    if learned is None:
        return ""
    if not learned.counted:
        return "Learned: nothing new, the same was cited for this question before."
    return f"Learned: {many(len(learned.links), 'link')} of what was cited moved."


def print_remarks(*lines: str) -> None:
    """Remarks below an answer; empty ones are left out."""
    for line in filter(None, lines):
        say((line, "dim"), hang=2)
