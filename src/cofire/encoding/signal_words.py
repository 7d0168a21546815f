"""Word lists of `signals`, folded, of several languages together."""

from __future__ import annotations

NUMBER_WORDS = frozenset(
    """two three four five six seven eight nine ten eleven twelve dozen hundred thousand
    million twice zwei drei vier funf sechs sieben acht neun zehn deux trois quatre cinq
    sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez due tre quattro
    cinque sei sette otto nove dieci dois duas quatro sete oito dez два две три четыре пять
    шесть семь восемь девять десять""".split()
)
"""Numbers as words."""

TIME_WORDS = frozenset(
    """yesterday today tonight tomorrow ago week weeks weekend month months year years
    morning evening afternoon night day days since recently monday tuesday wednesday
    thursday friday saturday sunday january february march april june july august september
    october november december spring summer autumn winter gestern heute morgen woche wochen
    monat jahr jahre abend montag dienstag mittwoch donnerstag freitag samstag sonntag hier
    aujourd'hui demain semaine mois an annee soir matin lundi mardi mercredi jeudi vendredi
    samedi dimanche ayer hoy manana semana mes ano noche tarde lunes martes miercoles jueves
    viernes sabado domingo ieri oggi domani settimana mese anno sera mattina lunedi martedi
    mercoledi giovedi venerdi sabato domenica ontem hoje amanha noite segunda terca quarta
    quinta sexta вчера сегодня завтра неделю неделя неделе месяц год года году лет утром
    вечером कल आज परसों सप्ताह महीने साल 어제 오늘 내일 모레 작년 올해 내년 지난주 다음주
    """.split()
)
"""Words that say when something was."""

FIRST_PERSON = frozenset(
    """i me my mine myself we us our im ive ich mir mich mein meine wir unser je moi mon ma
    mes nous yo mi mio noi eu meu minha nos я мне меня мой моя мы मैं मेरा मेरी हम 나 나는
    내가 저는 제가 우리""".split()
)
"""The first person."""

POLITE_WORDS = frozenset(
    """hi hey hello yo bye goodbye thanks thank thx welcome congrats congratulations wow
    cool nice great awesome amazing lovely wonderful fantastic good job luck sure yes yeah
    yep ok okay haha lol see ya soon later take care talk morning night evening glad hear
    sounds sound absolutely totally agreed definitely true right sorry please much so very
    you too appreciate it well done keep up work cheers hallo danke tschuss guten tag morgen
    abend gut bonjour salut merci bravo au revoir hola gracias adios buenos dias ciao grazie
    ola obrigado obrigada привет спасибо пока नमस्ते धन्यवाद 감사합니다 안녕하세요 안녕
    """.split()
)
"""Words of greeting, thanks, praise and farewell, with what goes between them."""
