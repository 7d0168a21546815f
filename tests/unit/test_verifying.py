"""Other people's embedders, held to what the seam promises."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.models.embedder import normalised
from cofire.models.verifying import normalised_one

numbers = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1e-30, 1e30, 1.0])


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=40), st.booleans())
def test_one_vector_is_normalised_as_many_are(values: list[float], ok: bool) -> None:
    vector = np.array(values, np.float32)
    many = normalised(vector[None])
    one, usable = normalised_one(vector, ok)
    assert usable == (ok and bool(many.ok[0]))
    assert one.dtype == np.float32
    expected = many.vectors[0] if usable else np.zeros(len(vector), np.float32)
    assert one.tobytes() == expected.tobytes()
