"""English words that verification knows: what denies, what supposes, what reports, and what means
the same. Everything here is lower case; `key` takes a word to what stands for it.
"""

from __future__ import annotations

from functools import lru_cache

from cofire.encoding.stems import default_stem
from cofire.encoding.text import fold

NOMINATIVES = frozenset("i we he she they".split())
FIRST = frozenset("i me my mine myself".split())
PLURAL_FIRST = frozenset("we us our ours ourselves".split())
SECOND = frozenset("you your yours yourself".split())
THIRD = frozenset("he she they him them his their hers theirs himself herself themselves".split())
POSSESSIVES = frozenset("my our your his her their its".split())
DETERMINERS = frozenset("the a an this that these those some one every each both all".split())

KIN = frozenset(
    """mother mom mum father dad parent parents brother sister sibling siblings son daughter child
    children kid kids baby wife husband spouse partner fiance fiancee girlfriend boyfriend cousin
    aunt uncle niece nephew grandmother grandma granny grandfather grandpa grandparents grandson
    granddaughter stepson stepdaughter family friend friends roommate flatmate housemate colleague
    colleagues coworker boss manager neighbour neighbor neighbours neighbors teacher tutor student
    students doctor dentist therapist coach trainer landlord landlady tenant client customer
    lawyer ex twin twins buddy mate classmate teammate dog puppy cat kitten horse parrot hamster
    rabbit pet pets people brothers sisters sons daughters cousins aunts uncles""".split()
)
"""Nouns for persons, and animals that people keep."""

NEGATORS = frozenset(
    """not no never none nobody nothing neither nor without hardly barely scarcely nowhere rarely
    seldom cannot lack lacks lacked refuse refuses refused avoid avoids avoided unable fail fails
    failed""".split()
)
DISLIKES = frozenset("hate hates hated hating dislike dislikes disliked detest detests loathe "
                     "loathes despise despises".split())  # fmt: skip
BRIEF = frozenset("no without hardly barely scarcely lack lacks lacked".split())
"""Of those, the ones that deny the words just after them and no more."""
CEASED = frozenset("stop stops stopped stopping quit quits quitting ceased".split())
FORMER = frozenset("formerly previously former ex".split())
GIVE = frozenset("give gives gave given giving".split())
HARMLESS = tuple(tuple(phrase.split()) for phrase in (
    "not only|not just|not to mention|no doubt|no wonder|no problem|no idea|no worries|no way|"
    "can not wait|could not wait|can not believe|could not believe|can not help|could not help|"
    "can not thank|could not be happier|could not agree|could not ask|do not worry|"
    "do not forget|do not mind|never mind|never been so|never been more|why not|will not lie|"
    "no matter|not bad|no pressure|never forget|not forget|can not imagine|could not imagine|"
    "no cakewalk|no joke|not have done|nothing but|not going to lie|can not get enough|"
    "could not have|would not miss|not sure|not gonna lie"
).split("|"))  # fmt: skip
"""Phrases with a negator that deny nothing of what follows."""

SUPPOSES = frozenset(
    """if unless might may could would should wish wishes wished hope hopes hoping hoped maybe
    perhaps possibly probably suppose supposing imagine considering consider considers want wants
    wanted wanna plan plans planning planned dream dreams dreaming intend intends intending
    pretend pretended almost nearly tempted thinking wonder wondering will gonna about interested
    aim aims aiming ought""".split()
)  # fmt: skip
ATTITUDES = frozenset("wish wishes wished hope hopes hoping imagine suppose supposing pretend "
                      "pretended maybe perhaps doubt doubts dream dreams dreamt dreamed "
                      "wonder".split())  # fmt: skip
"""Of those, the ones that reach over the next clause: "I wish I had a sister"."""
LONGING = frozenset("dying eager keen desperate trying tempted wait need supposed about ready "
                    "willing waiting itching".split())  # fmt: skip
