"""Runs over training, side by side: at which of their snapshots each of them is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.mrn.relations import Relations
from core.store.records import Run, SnapshotKey

__all__ = ["Course", "Moments", "aligned"]


@dataclass(frozen=True)
class Moments:
    """The moments shown: for each run the snapshot of each moment. The first run sets them.

    `exact`: every run has a snapshot at each of these very steps. Otherwise the snapshots meant are those
    nearest in their share of training. `cut`: the first run has later ones, which another has not reached.
    """

    keys: tuple[tuple[SnapshotKey, ...], ...]
    shares: tuple[float, ...]
    exact: bool
    cut: bool

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the first run."""
        return tuple(key.step for key in self.keys[0])

    def at(self, step: int | None) -> int:
        """The moment nearest to that step of the first run; the last one for None."""
        if step is None:
            return len(self.steps) - 1
        return int(np.argmin(np.abs(np.array(self.steps) - step)))

    def only(self, moment: int) -> Moments:
        """That moment alone."""
        keys = tuple((of_run[moment],) for of_run in self.keys)
        return Moments(keys, (self.shares[moment],), self.exact, self.cut)


@dataclass(frozen=True)
class Course:
    """What one run had learned at each moment."""

    run: Run
    keys: tuple[SnapshotKey, ...]
    learned: tuple[Relations, ...]


def aligned(runs: Sequence[Run], snapshots: Mapping[int, Sequence[SnapshotKey]]) -> Moments:
    """The moments of runs that all have snapshots, the same share of training for each."""
    shares = [_shares(run, snapshots[run.id]) for run in runs]
    # A third of a step of the slider is no difference: runs of other lengths end at the same share.
    slack = 1 / (3 * len(shares[0]))
    reached = min(of_run[-1] for of_run in shares) + slack
    shown = [place for place, share in enumerate(shares[0]) if share <= reached] or [0]
    chosen = [[int(np.argmin(np.abs(of_run - shares[0][place]))) for place in shown] for of_run in shares]
    keys = tuple(
        tuple(snapshots[run.id][place] for place in places) for run, places in zip(runs, chosen, strict=True)
    )
    steps = {tuple(key.step for key in of_run) for of_run in keys}
    return Moments(
        keys, tuple(float(shares[0][place]) for place in shown), len(steps) == 1, len(shown) < len(shares[0])
    )


def _shares(run: Run, keys: Sequence[SnapshotKey]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How much of its training the run had behind it at each snapshot."""
    return np.array([key.step for key in keys]) / max(run.total_steps or 0, keys[-1].step, 1)
