"""What a grid of simulated tasks has measured: F1 by its factors, and planted relations found again.

A table is a data frame with a row for each run: part, n_ner, n_syn, T, AMI, alpha, F1 (in percent) and seed.
Runs of NER alone have T = 0, and neither n_syn nor AMI and alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from core.transfer.predictors import Floats, rank_correlation

COLUMNS = ("part", "n_ner", "n_syn", "T", "AMI", "alpha", "F1", "seed")
FACTORS: Mapping[str, tuple[str, ...]] = {
    "balanced": ("n", "T", "AMI"),
    "published": ("n", "T", "AMI"),
    "unbalanced": ("n_ner", "n_syn", "T", "AMI"),
}
"""The factors of each part's formulas; n is n_ner where all tasks have as many words."""


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a row for each cell of the grid: AMI and F1 as means over seeds, and their number."""
    keys = ["part", "n_ner", "n_syn", "T", "alpha"]
    averaged = table.groupby(keys, dropna=False, sort=False).agg(
        AMI=("AMI", "mean"), F1=("F1", "mean"), SD=("F1", "std"), seeds=("seed", "count")
    )
    return averaged.reset_index()


def factors(table: pd.DataFrame, part: str) -> tuple[dict[str, Floats], Floats]:
    """The factors and F1 of that part's cells with artificial tasks, to learn formulas from."""
    of_part = cells(table[(table["part"] == part) & (table["T"] > 0)]).rename(
        columns={"n_ner": "n"} if "n" in FACTORS[part] else {}
    )
    return {name: of_part[name].to_numpy(float) for name in FACTORS[part]}, of_part["F1"].to_numpy(float)


def bands(table: pd.DataFrame, part: str, factor: str) -> pd.DataFrame:
    """F1 against one factor (n_ner, n_syn, T or alpha) over all else that varies: mean, SD and number of
    runs, with the mean AMI.
    """
    of_part = table[(table["part"] == part) & ((table["T"] > 0) | (factor == "T"))]
    grouped = of_part.groupby(factor).agg(
        AMI=("AMI", "mean"), mean=("F1", "mean"), SD=("F1", "std"), runs=("F1", "count")
    )
    return grouped.reset_index()


@dataclass(frozen=True)
class PlantedTasks:
    """Artificial tasks beside a real one, in S seeds: for each of k tasks the chance `alphas` (k,) to keep a
    label, the planted `ami` (S, k), the measured `gains` (S, k) of the real task in points, and the task
    correlation with it that MRN has `learned` (S, k).
    """

    alphas: Floats
    ami: Floats
    gains: Floats
    learned: Floats

    @property
    def rank_of_gains(self) -> float:
        """Rank correlation of gain with AMI, both in the mean over seeds."""
        return rank_correlation(self.gains.mean(axis=0), self.ami.mean(axis=0))

    @property
    def rank_of_learned(self) -> float:
        """Rank correlation of the learned correlation with AMI, both in the mean over seeds."""
        return rank_correlation(self.learned.mean(axis=0), self.ami.mean(axis=0))

    def by_seed(self, values: Floats) -> list[float]:
        """The rank correlation of `gains` or `learned` with AMI in each seed."""
        return [rank_correlation(each, ami) for each, ami in zip(values, self.ami, strict=True)]
