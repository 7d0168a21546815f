"""Whether quotes say of a slot what a draft says: the words of its value stand in them, asserted,
of now, by somebody who vouches for them, and not denied.

A slot with its value is a claim of its own: it ends what was known before, whatever the record's
words are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cofire.consolidation import wording as w
from cofire.consolidation.claims import Said, vouched, was
from cofire.consolidation.clauses import Clause, Word, read
from cofire.consolidation.drafts import Draft
from cofire.consolidation.parties import Party, opposed
from cofire.consolidation.slots import DISLIKES, LIKES, is_known, slot_filled, value_key
from cofire.consolidation.statements import slot_of
from cofire.consolidation.tokens import tokens_of
from cofire.encoding.stopwords import stop_words

_PLAIN_VALUES = frozenset({LIKES, DISLIKES, "yes", "no", "true", "false", "positive", "negative"})
_OPEN = w.PLANS | frozenset("interest interests hobby hobbies plan wish dream dreams".split())
_PAST = w.FORMER | frozenset(
    """past visited born birthplace birthday hometown childhood history ever was were used
    nationality native studied graduated degree won first last ended quit left""".split()
)
_PARTNERS = frozenset({"spouse", "partner", "relationship"})
_OWN = frozenset(
    """job age birthday birthplace phone email address speaks diet nationality likes""".split()
) | {"lives in", "works at", "allergic to", "studies at"}
"""Slots whose value is said of the subject itself, not of its wife or dog."""
_SHARED = frozenset({"name", "birthplace", "address", "studies at"})


Spots = dict[str, list[tuple[Clause, Word]]]
"""Where each key stands in the quotes."""


def value_words(draft: Draft) -> list[str]:
    """The telling words of what the slot is filled with, and of what it is about
    ("likes:olives"); numbers are compared elsewhere."""
    about = (draft.slot or "").partition(":")[2]
    value = "" if draft.value in _PLAIN_VALUES else draft.value or ""
    return [
        token.word
        for token in tokens_of(f"{about} {value}")
        if not token.word[0].isdigit() and token.word not in stop_words("en")
        and token.word != "'s" and w.key(token.word) not in w.NEUTRAL
    ]  # fmt: skip


def filling_faults(
    draft: Draft, said: Sequence[Said], subject: frozenset[str], names: frozenset[str]
) -> list[str]:
    """Reasons against the slot and value of an English draft. `subject` are the stems of whom it is
    about; words that are in `names`, of those who speak, are not compared."""
    slot = slot_filled(draft)
    if slot is None:
        return []
    if _elsewhere(draft, said):
        return ["support: the quotes fill another slot with its value"]
    wanted = {w.key(word) for word in value_words(draft) if w.stem(word) not in names}
    if not wanted:
        return []
    spots: Spots = {}
    for one in said:
        for clause in read(one.text, one.speaker):
            for word in clause.words:
                spots.setdefault(word.key, []).append((clause, word))
    if not wanted <= spots.keys():
        return ["support: its value is not in the quotes"]
    head = set((draft.slot or "").lower().replace(":", " ").replace("_", " ").split())
    found = []
    negative = _negative(draft, head, slot.value)
    if negative is not None and _none(spots, wanted, lambda _, word: bool(word.denied) is negative):
        found.append("negation: the quotes deny what fills its slot, or the reverse")
    if not head & _OPEN and _none(
        spots, wanted, lambda clause, word: word.mood == "fact" and not clause.question
    ):
        found.append("hypothetical: the quotes suppose, wish or ask what fills its slot")
    if _none(spots, wanted, lambda clause, word: vouched((clause, word))):
        found.append("reported: what fills its slot is somebody else's word")
    party = Party("person", subject)
    if slot.name.partition(":")[0] in _OWN and _none(
        spots, wanted, lambda clause, _: not opposed([party], clause.patients or clause.agents)
    ):
        found.append("subject: the quotes say of somebody else what fills its slot")
    if _is_now(slot.name, head) and _none(spots, wanted, lambda clause, _: not was(clause)):
        found.append("date: the quotes tell of the past what fills its slot")
    return found


def _none(spots: Spots, wanted: set[str], test: Callable[[Clause, Word], bool]) -> bool:
    """Whether some word of the value stands nowhere in the quotes as the test would have it."""
    return any(not any(test(*spot) for spot in spots[key]) for key in wanted)


def _negative(draft: Draft, head: set[str], value: str | None) -> bool | None:
    """Whether the value must stand denied in the quotes; None where slot or value deny in words
    of their own."""
    if value == DISLIKES:
        return True
    if value == LIKES:
        return False
    own = {token.word for token in tokens_of(draft.value or "")} | head
    if own & (w.NEGATORS | w.FORMER | w.CEASED | w.DISLIKES) or draft.value in _PLAIN_VALUES:
        return None
    return None if head & _PAST else False


def _is_now(slot: str, head: set[str]) -> bool:
    return (is_known(slot) or slot.startswith("likes:")) and not head & _PAST


def _elsewhere(draft: Draft, said: Sequence[Said]) -> bool:
    """Whether rules read a quote as filling another slot with this value."""
    slot = slot_filled(draft)
    if slot is None or not slot.value or not slot.single or not is_known(slot.name):
        return False
    key = value_key(slot.value)
    read_slots = {
        one.slot for one in (slot_of(sentence.text) for sentence in said)
        if one is not None and one.single and value_key(one.value) == key and is_known(one.slot)
    }  # fmt: skip
    if not read_slots or slot.name in read_slots | _SHARED:
        return False
    return not (slot.name in _PARTNERS and read_slots & _PARTNERS)