"""Before "to" these leave open whether it comes about."""
CONDITIONS = frozenset("if unless once assuming provided".split())
FUTURE = frozenset("will gonna".split())
PLANS = frozenset(
    """will would could might may should want wants wanted wanting hope hopes hoped hoping plan
    plans planned planning consider considers considering considered intend intends intended aim
    aims aimed wish wishes wished dream dreams dreamed going upcoming future soon eventually
    someday next scheduled looking forward possibly potentially maybe perhaps probably if unless
    interested thinking thought contemplating contemplates expects expecting expected tempted
    motivated determined decided ask asks asked asking wonders wondered curious believes tomorrow
    suggested suggests recommends recommended seeks seeking desires desire goal ambition likely
    anticipates anticipate anticipating prepares preparing prepare ready determined contingent
    conditional hypothetical willing ready eager keen trying tries tried need needs needed must
    ought supposed wait excited""".split()
)  # fmt: skip
"""Words by which a record itself says that what it tells is not (yet) so."""

SPEECH = frozenset(
    """say says said saying tell tells told telling think thinks thought claim claims claimed
    believe believes believed heard hear hears insist insists insisted mention mentions mentioned
    swear swears swore reckon reckons suspect suspects write writes wrote admit admits admitted
    explain explains explained announce announced reported reports""".split()
)
HEARSAY = frozenset("apparently allegedly supposedly reportedly rumour rumor rumours rumors "
                    "gossip".split())  # fmt: skip
ATTRIBUTES = (
    SPEECH
    | HEARSAY
    | frozenset(
        "according opinion quote quotes quoted view advised advice suggests considers".split()
    )
)
INDEFINITE = frozenset("everybody everyone somebody someone nobody anybody anyone people folks "
                       "others they many most some".split())  # fmt: skip
"""Who says it, where nobody in particular does."""

SPLITTERS = frozenset("but because that who which when while if unless although though whereas "
                      "whose where".split())  # fmt: skip
OPENERS = frozenset(
    """and or so then also just really finally now today yesterday tomorrow tonight oh well yes
    yeah yep no please actually honestly recently lately currently usually often sometimes always
    never ever still even once luckily sadly unfortunately apparently maybe perhaps hey hi wow
    did do does have has had is are was were am be been can could will would should might may only
    not absolutely definitely totally later again already soon thanks""".split()
)
"""Words passed over in search of a clause's subject."""
PREPOSITIONS = frozenset(
    """in on at by to from for with of into about over under after before since during until near
    behind beside between through against without within around across along like as than per
    according despite""".split()
)
BE = frozenset("am is are was were be been being get gets got gotten getting".split())

_CLASSES = """
like love enjoy adore favourite fan fond keen prefer passion passionate appreciate value cherish
  loves likes enjoys liking enjoyment preference admire into
delight great amazing awesome wonderful fantastic fun beautiful gorgeous delicious lovely incredible
  happy glad excited thrill thrilled proud joy pleasure excite pleased exciting enthusiastic best
  brilliant fabulous enthusiasm cool perfect nice good thankful grateful inspire inspired inspiring
work job employ employed employer career hire hired occupation profession
live reside move relocate home residence house based stay settle
dog puppy|cat kitten|kid child baby|son boy|daughter girl
husband wife spouse marry married marriage wedding partner
buy purchase acquire get bought obtain|begin start open launch commence join
travel trip visit go journey holiday vacation fly went tour|talk speak chat discuss conversation
  discussion tell say
own owner have possess keep belong|make create build produce develop construct built craft
teach teacher taught tutor|learn study student studies course class lesson
paint painting painter|write writer writing|run runner running jog marathon race|swim swimming
cook cooking bake baking|sing singer singing song|dance dancer dancing|play player|drive driver
sick ill illness disease|allergy allergic|hurt pain ache sore painful|doctor physician
photo picture image photograph|movie film|mom mother mum|dad father|grandma grandmother
big large huge|small little tiny|near nearby close by right beside next|call name
stop quit cease|end finish complete|help support assist aid|need require
engaged engage fiance fiancee engagement|pregnant expect|die death
receive get give gift present|borrow lend loan|earn win award prize|meet encounter introduce
raise grow bring-up grew upbringing|volunteer charity|exercise gym workout train training fit
money finance financial|car vehicle|flat apartment|shop store|company firm business
important matter|difficult hard tough challenge challenging struggle|calm relax peace peaceful
  relaxation quiet|scare afraid fear frightened nervous anxious|stress stressed stressful
want wish hope plan intend consider think dream interest interested aim decide goal
show display exhibit exhibition|garden gardening|read reader book reading|wait look-forward
vegetarian vegan|remind memory memories remember|family relative|attend participate event went
destroy ruin damage|fix repair|nature outdoors outside|hike hiking trail|unique special
"""
_KEYS: dict[str, str] = {}
for _line in _CLASSES.replace("\n  ", " ").strip().replace("\n", "|").split("|"):
    _words = _line.split()
    for _word in _words:
        _KEYS.setdefault(default_stem(_word), default_stem(_words[0]))

