"""Pairs of answers and keys with the scores that LoCoMo's published rules give them, worked out
by hand before `cofire.evaluation.qa.scores` was written. Every sentence is our own.

The rules (LoCoMo's `task_eval/evaluation.py`), in the order in which they apply:

1. commas go; lower case; the other 31 ASCII punctuation marks go (nothing takes their place, so
   "3.5" becomes "35"); the words a, an, the, and become a space; what white space parts is a token;
2. every token is stemmed by NLTK's PorterStemmer in its default mode;
3. F1 = 2·same / (tokens of the answer + tokens of the key), `same` counted as multisets; 0 where
   nothing is the same, so also where either side has no tokens;
4. categories 2 and 4: F1; category 3: F1 against what stands before the key's first ";";
   category 1: answer and key are split at every comma, each part of the key takes its best F1 over
   the parts of the answer, and the parts of the key are averaged; category 5: 1 if the lower-cased
   answer contains "no information available" or "not mentioned", otherwise 0.

BLEU-1 is not LoCoMo's; it is what A-Mem's evaluation (and Mem0's after it) computes: NLTK's word
tokens of the lower-cased texts, precision clipped by the key's counts, times exp(1 − key/answer)
where the answer has fewer tokens than the key. Its smoothing (method 1) touches orders whose weight
is 0, so it changes nothing. A pair's score is `score · exp(−penalty)`.
"""

from __future__ import annotations

from fractions import Fraction as F  # noqa: N817 - a table of fractions
from typing import NamedTuple


class Pair(NamedTuple):
    """One row: `group` is "f1" (plain), a LoCoMo category's name, or "bleu"."""

    group: str
    prediction: str
    gold: str
    score: F
    working: str
    penalty: F = F(0)


ARTICLES = [
    Pair("f1", "the red kite", "a red kite", F(1), "the, a go; red kite = red kite: 2·2/(2+2)"),
    Pair("f1", "an orange and a plum", "orange plum", F(1), "an, and, a go: 2·2/(2+2)"),
    Pair("f1", "salt and pepper", "salt pepper", F(1), "`and` counts as an article: 2·2/(2+2)"),
    Pair("f1", "grade A", "grade", F(1), "a lower-cased A is an article, whatever it means"),
    Pair("f1", "then another band", "band", F(1, 2),
         "then, another, band only contain articles: 3 tokens, 1 same: 2·1/(3+1)"),
    Pair("f1", "the", "the", F(0), "nothing is left of either, so nothing is the same"),
    Pair("f1", "A.N. Miller", "Miller", F(1),
         "marks go before articles: a.n. → an → gone; 2·1/(1+1)"),
    Pair("f1", "and/or", "or", F(0), "/ goes and leaves andor, which is no article: 0 same"),
    Pair("f1", "ends", "end and", F(1), "ends → end; `and` goes: 2·1/(1+1)"),
    Pair("f1", "the—end", "end", F(0),
         "an em dash is no ASCII mark; `the` before it is a word: left is —end, not end"),
    Pair("f1", "a\u0301 tree", "tree", F(2, 3),
         "a with a combining acute is one word to the regex module, so it stays: 2·1/(2+1)"),
]  # fmt: skip

PUNCTUATION = [
    Pair("f1", "Oslo!", "Oslo", F(1), "! goes: 2·1/(1+1)"),
    Pair("f1", "(in) [Oslo]; \"now\"?", "in oslo now", F(1), "all marks go: 2·3/(3+3)"),
    Pair("f1", "...", "?!", F(0), "only marks: no tokens on either side"),
    Pair("f1", "Oslo - Bergen", "Oslo Bergen", F(1), "a lone ASCII hyphen leaves nothing"),
    Pair("f1", "Oslo — Bergen", "Oslo Bergen", F(4, 5), "a lone em dash is a token: 2·2/(3+2)"),
    Pair("f1", "well-known cook", "well known cook", F(2, 5),
         "- goes and joins: wellknown cook against well known cook, 1 same: 2·1/(2+3)"),
    Pair("f1", "the dog's bowl", "dogs bowl", F(1), "' goes: dogs → dog on both sides"),
    Pair("f1", "the dog’s bowl", "dogs bowl", F(1, 2),
         "a curly apostrophe stays: dog’s → dog’ is not dog; bowl is the same: 2·1/(2+2)"),
    Pair("f1", "snow_man", "snowman", F(1), "_ is punctuation: snowman"),
    Pair("f1", "red/blue", "red blue", F(0), "/ goes and joins: redblue; 0 same"),
]  # fmt: skip

