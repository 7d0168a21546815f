"""Time expressions of Chinese, Japanese and Korean: the common ones, by patterns on the text.

A name without a year follows the verb particles of its clause (了, 过, 将, 会 …); where they say
nothing a month is the nearest one (in a question the last one) and a weekday is left unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from cofire.encoding.temporal.spans import (
    DAY,
    DAYPARTS,
    Clock,
    Located,
    Span,
    Tense,
    Unit,
    date_span,
    day_of,
    daypart,
    month_span,
    months_from,
    moved,
    named_date,
    named_month,
    quarter_span,
    season_span,
    unit_span,
    units_between,
    weekday_after,
    weekday_before,
    weekend_of,
    year_span,
)

_Resolver = Callable[[re.Match[str], Clock], Span | None]

TRIGGER = re.compile(
    r"[昨今明前后後去上下本这這先来來][天日晚夜早晨年周週月个個星半朝末々]|大[前后後]天"
    r"|[年月周週天日][前后後]"
    r"|[0-9一二三四五六七八九十][年月]|[周週][一二三四五六日]|星期|礼拜|禮拜|曜日|季度|最近|过去|過去"
    r"|未来|きのう|きょう"
    r"|おととい|あした|あさって|ゆうべ|おととし|間前|間後|以[前后後]|之[前后後]|月前"
    r"|어제|어젯|그저께|그제|오늘|내일|모레|지난|이번|다음|작년|재작년|올해|내년"
    r"|[일주달월년] ?[전후뒤]|[0-9][년월]"
)
"""A text without a match names no time in these languages."""

_DIGITS = {char: number for number, char in enumerate("〇一二三四五六七八九十")}
_DIGITS |= {"两": 2, "兩": 2, "零": 0}
_FEW = frozenset({"几", "幾", "数", "數", "好几", "몇"})
_NUMBER = "(?P<n>[0-9]{1,3}|[一二两兩三四五六七八九十]{1,3}|好几|[几幾数數半])"
_COUNT = "[0-9]{1,2}|[一二三四五六七八九十]{1,3}"

_DAYS: Mapping[str, int] = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "本日": 0, "明天": 1,
    "明日": 1, "后天": 2, "後天": 2, "大后天": 3, "大後天": 3,
    "一昨日": -2, "おととい": -2, "きのう": -1, "きょう": 0, "あした": 1, "明後日": 2,
    "あさって": 2,
    "그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1, "모레": 2,
}  # fmt: skip
_PARTS: Mapping[str, tuple[int, str]] = {
    "昨晚": (-1, "night"), "昨夜": (-1, "night"), "昨晩": (-1, "night"), "ゆうべ": (-1, "night"),
    "今晚": (0, "night"), "今夜": (0, "night"), "今晩": (0, "night"), "今早": (0, "morning"),
    "今晨": (0, "morning"), "今朝": (0, "morning"), "明晚": (1, "night"), "明早": (1, "morning"),
    "明晨": (1, "morning"), "어젯밤": (-1, "night"),
}  # fmt: skip
_PART_WORDS: Mapping[str, str] = {
    "早上": "morning", "早晨": "morning", "上午": "morning", "下午": "afternoon",
    "晚上": "night", "夜里": "night", "夜": "night", "の朝": "morning", "の夜": "night",
    " 아침": "morning", " 밤": "night", " 저녁": "evening", " 오후": "afternoon",
}  # fmt: skip
_YEARS: Mapping[str, int] = {
    "前年": -2, "去年": -1, "昨年": -1, "今年": 0, "明年": 1, "来年": 1, "來年": 1, "后年": 2,
    "後年": 2, "一昨年": -2, "おととし": -2, "재작년": -2, "작년": -1, "지난해": -1, "올해": 0,
    "내년": 1,
}  # fmt: skip
_DIRECTIONS: Mapping[str, int] = {
    "上上": -2, "先々": -2, "上": -1, "先": -1, "这": 0, "這": 0, "本": 0, "今": 0, "下": 1,
    "来": 1, "來": 1, "下下": 2, "再来": 2, "지난": -1, "이번": 0, "다음": 1,
}  # fmt: skip
_UNITS: Mapping[str, Unit] = {
    "天": "day", "日": "day", "周": "week", "週": "week", "週間": "week", "星期": "week",
    "礼拜": "week", "禮拜": "week", "月": "month", "年": "year", "季度": "quarter",
    "周末": "weekend", "週末": "weekend", "일": "day", "주일": "week", "주": "week", "달": "month",
    "개월": "month", "월": "month", "년": "year", "주말": "weekend",
}  # fmt: skip
_WEEKDAYS: Mapping[str, int] = {
    "一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6,
    "月": 0, "火": 1, "水": 2, "木": 3, "金": 4, "土": 5,
    "월": 0, "화": 1, "수": 2, "목": 3, "금": 4, "토": 5, "일": 6,
}  # fmt: skip
_SEASONS: Mapping[str, str] = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_KOREAN_COUNTS: Mapping[str, int] = {
    "하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "열흘": 10, "한": 1, "두": 2, "세": 3, "네": 4,
    "다섯": 5, "여섯": 6,
}  # fmt: skip
_MONTH_UNIT = "(?:个|個|か|ヶ|カ|ヵ|ケ|箇)?月"
_PLANNED = re.compile("[将將]|打算|计划|計劃|准备|準備|予定|つもり")
_FUTURE = re.compile(_PLANNED.pattern + "|(?<![开開机機社学聚])[会會]|(?<![重需必想])要|[할갈]")
_PAST = re.compile("[了过過]|ました|でした|だった|[았었했]")


def expressions(text: str, clock: Clock, limit: int) -> Iterator[Located]:
    """At most `limit` matches of each pattern, earlier patterns first; they may overlap."""
    for pattern, resolve in _rules():
        for count, match in enumerate(pattern.finditer(text)):
            if count >= limit:
                break
            try:
                span = resolve(match, clock)
            except (OverflowError, ValueError):
                continue  # no such day, or outside the years 1 to 9999
            if span is not None and span.start < span.end:
                yield match.start(), match.end(), span


def _any(names: Mapping[str, object]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


def _number(word: str) -> int | None:
    """A numeral up to 99, None if it is none ("十三五")."""
    if word.isdigit() and word.isascii():
        return int(word)
    if len(word) == 1:
        return _DIGITS.get(word)
    tens, ten, ones = word.partition("十")
    if ten and len(tens) <= 1 and len(ones) <= 1:
        return _DIGITS.get(tens or "一", 0) * 10 + (_DIGITS.get(ones, 0) if ones else 0)
    return None


def _tense(match: re.Match[str], clock: Clock) -> Tense | None:
    """What the clause around the match says."""
    near = match.string[max(0, match.start() - 8) : match.end() + 12]
    if (_PLANNED if clock.question else _FUTURE).search(near):
        return "future"
    return "past" if clock.question or _PAST.search(near) else None


def _date(match: re.Match[str], clock: Clock) -> Span | None:
    year = match["year"]
    number = int(year) if year and year.isdigit() else None
    if year and number is None:
        number = clock.today.year + _YEARS[year]
    month = _number(match["month"]) if match["month"] else None
    day = _number(match["day"]) if match["day"] else None
    if month is None:
        return year_span(number) if number is not None and not match["month"] else None
    if not 1 <= month <= 12 or (match["day"] and not day):
        return None
    if number is not None:
        span: Span | None = date_span(number, month, day) if day else month_span(number, month)
    elif day:
        span = named_date(month, day, clock, _tense(match, clock))
    else:
        span = named_month(month, clock, _tense(match, clock))
    if span is not None and match["since"] and span.start < clock.now:
        return span._replace(end=clock.today + DAY if clock.question else clock.now)
    return span


def _year_name(match: re.Match[str], clock: Clock) -> Span:
    year = clock.today.year + _YEARS[match["name"]]
    if match["season"]:
        return season_span(year, _SEASONS[match["season"]])
    if match["half"]:
        return months_from(year, 1 if match["half"] == "上" else 7, 6, "quarter")
    return year_span(year)._replace(absolute=False)


def _day(match: re.Match[str], clock: Clock) -> Span:
    name = match["name"]
    if name in _PARTS:
        count, part = _PARTS[name]
        return daypart(clock.today + DAY * count, part)
    date = clock.today + DAY * _DAYS[name]
    part = _PART_WORDS.get(match["part"] or "", "")
    return daypart(date, part) if part in DAYPARTS else day_of(date)


def _directed(match: re.Match[str], clock: Clock) -> Span:
    count = _DIRECTIONS[match["which"]]
    span = unit_span(_UNITS[match["unit"]], clock.now, count)
    weekday = match["weekday"]
    if weekday == "末":
        return weekend_of(span.start)
    return day_of(span.start + DAY * _WEEKDAYS[weekday]) if weekday else span


def _directed_weekday(match: re.Match[str], clock: Clock) -> Span:
    """ "지난 금요일": the nearest such day on that side."""
    count, weekday = _DIRECTIONS[match["which"]], _WEEKDAYS[match["weekday"]]
    if count < 0:
        return weekday_before(clock.today, weekday)
    return weekday_after(clock.today - DAY if count == 0 else clock.today, weekday)


def _amount(match: re.Match[str]) -> tuple[Unit, int, int] | None:
    word, name = match["n"].strip(), match["unit"]
    if name == "月":  # "3月前" is before March, not three months ago
        return None
    unit: Unit = "month" if name.endswith("月") else _UNITS[name.lstrip("个個")]
    if word == "半":
        if unit == "year":
            return "month", 6, 6
        return ("week", 2, 2) if unit == "month" else None
    if word in _FEW:
        return unit, 2, 5
    number = _KOREAN_COUNTS.get(word) or _number(word)
    if not number:
        return None
    return unit, number, number


def _ago(match: re.Match[str], clock: Clock) -> Span | None:
    amount = _amount(match)
    return amount and units_between(amount[0], clock.now, -amount[1], -amount[2])


def _ahead(match: re.Match[str], clock: Clock) -> Span | None:
    amount = _amount(match)
    if amount is None or _PAST.search(match.string, match.end(), match.end() + 12):
        return None  # a story: "three days later he left"
    return units_between(amount[0], clock.now, amount[1], amount[2])


def _rolling(match: re.Match[str], clock: Clock) -> Span | None:
    amount = _amount(match)
    if amount is None:
        return None
    unit, _, most = amount
    if match["side"] in {"未来", "未來", "接下来", "接下來"}:
        return Span(clock.now, moved(clock.today, unit, most) + DAY, unit)
    return Span(moved(clock.today, unit, -most), clock.today + DAY, unit)


def _half_year(match: re.Match[str], clock: Clock) -> Span:
    return months_from(clock.today.year, 1 if match["half"] == "上" else 7, 6, "quarter")


def _quarter(match: re.Match[str], clock: Clock) -> Span | None:
    number = _number(match["n"])
    if number is None or not 1 <= number <= 4:
        return None
    return quarter_span(clock.today.year, number)._replace(absolute=False)


def _weekday(match: re.Match[str], clock: Clock) -> Span | None:
    tense = _tense(match, clock)
    if tense is None:
        return None
    weekday = _WEEKDAYS[match["weekday"]]
    return (weekday_before if tense == "past" else weekday_after)(clock.today, weekday)


def _korean_days(match: re.Match[str], clock: Clock) -> Span:
    count = _KOREAN_COUNTS[match["n"]]
    return unit_span("day", clock.now, -count if match["side"] == "전" else count)


_AGO_UNIT = rf"(?P<unit>{_MONTH_UNIT}|週間|[个個]?(?:星期|礼拜|禮拜)|[天日周週年])"
_KOREAN_NUMBER = r"(?P<n>[0-9]{1,3}|몇|한|두|세|네|다섯|여섯) ?"
_KOREAN_UNIT = "(?P<unit>주일|개월|[일주달년])"


_PATTERNS: tuple[tuple[str, _Resolver], ...] = (
    (
        rf"(?<![0-9])(?P<year>(?:19|20)[0-9]{{2}}|{_any(_YEARS)})(?: ?年|년)?(?:的|の)? ?"
        rf"(?P<month>{_COUNT})(?:月份?|월) ?(?:(?P<day>{_COUNT})[日号號일])?"
        r"(?P<since>以来|以來|から|부터)?",
        _date,
    ),
    (
        r"(?<![0-9])(?P<year>(?:19|20)[0-9]{2})(?:年|년)(?P<month>(?!))?(?P<day>(?!))?"
        r"(?P<since>以来|以來|から|부터)?(?! ?[0-9前后後])",
        _date,
    ),
    (
        rf"(?<![0-9一二三四五六七八九十几幾数個个第年])(?P<year>(?!))?"
        rf"(?P<month>{_COUNT})(?:月份?|월) ?"
        rf"(?:(?P<day>{_COUNT})[日号號일])?(?P<since>以来|以來|から|부터)?(?![0-9前后後間间])",
        _date,
    ),
    (
        rf"(?P<name>{_any(_YEARS)})(?:(?:的|の)?(?P<season>[春夏秋冬])[天季]?"
        r"|(?P<half>[上下])半年)?",
        _year_name,
    ),
    (rf"(?P<name>{_any({**_DAYS, **_PARTS})})(?!方舟)(?P<part>{_any(_PART_WORDS)})?", _day),
    (
        r"(?P<which>上上|下下|[上下这這本])(?:一?[个個])?(?P<unit>周末|週末|星期|礼拜|禮拜|周|週|季度"
        r"|(?<=[个個本上下])月)(?P<weekday>(?<![末度月])[一二三四五六日天末])?(?!期|年)",
        _directed,
    ),
    (
        r"(?P<which>先々|再来|[先今来來])(?P<unit>週|月)(?:の?(?P<weekday>末|[月火水木金土日](?=曜)))?"
        r"(?:曜日?)?",
        _directed,
    ),
    (r"(?P<which>지난|이번|다음) ?(?P<unit>주말|주|달)(?P<weekday>(?!))?", _directed),
    (
        r"(?P<which>지난|이번|다음) ?(?:주 ?)?(?P<weekday>[월화수목금토일])요일",
        _directed_weekday,
    ),
    (
        rf"(?P<side>最近|过去|過去|近|未来|未來|接下来|接下來)的?{_NUMBER}{_AGO_UNIT}(?![前后後])",
        _rolling,
    ),
    (rf"{_NUMBER}{_AGO_UNIT}(?:以|之)?前", _ago),
    (rf"{_NUMBER}{_AGO_UNIT}(?:以|之)?[后後]", _ahead),
    (rf"{_KOREAN_NUMBER}{_KOREAN_UNIT} ?전", _ago),
    (rf"{_KOREAN_NUMBER}{_KOREAN_UNIT} ?(?:후|뒤)", _ahead),
    (r"(?P<n>하루|이틀|사흘|나흘|열흘) ?(?P<side>전|후|뒤)", _korean_days),
    (r"(?P<half>[上下])半年", _half_year),
    (r"第?(?P<n>[一二三四1-4])季度", _quarter),
    (
        r"(?<!是)(?:周|週|星期|礼拜|禮拜)(?P<weekday>[一二三四五六日天])(?![次个個期:到至])",
        _weekday,
    ),
    (r"(?P<weekday>[月火水木金土日])曜日?", _weekday),
)


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Resolver], ...]:
    """The patterns, compiled when a text first needs them: that takes 20 ms."""
    return tuple((re.compile(pattern), resolve) for pattern, resolve in _PATTERNS)
