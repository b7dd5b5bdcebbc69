"""How much two labellings of the same words say about each other: adjusted mutual information.

1 for labellings that are one but for the names of their labels, about 0 for labellings that have nothing to
do with each other (the expected value under chance is taken off).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["relatedness"]

# Words looked at, 300,000 over all pairs: a pair costs 3 ms, and 1 ms more for every 1,000 words. So 5
# artificial tasks take a tenth of a second and 20 take one. Over 20,000 words for a pair change the third
# digit at most.
_ALL_WORDS = 300_000
_MOST_WORDS = 20_000
_FEWEST_WORDS = 2_000


def relatedness(labellings: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """(L, L) adjusted mutual information of L labellings (N,) of the same N words, normalised by the maximum.

    Of the first words only, fewer where there are many labellings.
    """
    # Imported here: it takes a second, and most corpora have no use for it.
    from sklearn.metrics import adjusted_mutual_info_score

    matrix = np.eye(len(labellings))
    pairs = list(combinations(range(len(labellings)), 2))
    words = min(max(_ALL_WORDS // max(len(pairs), 1), _FEWEST_WORDS), _MOST_WORDS)
    for one, other in pairs:
        matrix[one, other] = matrix[other, one] = adjusted_mutual_info_score(
            labellings[one][:words], labellings[other][:words], average_method="max"
        )
    return matrix
