"""How the gold labels go together on the training words, beside the relations learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.mrn.rows import Block
from core.store.records import Run
from dashboard.queries.relations import impossible_cells
from dashboard.queries.relations_rows import Rows

__all__ = ["Agreement", "agreement", "gold_labels", "same_task", "why_no_gold"]

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Agreement:
    """How far learned and gold correlations go together over `pairs` pairs of labels."""

    pearson: float
    spearman: float
    pairs: int


def gold_labels(run: Run) -> Floats | None:
    """(C, C): the correlation of "this word has label i" with "this word has label j" on the training words,
    rows as in the label covariance. None where the run has none.
    """
    stored = run.facts.get("cooccurrence")
    return np.array(stored, dtype=np.float32) if stored else None


def why_no_gold(run: Run) -> str:
    """Why a run without gold correlations has none, in a sentence."""
    owners = run.facts.get("label_owners", ())
    mapped = (run.config.alignment or "").startswith("mapping")
    merged = mapped or any(len(tasks) > 1 for tasks in owners)
    if not owners:
        return "No gold labels beside: this run has not told its labels yet."
    if merged:
        return (
            "No gold labels beside: this alignment makes rows of several labels, which no label of a word "
            "stands for."
        )
    return (
        "No gold labels beside: the tasks are not annotated on the same words, so there is nothing to count "
        "between them."
    )


def agreement(
    learned: Floats, gold: Floats, rows: Rows, impossible: tuple[Block, ...], *, between: bool
) -> Agreement | None:
    """Over the pairs that can be learned, all of them or those `between` tasks; None for fewer than three, or
    where one of both is the same for all.
    """
    pairs = np.triu(~impossible_cells(impossible, len(rows)), 1)
    if between:
        pairs &= ~same_task(rows)
    both = pd.DataFrame({"learned": learned[pairs], "gold": gold[pairs]}).astype(float)
    if len(both) < 3 or not np.isfinite(both.to_numpy()).all() or (both.nunique() < 2).any():
        return None
    ranks = both.rank()
    return Agreement(
        pearson=float(both["learned"].corr(both["gold"])),
        spearman=float(ranks["learned"].corr(ranks["gold"])),
        pairs=len(both),
    )


def same_task(rows: Rows) -> NDArray[np.bool_]:
    """(n, n): whether two rows have a task in common."""
    tasks = sorted({task for owners in rows.owners for task in owners})
    owned = np.array([[task in owners for task in tasks] for owners in rows.owners], dtype=np.int64)
    return (owned @ owned.T > 0) if tasks else np.zeros((len(rows), len(rows)), dtype=bool)
