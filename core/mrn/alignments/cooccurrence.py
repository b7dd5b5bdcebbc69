"""Labels of different tasks meet as often as they stand on the same words.

Row (u, c') of task t is Σ_c P(c | c') W_t[c]: what task t's head says, on average, of words that task u
labels c'. For t = u it is the head's own row. No row is zero, so relations between tasks can be learned
where label sets have nothing in common but the text.
"""

from __future__ import annotations

import numpy as np

from core.mrn.alignments.base import Alignment, LabelCounts, Matrix, stack_blocks

__all__ = ["SMOOTHING", "align"]

SMOOTHING = 1.0
"""Pseudo-words, spread as the task's labels are, added to each row of counts: one sighting is no proof."""


def _conditional(together: Matrix, marginal: Matrix) -> Matrix:
    """P(c | c') (C_u, C_t) from counts (C_u, C_t), drawn towards the marginal P(c) (C_t,)."""
    return np.asarray(
        (together + SMOOTHING * marginal) / (together.sum(axis=1, keepdims=True) + SMOOTHING),
        dtype=np.float64,
    )


def align(counts: LabelCounts, reason: str) -> Alignment:
    """Rows as under `disjoint`; A_t holds P(c | c') for the rows of other tasks, the identity for its own."""
    blocks = []
    for t, own in enumerate(counts.slices):
        seen = np.diagonal(counts.together)[own]
        marginal = (seen + SMOOTHING) / (seen + SMOOTHING).sum()
        rows = [
            np.eye(own.stop - own.start)
            if u == t
            else _conditional(counts.together[other, own], np.asarray(marginal))
            for u, other in enumerate(counts.slices)
        ]
        blocks.append(np.concatenate(rows))
    return Alignment(
        name="cooccurrence",
        reason=reason,
        task_names=counts.names,
        label_names=counts.row_names,
        label_owners=counts.row_owners,
        matrix=stack_blocks(blocks),
    )
