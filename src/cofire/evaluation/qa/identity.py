"""What a run is, so that a folder holds the outcomes of one run and nothing else.

`run.json` keeps what an outcome depends on besides arm, seed and question, and what each arm is. A
folder that says otherwise is refused: its outcomes would be told as if they were this run's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cofire
from cofire.errors import FormatError, InputError

ABOUT, OUTCOMES = "run.json", "outcomes.jsonl"
CODE = "code"
"""The member that `code_digest` is kept under."""
UNRELATED = frozenset({"cli", "plotting", "server", "testing"})
"""Folders of the package on which no outcome depends."""


@cache
def code_digest() -> str:
    """16 hexadecimal digits of the package's modules and of the prompts and tables beside them. A
    version does not tell two states of a checkout apart, and an outcome of one would pass for
    an outcome of the other."""
    package = Path(cofire.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if path.suffix in {".py", ".md", ".json"} and place.parts[0] not in UNRELATED:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def digest_of(value: Any) -> str:
    """16 hexadecimal digits of a value of dataclasses, mappings, tuples, sets and scalars; the same
    in every process."""
    told = json.dumps(_stable(value), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _stable(value: Any) -> Any:
    """The value as JSON; sets are sorted."""
    if is_dataclass(value):
        return {one.name: _stable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _stable(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    return [_stable(item) for item in value] if isinstance(value, tuple) else value


def refuse_other(folder: Path, about: Mapping[str, Any], arms: Mapping[str, str]) -> dict[str, str]:
    """See that the folder, if it is there, is of this run: `arms` are digests by name, and a run
    may gain arms. Gives the arms that it has. Raises InputError (it is of another run), FormatError
    (`run.json` is damaged)."""
    path = folder / ABOUT
    if not path.exists():
        return {}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        known = dict(before.pop("arms"))
    except (ValueError, TypeError, AttributeError, LookupError) as exc:
        raise FormatError(f"{path} does not describe a run; remove it to begin anew") from exc
    other = [name.replace("_", " ") for name in about if before.get(name) != about[name]]
    other += [f"arm {name!r}" for name, one in arms.items() if known.get(name, one) != one]
    if other:
        raise InputError(
            f"{folder} is of a run with another {', '.join(other)}. Use another folder; "
            f"or remove {ABOUT} and {OUTCOMES} from it, and replies that fit are used again"
        )
    return known


def claim(folder: Path, about: Mapping[str, Any], arms: Mapping[str, str]) -> None:
    """As `refuse_other`, and write down what is new of this run."""
    path = folder / ABOUT
    known = refuse_other(folder, about, arms)
    partial = path.with_name(f".{path.name}.partial")
    told = {**about, "arms": {**known, **arms}}
    partial.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)
