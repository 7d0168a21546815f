"""Short names for the array types that the mathematics is written in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F16 = NDArray[np.float16]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Floats = F32 | F64
"""Scores: either width."""
Rows = NDArray[np.intp]
"""Indices of rows."""
Indices = Rows | I32 | I64
"""Anything that may index an array."""
