"""Whether an answer says that it is not known: LoCoMo's rule, and an exact one of our own."""

from __future__ import annotations

import re

_LOCOMO = ("no information available", "not mentioned")


def is_refusal(text: str) -> bool:
    """LoCoMo's rule for category 5: the lower-cased answer contains one of two phrases."""
    lowered = text.lower()
    return any(phrase in lowered for phrase in _LOCOMO)


def refuses(text: str) -> bool:
    """Whether the whole answer says that its matter is not mentioned or not known.

    Unlike `is_refusal`, other wordings count, and an answer that says anything besides does not:
    "not mentioned, but probably Oslo" answers. What may stand around it: the remains of a prompt
    ("Answer:"), marks of citations, an apology, a question back, and an offer to help. Silence is
    no refusal. Wordings are English, with the commonest of nine other languages.
    """
    if len(text) > _LONGEST:
        return False
    sentences = [part for part in _SENTENCES.split(_plain(text)) if part]
    said = [part for part in sentences if not _POLITE.fullmatch(part)]
    return bool(said) and all(_refuses(part) for part in said)


def _plain(text: str) -> str:
    """Lower case, straight quotes, single spaces; without emphasis and marks of citations."""
    text = _CITED.sub("", text).lower().replace("’", "'")
    text = _IS.sub(lambda short: {"'s": " is", "'m": " am"}[short[0]], text)
    return " ".join(text.translate(_EMPHASIS).split())


def _refuses(sentence: str) -> bool:
    said = _BEFORE.sub("", sentence.strip(" .!?,:-。！？")).strip(" .!?,:")
    said = _AFTER.sub("", said)
    if said in _OTHER_LANGUAGES:
        return True
    return not _MORE.search(said) and any(form.fullmatch(said) for form in _FORMS)


