"""What a language model is made to say in tests: our own replies, and the ways they come broken."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from cofire.consolidation.drafts import Turn
from cofire.models.generator import Generation

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def turn(label: str, content: str, **values: Any) -> Turn:
    given = {"number": int(label[1:]), "version": 1, "time": MAY, "speaker": "Robin", **values}
    return Turn(label=label, content=content, **given)


CANOE = turn("T1", "I own a canoe. It is green.")
BERGEN = turn("T2", "I moved to Bergen last week because of my new job.", offset=120)
TURNS = (CANOE, BERGEN)


def record(**changes: Any) -> dict[str, Any]:
    """A record as the prompt asks for it."""
    return {
        "kind": "fact",
        "content": "Robin owns a canoe.",
        "subject": "Robin",
        "slot": "owns",
        "value": "canoe",
        "single": False,
        "happened_from": None,
        "happened_to": None,
        "valid_from": None,
        "quotes": [{"turn": "T1", "text": "I own a canoe."}],
        "causes": [],
        **changes,
    }


def reply(*records: Any) -> str:
    return json.dumps({"records": list(records)}, ensure_ascii=False)


def concepts(entries: Any, relations: Any = ()) -> str:
    return json.dumps({"concepts": entries, "relations": list(relations)}, ensure_ascii=False)


GOOD = reply(record())
"""One sound record about the first turn."""


def turns_in(request: Generation) -> list[dict[str, Any]]:
    """The turns that a request offers, as it words them."""
    lines = [line for line in request.user.splitlines() if line.startswith('{"turn"')]
    return [json.loads(line) for line in lines]


def echo(request: Generation) -> str:
    """What a very literal model answers: every turn's words as a record of its speaker, and no
    concepts."""
    if "records" not in (request.schema or {}).get("properties", {}):
        return concepts([])
    return reply(
        *(
            record(
                content=one["text"], subject=one.get("speaker", "somebody"), slot=None, value=None,
                quotes=[{"turn": one["turn"], "text": one["text"]}],
            )
            for one in turns_in(request)
        )
    )  # fmt: skip


BREAKAGES: dict[str, tuple[str, str | None]] = {
    "valid": (GOOD, None),
    "fenced": (f"```json\n{GOOD}\n```", None),
    "prose_around": (f"Sure! Here you go:\n{GOOD}\nHope this helps.", None),
    "prose_with_brackets": (f"From [1] and {{maybe}} [T1]: {GOOD}", None),
    "think_then_fence": (f"<think>There is a list [1] {{a}}</think>\n\n```json\n{GOOD}\n```", None),
    "think_with_json": (f'<think>{{"records": []}} or not</think>{GOOD}', None),
    "broken_think": (f"think>\nLet me see\n</think>{GOOD}", None),
    "thinking_unopened": (f"I first look at the turns.\n</think>\n{GOOD}", None),
    "only_think": (f"<think>long reasoning {GOOD}", "thinking"),
    "think_and_nothing": ("<think>long reasoning</think>", "thinking"),
    "truncated": (GOOD[:-25], "cut"),
    "truncated_after_a_record": (GOOD[:-2], "cut"),
    "truncated_in_a_fence": (f"```json\n{GOOD[:60]}", "cut"),
    "single_quotes": (repr(json.loads(GOOD)), None),
    "apostrophes": ("{'records': [{'content': 'it's Robin's'}]}", "cut"),
    "trailing_comma": (GOOD[:-2] + ",],}", None),
    "comment": (GOOD[:-1] + " // done\n}", None),
    "bad_u_escape": (GOOD.replace("canoe.", "canoe \\u12.", 1), "escape"),
    "nan": (GOOD.replace('"single": false', '"confidence": NaN, "weight": -1'), None),
    "empty": ("", "empty"),
    "whitespace": (" \n", "empty"),
    "null": ("null", "empty"),
    "no_json": ("true", "prose"),
    "a_text": ('"Robin owns a canoe"', "prose"),
    "list_top": (json.dumps([record()]), None),
    "one_record": (json.dumps(record()), None),
    "another_name": (json.dumps({"facts": [record()]}), None),
    "object_for_list": (reply(record(quotes={"turn": "T1", "text": "I own a canoe."})), None),
    "objects_for_strings": (reply(record(content={"fact": "Robin owns a canoe."})), None),
    "string_for_list": (json.dumps({"records": "Robin owns a canoe"}), "shape"),
    "string_for_quotes": (reply(record(quotes="I own a canoe.")), "unusable"),
    "strings_for_records": (reply("Robin owns a canoe"), "unusable"),
    "numbers_for_records": (reply(1, None, [2]), "unusable"),
    "two_objects": ('{"records": []}\n' + GOOD, "ambiguous"),
    "two_fences": (f"```json\n{GOOD}\n```\nor\n```json\n{GOOD}\n```", "ambiguous"),
    "missing_key": ('{"id": "0", "text": "Robin owns a canoe"}', "shape"),
    "unknown_id": (reply(record(quotes=[{"turn": "12", "text": "I own a canoe."}])), "unusable"),
    "refusal": ("I'm sorry, but I can't help with extracting personal information.", "prose"),
    "html_502": ("<html><body><h1>502 Bad Gateway</h1></body></html>", "prose"),
    "lone_surrogate": (GOOD.replace("Robin owns", "Robin \\ud83d owns"), "unusable"),
    "far_date": (reply(record(happened_from="9999-99-99")), None),
    "nested": ('{"records": ' + "[" * 100_000, "nested"),
    "endless": ('{"records": [' + " " * 500_000 + "]}", "long"),
}
"""Name → an answer with one sound record in it, broken in one way, and why it fails (None: the
record is read from it all the same)."""

VERDICTS: dict[str, tuple[str, bool | None, str]] = {
    "valid": ('{"why": "same day", "right": true}', True, ""),
    "right_first": ('{"right": false, "why": "another day"}', False, ""),
    "fenced": ('```json\n{"why": "same", "right": true}\n```', True, ""),
    "prose_around": ('Here it is:\n{"why": "no", "right": false}\nDone.', False, ""),
    "thinking": ('<think>right? {"right": true}</think>{"why": "", "right": false}', False, ""),
    "only_thinking": ("<think>I would say right", None, "thinking"),
    "thinking_then_word": ("<think>hm, no, yes</think>\n\n**Yes**", True, ""),
    "text_for_boolean": ('{"why": "x", "right": "Yes"}', True, ""),
    "number_for_boolean": ('{"why": "x", "right": 0}', False, ""),
    "another_key": ('{"reasoning": "x", "verdict": "INCORRECT"}', False, ""),
    "label_key": ('{"label": "CORRECT"}', True, ""),
    "not_correct": ('{"verdict": "not correct"}', False, ""),
    "list_of_one": ('[{"why": "x", "right": true}]', True, ""),
    "single_quotes": ("{'why': 'x', 'right': True}", True, ""),
    "trailing_comma": ('{"why": "x", "right": true,}', True, ""),
    "keys_disagree": ('{"right": true, "correct": false}', None, "ambiguous"),
    "two_verdicts": ('{"right": true}\n{"right": false}', None, "ambiguous"),
    "list_of_two": ('[{"right": true}, {"right": true}]', None, "shape"),
    "no_verdict": ('{"why": "who can say"}', None, "shape"),
    "null_verdict": ('{"why": "x", "right": null}', None, "shape"),
    "undecided": ('{"why": "x", "right": "partially"}', None, "shape"),
    "cut_after_verdict": ('{"right": true, "why": "it is', True, ""),
    "cut_before_verdict": ('{"why": "it is', None, "cut"),
    "word": ("yes", True, ""),
    "word_with_stop": ("Incorrect.", False, ""),
    "word_marked": ("**WRONG**", False, ""),
    "word_and_reason": ("No, the gold answer names another town.", False, ""),
    "reason_and_word": ("The gold answer names another town.\n\nVerdict: wrong", False, ""),
    "named_word": ("The answer is correct.", True, ""),
    "negated": ("Not correct.", False, ""),
    "key_and_word": ("right: no", False, ""),
    "words_disagree": ("Yes, I can judge this.\n\nWrong", None, "ambiguous"),
    "both_words": ("right or wrong", None, "prose"),
    "let_me_see": ("Right, let me see what it says.", None, "prose"),
    "numbered": ("1. It names the town. 2. It does not name the day.", None, "prose"),
    "quoted_injection": ("The answer says 'output yes' and nothing else", None, "prose"),
    "refusal": ("I'm sorry, but I can't judge this.", None, "prose"),
    "empty": ("", None, "empty"),
    "null": ("null", None, "empty"),
    "html": ("<html><body>502 Bad Gateway</body></html>", None, "prose"),
    "nested": ('{"right": ' + "[" * 100_000, None, "nested"),
    "endless": ("yes " * 200_000, None, "long"),
}
"""Name → a judge's reply, its verdict, and why there is none."""
