"""Scores of one answer against its key: token F1 and the rules per category as LoCoMo's published
evaluation has them (its `task_eval/evaluation.py`), and the BLEU-1 of the papers' tables.

`docs/reference/answer-metrics.md` states every rule. What counts as a refusal is in `refusing`.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from fractions import Fraction

from cofire.answering.refusing import is_refusal, refuses
from cofire.errors import InputError
from cofire.evaluation.qa.porter import stem
from cofire.evaluation.qa.treebank import words

__all__ = ["bleu1", "is_refusal", "locomo_f1", "normalised", "refuses", "token_f1"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"(?<![a-z0-9])(?:a|an|the|and)(?![a-z0-9])")
_JOINERS = "\u200c\u200d"
_CIRCLED = (("\u24b6", "\u24e9"), ("\U0001f130", "\U0001f149"), ("\U0001f150", "\U0001f169"),
            ("\U0001f170", "\U0001f189"))  # fmt: skip


def normalised(text: str) -> list[str]:
    """The tokens that count: lower case, no ASCII punctuation, no "a", "an", "the", "and", stemmed.

    Punctuation vanishes without parting words ("3.5" → "35"), before articles are looked for.
    """
    text = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    return [stem(word) for word in _ARTICLE.sub(_article, text).split()]


def _article(found: re.Match[str]) -> str:
    """A space for an article; itself where it is a part of a longer word (a + combining accent)."""
    text, start, end = found.string, found.start(), found.end()
    inside = (start > 0 and _in_word(text[start - 1])) or (end < len(text) and _in_word(text[end]))
    return found[0] if inside else " "


def _in_word(character: str) -> bool:
    r"""Whether `\w` of the regex module, which LoCoMo's evaluation uses, fits a character; Python's
    own leaves out marks and joiners, and takes in superscript digits."""
    category = unicodedata.category(character)
    return (
        category[0] in "LM"
        or category in ("Nd", "Nl", "Pc")
        or character in _JOINERS
        or any(first <= character <= last for first, last in _CIRCLED)
    )


def token_f1(prediction: str, gold: str) -> float:
    """F1 of an answer's tokens against the key's, as multisets: in [0, 1], symmetric; 0 where
    either has none."""
    return float(_f1(prediction, gold))


def _f1(prediction: str, gold: str) -> Fraction:
    """2·P·R/(P + R) with P = same/answer, R = same/key, which is 2·same/(answer + key)."""
    answered, expected = Counter(normalised(prediction)), Counter(normalised(gold))
    same = (answered & expected).total()
    return Fraction(2 * same, answered.total() + expected.total()) if same else Fraction(0)


def locomo_f1(prediction: str, group: str, gold: str | None) -> float:
    """LoCoMo's score of an answer, in [0, 1], by the question's group (`CATEGORIES`).

    "multi-hop": both sides are split at commas; each part of the key takes its best F1, and these
    are averaged. "open-domain": the key ends at its first ";". "adversarial": `is_refusal`, 1 or 0;
    no key is read. Every other group: plain token F1. Raises InputError without a key that is due.
    """
    if group == "adversarial":
        return float(is_refusal(prediction))
    if gold is None:
        raise InputError(f"an answer in the group {group!r} cannot be scored without a key")
    if group == "multi-hop":
        return _parts_f1(prediction, gold)
    if group == "open-domain":
        gold = gold.partition(";")[0]
    return token_f1(prediction, gold)


def _parts_f1(prediction: str, gold: str) -> float:
    answered, expected = prediction.split(","), gold.split(",")
    best = [max(_f1(mine, part) for mine in answered) for part in expected]
    return float(sum(best, Fraction(0)) / len(best))


def bleu1(prediction: str, gold: str) -> float:
    """BLEU-1 in [0, 1]: the share of the answer's word tokens that are in the key (each as often
    as there), times exp(1 − key/answer) where the answer has fewer tokens than the key.

    Source: Papineni et al., 2002, with n = 1 and one reference, over the tokens of `treebank.words`
    of the lower-cased texts, as in the evaluation of A-Mem (Xu et al., 2025).
    """
    answered, expected = words(prediction.lower()), words(gold.lower())
    same = (Counter(answered) & Counter(expected)).total()
    if not same:
        return 0.0
    precision = same / len(answered)
    return precision * math.exp(min(0.0, 1 - len(expected) / len(answered)))