_LONGEST = 2000
"""Characters: a refusal is short."""
_EMPHASIS = str.maketrans("", "", '*_`#"“”')
_CITED = re.compile(r"\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_IS = re.compile(r"(?<=\bit)'s\b|(?<=\bthat)'s\b|(?<=\bthere)'s\b|(?<=\bi)'m\b")
_SENTENCES = re.compile(
    r"(?<=[.!?])\s+|(?<=[。！？])|\s*;\s*|,\s*(?=(?:so|and|therefore|hence) i )"
)

# Parts of the forms below, by name.
_PARTS = {
    # What was read: "the given conversation", "our chat history".
    "SOURCE": r"(?:(?:the|this|that|these|those|any|our|your|my|their|its|all) )*"
    r"(?:(?:provided|given|available|above|supplied|retrieved|recorded|past|previous|earlier|stored"
    r"|relevant|current|chat|conversation(?:al)?|dialog(?:ue)?|memory|whole|entire|full) )*"
    r"(?:conversations?|contexts?|dialog(?:ue)?s?|chats?|texts?|memor(?:y|ies)|records?|notes?"
    r"|messages?|lines?|transcripts?|histor(?:y|ies)|logs?|information|data|documents?|passages?"
    r"|excerpts?|sources?|sessions?|discussions?|exchanges?|snippets?|speakers?)"
    r"(?: (?:provided|given|available|above|so far|history))?",
    "HOW": r"(?: (?:explicitly|specifically|clearly|directly|ever|actually|currently|anywhere))?",
    "ASKED": r" (?:what|where|when|who|whom|whose|why|which|how|if|whether|that|any|anything|the"
    r"|a|an|this|his|her|their|its|it|about|of|on|for|regarding|concerning)\b",
    "BE_NOT": r"(?:(?:is|are|was|were|has been|have been) (?:not|never)"
    r"|(?:is|are|was|were)n't|(?:has|have)(?:n't| not| never) been)",
    # What is only said of something that was told, and what needs the place to mean that.
    "SAID": r"(?:mentioned|specified|stated|disclosed|revealed|indicated)",
    "GIVEN": r"(?:given|provided|available|included|listed|shown|found|known|clear|present|recorded"
    r"|discussed|noted|described|documented|addressed)",
    "INFO": r"(?:(?:specific|relevant|direct|explicit|clear|further|more|such|personal|other|prior"
    r"|exact|definite) )*(?:information|mention|records?|indication|evidence|references?|details?"
    r"|data|answers?|knowledge|memor(?:y|ies)|context|statement|discussion|idea|clue)",
    "DEDUCE": r"(?:determine|answer|tell|say|identify|confirm|infer|find|recall|remember|know"
    r"|establish|deduce|locate)",
    "DEDUCED": r"(?:determined|answered|inferred|found|known|identified|established|confirmed"
    r"|ascertained|deduced)",
    "WHERE": r"(?:<HOW> (?:in|by|from|within|based on) <SOURCE>| so far| yet| here| anywhere)",
    "ABOUT": r"(?:<ASKED>[^,:]*)",
    "OF": r"(?:(?: (?:available|provided|given|found|recorded|stored|present))?"
    r"(?: (?:of|about|on|regarding|concerning|for|in|from|within|that|as to|to <DEDUCE>)\b"
    r"[^,:]*)?)",
}


def _form(pattern: str) -> re.Pattern[str]:
    """A pattern whose <NAMES> are filled in with the parts above, which may name others."""
    while (filled := _NAME.sub(lambda name: _PARTS[name[1]], pattern)) != pattern:
        pattern = filled
    return re.compile(filled)


_NAME = re.compile(r"<([A-Z_]+)>")

_BEFORE = _form(
    r"\A(?:(?:(?:short |final )?answer|response): ?"
    r"|(?:i am )?(?:very |so )?sorry,? (?:but )?|unfortunately,? |i apologi[sz]e,? (?:but )?"
    r"|(?:so|therefore|thus|hence|and),? (?=i )"
    r"|(?:based (?:only |solely )?(?:on|upon)|according to|from|given|in) <SOURCE>,? )+"
)
_AFTER = re.compile(r",? (?:i (?:fear|am afraid)|i am (?:very |so )?sorry|sorry|unfortunately)\Z")
_POLITE = re.compile(
    r"(?:please|let me know|if you|could you|can you|feel free|would you|thank|i am happy to)\b.*"
    r"|(?:i am )?(?:very |so )?sorry[.!]?|(?:short |final )?answer:?"
    r"|[^?]*\?"  # "Do you want to tell me?"
)
# What says that the sentence goes on to an answer after all.
_MORE = re.compile(
    r"\b(?:but|however|although|though|except|instead|apart from|other than|besides|likely"
    r"|probably|perhaps|maybe)\b"
)
_FORMS = tuple(
    _form(pattern)
    for pattern in (
        # Not mentioned; it isn't known what she ate; her age is not given in the conversation.
        r"not(?: been)?<HOW> (?:<SAID>|<GIVEN>)<WHERE>?",
        r"not (?:<SAID>|known|clear|sure|certain)<ABOUT>?",
        r"(?:none|nothing|neither|it)(?: is| was)? (?:not )?<SAID>(?:<WHERE>|<ABOUT>)?",
        r"(?:it|that|this) <BE_NOT><HOW> (?:<SAID>|known|clear|possible)<ABOUT>?",
        r"[^,:]+ <BE_NOT><HOW> <SAID><WHERE>?",
        r"[^,:]+ <BE_NOT><HOW> <GIVEN><WHERE>",
        r"(?:(?:the|this|that|such|any) )?(?:<INFO>|it|this|that|name|date) <BE_NOT><HOW> <GIVEN>"
        r"<WHERE>?",
        r"(?:[^,:]+ (?:is|are|was|were|remains?) )?(?:unknown|unclear|unspecified|undisclosed)"
        r"(?:<WHERE>|<ABOUT>)?",
        # No information; there is no mention of it; I have no memory of that.
        r"(?:(?:there (?:is|are|was|were)|(?:i|<SOURCE>) (?:have|has|see|find|found"
        r"|contains?|provides?|offers?|gives?|includes?)) )?(?:no|not any|not enough|insufficient)"
        r" <INFO>(?: (?:is|are|was|were))?<OF>",
        r"there (?:is|are|was|were)(?:n't| not) (?:any |enough |sufficient |an? )?<INFO><OF>",
        # I don't know; I can't tell; it cannot be determined.
        r"i (?:do not|don't|did not|didn't) (?:know|recall|remember)<ABOUT>?",
        r"i (?:do not|don't|did not|didn't) (?:have|see|find) (?:any |enough |sufficient |an? |the "
        r"|that |this |access to )*<INFO><OF>",
        r"(?:i )?(?:cannot|can't|can not|could not|couldn't|(?:am |was )?unable to"
        r"|(?:am |was )?not able to) <DEDUCE>(?:<WHERE>|<ABOUT>)?",
        r"i am not (?:sure|certain|aware)<ABOUT>?",
        r"(?:i )?(?:cannot|can't|could not|couldn't) (?:give|provide)(?: you)?(?: with)?"
        r" (?:an? |any |the |that |this )*<INFO><OF>",
        r"(?:[^,:]+ )?(?:cannot|can't|can not|could not|couldn't) be <DEDUCED>(?:<WHERE>|<ABOUT>)?",
        r"(?:it is )?(?:impossible|not possible) to <DEDUCE>(?:<WHERE>|<ABOUT>)?",
        # The conversation doesn't say.
        r"<SOURCE> (?:do not|does not|did not|don't|doesn't|didn't|never|fails? to)<HOW> (?:mention"
        r"|specify|say|state|contain|provide|include|indicate|discuss|reveal|give|tell|describe"
        r"|disclose|answer|address)s?(?: [^,:]+)?",
        r"(?:it|that) (?:does not|doesn't|did not|didn't) say(?:<ABOUT>)?",
        r"(?:there is|<SOURCE> (?:says?|contains?|mentions?|has|have)) nothing(?:<ABOUT>)?",
        r"(?:(?:[^,:]+ <BE_NOT>|not) in|nothing in) <SOURCE>|<INFO> not (?:<GIVEN>|<SAID>)<WHERE>?",
        r"n/?a|not applicable|unanswerable|undetermined|idk|no clue|dunno",
    )
)
_OTHER_LANGUAGES = frozenset(
    phrase
    for line in (
        "nicht erwähnt|wird nicht erwähnt|nicht bekannt|unbekannt|keine angabe|keine angaben"
        "|keine information|keine informationen|das weiß ich nicht|ich weiß es nicht"
        "|ich weiß nicht",
        "non mentionné|non mentionnée|pas mentionné|ce n'est pas mentionné|inconnu|je ne sais pas"
        "|aucune information|pas d'information",
        "no se menciona|no mencionado|no se sabe|desconocido|no lo sé|no sé|no hay información"
        "|sin información",
        "non menzionato|non è menzionato|non si sa|sconosciuto|non lo so|nessuna informazione",
        "não mencionado|não é mencionado|desconhecido|não sei|não há informação|sem informação",
        "niet vermeld|niet genoemd|onbekend|ik weet het niet|geen informatie",
        "не упоминается|не упомянуто|неизвестно|не знаю|я не знаю|нет информации",
        "未提及|没有提到|没有提及|未提到|不知道|我不知道|无法确定|没有相关信息|沒有提到|沒有提及",
        "言及されていません|言及なし|わかりません|分かりません|不明|情報がありません",
    )
    for phrase in line.split("|")
)
