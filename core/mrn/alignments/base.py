"""The alignment of tasks with different label sets (dissertation, section 5.3).

| symbol | shape     | meaning                                                        |
|--------|-----------|----------------------------------------------------------------|
| T      | int       | tasks                                                          |
| C_t    | int       | labels of task t                                               |
| r      | int       | Σ C_t, the rows of all heads stacked                           |
| C      | int       | rows of the general label space                                |
| H      | (r, D)    | the heads' weights stacked, task after task                    |
| A_t    | (C, C_t)  | alignment of task t                                            |
| B      | (T, C, r) | B[t] is A_t in the columns of task t, zero elsewhere           |
| W      | (T, C, D) | B @ H, so W[t] = A_t W_t: linear in the heads, gradients flow  |

Plain numpy, float64: an alignment is built once per run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import correlation

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class LabelCounts:
    """The tasks' labels and how often two of them label the same training word.

    `together` (r, r): words that carry label i and label j; on the diagonal, words that carry label i.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    together: Matrix

    @classmethod
    def from_words(
        cls, names: Sequence[str], labels: Sequence[Sequence[str]], word_labels: NDArray[np.integer]
    ) -> LabelCounts:
        """Count over words: `word_labels` (N, T) holds label numbers, negative where a task has none.

        Raises ValueError where the number of columns is not the number of tasks.
        """
        sizes = [len(names) for names in labels]
        if word_labels.ndim != 2 or word_labels.shape[1] != len(sizes):
            raise ValueError(f"word_labels must have shape (N, {len(sizes)}), not {word_labels.shape}")
        starts = np.cumsum([0, *sizes])
        together = np.zeros((starts[-1], starts[-1]))
        for t in range(len(sizes)):
            for u in range(len(sizes)):
                both = (word_labels[:, t] >= 0) & (word_labels[:, u] >= 0)
                rows = starts[t] + word_labels[both, t]
                columns = starts[u] + word_labels[both, u]
                np.add.at(together, (rows, columns), 1.0)
        return cls(tuple(names), tuple(map(tuple, labels)), together)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The slice of each task's labels among the r stacked rows."""
        starts = np.cumsum([0, *map(len, self.labels)])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(starts))

    @property
    def row_names(self) -> tuple[str, ...]:
        """`task:label` for each of the r stacked rows: names where every label keeps a row of its own."""
        return tuple(
            f"{task}:{label}"
            for task, labels in zip(self.names, self.labels, strict=True)
            for label in labels
        )

    @property
    def row_owners(self) -> tuple[tuple[str, ...], ...]:
        """The one task of each of the r stacked rows."""
        return tuple((task,) for task, labels in zip(self.names, self.labels, strict=True) for _ in labels)

    @property
    def shared(self) -> NDArray[np.bool_]:
        """(T, T): whether two different tasks are annotated on some words together."""
        totals = np.array([[self.together[a, b].sum() for b in self.slices] for a in self.slices])
        np.fill_diagonal(totals, 0.0)
        return np.asarray(totals > 0)

    def indicator_correlation(self) -> Matrix:
        """(r, r) correlation of "this word has label i" with "this word has label j", over shared words.

        It is shown beside the relations that MRN learned. Tasks without common words give zeros.
        """
        correlation = np.zeros_like(self.together)
        for a in self.slices:
            for b in self.slices:
                block = self.together[a, b]
                total = block.sum()
                if total == 0:
                    continue
                # Within a task the block is diagonal, so its row sums are the labels' counts there too.
                p, q = block.sum(axis=1) / total, block.sum(axis=0) / total
                spread = np.sqrt(np.outer(p * (1 - p), q * (1 - q)))
                covariance = block / total - np.outer(p, q)
                correlation[a, b] = np.divide(
                    covariance, spread, out=np.zeros_like(covariance), where=spread > 0
                )
        return correlation


@dataclass(frozen=True)
class Alignment:
    """A general label space: the matrix B (T, C, r), and the names of its rows.

    `label_owners` names for each of the C rows the tasks that have that label. `notes` are sentences for the
    researcher on what became of the labels.
    """

    name: str
    reason: str
    task_names: tuple[str, ...]
    label_names: tuple[str, ...]
    label_owners: tuple[tuple[str, ...], ...]
    matrix: Matrix
    notes: tuple[str, ...] = ()

    @property
    def shares_rows(self) -> NDArray[np.bool_]:
        """(T, T): whether two tasks both have weights in some row; a task meets itself."""
        present = (self.matrix != 0).any(axis=2)
        return np.asarray(present @ present.T)

    @property
    def impossible(self) -> tuple[str, ...]:
        """The modes in which the alignment forces every correlation between tasks to zero."""
        apart = not self.shares_rows[~np.eye(len(self.task_names), dtype=bool)].any()
        return ("task", "label") if apart else ()

    @property
    def correlation(self) -> Matrix:
        """(C, C): the correlations of W's rows where all weights of heads are independent, of one variance.

        It is what the alignment relates by itself: S_label is then in proportion to the sum of A_t A_tᵀ.
        """
        return np.asarray(correlation(np.einsum("tcr,tdr->cd", self.matrix, self.matrix)))

    def scaled_by_counts(self, counts: LabelCounts) -> Alignment:
        """The alignment to the rows W_c / s_c with a variance s_c² ∝ 1 / n_c: Ω_label becomes S Ω_label S.

        n_c is the mean number of training words of the labels in row c, weighted by their squared weights. A
        prior over these rows holds a label's weights near zero as strongly for each of its words. With equal
        scales it holds those of a rare label near zero more strongly than its few words can outweigh.
        """
        squares = self.matrix.sum(axis=0) ** 2
        words = squares @ np.diag(counts.together).clip(min=1) / squares.sum(axis=1)
        return replace(self, matrix=self.matrix * np.sqrt(words / words.mean())[:, None])

    def keeps_rows(self, counts: LabelCounts) -> bool:
        """Whether row i of the general space is label i of the stacked heads, as in `counts.row_names`."""
        rows = self.matrix.sum(axis=0)
        return self.label_owners == counts.row_owners and all(
            np.array_equal(rows[part, part], np.eye(part.stop - part.start)) for part in counts.slices
        )


def stack_blocks(blocks: Sequence[Matrix]) -> Matrix:
    """B (T, C, r) from the alignments A_t (C, C_t) of the tasks."""
    widths = [block.shape[1] for block in blocks]
    starts = np.cumsum([0, *widths])
    matrix = np.zeros((len(blocks), blocks[0].shape[0], starts[-1]))
    for t, block in enumerate(blocks):
        matrix[t, :, starts[t] : starts[t + 1]] = block
    return matrix


def names_in_common(first: Sequence[str], second: Sequence[str]) -> frozenset[str]:
    """The label names that two tasks share. `O` means the absence of a label, so it is not among them."""
    return (frozenset(first) & frozenset(second)) - {"O"}
