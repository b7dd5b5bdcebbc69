"""Every label of every task keeps a row of its own (dissertation, Fig. 14).

Rows of different tasks never meet, so no relation between tasks can be learned: the correlations of
Ω_task, and those of Ω_label between tasks, stay exactly zero. The pages say so.
"""

from __future__ import annotations

import numpy as np

from core.mrn.alignments.base import Alignment, LabelCounts, stack_blocks

__all__ = ["align"]


def align(counts: LabelCounts, reason: str) -> Alignment:
    """The concatenation of all label sets; each task's `O` is a label of its own."""
    size = len(counts.together)
    identity = np.eye(size)
    return Alignment(
        name="disjoint",
        reason=reason,
        task_names=counts.names,
        label_names=counts.row_names,
        label_owners=counts.row_owners,
        matrix=stack_blocks([identity[:, part] for part in counts.slices]),
    )
