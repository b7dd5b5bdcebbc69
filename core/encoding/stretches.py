"""Places in flat arrays: stretches of them, one after the other, without a loop over stretches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["offsets", "places"]


def offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """(n+1,) where each stretch begins when they stand one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def places(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places starts[k] … starts[k]+lengths[k]−1 of all stretches k, one after the other."""
    begins = offsets(lengths)
    return np.repeat(starts - begins[:-1], lengths) + np.arange(begins[-1])
