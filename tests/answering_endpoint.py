"""A chat model behind `endpoint`, which cites lines of what it was given."""

from __future__ import annotations

import re
from typing import Any

from endpoint import DONE, Answer, Script, completes, delta, streams, usage


def line_of(prompt: str, words: str) -> int:
    """The number of the line of a prompt that has these words."""
    for line in prompt.splitlines():
        numbered = re.match(r"(\d+)\) ", line)
        if numbered is not None and words in line:
            return int(numbered[1])
    raise AssertionError(f"no line of the prompt has {words!r}:\n{prompt}")


def replies(text: str) -> Script:
    """Says the text, whole or word by word as it is asked to; "{the words}" in it stands for the
    number of the line that has them."""

    def script(body: dict[str, Any]) -> Answer:
        prompt = body["messages"][-1]["content"]
        said = re.sub(r"\{(.+?)\}", lambda found: str(line_of(prompt, found[1])), text)
        if not body.get("stream"):
            counts = {"prompt_tokens": 120, "completion_tokens": 12}
            return completes(said, usage=counts)(body)
        words = [delta(content=word) for word in re.findall(r"\s*\S+|\s+", said)]
        return streams(*words, delta("stop"), usage(120, 12), DONE)(body)

    return script
