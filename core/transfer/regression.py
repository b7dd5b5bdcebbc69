"""Logistic regressions on many training folds of the same pairs at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Scales:
    """B scales of F features: at `low` (B, F) a feature counts as 0, at `low + width` as 1."""

    low: Floats
    width: Floats
    median: Floats

    def apply(self, values: Floats) -> Floats:
        """(B, Q, F) of values (Q, F): a missing one is the median; cut off to [0, 1]; 0 without width."""
        shifted = np.where(np.isfinite(values), values, self.median[:, None]) - self.low[:, None]
        width = np.broadcast_to(self.width[:, None], shifted.shape)
        return np.clip(np.divide(shifted, width, out=np.zeros_like(shifted), where=width > 0), 0, 1)


def scales_of(values: Floats, trained: Mask) -> Scales:
    """Range and median of values (P, F) on each row of training pairs (B, P); 0 if all are missing."""
    low, high, median = (np.zeros((len(trained), values.shape[1])) for _ in range(3))
    for place, column in enumerate(values.T):
        known = trained & np.isfinite(column)
        rows = known.any(axis=1)
        low[rows, place] = np.where(known, column, np.inf)[rows].min(axis=1)
        high[rows, place] = np.where(known, column, -np.inf)[rows].max(axis=1)
        median[rows, place] = np.nanmedian(np.where(known, column, np.nan)[rows], axis=1)
    return Scales(low, high - low, median)


@dataclass(frozen=True)
class Regressions:
    """B logistic regressions on F features, each with its own scale.

    `mean` (B, F) is that of the scaled features on the training pairs.
    """

    scales: Scales
    mean: Floats
    weights: Floats
    intercept: Floats

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Probability and score, both (B, Q), of pairs with values (Q, F).

        The score is what the features of a pair add to the log-odds, over their mean on the training pairs.
        It leaves out the share of training pairs that gain: that is smaller where pairs that gain are left
        out, so log-odds from several folds rank the tested pairs the wrong way round.
        """
        score = np.einsum("bqf,bf->bq", self.scales.apply(values) - self.mean[:, None], self.weights)
        offset = self.intercept + np.einsum("bf,bf->b", self.mean, self.weights)
        # Rounded, so that the last digits of the solution do not rank pairs with equal features.
        return expit(score + offset[:, None]), np.round(score, 6)


def regressions(values: Floats, gained: Mask, trained: Mask) -> Regressions:
    """A regression of gained (P,) on values (P, F) for each row of training pairs, trained (B, P)."""
    scales = scales_of(values, trained)
    scaled, counts = scales.apply(values), trained.astype(np.float64)
    weights, intercept = logistic(scaled, gained, counts)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return Regressions(scales, np.einsum("bpf,bp->bf", scaled, counts) / totals, weights, intercept)


# scikit-learn has none. So little changes no digit that is shown, and keeps the intercept finite where every
# training pair gains.
_INTERCEPT_PENALTY = 1e-7
_MOST_STEPS = 200
_LONGEST_STEP = 5.0


def logistic(values: Floats, gained: Mask, counts: Floats) -> tuple[Floats, Floats]:
    """Weights (B, F) and intercepts (B,) of logistic regressions (L2 penalty, C = 1) by Newton's method.

    Of values (B, P, F) and gained (P,), where pair p counts `counts[b, p]` times. The minimum is that of
    scikit-learn's LogisticRegression, which fits one at a time and takes five times as long.
    """
    x = np.concatenate([values, np.ones((*values.shape[:2], 1))], axis=2)
    penalty = np.append(np.ones(values.shape[2]), _INTERCEPT_PENALTY)
    beta = np.zeros((len(x), x.shape[2]))
    for _ in range(_MOST_STEPS):
        probability = expit(np.einsum("bpf,bf->bp", x, beta))
        slope = np.einsum("bpf,bp->bf", x, counts * (probability - gained)) + penalty * beta
        curvature = np.swapaxes(x, 1, 2) @ (x * (counts * probability * (1 - probability))[:, :, None])
        step = np.linalg.solve(curvature + np.diag(penalty), slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        beta -= step * np.minimum(1, _LONGEST_STEP / np.maximum(longest, _LONGEST_STEP))
        if longest.max() < 1e-7:
            return beta[:, :-1], beta[:, -1]
    raise ArithmeticError(f"Newton's method did not converge in {_MOST_STEPS} steps")
