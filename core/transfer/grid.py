"""The measurements of a grid of simulated tasks: F1 by its factors, and planted relations found again.

A table is a data frame with a row for each run: part, n_ner, n_syn, T, AMI, alpha, dense (layers), F1 (in
percent) and seed. Runs of NER alone have T = 0, and neither n_syn nor AMI and alpha.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd

from core.evaluation.statistics import summary
from core.transfer.predictors import Floats, rank_correlation

COLUMNS = ("part", "n_ner", "n_syn", "T", "AMI", "alpha", "dense", "F1", "seed")
FACTORS: Mapping[str, tuple[str, ...]] = {
    "balanced": ("n", "T", "AMI"),
    "published": ("n", "T", "AMI"),
    "unbalanced": ("n_ner", "n_syn", "T", "AMI"),
    "published-unbalanced": ("n_ner", "n_syn", "T", "AMI"),
}
"""The factors of each part's formulas; n is n_ner where all tasks have as many words."""


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a row for each cell of the grid: AMI and F1 as means over seeds, and their number."""
    keys = ["part", "n_ner", "n_syn", "T", "alpha", "dense"]
    averaged = table.groupby(keys, dropna=False, sort=False).agg(
        AMI=("AMI", "mean"), F1=("F1", "mean"), SD=("F1", "std"), seeds=("seed", "count")
    )
    return averaged.reset_index()


def factors(table: pd.DataFrame, part: str) -> tuple[dict[str, Floats], Floats]:
    """The factors and F1 of that part's cells with simulated tasks, to learn formulas from."""
    part_rows = cells(table[(table["part"] == part) & (table["T"] > 0)]).rename(
        columns={"n_ner": "n"} if "n" in FACTORS[part] else {}
    )
    return {name: part_rows[name].to_numpy(float) for name in FACTORS[part]}, part_rows["F1"].to_numpy(float)


def bands(table: pd.DataFrame, part: str, factor: str) -> pd.DataFrame:
    """F1 against one factor (n_ner, n_syn, T or alpha) over all other factors.

    Mean, SD and number of runs, with the mean AMI.
    """
    part_rows = table[(table["part"] == part) & ((table["T"] > 0) | (factor == "T"))]
    grouped = part_rows.groupby(factor).agg(
        AMI=("AMI", "mean"), mean=("F1", "mean"), SD=("F1", "std"), runs=("F1", "count")
    )
    return grouped.reset_index()


def figure_3(table: pd.DataFrame) -> pd.DataFrame:
    """F1 as in Figure 3 of Bettgenhäuser et al. (2020), for balanced parts.

    Panel a is against n at T = 2, b against AMI at T = 2, c against T at n = 2,000, where T = 0 is NER alone.

    A row for each point: its part, panel, line and x, and the mean over seeds, its SD and 95% interval. Lines
    are STL and four α, named by their mean AMI, in b four n: of more the least, the largest and two between.
    Where no AMI is known, as of published records, lines are named by α and there is no panel b.
    """
    balanced = [part for part, of in FACTORS.items() if "n" in of and part in set(table["part"])]
    points = [(part, *point) for part in balanced for point in _points(table[table["part"] == part])]
    return pd.DataFrame(points, columns=["part", "panel", "line", "x", "mean", "SD", "seeds", "low", "high"])


def _points(table: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    is_alone = table["T"] == 0

    def is_drawn(column: str) -> pd.Series:
        values = table.loc[~is_alone, column].drop_duplicates()
        return table[column].isin(values.quantile(np.linspace(0, 1, 4), interpolation="nearest"))

    has_ami = bool(table["AMI"].notna().any())
    panels = (
        ("a", "n_ner", "alpha", is_alone | (table["T"] == 2) & is_drawn("alpha")),
        *[("b", "AMI", "n_ner", (table["T"] == 2) & is_drawn("n_ner"))] * has_ami,
        ("c", "T", "alpha", (table["n_ner"] == 2_000) & (is_alone | is_drawn("alpha"))),
    )
    for panel, x, by, is_in_panel in panels:
        for value, line in table[is_in_panel].fillna({"alpha": 0}).groupby(by):
            related = f"AMI {line['AMI'].mean():z.2f}" if has_ami else f"α = {value:g}"
            name = f"n = {value:,.0f}" if by == "n_ner" else related if value else "STL"
            for _, cell in line.groupby(["n_ner", "T", "alpha"]):
                yield panel, name, cell[x].mean(), *astuple(summary(cell["F1"]))


@dataclass(frozen=True)
class PlantedTasks:
    """Simulated tasks beside a real one, in S seeds.

    For each of k tasks it has the chance `alphas` (k,) to keep a label, the planted `ami` (S, k), the
    measured `gains` (S, k) of the real task in points, and the task correlation with it that MRN has
    `learned` (S, k); None where it is not known, as of runs from a record.
    """

    alphas: Floats
    ami: Floats
    gains: Floats
    learned: Floats | None

    def rank(self, values: Floats) -> float:
        """The rank correlation of `gains` or `learned` with AMI, both in the mean over seeds."""
        return rank_correlation(values.mean(axis=0), self.ami.mean(axis=0))

    def by_seed(self, values: Floats) -> list[float]:
        """The rank correlation of `gains` or `learned` with AMI in each seed."""
        return [rank_correlation(each, ami) for each, ami in zip(values, self.ami, strict=True)]