NUMBERS = [
    Pair("f1", "1,200 euros", "1200 euros", F(1), "the comma goes: 1200 euro, twice"),
    Pair("f1", "3.5 km", "35 km", F(1), "the point goes too, and 3.5 becomes 35"),
    Pair("f1", "at 10:30", "1030", F(2, 3), "the colon goes: at 1030 against 1030: 2·1/(2+1)"),
    Pair("f1", "$20", "20", F(1), "$ is ASCII punctuation"),
    Pair("f1", "€20", "20", F(0), "€ is not: €20 is another token"),
    Pair("f1", "2019", "2019", F(1), "a number as key, as its digits"),
    Pair("f1", "2", "two", F(0), "digits and words are not matched"),
    Pair("f1", "the 1990s", "1990", F(1), "the stemmer takes the s: 1990s → 1990"),
    Pair("f1", "6 March 2020", "March 6, 2020", F(1), "order and comma do not count: 2·3/(3+3)"),
    Pair("f1", "6th March", "6 March", F(1, 2), "6th is not 6; march is the same: 2·1/(2+2)"),
    Pair("f1", "07", "7", F(0), "tokens, not values"),
]  # fmt: skip

SPACE_CASE_UNICODE = [
    Pair("f1", "  OSLO \t\n bay ", "Oslo Bay", F(1), "case and white space do not count"),
    Pair("f1", "Oslo\u00a0Bay", "oslo bay", F(1), "a no-break space parts words"),
    Pair("f1", "tea\u200bpot", "tea pot", F(0), "a zero-width space does not: one token"),
    Pair("f1", "café", "cafe", F(0), "accents count"),
    Pair("f1", "caf\u00e9", "cafe\u0301", F(0), "no Unicode normalisation: é is not e + ◌́"),
    Pair("f1", "STRASSE", "straße", F(0), "lower case, not case folding: strasse is not straße"),
    Pair("f1", "ÅRHUS", "århus", F(1), "lower case beyond ASCII"),
    Pair("f1", "北京", "北京", F(1), "a word without spaces is one token"),
    Pair("f1", "北京 大学", "北京大学", F(0), "two tokens against another one"),
    Pair("f1", "茶，咖啡", "茶 咖啡", F(0), "the full-width comma is no ASCII mark: one token"),
    Pair("f1", "pizza 🍕", "pizza", F(2, 3), "an emoji is a token: 2·1/(2+1)"),
]  # fmt: skip

OVERLAP = [
    Pair("f1", "very very good", "very good", F(4, 5), "multisets: 2 same: 2·2/(3+2)"),
    Pair("f1", "go go go", "go go stop", F(2, 3), "go twice in both: 2·2/(3+3)"),
    Pair("f1", "tea tea tea tea", "tea", F(2, 5), "tea once in the key: 2·1/(4+1)"),
    Pair("f1", "bay old the of", "the old bay", F(4, 5),
         "order does not count; bay old of against old bay: 2·2/(3+2)"),
    Pair("f1", "a guitar", "piano", F(0), "nothing is the same"),
    Pair("f1", "", "piano", F(0), "no answer"),
    Pair("f1", "piano", "", F(0), "no key"),
    Pair("f1", "", "", F(0), "neither: still 0, since nothing is the same"),
    Pair("f1", "She moved to Oslo in the spring of 2019", "2019", F(2, 9),
         "she move to oslo in spring of 2019 are 8: 2·1/(8+1)"),
]  # fmt: skip

