"""The screen of `chat`: turns, replies, and the commands that begin with a slash."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass

from cofire.answers import Answer
from cofire.chatting import Conversation, Source, Turn
from cofire.cli import answered
from cofire.cli.explaining import Explainer
from cofire.cli.flowing import show_pieces, taken_otherwise
from cofire.cli.lines import Lines
from cofire.cli.options import Common
from cofire.cli.output import (
    is_terminal,
    many,
    note,
    one_line,
    print_json_line,
    say,
    shortened,
    size_text,
    table,
    width,
)
from cofire.cli.recorded import summed_up, tell_step
from cofire.errors import CofireError, GenerationError, InputError
from cofire.models import Generator
from cofire.plain import answer_shape
from cofire.types import Learned

EXPLAINED = 3
"""Memories that /why explains where the reply cites none."""
REASONS = 3
UNMOVED = 0.001
"""What a link's strength changes by where only time has passed."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command of the conversation: what stands behind its name, what it does, and doing it."""

    takes: str
    tells: str
    run: Callable[[Screen, str], object]


class Screen:
    """Reads lines, shows replies, and obeys commands until the lines end or one says so."""

    def __init__(
        self,
        conversation: Conversation,
        lines: Lines,
        models: Callable[[str | None], Generator | None],
        common: Common,
    ) -> None:
        self._talk = conversation
        self._lines = lines
        self._models = models
        self._common = common
        self._ends = False
        self._strengths: dict[tuple[str, str], float] = {}

    def run(self) -> None:
        """The whole conversation. Raises StoreError where the store fails."""
        if not self._common.json:
            self._begin()
        else:
            self._talk.open()
        interrupted = False
        while not self._ends:
            try:
                line = self._lines.read()
            except KeyboardInterrupt:
                if interrupted:
                    break
                interrupted = True
                say("")
                say(("Ctrl-C once more, Ctrl-D or /quit ends the conversation.", "dim"))
                continue
            interrupted = False
            if line is None:
                break
            if line.strip():
                self._take(line.strip())
        if not self._common.json:
            self._finish()

    def _take(self, line: str) -> None:
        """A turn or a command. What goes wrong is told, and the conversation goes on; Ctrl-C stops
        what is being done."""
        before = self._talk.turns
        try:
            if line.startswith("/") and not line.startswith("//"):
                self._obey(line)
            else:
                self._turn(line.removeprefix("/"))
        except KeyboardInterrupt:
            kept = self._talk.turns > before
            told = "What you said is remembered, the reply is not." if kept else ""
            self._tell(f"Stopped. {told}".strip())
        except GenerationError as exc:
            hint = "What you said is remembered; /model none goes on without a language model"
            self._tell(f"{one_line(str(exc))}. {hint}.", kind=type(exc).__name__)
        except CofireError as exc:
            self._tell(f"{one_line(str(exc)).rstrip('.')}.", kind=type(exc).__name__)
        sys.stdout.flush()

    def _tell(self, text: str, kind: str = "Interrupted") -> None:
        """That something went wrong, or was stopped."""
        if self._common.json:
            print_json_line({"error": {"type": kind, "message": text}})
        else:
            say((text[:1].upper() + text[1:], "red"))
            say("")

    # Beginning and end

    def _begin(self) -> None:
        opening = self._talk.open()
        who = f", with {self._talk.speaker}" if self._talk.speaker else ""
        say((f"Cofire chat{who}", "bold"), (f"  session {self._talk.session}", "dim"))
        self._tell_model()
        if opening:
            count = many(len(opening), "memory", "memories")
            say((f"{count} to begin with; /opening shows what is in mind.", "dim"))
        before = len(self._talk.recent)
        if before:
            say((f"The last {many(before, 'turn')} of this session are read.", "dim"))
        self._tell_future()
        say(("/help lists commands, /quit ends.", "dim"))
        say("")

    def _tell_model(self) -> None:
        model = self._talk.model
        if model is None:
            say(
                "No language model: a question is answered by the sentence that fits best; what "
                "you tell is remembered."
            )
        else:
            say(f"Replies are written by {model.name}.")

    def _tell_future(self) -> None:
        """That memories of a later day than it is are not recalled."""
        if self._talk.opening is not None and self._talk.has_later():
            note(
                "Note: there are memories of a later time than it is now; they are left out. "
                "--now sets the time"
            )

    def _finish(self) -> None:
        if self._talk.turns:
            turns = many(self._talk.turns, "turn")
            say((f"Remembered {turns}. `--session {self._talk.session}` goes on.", "dim"))

    # Turns

    def _turn(self, text: str) -> None:
        with self._talk.turn(text) as turn:
            if self._common.json:
                for _ in turn:
                    pass
                self._print_json(text, turn)
                return
            for warning in turn.receipt.warnings:
                note(f"Note: {warning}")
            if not turn.replies:
                say("Remembered." if turn.receipt.ids else "There is nothing new in that.")
                say("")
                return
            self._show(turn)

    def _print_json(self, text: str, turn: Turn) -> None:
        print_json_line(
            {
                "said": text,
                "remembered": turn.receipt.ids,
                "answer": None if turn.answer is None else answer_shape(turn.answer),
                "reply_remembered": turn.reply,
            }
        )

    def _show(self, turn: Turn) -> None:
        """The reply as it comes, then its sources."""
        streams = self._talk.model is not None and is_terminal(sys.stdout)
        shown = show_pieces(turn) if streams else "".join(turn)
        answer = turn.answer
        if answer is None:
            return
        if not streams:
            said = shown if answer.reason == "evidence" else answer.marked
            say(said.strip())
        elif taken_otherwise(shown, answer.marked) and answer.reason != "evidence":
            say(answer.marked)
        self._print_below(answer)

    def _print_below(self, answer: Answer) -> None:
        for warning in answer.warnings if self._common.vectors else ():
            note(f"Note: {warning}")
        answered.print_sources(answer, brief=True)
        if answer.abstained:
            say((f"{answered.why_not(answer)} /sources shows what came nearest.", "dim"))
        elif answer.extractive:
            say((f"{answered.unwritten(answer)} {answered.figures(answer)}.", "dim"))
        else:
            source = "" if answer.citations else "No source. "
            say((f"{source}{answered.figures(answer)}.", "dim"))
        say("")

    # Commands

    def _obey(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        order = ORDERS.get(name.casefold())
        if order is None:
            raise InputError(
                f"there is no command /{name}; /help lists them, and a turn that begins with a "
                "slash is written with two"
            )
        if not self._common.json:
            order.run(self, rest.strip())
            say("")
            return
        printed = io.StringIO()
        with redirect_stdout(printed):
            order.run(self, rest.strip())
        print_json_line({"command": name, "output": printed.getvalue().strip()})

    def help(self, _: str) -> None:
        """List the commands."""
        rows: list[tuple[str, ...]] = [
            (f"/{name} {order.takes}".rstrip(), order.tells) for name, order in ORDERS.items()
        ]
        table(rows)

    def good(self, _: str) -> None:
        """The reply was good: what it cites gains by it."""
        self._tell_learned(self._talk.judge(1.0))

    def bad(self, _: str) -> None:
        """The reply was bad: what it cites loses by it."""
        self._tell_learned(self._talk.judge(-1.0))

    def used(self, rest: str) -> None:
        """These sources helped."""
        self._tell_learned(self._talk.feedback(used=_numbers(rest)))

    def wrong(self, rest: str) -> None:
        """These sources were wrong."""
        self._tell_learned(self._talk.feedback(wrong=_numbers(rest)))

    def _tell_learned(self, learned: Learned) -> None:
        before = self._strengths
        moved = [
            link
            for link in learned.links
            if abs(link.strength - before.get((link.a, link.b), 0.0)) > UNMOVED
        ]
        self._strengths = before | {(link.a, link.b): link.strength for link in learned.links}
        if moved:
            most = max(moved, key=lambda link: link.strength)
            say(f"Learned: {many(len(moved), 'link')} moved, the strongest is now at "
                f"{most.strength:.2f}.")  # fmt: skip
        elif learned.links:
            say("Noted, but no link moved: one person moves it only so far in a day.")
        elif learned.counted:
            say("Noted.")
        else:
            say("Nothing changed: this was said before, or nothing is learned yet that it could "
                "weaken.")  # fmt: skip

    def sources(self, _: str) -> None:
        """What the reply rests on, and what else came near."""
        sources = self._talk.sources
        if not sources:
            say("There is no reply with sources yet.")
        for source in sources:
            self._print_source(source)

    def _print_source(self, source: Source) -> None:
        mark = f"[{source.number}]" if source.cited else f"({source.number})"
        head = answered.when_and_who(source.time, source.offset, source.speaker)
        outside = " (untrusted)" if source.untrusted else ""
        text = f"{mark} {head}{outside}: {source.text}"
        if source.cited:
            say(one_line(text), hang=4)
        else:
            say((shortened(text, width() or 10_000), "dim"))

    def why(self, _: str) -> None:
        """Why the sources of the reply were recalled."""
        recall = self._talk.explain()
        explainer = Explainer(recall, self._talk.memory)
        cited = [one.id for one in self._talk.sources if one.cited]
        places = [at for at, id in enumerate(recall.ids) if id in cited]
        for place in places or range(min(EXPLAINED, len(recall))):
            hit = recall[place]
            say(f"{shortened(hit.content, (width() or 100) - 6)}")
            say(f"{explainer.found(place)}. Place {place + 1} of {len(recall)}, "
                f"{hit.score:.2f} points:", indent=2)  # fmt: skip
            for points, reason in explainer.reasons(place, REASONS):
                say(f"{points:+.2f} {reason}", indent=4, hang=6)
            for sentence in explainer.passed_on(place, limit=1):
                say(sentence, indent=4, hang=6)
        if not recall:
            say("Nothing was recalled.")

    def opening(self, _: str) -> None:
        """What the conversation opened with."""
        for line in (self._talk.opening.text if self._talk.opening else "Nothing.").split("\n"):
            say(line, hang=2)

    def remember(self, rest: str) -> None:
        """Remember something without a reply."""
        if not rest:
            raise InputError("say what to remember, as in /remember The key is in the tin.")
        receipt = self._talk.remember(rest)
        say(f"Remembered: {', '.join(receipt.ids) or 'nothing'}")

    def forget(self, rest: str) -> None:
        """Delete a source for good."""
        (number,) = _numbers(rest)[:1]
        source = self._talk.source(number)
        say(shortened(source.text, width() or 10_000))
        reply = self._lines.read("Forget this for good? [y/N]: ")
        if (reply or "").strip().casefold() not in {"y", "yes"}:
            say("Nothing was forgotten.")
            return
        gone = self._talk.forget(number)
        say(f"Forgot {many(gone.memories, 'memory', 'memories')}. Receipt {gone.id}")

    def who(self, _: str) -> None:
        """Who talks with whom, and in which memory."""
        model = self._talk.model
        spaces = self._talk.memory.stats().spaces
        table(
            [
                ("you", self._talk.speaker or "not named (--name)"),
                ("replies", "the sentence that fits best" if model is None else model.name),
                ("session", self._talk.session),
                ("memory", ", ".join(str(one.space) for one in spaces)),
            ]
        )

    def stats(self, _: str) -> None:
        """How much is remembered."""
        found = self._talk.memory.stats()
        for one in found.spaces:
            say(f"{one.space}: {many(one.items, 'memory', 'memories')}, {many(one.links, 'link')}")
        say(f"On disk: {size_text(found.store_bytes)}. "
            f"This conversation: {many(self._talk.turns, 'turn')}.")  # fmt: skip

    def sleep(self, _: str) -> None:
        """Consolidate what is remembered."""
        told = None if self._common.json else tell_step
        for report in self._talk.memory.consolidate(told=told):
            say(summed_up(report))

    def model(self, rest: str) -> None:
        """Say which model replies, or change it."""
        if rest:
            self._talk.model = self._models(rest)
        self._tell_model()

    def quit(self, _: str) -> None:
        """End the conversation."""
        self._ends = True


def _numbers(text: str) -> tuple[int, ...]:
    """ "1 3" or "1, 3". Raises InputError."""
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    if not words or not all(word.isdecimal() and len(word) < 6 for word in words):
        raise InputError("say the numbers of sources, as in 1 3; /sources lists them")
    return tuple(int(word) for word in words)


ORDERS = {
    "good": Order("", "the reply was good: what it cites gains by it", Screen.good),
    "bad": Order("", "the reply was bad: what it cites loses by it", Screen.bad),
    "used": Order("1 3", "these sources helped", Screen.used),
    "wrong": Order("2", "these sources were wrong", Screen.wrong),
    "sources": Order("", "what the reply rests on, and what else came near", Screen.sources),
    "why": Order("", "why its sources were recalled", Screen.why),
    "remember": Order("TEXT", "remember something without a reply", Screen.remember),
    "forget": Order("2", "delete a source for good (asks first)", Screen.forget),
    "opening": Order("", "what the conversation opened with", Screen.opening),
    "who": Order("", "who talks with whom, and in which memory", Screen.who),
    "stats": Order("", "how much is remembered", Screen.stats),
    "sleep": Order("", "consolidate what is remembered", Screen.sleep),
    "model": Order("[MODEL]", "which model replies; another one", Screen.model),
    "help": Order("", "this list", Screen.help),
    "quit": Order("", "end the conversation", Screen.quit),
}
"""The commands by name, in the order of the help."""
