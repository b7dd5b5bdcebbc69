"""Verdicts on relations: known matrices, coverage of the interval, wrong verdicts of a family, controls."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.evaluation.relation_verdicts import (
    BOUND,
    NEGLIGIBLE,
    OPPOSED,
    RELATED,
    UNDECIDED,
    relation_verdicts,
)

Floats = NDArray[np.float64]


def matrices(*rows: list[float]) -> Floats:
    """(s, m+1, m+1) for s seeds: the m correlations of the first row with the others, which are unrelated."""
    values = np.stack([np.eye(len(row) + 1) for row in rows])
    values[:, 0, 1:] = values[:, 1:, 0] = rows
    return values


def first_row(size: int) -> NDArray[np.bool_]:
    """The cells of the first row."""
    tested = np.zeros((size, size), dtype=bool)
    tested[0, 1:] = tested[1:, 0] = True
    return tested


SEEDS = [
    [0.8, -0.6, 0.02, 0.15],
    [0.82, -0.62, 0.03, 0.02],
    [0.79, -0.58, 0.01, 0.35],
    [0.81, -0.61, 0.02, 0.1],
    [0.8, -0.6, 0.025, 0.3],
]


def test_known_matrices_have_known_verdicts() -> None:
    verdicts = relation_verdicts(matrices(*SEEDS), first_row(5))
    assert [*verdicts.verdict[0, 1:]] == [RELATED, OPPOSED, NEGLIGIBLE, UNDECIDED]
    assert (verdicts.verdict == verdicts.verdict.T).all()
    assert np.allclose(verdicts.mean[0, 1:], np.mean(SEEDS, axis=0))
    assert ((verdicts.low < verdicts.mean) & (verdicts.mean < verdicts.high))[0, 1:].all()
    assert [(cell.j, cell.is_decided) for cell in verdicts.cells()] == [
        (1, True),
        (2, True),
        (4, False),
        (3, True),
    ]
    # Cells that are not tested have no verdict, and no p.
    assert set(verdicts.verdict[1:, 1:].ravel()) == {UNDECIDED}
    assert np.isnan(verdicts.p[1:, 1:]).all()


def test_chance_that_all_seeds_learn_is_not_related() -> None:
    """It differs from zero by a t-test of p < 0.001, which is what a test against zero would call related."""
    chance = [[0.025 + 0.003 * step] for step in range(-3, 4)]
    assert relation_verdicts(matrices(*chance), first_row(2)).verdict[0, 1] == NEGLIGIBLE


def test_one_seed_decides_nothing() -> None:
    verdicts = relation_verdicts(matrices([0.99, -0.99]), first_row(3))
    assert set(verdicts.verdict.ravel()) == {UNDECIDED}
    assert verdicts.cell(0, 1).interval is None
    assert verdicts.cell(0, 1).p is None


def test_seeds_that_agree_exactly_decide_from_three_on() -> None:
    for seeds, verdict in ((2, UNDECIDED), (3, RELATED)):
        verdicts = relation_verdicts(matrices(*[[1.0]] * seeds), first_row(2))
        assert verdicts.verdict[0, 1] == verdict


def test_more_cells_ask_for_more() -> None:
    one = [[0.25 + 0.05 * step] for step in range(5)]
    alone = relation_verdicts(matrices(*one), first_row(2))
    among = relation_verdicts(matrices(*[row + [0.1] * 400 for row in one]), first_row(402))
    assert (alone.verdict[0, 1], among.verdict[0, 1]) == (RELATED, UNDECIDED)
    assert among.p[0, 1] > alone.p[0, 1]


def test_a_relation_must_differ_from_its_control() -> None:
    values = matrices(*SEEDS)
    alike, apart = values.copy(), values.copy()
    alike[:, 0, 1:] += np.array([[0.01, -0.01, 0.02, -0.02, 0.0]]).T
    apart[:, 0, 1:] = 0.03
    assert relation_verdicts(values, first_row(5), alike).verdict[0, 1] == UNDECIDED
    verdicts = relation_verdicts(values, first_row(5), apart)
    assert [*verdicts.verdict[0, 1:]] == [RELATED, OPPOSED, NEGLIGIBLE, UNDECIDED]
    assert verdicts.controlled[0, 1:].all()
    # A control of one seed is none; of two seeds these count.
    apart[1:] = np.nan
    assert not relation_verdicts(values, first_row(5), apart).controlled.any()


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_interval_covers_and_families_are_seldom_wrong(seeds: int) -> None:
    """On correlations drawn about known ones; 0.1 itself is neither related nor negligible."""
    draw = np.random.default_rng(seeds)
    true = np.array([0.0, 0.03, BOUND, -BOUND, 0.4, 0.9, -0.5])
    rounds, covered, wrong = 400, 0.0, 0
    for _ in range(rounds):
        z = np.arctanh(true) + draw.normal(0, draw.choice([0.02, 0.1, 0.3]), (seeds, len(true)))
        verdicts = relation_verdicts(matrices(*np.tanh(z).tolist()), first_row(len(true) + 1))
        low, high, verdict = (part[0, 1:] for part in (verdicts.low, verdicts.high, verdicts.verdict))
        covered += float(np.mean((low <= true) & (true <= high))) / rounds
        wrong += bool(
            (
                ((verdict == RELATED) & (true <= BOUND))
                | ((verdict == OPPOSED) & (true >= -BOUND))
                | ((verdict == NEGLIGIBLE) & (np.abs(true) >= BOUND))
            ).any()
        )
    assert covered == pytest.approx(0.95, abs=0.012)
    assert wrong / rounds <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / rounds)