STEMMED = [
    Pair("f1", "hiking", "hikes", F(1), "hiking → hik + e → hike; hikes → hike"),
    Pair("f1", "running", "runs", F(1), "running → runn → run; runs → run"),
    Pair("f1", "ran", "run", F(0), "no irregular past tenses: ran is ran"),
    Pair("f1", "studying", "studies", F(1), "study → studi (y after d); studies → studi"),
    Pair("f1", "enjoyed", "enjoy", F(1), "NLTK: y after a vowel stays: enjoy, not enjoi"),
    Pair("f1", "he died", "he dies", F(1), "NLTK: words of 4 letters: died → die, dies → die"),
    Pair("f1", "dying", "die", F(1), "NLTK's table of irregular forms: dying → die"),
    Pair("f1", "clear skies", "clear sky", F(1), "the table: skies → sky, sky → sky"),
    Pair("f1", "spied", "spy", F(1), "spied → spi; spy → spi without a vowel in sp (NLTK)"),
    Pair("f1", "news", "new", F(0), "the table keeps news: news is not new"),
    Pair("f1", "innings", "inning", F(1), "the table: both inning, not inn"),
    Pair("f1", "proceed", "proceeds", F(0),
         "the table keeps proceed, but proceeds → proceed → procee → proce"),
    Pair("f1", "used", "use", F(1), "us + e is put back after vowel consonant (NLTK): use; use"),
    Pair("f1", "us", "use", F(0), "two letters are not stemmed; use keeps its e (NLTK)"),
    Pair("f1", "geology", "geological", F(1),
         "geologi → geolog (NLTK: measure of geol is 1); geologic → geolog"),
    Pair("f1", "hopefully", "hopeful", F(1), "hopefulli → hopeful (NLTK) → hope; hopeful → hope"),
    Pair("f1", "happily", "happy", F(0), "happili has no rule; happy → happi"),
    Pair("f1", "generous", "general", F(1), "over-stemming: -ous and -al both leave gener"),
    Pair("f1", "his", "hi", F(1), "the s goes from every word of three letters: his → hi"),
    Pair("f1", "photographers", "photography", F(0),
         "photographer → photograph; photography → photographi"),
    Pair("f1", "relational", "relation", F(1), "both → relate → relat"),
]  # fmt: skip

MULTI_HOP = [
    Pair("multi-hop", "tea, coffee", "coffee, tea", F(1), "each part of the key is found whole"),
    Pair("multi-hop", "tea", "tea, coffee", F(1, 2), "(1 + 0)/2"),
    Pair("multi-hop", "tea and coffee", "tea, coffee", F(2, 3),
         "one part of two tokens: (2·1/(2+1) + 2·1/(2+1))/2"),
    Pair("multi-hop", "tea, coffee, milk, juice", "tea", F(1), "further parts cost nothing"),
    Pair("multi-hop", "green tea, black coffee", "tea, coffee, cake", F(4, 9),
         "(2/3 + 2/3 + 0)/3"),
    Pair("multi-hop", "Ben, Cleo", "Anna, Ben and Cleo", F(1, 3),
         "anna 0; ben cleo best against ben or cleo 2·1/(1+2): (0 + 2/3)/2"),
    Pair("multi-hop", "tea", "tea,", F(1, 2), "what follows the last comma is an empty part: 0"),
    Pair("multi-hop", "1,200 euros", "1,200 euros", F(1), "parts 1 and 200 euros, both found"),
    Pair("multi-hop", "1200 euros", "1,200 euros", F(1, 4),
         "the key is 1 and 200 euros: 0 and 2·1/(2+2): (0 + 1/2)/2"),
    Pair("multi-hop", "3 March 2021", "March 3, 2021", F(13, 20),
         "march 3: 2·2/(3+2) = 4/5; 2021: 2·1/(3+1) = 1/2; mean 13/20"),
    Pair("multi-hop", "red", "red; blue", F(2, 3), "a semicolon parts nothing here: 2·1/(1+2)"),
    Pair("multi-hop", "", "tea, coffee", F(0), "no answer: (0 + 0)/2"),
    Pair("multi-hop", "tea, tea", "tea, tea", F(1), "a part of the answer may serve twice"),
    Pair("multi-hop", "the red kite", "red kite", F(1), "one part each: plain F1"),
]  # fmt: skip

