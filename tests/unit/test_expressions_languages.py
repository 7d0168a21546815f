"""Time expressions of ten other languages; the anchor is Wednesday 2024-03-13 09:00 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cofire.encoding.expressions import event_times

ANCHOR = datetime(2024, 3, 13, 9, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def bounds(text: str) -> tuple[datetime, datetime]:
    start, slash, end = text.partition("/")
    return moment(start), moment(end) if slash else moment(start) + timedelta(days=1)


YESTERDAY, TODAY, TOMORROW = "2024-03-12", "2024-03-13", "2024-03-14"
LAST_WEEK, NEXT_WEEK = "2024-03-04/2024-03-11", "2024-03-18/2024-03-25"
LAST_MONTH, NEXT_MONTH = "2024-02-01/2024-03-01", "2024-04-01/2024-05-01"
LAST_YEAR, NEXT_YEAR = "2023-01-01/2024-01-01", "2025-01-01/2026-01-01"
THREE_DAYS_AGO, TWO_WEEKS_AGO = "2024-03-10", "2024-02-26/2024-03-04"
TWO_MONTHS_AGO, FIVE_YEARS_AGO = "2024-01-01/2024-02-01", "2019-01-01/2020-01-01"
THE_EIGHTH, JULY = "2024-03-08", "2024-07-01/2024-08-01"
LAST_FRIDAY, LAST_WEEKEND = "2024-03-08", "2024-03-09/2024-03-11"

CASES = [
    ("de", "Gestern war ich im Park", "Gestern", YESTERDAY),
    ("de", "Ich komme heute nicht", "heute", TODAY),
    ("de", "Wir sehen uns morgen im Büro", "morgen", TOMORROW),
    ("de", "Vorgestern habe ich gekocht", "Vorgestern", "2024-03-11"),
    ("de", "Ich war gestern Abend aus", "gestern Abend", "2024-03-12T18:00/2024-03-13T06:00"),
    ("de", "Letzte Woche war ich krank", "Letzte Woche", LAST_WEEK),
    ("de", "nächste Woche bin ich weg", "nächste Woche", NEXT_WEEK),
    ("de", "letzten Monat habe ich geheiratet", "letzten Monat", LAST_MONTH),
    ("de", "Das war letztes Jahr", "letztes Jahr", LAST_YEAR),
    ("de", "nächstes Jahr ziehe ich um", "nächstes Jahr", NEXT_YEAR),
    ("de", "letzten Freitag war ich im Kino", "letzten Freitag", LAST_FRIDAY),
    ("de", "letztes Wochenende", "letztes Wochenende", LAST_WEEKEND),
    ("de", "vor 3 Tagen habe ich ihn gesehen", "vor 3 Tagen", THREE_DAYS_AGO),
    ("de", "vor zwei Wochen", "vor zwei Wochen", TWO_WEEKS_AGO),
    ("de", "vor fünf Jahren", "vor fünf Jahren", FIVE_YEARS_AGO),
    ("de", "vor ein paar Tagen", "vor ein paar Tagen", "2024-03-08/2024-03-12"),
    ("de", "in zwei Wochen bin ich da", "in zwei Wochen", "2024-03-25/2024-04-01"),
    ("de", "am 8. März 2024", "8. März 2024", THE_EIGHTH),
    ("de", "im Juli 2024", "Juli 2024", JULY),
    ("de", "das Fest ist im Juli", "im Juli", JULY),
    ("de", "seit 2016 male ich", "seit 2016", "2016-01-01/2024-03-13T09:00"),
    ("es", "Ayer fui al parque", "Ayer", YESTERDAY),
    ("es", "hoy no puedo", "hoy", TODAY),
    ("es", "anoche cenamos", "anoche", "2024-03-12T18:00/2024-03-13T06:00"),
    ("es", "la semana pasada viajé", "semana pasada", LAST_WEEK),
    ("es", "la próxima semana viajo", "próxima semana", NEXT_WEEK),
    ("es", "la semana que viene viajo", "semana que viene", NEXT_WEEK),
    ("es", "el mes pasado me casé", "mes pasado", LAST_MONTH),
    ("es", "el año pasado me casé", "año pasado", LAST_YEAR),
    ("es", "el viernes pasado", "viernes pasado", LAST_FRIDAY),
    ("es", "el fin de semana pasado", "fin de semana pasado", LAST_WEEKEND),
    ("es", "hace tres días la vi", "hace tres días", THREE_DAYS_AGO),
    ("es", "hace 2 semanas", "hace 2 semanas", TWO_WEEKS_AGO),
    ("es", "hace cinco años que no la veo", "hace cinco años", FIVE_YEARS_AGO),
    ("es", "el 8 de marzo de 2024", "8 de marzo de 2024", THE_EIGHTH),
    ("es", "en julio de 2024", "julio de 2024", JULY),
    ("fr", "Hier, je suis allé au parc", "Hier", YESTERDAY),
    ("fr", "aujourd'hui je travaille", "aujourd'hui", TODAY),
    ("fr", "aujourd’hui je travaille", "aujourd’hui", TODAY),
    ("fr", "à demain !", "demain", TOMORROW),
    ("fr", "avant-hier", "avant-hier", "2024-03-11"),
    ("fr", "la semaine dernière", "semaine dernière", LAST_WEEK),
    ("fr", "la semaine derniere", "semaine derniere", LAST_WEEK),
    ("fr", "la semaine prochaine", "semaine prochaine", NEXT_WEEK),
    ("fr", "le mois dernier j'ai déménagé", "mois dernier", LAST_MONTH),
    ("fr", "l'année dernière", "année dernière", LAST_YEAR),
    ("fr", "vendredi dernier", "vendredi dernier", LAST_FRIDAY),
    ("fr", "il y a trois jours", "il y a trois jours", THREE_DAYS_AGO),
    ("fr", "il y a 5 ans", "il y a 5 ans", FIVE_YEARS_AGO),
    ("fr", "dans deux semaines", "dans deux semaines", "2024-03-25/2024-04-01"),
    ("fr", "le 8 mars 2024", "8 mars 2024", THE_EIGHTH),
    ("fr", "le 1er juillet 2024", "1er juillet 2024", "2024-07-01"),
    ("fr", "en juillet 2024", "juillet 2024", JULY),
    ("it", "Ieri sono andata al parco", "Ieri", YESTERDAY),
    ("it", "oggi lavoro", "oggi", TODAY),
    ("it", "domani parto", "domani", TOMORROW),
    ("it", "la settimana scorsa", "settimana scorsa", LAST_WEEK),
    ("it", "la prossima settimana", "prossima settimana", NEXT_WEEK),
    ("it", "il mese scorso", "mese scorso", LAST_MONTH),
    ("it", "l'anno scorso", "anno scorso", LAST_YEAR),
    ("it", "lo scorso fine settimana", "scorso fine settimana", LAST_WEEKEND),
    ("it", "tre giorni fa", "tre giorni fa", THREE_DAYS_AGO),
    ("it", "due mesi fa", "due mesi fa", TWO_MONTHS_AGO),
    ("it", "l'8 marzo 2024", "8 marzo 2024", THE_EIGHTH),
    ("pt", "Ontem fui ao parque", "Ontem", YESTERDAY),
    ("pt", "hoje trabalho", "hoje", TODAY),
    ("pt", "até amanhã", "amanhã", TOMORROW),
    ("pt", "a semana passada foi boa", "semana passada", LAST_WEEK),
    ("pt", "na próxima semana", "próxima semana", NEXT_WEEK),
    ("pt", "o mês passado", "mês passado", LAST_MONTH),
    ("pt", "o ano passado", "ano passado", LAST_YEAR),
    ("pt", "há três dias", "há três dias", THREE_DAYS_AGO),
    ("pt", "8 de março de 2024", "8 de março de 2024", THE_EIGHTH),
    ("nl", "Gisteren was ik in het park", "Gisteren", YESTERDAY),
    ("nl", "vandaag werk ik", "vandaag", TODAY),
    ("nl", "ik zie je morgen op het werk", "morgen", TOMORROW),
    ("nl", "vorige week was ik ziek", "vorige week", LAST_WEEK),
    ("nl", "volgende maand ga ik weg", "volgende maand", NEXT_MONTH),
    ("nl", "vorig jaar", "vorig jaar", LAST_YEAR),
    ("nl", "drie dagen geleden", "drie dagen geleden", THREE_DAYS_AGO),
    ("nl", "op 8 maart 2024", "8 maart 2024", THE_EIGHTH),
    ("ru", "Вчера я был в парке", "Вчера", YESTERDAY),
    ("ru", "сегодня я занят", "сегодня", TODAY),
    ("ru", "увидимся завтра", "завтра", TOMORROW),
    ("ru", "на прошлой неделе", "на прошлой неделе", LAST_WEEK),
    ("ru", "на следующей неделе", "на следующей неделе", NEXT_WEEK),
    ("ru", "в прошлом году", "в прошлом году", LAST_YEAR),
    ("ru", "три дня назад", "три дня назад", THREE_DAYS_AGO),
    ("ru", "месяц назад", "месяц назад", LAST_MONTH),
    ("ru", "8 марта 2024 года", "8 марта 2024", THE_EIGHTH),
    ("zh", "我昨天去了公园", "昨天", YESTERDAY),
    ("zh", "今天是星期三", "今天", TODAY),
    ("zh", "明天见", "明天", TOMORROW),
    ("zh", "前天下雨了", "前天", "2024-03-11"),
    ("zh", "大后天出发", "大后天", "2024-03-16"),
    ("zh", "昨晚跑了个回归", "昨晚", "2024-03-12T18:00/2024-03-13T06:00"),
    ("zh", "昨天晚上我在家", "昨天晚上", "2024-03-12T18:00/2024-03-13T06:00"),
    ("zh", "今天下午开会", "今天下午", "2024-03-13T12:00/2024-03-13T18:00"),
    ("zh", "上周去复查", "上周", LAST_WEEK),
    ("zh", "上个星期很忙", "上个星期", LAST_WEEK),
    ("zh", "上周五见面了", "上周五", LAST_FRIDAY),
    ("zh", "下周五前", "下周五", "2024-03-22"),
    ("zh", "上周末去爬山", "上周末", LAST_WEEKEND),
    ("zh", "下个月想去西班牙", "下个月", NEXT_MONTH),
    ("zh", "上个月很累", "上个月", LAST_MONTH),
    ("zh", "去年结婚", "去年", LAST_YEAR),
    ("zh", "去年夏天很热", "去年夏天", "2023-06-01/2023-09-01"),
    ("zh", "去年6月", "去年6月", "2023-06-01/2023-07-01"),
    ("zh", "明年春天", "明年春天", "2025-03-01/2025-06-01"),
    ("zh", "三天前", "三天前", THREE_DAYS_AGO),
    ("zh", "两周前", "两周前", TWO_WEEKS_AGO),
    ("zh", "两个月以前", "两个月以前", TWO_MONTHS_AGO),
    ("zh", "五年前", "五年前", FIVE_YEARS_AGO),
    ("zh", "几天前", "几天前", "2024-03-08/2024-03-12"),
    ("zh", "半年前", "半年前", "2023-09-01/2023-10-01"),
    ("zh", "十二年前", "十二年前", "2012-01-01/2013-01-01"),
    ("zh", "两周后恢复", "两周后", "2024-03-25/2024-04-01"),
    ("zh", "最近一个月", "最近一个月", "2024-02-13/2024-03-14"),
    ("zh", "2024年3月8日", "2024年3月8日", THE_EIGHTH),
    ("zh", "２０２４年３月８日", "２０２４年３月８日", THE_EIGHTH),
    ("zh", "2024年7月", "2024年7月", JULY),
    ("zh", "2019年毕业", "2019年", FIVE_YEARS_AGO),
    ("zh", "5月15日提交", "5月15日", "2024-05-15"),
    ("zh", "今年上半年", "今年上半年", "2024-01-01/2024-07-01"),
    ("zh", "第二季度", "第二季度", "2024-04-01/2024-07-01"),
    ("ja", "昨日公園に行きました", "昨日", YESTERDAY),
    ("ja", "明日は休みです", "明日", TOMORROW),
    ("ja", "一昨日", "一昨日", "2024-03-11"),
    ("ja", "先週会いました", "先週", LAST_WEEK),
    ("ja", "来週東京へ", "来週", NEXT_WEEK),
    ("ja", "先週の金曜日", "先週の金曜日", LAST_FRIDAY),
    ("ja", "先月", "先月", LAST_MONTH),
    ("ja", "来年結婚します", "来年", NEXT_YEAR),
    ("ja", "3日前", "3日前", THREE_DAYS_AGO),
    ("ja", "2週間前", "2週間前", TWO_WEEKS_AGO),
    ("ja", "2か月前", "2か月前", TWO_MONTHS_AGO),
    ("ja", "5年前", "5年前", FIVE_YEARS_AGO),
    ("ja", "2024年3月8日の会議", "2024年3月8日", THE_EIGHTH),
    ("ko", "어제 공원에 갔어요", "어제", YESTERDAY),
    ("ko", "내일 만나요", "내일", TOMORROW),
    ("ko", "지난주에 아팠어요", "지난주", LAST_WEEK),
    ("ko", "다음 달에 이사해요", "다음 달", NEXT_MONTH),
    ("ko", "작년에 결혼했어요", "작년", LAST_YEAR),
    ("ko", "지난 금요일", "지난 금요일", LAST_FRIDAY),
    ("ko", "3일 전에", "3일 전", THREE_DAYS_AGO),
    ("ko", "두 달 전", "두 달 전", TWO_MONTHS_AGO),
    ("ko", "5년 전", "5년 전", FIVE_YEARS_AGO),
    ("ko", "2024년 3월 8일", "2024년 3월 8일", THE_EIGHTH),
]  # fmt: skip


@pytest.mark.parametrize("told", [True, False], ids=["language known", "language unknown"])
@pytest.mark.parametrize(("language", "text", "words", "time"), CASES)
def test_one_expression(language: str, text: str, words: str, time: str, *, told: bool) -> None:
    events = event_times(text, ANCHOR, language=language if told else None)
    assert [(event.text, event.start, event.end) for event in events] == [(words, *bounds(time))]
    assert all(text[slice(*event.span)] == event.text for event in events)


@pytest.mark.parametrize(
    "text",
    [
        "Ich bin hier und du bist da", "Wir sind hier zu Hause", "Guten Morgen, das ist der Tag",
        "Mars is a planet and we want to go there", "the Mars rover", "das ist der Mars",
        "上海的天气", "北京会议记录", "我在东京工作", "一百万年前", "十亿年前", "十万年前的化石",
        "明日方舟很好玩", "这个功能怎么用", "三个月", "两周", "第3天", "周一：快走", "今非昔比",
        "日本語のテキスト", "한국어 텍스트", "月が綺麗", "去哪里", "三天后他走了", "本来", "先生",
        "durante tres semanas", "pendant trois ans", "drei Jahre lang", "per due settimane",
        "vor allem im Haus", "en total 2019 euros", "tres días", "5 июня-2", "32 de marzo de 2024",
        "2024年13月40日",
    ],
)  # fmt: skip
def test_no_expression(text: str) -> None:
    assert event_times(text, ANCHOR) == ()


@pytest.mark.parametrize(
    ("text", "language", "time"),
    [
        ("04/05/2023", "de", "2023-05-04"),
        ("04/05/2023", "fr", "2023-05-04"),
        ("04/05/2023", "en", None),
        ("04/05/2023", None, None),
        ("25/05/2023", None, "2023-05-25"),
        ("05/25/2023", None, "2023-05-25"),
        ("05/05/2023", None, "2023-05-05"),
        ("04.05.2023", None, "2023-05-04"),
    ],
)
def test_numbers_with_two_readings_are_read_only_where_one_is_usual(
    text: str, language: str | None, time: str | None
) -> None:
    events = event_times(text, ANCHOR, language=language)
    assert [(event.start, event.end) for event in events] == ([bounds(time)] if time else [])


def test_decomposed_accents_keep_their_places() -> None:
    text = "le mois d'août… il y a trois jours, la semaine dernie\u0300re"
    events = event_times(text, ANCHOR)
    assert [event.text for event in events] == ["il y a trois jours", "semaine dernie\u0300re"]


def test_two_languages_in_one_text() -> None:
    events = event_times("mixed 上周 and last week", ANCHOR)
    assert [event.text for event in events] == ["上周", "last week"]
