"""A small data set in LoCoMo's format: what evaluations of answers are tested on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TURNS = (
    ("Ada", "I bought a green canoe at the harbour market yesterday."),
    ("Bea", "How lovely! I spent the weekend repairing my old piano."),
    ("Ada", "My sister Clara moved to Bergen for her work at the aquarium."),
    ("Bea", "My dog Rufus learned to open the garden gate, so I put a lock on it."),
    ("Ada", "I am allergic to walnuts, so please bake the cake without them."),
    ("Bea", "I will bake a lemon cake for your birthday on Saturday."),
)
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"question": "What did Ada buy?", "answer": "a green canoe", "evidence": ["D1:1"],
     "category": 4},
    {"question": "When did Ada buy her canoe?", "answer": "7 May 2023", "evidence": ["D1:1"],
     "category": 2},
    {"question": "Where did Clara move?", "answer": "Bergen", "evidence": ["D1:3"], "category": 4},
    {"question": "Which cake suits Ada, and who bakes it?", "answer": "lemon cake, Bea",
     "evidence": ["D1:5", "D1:6"], "category": 1},
    {"question": "Would Ada enjoy a walnut pie?", "answer": "No", "evidence": ["D1:5"],
     "category": 3},
    {"question": "What did Ada repair?", "adversarial_answer": "her old piano",
     "evidence": ["D1:2"], "category": 5},
)  # fmt: skip


def conversation(number: int) -> dict[str, Any]:
    """One of several, each with a word of its own in every turn."""
    turns = [
        {"speaker": who, "dia_id": f"D1:{at}", "text": f"{text} (week {number})"}
        for at, (who, text) in enumerate(TURNS, 1)
    ]
    talk = {
        "speaker_a": "Ada", "speaker_b": "Bea",
        "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns,
    }  # fmt: skip
    return {"sample_id": f"conv-{number}", "conversation": talk, "qa": list(QUESTIONS)}


def write_locomo(folder: Path, conversations: int = 2) -> Path:
    """The file."""
    path = folder / "made.json"
    path.write_text(json.dumps([conversation(n) for n in range(1, conversations + 1)]))
    return path
