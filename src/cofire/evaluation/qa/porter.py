"""Porter's stemmer with the departures that NLTK makes by default, so that scores agree with
LoCoMo's evaluation. `cofire.encoding.stems` is what retrieval uses; it stems differently.

Source: M. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, whose steps, conditions
*d and *o, and measure m are named here as there. NLTK's departures: a table of irregular forms;
words of one or two letters are left; -ies and -ied of four letters keep -ie; y → i after any
consonant that is not the first letter; *o also holds of a vowel and a consonant alone; -bli for
-abli; -alli before the other rules of step 2, and these again after it; -fulli; -logi.
"""

from __future__ import annotations

from functools import lru_cache

_IRREGULAR = {
    "sky": "sky", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "inning": "inning", "innings": "inning", "outing": "outing", "outings": "outing",
    "canning": "canning", "cannings": "canning", "howe": "howe",
    "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip

# (suffix, what replaces it), in the order in which they are tried: the first that fits decides,
# whether its condition holds or not.
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("fulli", "ful"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """The stem of a lower-cased word, as NLTK's PorterStemmer gives it. Every character that is
    no vowel counts as a consonant: digits, marks and other scripts too."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _y_to_i(_past_and_progressive(_plural(word)))
    word = _replaced(_double_suffix(word), _STEP_3)
    return _final_l(_final_e(_suffix(word)))


def _letters(word: str) -> str:
    """ "v" for each vowel, "c" for each consonant; y is a vowel after a consonant."""
    kinds: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds[-1:] == ["c"])
        kinds.append("v" if vowel else "c")
    return "".join(kinds)


def _measure(word: str) -> int:
    """Porter's m: how often consonants follow vowels."""
    return _letters(word).count("vc")


def _doubled(word: str) -> bool:
    """Porter's *d: the word ends with a double consonant."""
    return len(word) > 1 and word[-1] == word[-2] and _letters(word)[-1] == "c"


def _short(word: str) -> bool:
    """Porter's *o: it ends consonant, vowel, consonant other than w, x, y; or is "vc" (NLTK)."""
    kinds = _letters(word)
    return kinds == "vc" or (kinds.endswith("cvc") and word[-1] not in "wxy")


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_progressive(word: str) -> str:
    """Step 1b."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        left = word.removesuffix(suffix)
        if left != word and "v" in _letters(left):
            return _completed(left)
    return word


def _completed(word: str) -> str:
    """What -ed or -ing leaves, as a word: hopp → hop, fil → file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _doubled(word):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word


def _y_to_i(word: str) -> str:
    """Step 1c."""
    left = word.removesuffix("y")
    return left + "i" if left != word and len(left) > 1 and _letters(left)[-1] == "c" else word


def _double_suffix(word: str) -> str:
    """Step 2."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _double_suffix(word[:-2])
    if word.endswith("logi"):  # the l counts as the stem's: geo-l, theo-l
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, _STEP_2)


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """A word whose first fitting suffix is replaced where m > 0 before it."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            left = word[: -len(suffix)]
            return left + replacement if _measure(left) > 0 else word
    return word


def _suffix(word: str) -> str:
    """Step 4."""
    for suffix in _STEP_4:
        if word.endswith(suffix):
            left = word[: -len(suffix)]
            removable = _measure(left) > 1 and (suffix != "ion" or left[-1] in "st")
            return left if removable else word
    return word


def _final_e(word: str) -> str:
    """Step 5a."""
    left = word.removesuffix("e")
    if left == word:
        return word
    measure = _measure(left)
    return left if measure > 1 or (measure == 1 and not _short(left)) else word


def _final_l(word: str) -> str:
    """Step 5b."""
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
