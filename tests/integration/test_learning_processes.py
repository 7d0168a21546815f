"""One store, several processes that learn: nothing is lost, and the log explains every strength."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
import time
from pathlib import Path

from cofire.store import open_store
from cofire.testing import an_item, make_space
from forked_interpreter import Process, start_python

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS.parent / "src"
LEARNER = """
    import random, sys
    from cofire.dynamics.plasticity import COFIRE_RULE
    from cofire.store import open_store
    from cofire.store.cues import NewCue
    from cofire.store.learning import NewEvent
    from cofire.testing import an_item, make_space
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = random.Random(name)
    with open_store(path, durability="normal") as store:
        space = make_space(store)
        for index in range(count):
            used = rng.sample(range(1, 41), 3)
            event = NewEvent(
                items=tuple((number, 1.0) for number in used), signal="used", time=index,
                principal=name, question=index,
            )
            cue = NewCue(item=an_item(f"{name} {index}", kind="cue"))
            done = store.learn(space, event, COFIRE_RULE, cue=cue, now=index)
            sys.stdout.write(f"{done.seq}\\n")
            sys.stdout.flush()
"""


def start(*arguments: object) -> Process:
    return start_python(
        ["-X", "dev", "-W", "error", "-c", textwrap.dedent(LEARNER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1"},
    )


def test_two_processes_learn_everything(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        space = make_space(store)
        store.append(space, [an_item(str(number)) for number in range(1, 41)])
        learners = [start(path, name, 300) for name in ("a", "b")]
        while any(learner.poll() is None for learner in learners):
            # A third looks on, and forgets: what it sees is whole at any moment.
            assert store.check() == []
            newest = store.last_number(space)
            if newest > 41:
                store.forget(space, [newest - 1])
            time.sleep(0.02)
        told = []
        for learner in learners:
            output, errors = learner.communicate(timeout=120)
            assert learner.returncode == 0, errors
            told.append([int(line) for line in output.split()])
        assert [len(lines) for lines in told] == [300, 300]
        assert all(lines == sorted(set(lines)) for lines in told)
        assert not set(told[0]) & set(told[1])
        events = list(store.iterate_events(space))
        assert {*told[0], *told[1]} <= {event.seq for event in events}
        assert sum(event.type == "feedback" for event in events) == 600
        assert store.replay(space) == 0
        assert store.check() == []


def test_a_killed_learner_leaves_log_and_links_agreeing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        space = make_space(store)
        store.append(space, [an_item(str(number)) for number in range(1, 41)])
    learner = start(path, "a", 100_000)
    assert learner.stdout is not None
    told = [int(learner.stdout.readline()) for _ in range(50)]
    learner.send_signal(signal.SIGKILL)
    rest, _ = learner.communicate(timeout=60)
    told += [int(line) for line in rest.split("\n")[:-1]]
    with open_store(path) as store:
        assert set(told) <= {event.seq for event in store.iterate_events(space)}
        assert store.check() == []
        assert store.replay(space) == 0
