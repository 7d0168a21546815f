"""Scores of answers against the pairs that were worked out by hand (`locomo_pairs`)."""

from __future__ import annotations

import math

import pytest
from locomo_pairs import PAIRS, REFUSALS, Pair

from cofire.errors import InputError
from cofire.evaluation.qa.porter import stem
from cofire.evaluation.qa.scores import (
    bleu1,
    is_refusal,
    locomo_f1,
    normalised,
    refuses,
    token_f1,
)
from cofire.evaluation.qa.treebank import words
from cofire.interchange.locomo import CATEGORIES

# Not known, said in ways that models use.
SAYS_SO = """
No information is available.
There's no mention of that.
The text doesn't say.
The context does not contain any information about Ben's sister.
The provided conversation does not specify when she bought the car.
I'm sorry, but I don't have any information about that.
I have no memory of that.
There is not enough information to answer the question.
Insufficient information to determine the answer.
This is not mentioned in the conversation.
Her favourite colour is not mentioned.
It's not mentioned where she went.
It is unclear from the context.
The answer is unknown.
Not specified in the given context
None mentioned.
Nothing is mentioned about a dog.
I am not sure what she said.
I cannot answer this question based on the provided context.
I was unable to find that in the conversation.
The answer cannot be determined based on the given information.
It is not possible to determine the answer.
The conversation doesn't mention that, so I cannot answer.
Based on the memories, there is no record of a trip to Rome.
I do not know; it is not mentioned.
Not mentioned in the memories [2][3].
There is no specific information provided about Ana's trip.
I couldn't find any information about that.
The memories say nothing about it.
That isn't in the conversation.
I don't see any mention of it.
No relevant information was found.
""".strip().splitlines()

# Answers, though they hold such words.
ANSWERS = """
No mention was made, but Oslo seems right.
It is not specified. Probably Oslo.
He is known for his cooking.
Anna can't remember the code of her bike lock
No, she did not mention it.
She never knew her father
They were not given a room
I don't like it
The note doesn't say who wrote it but Ben did
It was not found until May
The information desk
There is no beach in Bergen
Unknown Pleasures
The cat was not found.
The concert was not recorded.
Her phone number is not known to strangers
Because she couldn't find her keys
I can't give it up
Not mentioned in the will of her uncle
""".strip().splitlines()

# As NLTK's PorterStemmer stems them in its default mode; by step, with its departures last.
STEMS = """
caresses caress, ponies poni, cats cat, gas ga, agreed agre, feed feed, plastered plaster,
bled bled, motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop,
falling fall, hissing hiss, fizzed fizz, failing fail, filing file, happy happi, toys toy,
relational relat, conditional condit, rational ration, valency valenc, digitizer digit,
operator oper, feudalism feudal, decisiveness decis, hopefulness hope, formality formal,
sensitivity sensit, triplicate triplic, formative form, electrical electr, goodness good,
revival reviv, adjustable adjust, replacement replac, adoption adopt, communism commun,
effective effect, probate probat, rate rate, cease ceas, controlling control, roll roll,
ties tie, tied tie, skies sky, sky sky, lying lie, innings inning, outings outing, news news,
succeed succeed, spy spi, enjoy enjoy, by by, as as, ice ice, used use, possibly possibl,
rationally ration, carefully care, theology theolog, geological geolog, radically radic
"""


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.group}: {pair.working}"[:60])
def test_pairs_worked_out_by_hand(pair: Pair) -> None:
    assert _score(pair) == pytest.approx(float(pair.score) * math.exp(-pair.penalty), abs=1e-12)


def _score(pair: Pair) -> float:
    if pair.group == "bleu":
        return bleu1(pair.prediction, pair.gold)
    if pair.group == "f1":
        return token_f1(pair.prediction, pair.gold)
    return locomo_f1(pair.prediction, pair.group, pair.gold)


def test_there_are_pairs_of_every_kind() -> None:
    assert len(PAIRS) >= 50
    assert {pair.group for pair in PAIRS} == {"f1", "bleu", *CATEGORIES.values()}


@pytest.mark.parametrize(("text", "published", "ours"), REFUSALS)
def test_refusals_by_either_rule(text: str, published: bool, ours: bool) -> None:
    assert (is_refusal(text), refuses(text)) == (published, ours)


@pytest.mark.parametrize("text", SAYS_SO)
def test_many_ways_to_refuse(text: str) -> None:
    assert refuses(text)
    assert refuses(text.upper().replace("'", "’"))


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_no_refusals(text: str) -> None:
    assert not refuses(text)


def test_stems() -> None:
    expected = dict(row.split() for row in STEMS.replace("\n", " ").split(","))
    assert {word: stem(word) for word in expected} == expected


def test_what_counts_of_a_text() -> None:
    assert normalised("The 1,200 hikes, and A.N. Other's dog—or") == (
        ["1200", "hike", "other", "dog—or"]
    )
    assert normalised(" ,, the ... ") == []


def test_words_of_bleu() -> None:
    assert words("i can't; it's \"3:30\", gonna go -- with dogs' (b) toys...") == (
        "i ca n't ; it 's `` 3:30 '' , gon na go -- with dogs ' ( b ) toys ...".split()
    )
    assert words("at 3 p.m. mr. lee left. then j. doe, too!") == (
        "at 3 p.m. mr. lee left . then j. doe , too !".split()
    )
    assert words("") == []


def test_only_refusals_need_no_key() -> None:
    assert locomo_f1("not mentioned", "adversarial", None) == 1.0
    with pytest.raises(InputError, match="without a key"):
        locomo_f1("a kite", "single-hop", None)


def test_other_groups_are_plain() -> None:
    assert locomo_f1("tea, coffee", "single-session-user", "coffee; tea") == 1.0
