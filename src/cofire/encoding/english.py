"""English forms that no stemmer conflates: irregular inflection, short forms, contractions."""

from __future__ import annotations

_FORMS = """
go went gone goes going|buy bought|see saw seen|take took taken|make made|get got gotten
give gave given|come came|begin began begun|write wrote written|run ran|win won|lose lost
find found|think thought|bring brought|teach taught|catch caught|feel felt|leave left|keep kept
sleep slept|meet met|tell told|say said|sell sold|hold held|stand stood|understand understood
know knew known|grow grew grown|throw threw thrown|draw drew drawn|fly flew flown|hang hung
drive drove driven|ride rode ridden|speak spoke spoken|break broke broken|choose chose chosen
wear wore worn|eat ate eaten|fall fell fallen|sing sang sung|swim swam swum|drink drank drunk
build built|send sent|spend spent|lend lent|pay paid|hear heard|become became|hide hid hidden
forget forgot forgotten|lead led|light lit|mean meant|sit sat|shoot shot|stick stuck|seek sought
strike struck|wake woke woken|fight fought|dream dreamt|learn learnt|burn burnt|steal stole stolen
freeze froze frozen|shake shook shaken|bite bitten|blow blew blown|forgive forgave forgiven
rise risen|ring rang rung|shrink shrank shrunk|sink sank sunk|spring sprang sprung|sweep swept
swing swung|tear tore torn|weep wept|bend bent|bleed bled|breed bred
deal dealt|dig dug|feed fed|flee fled|kneel knelt|lay laid|lean leant|slide slid|spin spun
stink stank stunk|swear swore sworn|beat beaten|arise arose arisen|awake awoke awoken
do did done does doing|have had has having
child children kid|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese
wife wives|knife knives|shelf shelves|wolf wolves|half halves|thief thieves|loaf loaves|calf calves
scarf scarves|analysis analyses|crisis crises|thesis theses|criterion criteria
phenomenon phenomena
mother mom mum mama mommy mummy|father dad daddy papa|grandmother grandma granny
grandfather grandpa|brother bro|sister sis|favorite fav fave favourite|birthday bday
television tv|phone telephone|photo pic picture photograph|movie film|family fam
conversation convo|vegetable veggie|bike bicycle|vacation vacay|tournament tourney|business biz
fridge refrigerator|exam examination|math maths
color colour|center centre|theater theatre|organize organise|realize realise|recognize recognise
gray grey|practice practise|traveler traveller|jewelry jewellery|neighbor neighbour
behavior behaviour
"""

IRREGULAR: dict[str, str] = {
    form: line.split()[0]
    for line in _FORMS.replace("\n", "|").split("|")
    for form in line.split()[1:]
}
"""Form → the base form that stands for all of its line; bases are not keys."""

CONTRACTIONS: dict[str, tuple[str, ...]] = {
    "can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not"),
    "ain't": ("is", "not"), "let's": ("let", "us"), "y'all": ("you", "all"),
    "gonna": ("going", "to"), "wanna": ("want", "to"), "gotta": ("got", "to"),
    "kinda": ("kind", "of"), "sorta": ("sort", "of"), "outta": ("out", "of"),
    "lemme": ("let", "me"), "gimme": ("give", "me"), "dunno": ("do", "not", "know"),
    "im": ("i", "am"), "ive": ("i", "have"), "youre": ("you", "are"), "youve": ("you", "have"),
    "theyre": ("they", "are"), "thats": ("that", "is"), "whats": ("what", "is"),
    "dont": ("do", "not"), "doesnt": ("does", "not"), "didnt": ("did", "not"),
    "isnt": ("is", "not"), "arent": ("are", "not"), "wasnt": ("was", "not"),
    "werent": ("were", "not"), "havent": ("have", "not"), "hasnt": ("has", "not"),
    "hadnt": ("had", "not"), "cant": ("can", "not"), "wouldnt": ("would", "not"),
    "couldnt": ("could", "not"), "shouldnt": ("should", "not"), "lets": ("let", "us"),
}  # fmt: skip
"""Words that stand for several, with their apostrophe or as people type them without."""

SUFFIXES: dict[str, tuple[str, ...]] = {
    "s": (), "re": ("are",), "ve": ("have",), "ll": ("will",), "d": ("would",), "m": ("am",),
    "em": ("them",),
}  # fmt: skip
"""What follows an apostrophe and is no part of the word: the possessive or a weak verb."""

ELISIONS: frozenset[str] = frozenset(
    [
        "l", "d", "j", "m", "t", "s", "c", "n", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu",
        "quelqu", "all", "dall", "dell", "nell", "sull", "coll", "gl", "un", "quest", "quell",
        "anch", "com", "dov", "cos", "senz", "bell", "sant",
    ]
)  # fmt: skip
"""Shortened words before an apostrophe in French, Italian and Catalan (l'ami, dell'acqua)."""
