"""Alignments by rule: by equal names, by co-occurrence on words, or without shared rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.mrn.alignments.base import Alignment, LabelCounts, Matrix, names_in_common, stack_blocks

SMOOTHING = 1.0
"""Pseudo-words, spread as the task's labels are, added to each row of counts: one sighting is no proof."""


def align_exact(counts: LabelCounts, reason: str) -> Alignment:
    """Labels of the same name share a row (dissertation, Fig. 13).

    One row per label name, in order of first appearance; a task without the label has zeros there.
    """
    names = list(dict.fromkeys(label for labels in counts.labels for label in labels))
    owners = tuple(
        tuple(task for task, labels in zip(counts.names, counts.labels, strict=True) if label in labels)
        for label in names
    )
    blocks = [(np.array(names)[:, None] == np.array(labels)).astype(np.float64) for labels in counts.labels]
    return Alignment("exact", reason, counts.names, tuple(names), owners, stack_blocks(blocks))


def align_disjoint(counts: LabelCounts, reason: str) -> Alignment:
    """Every label of every task keeps a row of its own, each task's `O` too (dissertation, Fig. 14).

    Tasks share no row, so no relation between tasks can be learned: the correlations of Ω_task, and those of
    Ω_label between tasks, stay exactly zero. The pages say so.
    """
    identity = np.eye(len(counts.together))
    return _own_rows("disjoint", reason, counts, [identity[:, part] for part in counts.slices])


def align_cooccurrence(counts: LabelCounts, reason: str) -> Alignment:
    """Labels of different tasks share rows in proportion to their co-occurrence on words.

    Row (u, c') of task t is Σ_c P(c | c') W_t[c]: what task t's head says, on average, of words that task u
    labels c'. For t = u it is the head's own row. So relations between tasks can be learned where label sets
    have nothing in common but the text.

    Tasks without common words (those of two corpora, say) give no counts to estimate P from. There labels of
    equal name correspond, as under `exact`; a label without such a partner, and every label of tasks that
    have no name in common, keeps a zero row.
    """
    shared = counts.shared
    blocks = []
    for t, labels in enumerate(counts.labels):
        rows = [
            np.eye(len(labels))
            if u == t
            else _by_words(counts, u, t)
            if shared[u, t]
            else _by_names(other, labels)
            for u, other in enumerate(counts.labels)
        ]
        blocks.append(np.concatenate(rows))
    return _own_rows("cooccurrence", reason, counts, blocks)


def _own_rows(name: str, reason: str, counts: LabelCounts, blocks: Sequence[Matrix]) -> Alignment:
    """An alignment with the rows of the stacked heads as general rows."""
    return Alignment(name, reason, counts.names, counts.row_names, counts.row_owners, stack_blocks(blocks))


def _by_words(counts: LabelCounts, u: int, t: int) -> Matrix:
    """P(c | c') (C_u, C_t) from the words of both tasks, drawn towards the marginal P(c) (C_t,)."""
    together = counts.together[counts.slices[u], counts.slices[t]]
    seen = np.diagonal(counts.together)[counts.slices[t]]
    marginal = (seen + SMOOTHING) / (seen + SMOOTHING).sum()
    words = together.sum(axis=1, keepdims=True)
    return np.asarray((together + SMOOTHING * marginal) / (words + SMOOTHING), dtype=np.float64)


def _by_names(other: Sequence[str], labels: Sequence[str]) -> Matrix:
    """(C_u, C_t): 1 where labels have the same name; zero throughout where no name but `O` is in common."""
    if not names_in_common(other, labels):
        return np.zeros((len(other), len(labels)))
    return np.asarray(np.array(other)[:, None] == np.array(labels), dtype=np.float64)
