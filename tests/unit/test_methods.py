"""Methods and their candidates, on tables made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import RunConfig
from core.evaluation.comparison import HIGHER, UNDECIDED
from core.results.methods import compare_methods, method_key, methods
from core.results.table import tabulate
from tests.pages.compared import config, score, succeeded


def found(made: dict[RunConfig, tuple[float, float]]) -> dict[str, tuple[int, str | None]]:
    """By method the number of candidates and the name of the chosen one; runs with dev and test scores."""
    return {
        method.name: (len(method.candidates), method.chosen.name if method.chosen else None)
        for method in methods(table_of(made).rows)
    }


def table_of(made: dict[RunConfig, tuple[float, float]]) -> Any:
    runs = succeeded(list(made))
    scores = [
        score(run.id, "pos", value, split)
        for run, of_run in zip(runs, made.values(), strict=True)
        for split, value in zip(("dev", "test"), of_run, strict=True)
    ]
    return tabulate(runs, scores, "test", ("pos",))


def test_configurations_that_differ_in_numbers_are_candidates_of_one_method() -> None:
    mrn = {
        config(lambda_=value, seed=seed): (value + 0.5, 0.7) for value in (0.01, 0.1, 0.3) for seed in (1, 2)
    }
    mrn[config(lambda_=0.1, epochs=9)] = (0.1, 0.99)
    assert found(mrn | {config("mtl"): (0.5, 0.5)}) == {"MTL": (1, "MTL"), "MRN": (4, "MRN 0.3")}


@pytest.mark.parametrize(
    ("fields", "other", "same"),
    [
        ({"lambda_": 0.1}, {"lambda_": 0.5, "epochs": 7}, True),
        ({}, {"lr_heads": 0.005}, True),
        ({"encoder_training": "top:1"}, {"encoder_training": "top:2"}, True),
        ({"encoder_training": "frozen"}, {"encoder_training": "top:1"}, False),
        ({"fraction": 0.1}, {"fraction": 1.0}, False),
        ({"prior": "paper"}, {}, False),
        ({"paradigm": "mtl"}, {"paradigm": "mrn"}, False),
        ({"seed": 1}, {"seed": 2}, True),
    ],
)
def test_a_method_is_what_is_not_searched(fields: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    assert (method_key(config(**fields)) == method_key(config(**other))) is same


def test_dev_chooses_among_candidates_on_common_seeds_only() -> None:
    """λ 0.1 is better with the seeds that both have; λ 0.3 was trained with the easy one alone."""
    made = {config(lambda_=0.1, seed=seed): (dev, 0.7) for seed, dev in ((1, 0.5), (2, 0.5), (3, 0.9))}
    assert found(made | {config(lambda_=0.3, seed=3): (0.8, 0.9)}) == {"MRN": (2, "MRN 0.1")}
    assert found(made | {config(lambda_=0.3, seed=4): (0.99, 0.9)}) == {"MRN": (2, None)}


def test_a_family_is_of_methods_not_of_candidates() -> None:
    """Five λ make one method: its difference from MTL is one test, and with all rows one of several."""
    made = {
        config(lambda_=value, seed=seed): (0.7 + value, 0.82 + seed / 100 + 0.006 * (seed == 2))
        for value in (0.01, 0.02, 0.03, 0.04, 0.05)
        for seed in (1, 2, 3)
    }
    made |= {config("mtl", seed=seed): (0.7, 0.81 + seed / 100) for seed in (1, 2, 3)}
    table = table_of(made)
    compared = methods(table.rows)
    (of_pair, reverse) = compare_methods(compared, "pos").values()
    assert {of_pair.verdict, reverse.verdict} == {"higher", "lower"}
    ((key, from_base),) = compare_methods(compared, "pos", "MTL").items()
    assert (key, from_base.verdict) == (("MRN", "MTL"), HIGHER)
    keys = {row.name: row.key for row in table.rows}
    assert table.comparisons["pos"][keys["MRN 0.05"], keys["MTL"]].verdict == UNDECIDED
    assert compare_methods(compared, "pos", "STL") == {}
