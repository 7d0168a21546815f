"""`plot`: pictures from a store and from figures."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cofire_process import Cofire

from cofire.memory import Memory


@pytest.fixture(scope="module")
def fonts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where matplotlib keeps its list of fonts, which takes seconds to make."""
    return str(tmp_path_factory.mktemp("fonts"))


@pytest.fixture
def taught(cofire: Cofire, fonts: str) -> Cofire:
    """A store in which two memories were used together."""
    cofire.env["MPLCONFIGDIR"] = fonts
    with Memory.open(cofire.store, embedder="hashing:64") as memory:
        memory.remember(["The kiln is in the shed.", "The key of the shed hangs by the door."])
        recall = memory.recall("How do I get to the kiln?")
        memory.feedback(recall, recall.ids[:2])
    return cofire


@pytest.mark.parametrize(
    "command",
    [
        ("strengths",),
        ("graph", "--most", "10"),
        ("trace", "How do I get to the kiln?", "--profile", "hela_mem"),
    ],
)
def test_a_picture_of_a_store(taught: Cofire, command: tuple[str, ...]) -> None:
    done = taught.ok("plot", *command, "--to", "picture.png")
    assert done.out == ""
    assert done.err == "Picture drawn in picture.png.\n"
    assert (taught.folder / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_as_svg_reported_as_json(taught: Cofire) -> None:
    done = taught.ok(
        "plot", "trace", "How do I get to the kiln?", "-k", "2", "--to", "picture.svg", "--json"
    )
    assert done.json == {"picture": "picture.svg"}
    assert "<svg" in (taught.folder / "picture.svg").read_text(encoding="utf-8")


def test_a_picture_of_figures(cofire: Cofire, fonts: str) -> None:
    cofire.env["MPLCONFIGDIR"] = fonts
    one = {"mean": 1.0, "low": 0.5, "high": 1.5}
    subset = {"tests": 9, "questions": 9, "recall": [50.0] * 3, "difference": [one] * 3}
    arm = {"says": "", "base": "frozen", "subsets": {"all": subset}, "flips": {}}
    figures = {
        "ks": [5, 10, 30],
        "arms": {"frozen": arm, "cofire": arm},
        "curve": [{"share": share, "subsets": {"all": subset}} for share in (0.0, 0.5)],
    }
    (cofire.folder / "learning.json").write_text(json.dumps(figures))
    cofire.ok("plot", "learning", "learning.json", "--to", "learning.png")
    assert (cofire.folder / "learning.png").stat().st_size > 5_000


def test_what_goes_wrong(taught: Cofire) -> None:
    assert taught.run("plot", "graph", "--to", "graph.pdf").code == 2
    assert taught.run("plot", "graph", "--most", "0", "--to", "graph.png").code == 2
    assert taught.run("plot", "learning", "missing.json", "--to", "x.png").code == 3
    (taught.folder / "odd.json").write_text("{}")
    assert taught.run("plot", "learning", "odd.json", "--to", "x.png").code == 1
    done = taught.run("plot", "graph", "--as-of", "2020-01-01", "--to", "x.png")
    assert done.code == 2
    assert "nothing has been learned" in done.err
    assert list(taught.folder.glob("x.*")) == []


def test_without_the_extra_a_picture_names_it(taught: Cofire) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; from cofire.cli import main; "
        "sys.argv = ['cofire', 'plot', 'graph', '--to', 'graph.png']; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=taught.folder, env=taught.env, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 4
    assert "cofire[plot]" in done.stderr
