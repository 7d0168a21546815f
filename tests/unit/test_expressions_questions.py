"""The time a question asks about; asked on Wednesday 2024-03-13 09:00 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cofire.encoding.expressions import asks_when, query_range

NOW = datetime(2024, 3, 13, 9, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def bounds(text: str) -> tuple[datetime, datetime]:
    start, slash, end = text.partition("/")
    if not slash:
        return moment(start), moment(start) + timedelta(days=1)
    return moment(start) if start else FIRST, moment(end) if end else LAST


@pytest.mark.parametrize(
    ("question", "time"),
    [
        ("what did I do last week?", "2024-03-04/2024-03-11"),
        ("What happened yesterday", "2024-03-12"),
        ("What is on today?", "2024-03-13"),
        ("Where did I eat last night?", "2024-03-12T18:00/2024-03-13T06:00"),
        ("What did she say on 8 May?", "2023-05-08"),
        ("What did she say on May 8th 2023?", "2023-05-08"),
        ("what did i do in may", "2023-05-01/2023-06-01"),
        ("What did John attend in March 2023?", "2023-03-01/2023-04-01"),
        ("What did John attend in March?", "2024-03-01/2024-04-01"),
        ("What did John attend in April?", "2023-04-01/2023-05-01"),
        ("What will John attend in April?", "2024-04-01/2024-05-01"),
        ("When did Melanie go camping in July?", "2023-07-01/2023-08-01"),
        ("What did we do on Friday?", "2024-03-08"),
        ("What will we do on Friday?", "2024-03-15"),
        ("what did we do on wednesday", "2024-03-06"),
        ("What happened between March and June?", "2023-03-01/2023-07-01"),
        ("What happened between November and January?", "2023-11-01/2024-02-01"),
        ("Where was John between August 11 and August 15 2023?", "2023-08-11/2023-08-16"),
        ("between 2020-01-01 and 2020-12-31", "2020-01-01/2021-01-01"),
        ("What have I learned since January?", "2024-01-01/2024-03-14"),
        ("What changed since 2016?", "2016-01-01/2024-03-14"),
        ("What did I believe before 2022?", "/2022-01-01"),
        ("What did I do after June 2023?", "2023-07-01/2024-03-14"),
        ("What happens after next week?", "2024-03-25/"),
        ("How many tournaments has Nate won by July 10, 2022?", "/2022-07-11"),
        ("What did I read until 2019?", "/2020-01-01"),
        ("What did I do in the past three months?", "2023-12-13/2024-03-14"),
        ("What did I do over the last 7 days?", "2024-03-06/2024-03-14"),
        ("What is planned in 3 days?", "2024-03-16"),
        ("What projects are planned for next year?", "2025-01-01/2026-01-01"),
        ("What did we do last weekend?", "2024-03-09/2024-03-11"),
        ("What state did Joanna visit in summer 2021?", "2021-06-01/2021-09-01"),
        ("Which country in the second week of November?", "2023-11-08/2023-11-15"),
        ("Where in the last week of August 2023?", "2023-08-25/2023-09-01"),
        ("Where did Caroline move from 4 years ago?", "2020-01-01/2021-01-01"),
        ("What did he do the week before August 3, 2023?", "2023-07-27/2023-08-03"),
        ("What did she do last week or last month?", "2024-02-01/2024-03-11"),
        ("What did she finish last Friday on 23 January, 2022?", "2022-01-21/2022-01-24"),
        ("What was Tim's issue last week,as mentioned on November 6, 2023?",
         "2023-10-30/2023-11-07"),
        ("上周做了什么", "2024-03-04/2024-03-11"),
        ("三天前我吃了什么？", "2024-03-10"),
        ("周一开会说了什么", "2024-03-11"),
        ("was ist gestern passiert", "2024-03-12"),
        ("qué hice la semana pasada", "2024-03-04/2024-03-11"),
        ("qu'ai-je fait hier", "2024-03-12"),
        ("hier", "2024-03-12"),
        ("cosa ho fatto ieri", "2024-03-12"),
        ("o que aconteceu há 5 dias", "2024-03-08"),
        ("что было вчера", "2024-03-12"),
    ],
)  # fmt: skip
def test_the_time_asked_about(question: str, time: str) -> None:
    assert query_range(question, NOW) == bounds(time)


@pytest.mark.parametrize(
    "question",
    [
        "When did Caroline go to the LGBTQ support group?", "How long has Nate had his turtles?",
        "may I ask a question", "she may have been right", "so what do we do now", "What next?",
        "What did Melanie realize after the charity race?", "How long ago was her birthday?",
        "what is the name of her one-year-old child?", "perfect score", "", "   ", "?", "\x00",
        "Which of the 2000 tokens", "上海的天气", "什么时候去的", "how does the reranker work",
        "What do I do every Monday?", "What is her morning routine?",
    ],
)  # fmt: skip
def test_no_time(question: str) -> None:
    assert query_range(question, NOW) is None


def test_days_are_those_of_whoever_asks() -> None:
    assert query_range("today", NOW, offset=780) == bounds("2024-03-12T11:00/2024-03-13T11:00")
    assert query_range("before 2022", NOW, offset=780) == bounds("/2021-12-31T11:00")


def test_a_question_at_the_ends_of_time_has_no_range() -> None:
    assert query_range("what happened yesterday", FIRST) is None
    assert query_range("what happens tomorrow", LAST) is None
    assert query_range("what happened yesterday", FIRST, offset=-840) is None


@pytest.mark.parametrize(
    "question",
    [
        "When did Caroline go?", "when is the party", "When's the party?", "So when did it start?",
        "Do you remember when we met?", "Since when do you paint?", "How long ago was it?",
        "How many years ago did she move?", "What date was the race?", "On what day did we meet?",
        "Which year did Jolene start?", "In which month's game did he score?",
        "What time is the show?", "When Jon has lost his job as a banker?", "Tell me when I moved",
        "什么时候去的", "哪天见面", "いつ会いましたか", "언제 만났어요", "Wann war das?",
        "seit wann?",
        "Quand est-ce arrivé ?", "¿Cuándo fue?", "Quando è successo?", "Quando foi?",
        "Wanneer was dat?", "Когда это было?", "In welchem Jahr war das?", "quel jour ?",
        "¿Hace cuánto tiempo?", "in che anno è nato?", "há quanto tempo?", "hoe lang geleden?",
    ],
)  # fmt: skip
def test_asks_when(question: str) -> None:
    assert asks_when(question)


@pytest.mark.parametrize(
    "question",
    [
        "What did I do when I was in Paris?", "When I was young, what did I play?",
        "Where did she go last week?", "How long has she painted?", "How old is he?", "", "when",
        "What time management techniques do they use?", "Who was there when it rained?",
        "Ich weiß nicht, wo das war", "Sie lacht, wenn er kommt",
    ],
)  # fmt: skip
def test_does_not_ask_when(question: str) -> None:
    assert not asks_when(question)
