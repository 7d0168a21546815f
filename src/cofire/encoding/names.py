"""Small word lists for telling names from words that merely begin with a capital."""

from __future__ import annotations

COMMON_OPENERS = frozenset(
    """thanks thank sure great good nice cool awesome amazing congrats congratulations sorry please
    hello hi hey bye goodbye welcome yes yeah yep no nope ok okay wow oh ah hmm well maybe perhaps
    lately recently today yesterday tomorrow tonight last next since still even though although
    however moreover meanwhile instead besides first second third finally also then now here there
    later sometimes always never often usually let take keep check see look tell ask remember try
    make get go come give think talk wait guess hope love miss glad happy sad excited proud true
    one two three four five six seven eight nine ten morning afternoon evening spoke need
    life nature art dance music time books book home little change super plus wish stay fingers name
    everyday nobody anyone whoever whatever family friends kids food work school self setbacks
    right absolutely totally definitely exactly agreed haha lol omg speaking according despite
    unfortunately luckily currently apparently basically honestly everyone everybody someone
    something everything nothing anything people many several both another other others
    gestern heute morgen danach dort laut trotz bitte leider vielleicht
    ayer hoy segun despues luego ademas aunque tambien
    hier aujourd'hui selon apres ensuite cependant peut-etre
    ieri oggi secondo dopo inoltre
    ontem hoje segundo depois alem embora
    вчера сегодня завтра потом также однако по согласно после""".split()
)
"""Folded words with which sentences of chats and notes begin and which are no names there."""

OPENER_ENDINGS = ("ly", "ing", "ed", "mente", "ment")
"""Endings (folded) of adverbs and participles, which often begin a sentence."""

TIME_NAMES = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december mon tue tues wed thu thur thurs fri sat sun
    jan feb mar apr jun jul aug sep sept oct nov dec christmas easter halloween thanksgiving
    montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar marz mai juni juli
    oktober dezember am pm""".split()
)
"""Days, months and feasts: times, not concepts."""

NAME_PARTICLES = frozenset(
    "of the de la le du do dos di del della da van von der den al el bin ibn y".split()
)
"""Small words inside names: Bank of England, Ludwig van Beethoven."""

DETERMINERS = frozenset(
    """der die das den dem des ein eine einen einem einer eines kein keine keinen im am vom zum zur
    beim ins ans mein dein sein ihr unser euer dieser diese dieses jeder jede jedes alle viele
    einige mehrere zwei drei vier funf zehn pro per unter uber ohne""".split()
)
"""German words after which a capital says nothing."""

NOUN_ENDINGS = (
    "ung", "ungen", "heit", "keit", "schaft", "tion", "tionen", "ismus", "tat", "chen", "nis",
    "ment", "enz", "anz", "ur", "ik",
)  # fmt: skip
"""Endings (folded) of German common nouns."""

CLASS_NOUNS = frozenset(
    """projekt projekts team teams firma bezirk stadt herr herrn frau doktor kapitel paper artikel
    gruppe verein konsortium labor abteilung direktorin direktor redakteurin redakteur leiterin
    leiter kollegin kollege kunde kundin autorin autor hauptautor botanischen nachbarschaft
    mr mrs ms dr prof sr sra""".split()
)
"""Folded words before a name that say what it is a name of."""

VERBS_AFTER_NAMES = frozenset(
    """is was has had will would can could and or said says went got came told asked wants needs
    made took found gave wrote ran won lost bought left met knew felt thought sent built held also
    just who from at with
    ist war hat hatte wird will kann muss und hatten sagt ging kam gab fand schrieb
    es era fue ha habia esta va y e dijo tiene
    est a avait etait va et dit
    e ha aveva era va ed disse
    foi esta vai tem tinha disse
    и был была будет сказал""".split()
)
"""Folded words that follow the subject of a sentence."""
