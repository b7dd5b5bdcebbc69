"""How much two labellings of the same words say about each other: adjusted mutual information.

1 for labellings that are one but for the names of their labels, about 0 for labellings that have nothing to
do with each other (the expected value under chance is taken off).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_WORDS", "relatedness"]

MOST_WORDS = 20_000
"""Words that are looked at: more than this changes the third digit at most, and takes longer."""


def relatedness(labellings: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """(L, L) adjusted mutual information of L labellings (N,) of the same N words, normalised by the maximum.

    Of the first MOST_WORDS words only.
    """
    # Imported here: it takes a second, and most corpora have no use for it.
    from sklearn.metrics import adjusted_mutual_info_score

    matrix = np.eye(len(labellings))
    for one in range(len(labellings)):
        for other in range(one):
            value = adjusted_mutual_info_score(
                labellings[one][:MOST_WORDS], labellings[other][:MOST_WORDS], average_method="max"
            )
            matrix[one, other] = matrix[other, one] = value
    return matrix
