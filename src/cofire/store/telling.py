"""Who repeats what is being deleted: the cues and recorded questions with a word that nobody else
said, and the derived memories that quote it.

Words are compared as the hashed terms that lexical recall uses. Being found by a question proves
nothing, and most words are everybody's: a word tells of what goes only if no memory that stays
has it. What was derived or asked does not count as having said it.
"""

from __future__ import annotations

import json
import re
import struct
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, or_, select, text

from cofire.store.records import DERIVED_SIGNAL
from cofire.store.schema import items, recall_items, recalls
from cofire.store.session import Query, Session
from cofire.store.strengths import CUE_KIND

TermsOf = Callable[[str], bytes]
"""A text's terms, packed as those of a memory are."""

RUN, RUN_ELSEWHERE = 24, 10
"""Letters and digits in a row that make a quotation: some five words; of other scripts than ASCII
fewer, since a character says more there."""
PORTION = 2_000

PARTS = Query(
    lambda flavour: select(items.c.number, items.c.parent, items.c.terms).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        or_(
            items.c.number.in_(flavour.members("numbers")),
            items.c.parent.in_(flavour.members("numbers")),
        ),
    )
)
# Said and not made by Cofire of what was said.
SAID = Query(
    lambda flavour: select(items.c.terms).where(
        items.c.tenant == bindparam("tenant"),
        items.c.space == bindparam("space"),
        items.c.kind != CUE_KIND,
        items.c.signals.op("&")(DERIVED_SIGNAL) == 0,
        items.c.number.not_in(flavour.members("numbers")),
        items.c.parent.not_in(flavour.members("numbers")),
    )
)
CUES = Query(
    lambda _: (
        select(items.c.number, items.c.content)
        .where(
            items.c.tenant == bindparam("tenant"),
            items.c.space == bindparam("space"),
            text(f"items.kind = {CUE_KIND}"),  # the condition of the index of cues
        )
        .order_by(items.c.updated, items.c.number)  # and its order
    )
)
QUESTIONS = Query(
    lambda _: select(recalls.c.uid, recalls.c.query).where(
        recalls.c.tenant == bindparam("tenant"), recalls.c.space == bindparam("space")
    )
)
REMOVE_QUESTION = Query(
    lambda _: delete(recalls).where(
        recalls.c.tenant == bindparam("tenant"),
        recalls.c.space == bindparam("space"),
        recalls.c.uid == bindparam("recall"),
    )
)
REMOVE_HITS = Query(
    lambda _: delete(recall_items).where(
        recall_items.c.tenant == bindparam("tenant"),
        recall_items.c.space == bindparam("space"),
        recall_items.c.recall == bindparam("recall"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """The cues (numbers) and recall records (uids) that repeat what goes."""

    cues: tuple[int, ...] = ()
    recalls: tuple[bytes, ...] = ()


def find_repeating(
    session: Session,
    here: Mapping[str, int],
    gone: Collection[int],
    terms_of: TermsOf,
    *,
    there: Mapping[str, int] | None = None,
) -> Repeating:
    """The cues and recorded questions that have a word which, of all memories of the space, only
    those that go said. `there`: those of another space, and then no memory of that says it."""
    said = set[int]().union(*terms_by_whole(session, here, gone).values())
    place = here if there is None else there

    def shared(text: str) -> set[int]:
        return said.intersection(_hashes(terms_of(text)))

    cues: dict[int, set[int]] = {
        number: shared(question) for number, question in session.all(CUES, **place)
    }
    asked: dict[bytes, set[int]] = {
        uid: shared(question)
        for portion in session.portions(QUESTIONS, PORTION, **place)
        for uid, question in portion
    }
    telling = only_said_by(session, here, set[int]().union(*cues.values(), *asked.values()), gone)
    if there is not None:
        telling = only_said_by(session, there, telling, ())
    return Repeating(
        cues=tuple(sorted(cue for cue, words in cues.items() if words & telling)),
        recalls=tuple(sorted(uid for uid, words in asked.items() if words & telling)),
    )


def remove_questions(session: Session, here: Mapping[str, int], uids: Iterable[bytes]) -> None:
    """Deletes recall records with all their hits."""
    for uid in uids:
        session.run(REMOVE_HITS, recall=uid, **here)
        session.run(REMOVE_QUESTION, recall=uid, **here)


def terms_by_whole(
    session: Session, here: Mapping[str, int], numbers: Collection[int]
) -> dict[int, set[int]]:
    """The hashed terms of memories, those of their segments included."""
    found: dict[int, set[int]] = {number: set() for number in numbers}
    for number, parent, blob in session.all(PARTS, numbers=session.pack(sorted(numbers)), **here):
        found[parent or number].update(_hashes(blob))
    return found


def only_said_by(
    session: Session, here: Mapping[str, int], words: Collection[int], gone: Collection[int]
) -> set[int]:
    """Of these words, those that no memory has but the ones that go."""
    left = set(words)
    if left:
        packed = session.pack(sorted(gone))
        for portion in session.portions(SAID, PORTION, numbers=packed, **here):
            for (blob,) in portion:
                left.difference_update(_hashes(blob))
    return left


def quotes(record: str, gone: Sequence[str], kept: Sequence[str]) -> bool:
    """Whether a record has a run of letters and digits from what goes that is in nothing kept, or
    the whole of something shorter that goes."""
    own = _letters(record)
    going, staying = list(map(_letters, gone)), list(map(_letters, kept))
    run = min(len(own), RUN if own.isascii() else RUN_ELSEWHERE)
    if not run:
        return False
    pieces = {own[start : start + run] for start in range(len(own) - run + 1)}
    pieces.update(short for short in going if 0 < len(short) < run and short in own)
    return any(
        any(piece in one for one in going) and not any(piece in one for one in staying)
        for piece in pieces
    )


def names_of(content: str, metadata: str) -> tuple[str, ...]:
    """All names of a stored concept."""
    aliases = json.loads(metadata).get("aliases", []) if metadata != "{}" else []
    return (content, *aliases)


def unsaid(names: Iterable[str], kept: Iterable[str]) -> bool:
    """Whether a name stands, as words of its own, in none of the texts that stay."""
    staying = list(map(_words, kept))
    return any(not any(_words(name) in text for text in staying) for name in names)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(unicodedata.normalize('NFC', text).casefold()))} "


_WORD = re.compile(r"\w+")


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _hashes(blob: bytes) -> tuple[int, ...]:
    return struct.unpack_from(f"<{len(blob) // 9}Q", blob)
