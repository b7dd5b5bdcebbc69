"""Labels of the same name share a row (dissertation, Fig. 13)."""

from __future__ import annotations

import numpy as np

from core.mrn.alignments.base import Alignment, LabelCounts, stack_blocks

__all__ = ["align"]


def align(counts: LabelCounts, reason: str) -> Alignment:
    """One row per label name, in order of first appearance; a task without the label has zeros there."""
    names = list(dict.fromkeys(label for own in counts.labels for label in own))
    row = {label: index for index, label in enumerate(names)}
    blocks = []
    for own in counts.labels:
        block = np.zeros((len(names), len(own)))
        block[[row[label] for label in own], range(len(own))] = 1.0
        blocks.append(block)
    owners = tuple(
        tuple(task for task, own in zip(counts.names, counts.labels, strict=True) if label in own)
        for label in names
    )
    return Alignment(
        name="exact",
        reason=reason,
        task_names=counts.names,
        label_names=tuple(names),
        label_owners=owners,
        matrix=stack_blocks(blocks),
    )