NEUTRAL = frozenset(
    default_stem(word)
    for word in """have has had get got be been do did own name call someone person people thing
    something somebody user assistant speaker currently recently now formerly
    previously longer also plan want wish hope consider intend think say tell
    mention express feel describe state report share believe ask wonder explain
    experience use used able very really quite lot own make become take go find
    found formerly previously stop quit no not never cannot new still once mainly
    mostly since for around approximately about appointment would will might could
    may if unless today yesterday tomorrow last next ago week month year day time
    earlier later before after january february march april june july august
    september october november december monday tuesday wednesday thursday friday
    saturday sunday end beginning receive travel""".split()
)
"""Keys that a good paraphrase adds or drops: they count neither for nor against support."""

GENERAL: dict[str, str] = {
    **dict.fromkeys("always constantly forever invariably".split(), "always"),
    **dict.fromkeys("often usually frequently regularly routinely commonly "
                    "typically".split(), "often"),
    **dict.fromkeys("every each daily weekly monthly everyone everybody everything everywhere "
                    "everyday".split(), "every"),
    **dict.fromkeys("only exclusively solely".split(), "only"),
    **dict.fromkeys("expert professional specialist master famous addicted obsessed "
                    "fanatic".split(), "expert"),
    **dict.fromkeys("favourite favorite best greatest".split(), "best"),
}  # fmt: skip
"""Words that say more than one occasion can bear, by what kind of evidence they need."""
BEARS: dict[str, frozenset[str]] = {
    "always": frozenset({"always", "every", "often"}),
    "often": frozenset({"always", "every", "often", "best"}),
    "every": frozenset({"always", "every"}),
    "only": frozenset({"only", "always", "best"}),
    "expert": frozenset({"expert"}),
    "best": frozenset({"best"}),
}

CONVERSE = frozenset(
    frozenset(default_stem(word) for word in pair.split())
    for pair in ("give receive", "give get", "send receive", "send get", "lend borrow", "loan "
                 "borrow", "sell buy", "teach learn", "pay earn", "hire join")
)  # fmt: skip
"""Verbs that tell one deed from its two ends: who gives and who receives."""

PARTICIPLES = frozenset(
    """given sent told taught hired fired born raised made built bought sold found known left paid
    shown seen taken brought chosen written beaten beat bitten driven forgotten caught lent held
    hit hurt won led met sung stolen thrown worn put cut""".split()
)
PAST = frozenset(
    """was were had went got gave took made bought sold found knew left paid saw brought chose
    wrote met won led sang stole threw wore did became began ran ate drank drove flew grew held
    kept lost said sent slept spoke stood taught told thought understood woke fell felt heard
    built quit put cut broke lent spent swam rode""".split()
)
ELLIPTICAL = PAST | frozenset("got been having going trying working loving living".split())
"""Verbs with which a chat message begins that leaves its "I" out."""


@lru_cache(maxsize=1 << 14)
def key(word: str) -> str:
    """What stands for an English word and those that mean much the same: a stem."""
    stem = default_stem(fold(word))
    return _KEYS.get(stem, stem)


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """The word's stem alone."""
    return default_stem(fold(word))


def is_past(word: str) -> bool:
    """Whether a verb is in the past, by its form: went, moved."""
    return word in PAST or (len(word) > 3 and word.endswith("ed"))
