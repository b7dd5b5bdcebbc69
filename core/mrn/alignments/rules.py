"""Labels of the same name share a row (dissertation, Fig. 13)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.mrn.alignments.base import Alignment, LabelCounts, Matrix, names_in_common, stack_blocks


def align_exact(counts: LabelCounts, reason: str) -> Alignment:
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


# Every label of every task keeps a row of its own (dissertation, Fig. 14).
#
# Rows of different tasks never meet, so no relation between tasks can be learned: the correlations of
# Ω_task, and those of Ω_label between tasks, stay exactly zero. The pages say so.


def align_disjoint(counts: LabelCounts, reason: str) -> Alignment:
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


# Labels of different tasks meet as often as they stand on the same words.
#
# Row (u, c') of task t is Σ_c P(c | c') W_t[c]: what task t's head says, on average, of words that task u
# labels c'. For t = u it is the head's own row. So relations between tasks can be learned where label sets
# have nothing in common but the text.
#
# Tasks that never stand on the same words (those of two corpora, say) give no counts to estimate P from.
# There
# labels of equal name correspond, as under `exact`; a label without such a partner, and every label of
# tasks
# that have no name in common, keeps a zero row.


SMOOTHING = 1.0
"""Pseudo-words, spread as the task's labels are, added to each row of counts: one sighting is no proof."""


def align_cooccurrence(counts: LabelCounts, reason: str) -> Alignment:
    """Rows as under `disjoint`; A_t holds P(c | c') for the rows of other tasks, the identity for its own."""
    shared = counts.shared
    blocks = []
    for t, own in enumerate(counts.labels):
        rows = [
            np.eye(len(own)) if u == t else _by_words(counts, u, t) if shared[u, t] else _by_names(other, own)
            for u, other in enumerate(counts.labels)
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


def _by_words(counts: LabelCounts, u: int, t: int) -> Matrix:
    """P(c | c') (C_u, C_t) from the words of both tasks, drawn towards the marginal P(c) (C_t,)."""
    together = counts.together[counts.slices[u], counts.slices[t]]
    seen = np.diagonal(counts.together)[counts.slices[t]]
    marginal = (seen + SMOOTHING) / (seen + SMOOTHING).sum()
    return np.asarray(
        (together + SMOOTHING * marginal) / (together.sum(axis=1, keepdims=True) + SMOOTHING),
        dtype=np.float64,
    )


def _by_names(other: Sequence[str], own: Sequence[str]) -> Matrix:
    """(C_u, C_t): 1 where labels have the same name; zero throughout where no name but `O` is in common."""
    if not names_in_common(other, own):
        return np.zeros((len(other), len(own)))
    return np.asarray(np.array(other)[:, None] == np.array(own), dtype=np.float64)
