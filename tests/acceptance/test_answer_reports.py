"""A report as a folder: its links lead somewhere, its charts are pictures."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from answered_results import GOLDEN_ARMS, GOLDEN_REPORT, GOLDEN_RESULT, PICTURES, made_result
from cofire.cli.reporting import write_report
from cofire.errors import FormatError, InputError
from cofire.evaluation.qa.report import render_report
from cofire.plotting.answers import Point, plot_ablations, plot_k, plot_refusals, plot_tokens

ROOT = Path(__file__).resolve().parents[2]


def test_the_report_of_a_fixed_result() -> None:
    fixed = json.loads(GOLDEN_RESULT.read_text("utf-8"))
    shown = render_report(fixed, PICTURES)
    assert shown == GOLDEN_REPORT.read_text("utf-8"), "run python tests/answered_results.py"


def test_the_fixed_result_has_the_shape_of_a_new_one() -> None:
    fixed = json.loads(GOLDEN_RESULT.read_text("utf-8"))
    assert members(fixed) == members(made_result(GOLDEN_ARMS))


def members(value: Any, path: str = "") -> set[str]:
    """Paths of all members, those of a list taken together."""
    if isinstance(value, dict):
        return {path}.union(*(members(part, f"{path}/{name}") for name, part in value.items()))
    if isinstance(value, list | tuple):
        return {path}.union(*(members(part, f"{path}/*") for part in value))
    return {path}


def test_a_report_with_its_charts(tmp_path: Path) -> None:
    place = write_report(made_result(), tmp_path / "new" / "report")
    text = place.read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)]+)\)", text))
    names = ("tokens", "k", "ablations", "refusals")
    assert linked == {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    assert {file.name for file in place.parent.iterdir()} == {"report.md", *linked}
    for name in names:
        data = (place.parent / f"{name}.svg").read_bytes()
        assert ElementTree.fromstring(data).tag.endswith("svg")  # noqa: S314  our own file
        assert (place.parent / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_result_is_the_same_report(tmp_path: Path) -> None:
    result = made_result(GOLDEN_ARMS)
    first = {
        file.name: file.read_bytes() for file in write_report(result, tmp_path).parent.iterdir()
    }
    again = {
        file.name: file.read_bytes() for file in write_report(result, tmp_path).parent.iterdir()
    }
    assert first == again


def test_without_matplotlib_there_is_the_report_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    place = write_report(made_result(GOLDEN_ARMS), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]
    text = place.read_text(encoding="utf-8")
    assert "pip install 'cofire[plot]'" in text
    assert "![" not in text


@pytest.mark.parametrize("given", [{}, {"benchmark": "locomo"}, {"benchmark": "x", "arms": [1]},
                                   {"benchmark": "x", "arms": {"a": {}}}])  # fmt: skip
def test_what_is_no_result_makes_no_folder(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="no result of questions answered"):
        write_report(given, tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_not_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        plot_tokens({"cofire": []}, tmp_path / "a.svg", measure="F1")
    with pytest.raises(InputError, match="nothing to draw"):
        plot_ablations({}, tmp_path / "a.svg", measure="F1", against="cofire")
    with pytest.raises(InputError, match="nothing to draw"):
        plot_refusals({}, tmp_path / "a.svg")
    with pytest.raises(InputError, match="is neither"):
        plot_k(
            {"a": [Point(mean=1.0, low=0.0, high=2.0, at=5.0)]}, tmp_path / "a.pdf", measure="F1"
        )
    assert list(tmp_path.iterdir()) == []


def test_the_papers_tables_are_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_papers_tables.py"))
    text = script["TARGET"].read_text(encoding="utf-8")
    assert text == script["page"](text), "run python scripts/make_papers_tables.py"
