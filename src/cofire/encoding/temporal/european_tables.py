"""Words of time in seven European languages, without accents as `words.fold` leaves them.

Alternatives inside a value are parts of a regular expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cofire.encoding.temporal.spans import Unit


def _numbered(names: str, first: int = 1) -> dict[str, int]:
    """Names by their number; "|" parts other names of one number."""
    return {
        name: number
        for number, group in enumerate(names.split(), first)
        for name in group.split("|")
    }


def _units(day: str, week: str, month: str, year: str, weekend: str) -> dict[str, Unit]:
    groups: tuple[tuple[str, Unit], ...] = (
        (day, "day"),
        (week, "week"),
        (month, "month"),
        (year, "year"),
        (weekend, "weekend"),
    )
    return {name: unit for names, unit in groups for name in names.split("|")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language's words of time. `{n}` in `ago` and `ahead` stands for number and unit.

    `last`, `this`, `next` go before the noun, `after_last`, `after_next` behind it. `on` leads a
    weekday, `within` a month or a year. `of` may stand between the parts of a date. `common` are
    frequent words that tell the language; `doubtful` are words of time that are also everyday
    words of other languages and count only with such evidence. `bare`: a unit alone means one
    ("год назад"). `not_after`: what makes a day's name another word ("Guten Morgen").
    """

    days: Mapping[str, int]
    nights: Mapping[str, tuple[int, str]]
    units: Mapping[str, Unit]
    last: str
    this: str
    next: str
    after_last: str = "(?!)"
    after_next: str = "(?!)"
    ago: tuple[str, ...]
    ahead: tuple[str, ...]
    numbers: Mapping[str, int]
    couple: str
    few: str
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    of: str
    on: str
    within: str
    since: str
    common: frozenset[str]
    bare: bool = False
    not_after: str = "(?!)"
    doubtful: frozenset[str] = field(default_factory=frozenset)


