"""Rows or methods as the family of tests, simulated: how often null studies are decided, and gains found.

A simulated study has STL, MTL and some candidates of MRN, of which dev chooses one. The score of a run varies
around the mean of its configuration by one SD; dev and test share a part of that variance (`related`), as two
splits scored by one model do. `python -m tests.properties.test_families` prints the table of ADR 45.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtr

from core.evaluation.comparison import compare_rows

pytestmark = pytest.mark.slow

STUDIES = 20_000
ERROR = 0.0016
"""A standard error of a share of 5% of so many studies."""
STL, MTL = 0, 1
GAINS = (3.0, 2.0, 1.0, 0.5, 0.0)
"""What the candidates gain over MTL, in SD, where there is a gain."""
ADR = Path(__file__).parents[2] / "docs" / "adr" / "0045-methods-are-the-family.md"

Floats = NDArray[np.float64]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Studies:
    """Test scores (S, R, N) of S studies, of R rows over N seeds: STL, MTL, then candidates of MRN.

    `chosen` is the row of the candidate that dev chose, by study.
    """

    test: Floats
    chosen: NDArray[np.int64]

    @property
    def of_methods(self) -> Floats:
        """The scores of STL, MTL and the chosen candidate."""
        rows = np.arange(len(self.test))
        return np.stack([self.test[:, STL], self.test[:, MTL], self.test[rows, self.chosen]], axis=1)


def simulated(
    seeds: int, related: float, gains: Sequence[float] = (0.0,) * 5, studies: int = STUDIES
) -> Studies:
    """Studies in which the candidates gain so much, drawn with one seed."""
    random = np.random.default_rng(1)
    shape = (studies, 2 + len(gains), seeds)
    means = np.array([0.0, 0.0, *gains])[:, None]
    of_run = means + np.sqrt(related) * random.standard_normal(shape)
    dev, test = (of_run + np.sqrt(1 - related) * random.standard_normal(shape) for _ in range(2))
    return Studies(test, MTL + 1 + dev[:, MTL + 1 :].mean(axis=2).argmax(axis=1))


def higher(scores: Floats, pairs: Sequence[Pair]) -> dict[Pair, NDArray[np.int64]]:
    """By pair and study 1 where the first row is higher, −1 where lower; the pairs are the family (Holm)."""
    differences = np.stack([scores[:, a] - scores[:, b] for a, b in pairs], axis=1)
    seeds = scores.shape[2]
    t = differences.mean(axis=2) / (differences.std(axis=2, ddof=1) / np.sqrt(seeds))
    p = 2 * stdtr(seeds - 1, -np.abs(t))
    order = np.argsort(p, axis=1)
    stepped = np.take_along_axis(p, order, axis=1) * np.arange(len(pairs), 0, -1)
    corrected = np.empty_like(p)
    np.put_along_axis(corrected, order, np.maximum.accumulate(stepped, axis=1), axis=1)
    signs = np.where(corrected < 0.05, np.sign(t), 0).astype(np.int64)
    return {pair: signs[:, place] for place, pair in enumerate(pairs)}


def all_pairs(rows: int) -> list[Pair]:
    return [(b, a) for a, b in combinations(range(rows), 2)]


def against_mtl(rows: int) -> list[Pair]:
    return [(row, MTL) for row in range(rows) if row != MTL]


RULES: Mapping[str, str] = {
    "rows": "each row, all pairs",
    "rows-base": "each row, against MTL",
    "methods": "methods, all pairs",
    "methods-base": "methods, against MTL",
}


def verdicts(studies: Studies, rule: str) -> dict[Pair, NDArray[np.int64]]:
    """The verdicts of a rule, by pair."""
    scores = studies.of_methods if rule.startswith("methods") else studies.test
    pairs = against_mtl if rule.endswith("base") else all_pairs
    return higher(scores, pairs(scores.shape[1]))


def any_decided(studies: Studies, rule: str) -> float:
    """The share of studies with a difference that is called one."""
    return float(np.any([signs != 0 for signs in verdicts(studies, rule).values()], axis=0).mean())


def found(studies: Studies, rule: str) -> float:
    """The share of studies in which the candidate that dev chose is higher than MTL."""
    signs = verdicts(studies, rule)
    if rule.startswith("methods"):
        return float((signs[MTL + 1, MTL] == 1).mean())
    rows = np.stack([signs[row, MTL] for row in range(MTL + 1, studies.test.shape[1])])
    return float((rows[studies.chosen - MTL - 1, np.arange(len(studies.chosen))] == 1).mean())


def test_the_simulation_decides_as_tables_do() -> None:
    studies = simulated(5, 0.5, GAINS, studies=100)
    for scores in (studies.test, studies.of_methods):
        rows = scores.shape[1]
        for baseline, pairs in ((None, all_pairs(rows)), (MTL, against_mtl(rows))):
            signs = higher(scores, pairs)
            for study, of_rows in enumerate(scores):
                by_row = {row: dict(enumerate(of_row.tolist())) for row, of_row in enumerate(of_rows)}
                compared = compare_rows(by_row, matters=0.0, baseline=baseline)
                for pair in pairs:
                    wanted = {"higher": 1, "lower": -1}.get(compared[pair].verdict, 0)
                    assert signs[pair][study] == wanted


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("candidates", [2, 5, 10])
def test_what_a_choice_by_dev_costs_on_test(seeds: int, candidates: int) -> None:
    """Nothing where dev and test of a run are unrelated, or hardly; more with many candidates and 0.9."""
    most = {
        0.0: 0.05,
        0.3: 0.05,
        0.6: 0.06 if candidates > 5 else 0.052,
        0.9: {10: 0.081}.get(candidates, 0.059),
    }
    for related, share in most.items():
        studies = simulated(seeds, related, (0.0,) * candidates)
        for rule in ("methods", "methods-base"):
            assert any_decided(studies, rule) <= share + 2 * ERROR, (related, rule)


def test_the_cost_of_ten_candidates_is_as_the_decision_says() -> None:
    shares = [any_decided(simulated(5, related, (0.0,) * 10), "methods") for related in (0.0, 0.6, 0.9)]
    text = re.sub(r"\s+", " ", ADR.read_text(encoding="utf-8"))
    assert "{:.1%}, {:.1%} and {:.1%} with ten candidates".format(*shares) in text


@pytest.mark.parametrize("seeds", [3, 5])
def test_methods_find_the_gain_that_rows_miss(seeds: int) -> None:
    studies = simulated(seeds, 0.6, GAINS)
    for of_methods, of_rows in (("methods", "rows"), ("methods-base", "rows-base")):
        assert found(studies, of_methods) > 1.4 * found(studies, of_rows)


def test_the_decision_has_the_figures_of_the_simulation() -> None:
    text = ADR.read_text(encoding="utf-8")
    for line in table():
        assert line in re.sub(r" +", " ", text), line


def table() -> list[str]:
    """A line for each rule and number of seeds: errors by correlation, then gains that are found."""
    lines = []
    for seeds in (3, 5):
        studies = [simulated(seeds, related) for related in (0.0, 0.6, 0.9)]
        with_gain = simulated(seeds, 0.6, GAINS)
        for rule, title in RULES.items():
            shares = [*(any_decided(each, rule) for each in studies), found(with_gain, rule)]
            lines.append(f"| {seeds} | {title} | {' | '.join(f'{100 * share:.1f}%' for share in shares)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