OPEN_DOMAIN = [
    Pair("open-domain", "Yes", "Yes; she sings in a choir", F(1), "the key is Yes"),
    Pair("open-domain", "Yes; she sings", "Yes; she sings in a choir", F(1, 2),
         "only the key is cut: yes she sing against yes: 2·1/(3+1)"),
    Pair("open-domain", "maybe", "; maybe", F(0), "nothing stands before the semicolon"),
    Pair("open-domain", "Likely no", "no", F(2, 3), "no semicolon: plain F1, 2·1/(2+1)"),
    Pair("open-domain", "tea, coffee", "coffee, tea; or juice", F(1), "commas do not part here"),
    Pair("open-domain", "a; b; c", "b; c", F(2, 3),
         "the key is b; of the answer a goes: b c: 2·1/(2+1)"),
]  # fmt: skip

TEMPORAL_AND_SINGLE = [
    Pair("temporal", "7 May 2021", "7 May 2021; late", F(6, 7),
         "a semicolon cuts nothing here: 2·3/(3+4)"),
    Pair("temporal", "the week before 9 June", "week of 9 June", F(3, 4),
         "week befor 9 june against week of 9 june: 2·3/(4+4)"),
    Pair("single-hop", "tea, coffee", "coffee", F(2, 3), "commas do not part: 2·1/(2+1)"),
    Pair("single-hop", "2,021", "2021", F(1), "the comma goes before anything else"),
    Pair("single-hop", "not mentioned", "a kite", F(0), "a refusal earns nothing here"),
    Pair("single-hop", "Not mentioned", "not mentioned", F(1), "unless the key says it"),
]  # fmt: skip

ADVERSARIAL = [
    Pair("adversarial", "No information available.", "", F(1), "the phrase, lower-cased"),
    Pair("adversarial", "That was NOT MENTIONED", "a kite", F(1), "the phrase; no key is read"),
    Pair("adversarial", "It isn't mentioned", "", F(0), "n't mentioned is not the phrase"),
    Pair("adversarial", "not  mentioned", "", F(0), "two spaces are not one"),
    Pair("adversarial", "I don't know", "", F(0), "another way to say it does not count"),
    Pair("adversarial", "", "", F(0), "silence is no refusal"),
    Pair("adversarial", "Ben was not mentioned, so it was Anna", "", F(1),
         "an answer that contains the phrase counts: the rule looks no further"),
    Pair("adversarial", "a kite", "a kite", F(0), "the trap's own words earn nothing"),
]  # fmt: skip