LANGUAGES: Mapping[str, Language] = {
    "fr": Language(
        days={"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "demain": 1, "apres-demain": 2},
        nights={"hier soir": (-1, "night"), "ce soir": (0, "night"), "ce matin": (0, "morning"),
                "cette nuit": (0, "night"), "hier matin": (-1, "morning")},
        units=_units("jour|jours", "semaine|semaines", "mois", "an|ans|annee|annees",
                     "week-end|weekend"),
        last="(?!)", this="cette|cet|ce", next="(?!)",
        after_last="derniere|dernier|passee?", after_next="prochaine?",
        ago=("il y a {n}",), ahead=("dans {n}", "d'ici {n}"),
        numbers=_numbered("un|une deux trois quatre cinq six sept huit neuf dix onze douze"),
        couple="deux ou trois", few="quelques",
        months=_numbered("janvier fevrier mars avril mai juin juillet aout septembre octobre "
                         "novembre decembre"),
        weekdays=_numbered("lundi mardi mercredi jeudi vendredi samedi dimanche", 0),
        of="de|du", on="le", within="en|au mois de|courant", since="depuis",
        common=frozenset("le la les de des du et est une dans pour que qui je nous vous avec ai "
                         "sur pas au fait j qu il y elle".split()),
        doubtful=frozenset({"hier", "mars", "an", "mois", "ans"}),
    ),
    "de": Language(
        days={"vorgestern": -2, "gestern": -1, "heute": 0, "morgen": 1, "ubermorgen": 2},
        nights={"gestern abend": (-1, "night"), "letzte nacht": (-1, "night"),
                "heute abend": (0, "night"), "heute nacht": (0, "night"),
                "heute morgen": (0, "morning"), "heute fruh": (0, "morning"),
                "morgen abend": (1, "night"), "morgen fruh": (1, "morning")},
        units=_units("tag|tage|tagen", "woche|wochen", "monat|monate|monaten|monats",
                     "jahr|jahre|jahren|jahres", "wochenende|wochenenden"),
        last="(?:letzt|vorig|vergangen)e[nrsm]?", this="diese[nrsm]?",
        next="(?:nachst|kommend)e[nrsm]?",
        ago=("vor {n}",), ahead=("in {n}",),
        numbers=_numbered("ein|eine|einem|einer|einen zwei drei vier funf sechs sieben acht neun "
                          "zehn elf zwolf"),
        couple="(?!)", few="ein paar|einigen|einige|wenigen",
        months=_numbered("januar|janner februar marz april mai juni juli august september oktober "
                         "november dezember"),
        weekdays=_numbered("montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
                           0),
        of="des", on="am", within="im|im jahre?", since="seit",
        common=frozenset("der die das und ist ich nicht mit ein eine fur auf wir habe war wie was "
                         "den dem zu sie im am hat wann".split()),
        doubtful=frozenset({"morgen", "tag", "tage"}),
        not_after="guten|am|jeden|diesen|den|der|einen",
    ),
    "es": Language(
        days={"anteayer": -2, "antes de ayer": -2, "ayer": -1, "hoy": 0, "pasado manana": 2},
        nights={"anoche": (-1, "night"), "esta noche": (0, "night"),
                "esta manana": (0, "morning"), "esta tarde": (0, "afternoon"),
                "ayer por la noche": (-1, "night")},
        units=_units("dia|dias", "semana|semanas", "mes|meses", "ano|anos",
                     "fin de semana|fines de semana"),
        last="pasad[oa]|ultim[oa]", this="est[ea]", next="proxim[oa]",
        after_last="pasad[oa]", after_next="que viene|proxim[oa]",
        ago=("hace {n}", "{n} atras"), ahead=("dentro de {n}",),
        numbers=_numbered("un|una dos tres cuatro cinco seis siete ocho nueve diez once doce"),
        couple="un par de", few="unos|unas|algunos|algunas|pocos|pocas",
        months=_numbered("enero febrero marzo abril mayo junio julio agosto septiembre|setiembre "
                         "octubre noviembre diciembre"),
        weekdays=_numbered("lunes martes miercoles jueves viernes sabado domingo", 0),
        of="de|del", on="el", within="en|durante", since="desde",
        common=frozenset("el la los las de y es una en para que yo con no por mi se fue al del "
                         "que lo".split()),
        doubtful=frozenset({"mes", "dia", "dias", "ano", "anos"}),
    ),
    "it": Language(
        days={"l'altro ieri": -2, "l'altroieri": -2, "ieri": -1, "oggi": 0, "domani": 1,
              "dopodomani": 2},
        nights={"ieri sera": (-1, "night"), "ieri notte": (-1, "night"), "stasera": (0, "night"),
                "stamattina": (0, "morning"), "stanotte": (0, "night"),
                "domani sera": (1, "night"), "domani mattina": (1, "morning")},
        units=_units("giorno|giorni", "settimana|settimane", "mese|mesi", "anno|anni",
                     "fine settimana|weekend"),
        last="scors[oa]|passat[oa]|ultim[oa]", this="quest[oa]|quest'", next="prossim[oa]",
        after_last="scors[oa]|passat[oa]", after_next="prossim[oa]",
        ago=("{n} fa",), ahead=("(?:tra|fra) {n}",),
        numbers=_numbered("un|una|uno due tre quattro cinque sei sette otto nove dieci undici "
                          "dodici"),
        couple="un paio di", few="alcuni|alcune|qualche|pochi|poche",
        months=_numbered("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre "
                         "ottobre novembre dicembre"),
        weekdays=_numbered("lunedi martedi mercoledi giovedi venerdi sabato domenica", 0),
        of="di|del", on="(?!)", within="in|a|nel", since="dal|da",
        common=frozenset("il lo la i gli le di e che un una in per non con ho sono mi si del "
                         "della ha".split()),
    ),
    "pt": Language(
        days={"anteontem": -2, "ontem": -1, "hoje": 0, "amanha": 1, "depois de amanha": 2},
        nights={"ontem a noite": (-1, "night"), "hoje a noite": (0, "night"),
                "esta noite": (0, "night"), "esta manha": (0, "morning"),
                "hoje de manha": (0, "morning"), "amanha de manha": (1, "morning")},
        units=_units("dia|dias", "semana|semanas", "mes|meses", "ano|anos",
                     "fim de semana|fins de semana"),
        last="passad[oa]|ultim[oa]", this="est[ea]|nest[ea]", next="proxim[oa]",
        after_last="passad[oa]", after_next="que vem|proxim[oa]",
        ago=("ha {n}(?: atras)?", "{n} atras", "faz {n}"), ahead=("daqui a {n}", "dentro de {n}"),
        numbers=_numbered("um|uma dois|duas tres quatro cinco seis sete oito nove dez onze doze"),
        couple="um par de", few="alguns|algumas|poucos|poucas|uns|umas",
        months=_numbered("janeiro fevereiro marco abril maio junho julho agosto setembro outubro "
                         "novembro dezembro"),
        weekdays=_numbered("segunda-feira terca-feira quarta-feira quinta-feira sexta-feira "
                           "sabado domingo", 0),
        of="de|do", on="n[ao]", within="em|durante", since="desde",
        common=frozenset("o a os as de e que um uma em para nao com eu foi no na do da por "
                         "se meu".split()),
        doubtful=frozenset({"mes", "dia", "dias", "ano", "anos"}),
    ),
    "nl": Language(
        days={"eergisteren": -2, "gisteren": -1, "vandaag": 0, "morgen": 1, "overmorgen": 2},
        nights={"gisteravond": (-1, "night"), "gisternacht": (-1, "night"),
                "vannacht": (0, "night"), "vanavond": (0, "night"), "vanmorgen": (0, "morning"),
                "vanochtend": (0, "morning"), "vanmiddag": (0, "afternoon"),
                "morgenavond": (1, "night"), "morgenochtend": (1, "morning")},
        units=_units("dag|dagen", "week|weken", "maand|maanden", "jaar|jaren",
                     "weekend|weekenden"),
        last="vorige?|afgelopen", this="deze|dit", next="volgende?|komende?",
        ago=("{n} geleden",), ahead=("over {n}",),
        numbers=_numbered("een twee drie vier vijf zes zeven acht negen tien elf twaalf"),
        couple="(?!)", few="een paar|enkele",
        months=_numbered("januari februari maart april mei juni juli augustus september oktober "
                         "november december"),
        weekdays=_numbered("maandag dinsdag woensdag donderdag vrijdag zaterdag zondag", 0),
        of="van", on="op", within="in", since="sinds",
        common=frozenset("de het een en is ik niet met voor op wij we heb was van dat er naar "
                         "zijn te ook".split()),
        doubtful=frozenset({"morgen", "dag", "mei", "week", "weekend"}),
        not_after="goede|elke|de",
    ),
    "ru": Language(
        days={"позавчера": -2, "вчера": -1, "сегодня": 0, "завтра": 1, "послезавтра": 2},
        nights={"вчера вечером": (-1, "night"), "сегодня вечером": (0, "night"),
                "сегодня утром": (0, "morning"), "вчера утром": (-1, "morning"),
                "завтра утром": (1, "morning"), "завтра вечером": (1, "night")},
        units=_units("день|дня|днеи|дни", "неделя|неделю|недели|неделе|недель",
                     "месяц|месяца|месяце|месяцев", "год|года|году|лет",
                     "выходные|выходных"),
        last="(?:на |в )?прошл(?:ыи|ого|ом|ую|ои|ая|ые|ых|ое)",
        this="(?:на |в )?эт(?:от|ом|у|ои|а|и|их)",
        next="(?:на |в )?следующ(?:ии|его|ем|ую|еи|ая|ие|их|ее)",
        ago=("{n} назад",), ahead=("через {n}",),
        numbers=_numbered("один|одну|одна два|две три четыре пять шесть семь восемь девять десять"),
        couple="пар[уы]", few="несколько",
        months=_numbered("января|январе|январь февраля|феврале|февраль марта|марте|март "
                         "апреля|апреле|апрель мая|мае|маи июня|июне|июнь июля|июле|июль "
                         "августа|августе|август сентября|сентябре|сентябрь "
                         "октября|октябре|октябрь ноября|ноябре|ноябрь декабря|декабре|декабрь"),
        weekdays=_numbered("понедельник вторник среду|среда|среды четверг пятницу|пятница|пятницы "
                           "субботу|суббота|субботы воскресенье|воскресенья", 0),
        of="г", on="во?", within="в", since="с",
        bare=True,
        common=frozenset("и в не на я что он с как это по мы было у".split()),
    ),
}  # fmt: skip
