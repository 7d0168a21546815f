"""What any store must do, as tests that a back end of your own can run (needs pytest).

Subclass `StoreConformance` in a test module, give it a fixture `opener` that returns a function
opening the same empty store again and again, and pytest does the rest:

    class TestMine(StoreConformance):
        @pytest.fixture
        def opener(self, tmp_path):
            return lambda: open_store(tmp_path / "store.db")

`ScriptedGenerator` stands in for a language model and says what it is told to.
"""

from __future__ import annotations

from cofire.testing.appending import AppendingTests
from cofire.testing.changing import ChangingTests
from cofire.testing.claiming import ClaimTests
from cofire.testing.deriving import DerivingTests
from cofire.testing.embedding import VectorTests
from cofire.testing.fixtures import Opener
from cofire.testing.forgetting import ForgettingTests
from cofire.testing.generating import ScriptedGenerator
from cofire.testing.learning import LearningTests
from cofire.testing.queueing import JobTests
from cofire.testing.reading import ReadingTests
from cofire.testing.recording import RecordingTests
from cofire.testing.samples import (
    DIMENSION,
    MODEL,
    a_recall,
    a_vector,
    an_item,
    fill,
    full_item,
    make_space,
    some_segments,
    some_terms,
)
from cofire.testing.serving import AuditTests, KeyTests, RequestTests
from cofire.testing.sharing import SharingTests
from cofire.testing.spaces import SpaceTests
from cofire.testing.transfer import TransferTests

__all__ = [
    "DIMENSION",
    "MODEL",
    "Opener",
    "ScriptedGenerator",
    "StoreConformance",
    "a_recall",
    "a_vector",
    "an_item",
    "fill",
    "full_item",
    "make_space",
    "some_segments",
    "some_terms",
]


class StoreConformance(
    SpaceTests,
    AppendingTests,
    ReadingTests,
    ChangingTests,
    ForgettingTests,
    DerivingTests,
    VectorTests,
    RecordingTests,
    LearningTests,
    TransferTests,
    SharingTests,
    ClaimTests,
    KeyTests,
    AuditTests,
    RequestTests,
    JobTests,
):
    """Everything that a store must do. Run by subclassing; see the module."""