BLEU = [
    Pair("bleu", "the cat sat", "the cat sat", F(1), "3/3; as long as the key"),
    Pair("bleu", "cat", "the cat sat", F(1), "1/1; exp(1 − 3/1)", F(2)),
    Pair("bleu", "red car", "a big red car", F(1), "2/2; exp(1 − 4/2)", F(1)),
    Pair("bleu", "blue car", "a big red car", F(1, 2), "1/2; exp(1 − 4/2)", F(1)),
    Pair("bleu", "big red", "a big red", F(1), "2/2; exp(1 − 3/2)", F(1, 2)),
    Pair("bleu", "the the the", "the cat", F(1, 3), "clipped to one of three; longer than the key"),
    Pair("bleu", "dog", "cat", F(0), "0/1: NLTK returns 0 before it smooths"),
    Pair("bleu", "", "cat", F(0), "no answer"),
    Pair("bleu", "cat", "", F(0), "no key"),
    Pair("bleu", "OSLO", "Oslo", F(1), "lower-cased"),
    Pair("bleu", "hikes", "hike", F(0), "no stemming"),
    Pair("bleu", "Oslo.", "Oslo", F(1, 2), "the final period is a token: oslo ."),
    Pair("bleu", "don't", "do not", F(1, 2), "do n't against do not; 1/2, as long"),
    Pair("bleu", "cannot", "can not", F(1), "cannot is two tokens"),
    Pair("bleu", "Anna's dog", "Anna dog", F(2, 3), "anna 's dog: 2/3"),
    Pair("bleu", "well-known", "well known", F(0), "a hyphen does not part"),
    Pair("bleu", "tea, milk", "tea milk", F(2, 3), "a comma before a space is a token: 2/3"),
    Pair("bleu", "1,200 euros", "1200 euros", F(1, 2), "a comma before a digit is not: 1,200; 1/2"),
    Pair("bleu", "$20", "20", F(1, 2), "$ 20: 1/2"),
    Pair("bleu", "at 10:30", "10:30", F(1, 2), "a colon before a digit stays: at 10:30; 1/2"),
    Pair("bleu", '"Dune"', "Dune", F(1, 3), "an opening quote, dune, a closing one: 1/3"),
    Pair("bleu", "Oslo (Norway)", "Oslo Norway", F(1, 2), "oslo ( norway ): 2/4"),
    Pair("bleu", "well... yes", "well yes", F(2, 3), "well ... yes: 2/3"),
    Pair("bleu", "He left. She stayed.", "he left she stayed", F(2, 3),
         "each sentence has its final period: he left . she stayed . : 4/6"),
    Pair("bleu", "Dr. Lee", "dr lee", F(1, 2), "dr. is an abbreviation, its period stays: 1/2"),
    Pair("bleu", "Anna’s dog", "Anna dog", F(1, 2), "a curly apostrophe is a token: anna ’ s dog"),
]  # fmt: skip

PAIRS = [
    *ARTICLES, *PUNCTUATION, *NUMBERS, *SPACE_CASE_UNICODE, *OVERLAP, *STEMMED, *MULTI_HOP,
    *OPEN_DOMAIN, *TEMPORAL_AND_SINGLE, *ADVERSARIAL, *BLEU,
]  # fmt: skip

REFUSALS = [
    # (answer, LoCoMo's rule, our rule: the whole answer says that it is not known)
    ("Not mentioned", True, True),
    ("Not mentioned in the conversation.", True, True),
    ("No information available", True, True),
    ("There is no information available about her sister.", True, True),
    ("It isn't mentioned.", False, True),
    ("I don't know.", False, True),
    ("I don’t know what her dog is called.", False, True),
    ("I do not have enough information to answer this question.", False, True),
    ("The conversation does not mention where Ben went to school.", False, True),
    ("Based on the provided context, her age is not specified.", False, True),
    ("Sorry, I can't determine that from the memories.", False, True),
    ("Unknown", False, True),
    ("N/A", False, True),
    ("Cannot be determined from the given context.", False, True),
    ("Unfortunately, there is no mention of a brother. Please give me more details.", False, True),
    ("**Answer:** not mentioned [1]", True, True),
    ("Nicht erwähnt", False, True),
    ("没有提到", False, True),
    ("", False, False),
    ("a kite", False, False),
    ("Ben was not mentioned, so it was Anna", True, False),
    ("It is not mentioned where, but she moved to Oslo in May.", True, False),
    ("She had not mentioned it to her boss", True, False),
    ("She did not mention it to her boss", False, False),
    ("He said that he did not know the way", False, False),
    ("The unknown soldier's grave", False, False),
    ("Not Mentioned, a band from Oslo", True, False),
    ("The shop does not provide lunch", False, False),
    ("The trip is not mentioned. She went to Oslo.", True, False),
    ("No", False, False),
    ("Nothing", False, False),
    ("No one knows where she keeps the key", False, False),
]
