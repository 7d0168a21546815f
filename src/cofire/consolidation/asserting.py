"""How English words are denied ("not", "no longer") or merely supposed ("if", "might")."""

from __future__ import annotations

from itertools import pairwise

from cofire.consolidation import wording as w
from cofire.consolidation.tokens import Token


def denials_of(tokens: list[Token]) -> list[str]:
    """How each token is denied: by what stands before it in its clause."""
    words = [token.word for token in tokens]
    harmless = _harmless(words)
    whole = "ceased" if _ceases(words) else ""
    denied = ceased = former = False
    brief = 0  # how many more words a determiner's denial reaches ("no", "without")
    states: list[str] = []
    for place, word in enumerate(words):
        brief = 0 if word == "and" else max(brief - 1, 0)
        if word in w.BRIEF and place not in harmless:
            brief = _BRIEF
        elif word in w.NEGATORS and place not in harmless:
            denied = not denied or word == "nor"
        if word == "used" and words[place + 1 : place + 2] == ["to"]:
            former = former or not (place and words[place - 1] in w.BE)
        former = former or word in w.FORMER
        after = words[place + 1] if place + 1 < len(words) else ""
        if (
            word in w.CEASED
            or (word, after) == ("no", "more")
            or (word in w.GIVE and after == "up")
        ):
            ceased = not denied
        if word in w.DISLIKES:
            denied = not denied
        state = "not" if denied != (brief > 0) else ""
        states.append(whole or ("ceased" if ceased else "former" if former else state))
    return states


_BRIEF = 4


def _harmless(words: list[str]) -> set[int]:
    """Places of negators in phrases that deny nothing ("can't wait")."""
    return {
        place + offset
        for phrase in w.HARMLESS
        for place in range(len(words) - len(phrase) + 1)
        if tuple(words[place : place + len(phrase)]) == phrase
        for offset in range(len(phrase))
    }


def _ceases(words: list[str]) -> bool:
    """ "no longer", "not … any more"."""
    joined = " ".join(words)
    if "no longer" in joined or "not anymore" in joined:
        return True
    return "not" in words and ("any more" in joined or "anymore" in words)


def moods_of(tokens: list[Token], supposed: bool, conditional: bool, iffy: bool) -> list[str]:
    """How far each token is asserted."""
    words = [token.word for token in tokens]
    would = bool({"would", "could", "might", "will", "should"} & set(words)) or any(
        word in w.BE and after.endswith("ing") for word, after in pairwise(words)
    )
    mood = "possible" if supposed or iffy or (conditional and would) else "fact"
    found: list[str] = []
    for place, word in enumerate(words):
        if mood != "possible" and _supposes(words, place, tokens[place]):
            mood = "future" if word in w.FUTURE or word == "going" else "possible"
        found.append(mood)
    return found


def _supposes(words: list[str], place: int, token: Token) -> bool:  # noqa: PLR0911 - one return per word
    word = words[place]
    if word == "luck":  # "good luck with …": of somebody else, and to come
        return place > 0 and words[place - 1] == "good"
    after = words[place + 1] if place + 1 < len(words) else ""
    if word == "going":
        follower = words[place + 2] if place + 2 < len(words) else ""
        return after == "to" and follower not in w.DETERMINERS | w.POSSESSIVES and follower != ""
    if word in w.LONGING:
        return after == "to"
    if word == "may":
        return not token.text[:1].isupper()
    if word == "thinking":
        return after in {"about", "of"}
    if word in {"almost", "nearly"}:
        return w.is_past(after)
    if word == "would":
        return after not in {"been", "better"} and not after.endswith("ed")
    if word in {"plan", "plans", "dream", "dreams", "hope", "aim"}:
        return place > 0 and words[place - 1] not in w.POSSESSIVES | w.DETERMINERS
    return word in w.SUPPOSES
