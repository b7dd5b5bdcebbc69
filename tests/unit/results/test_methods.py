"""Methods and their candidates, on tables made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from core import __version__
from core.config import RunConfig
from core.errors import ConfigError
from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED
from core.evaluation.power import seeds_to_decide
from core.results.comparisons import (
    answers,
    counts_sentence,
    differences,
    mean_answer,
    mean_differences,
    verdict_counts,
)
from core.results.figures import forest
from core.results.methods import by_method, method_key, methods
from core.results.signature import signature
from core.results.table import MEAN_OF_TASKS, tabulate
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
    assert found(mrn | {config("mtl"): (0.5, 0.5)}) == {"MTL": (1, "MTL"), "MRN": (4, "MRN λ=0.3")}


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
    assert found(made | {config(lambda_=0.3, seed=3): (0.8, 0.9)}) == {"MRN": (2, "MRN λ=0.1")}
    assert found(made | {config(lambda_=0.3, seed=4): (0.99, 0.9)}) == {"MRN": (2, None)}


def five_lambdas() -> dict[RunConfig, tuple[float, float]]:
    """MTL and MRN with five λ on three seeds, where the gain is well above its spread over seeds."""
    made = {
        config(lambda_=value, seed=seed): (
            0.7 + value,
            0.82 + seed / 100 + 0.006 * (seed == 2) + value / 100 * (seed == 3),
        )
        for value in (0.01, 0.02, 0.03, 0.04, 0.05)
        for seed in (1, 2, 3)
    }
    return made | {config("mtl", seed=seed): (0.7, 0.81 + seed / 100) for seed in (1, 2, 3)}


def test_a_family_is_of_methods_not_of_candidates() -> None:
    """Five λ make one method: its difference from MTL is one test, and with all rows one of several."""
    table = table_of(five_lambdas())
    compared = by_method(table)
    assert [(row.name, row.choice, row.chosen) for row in compared.rows] == [
        ("MTL", "", ""),
        ("MRN", "best of 5 on dev", "MRN λ=0.05"),
    ]
    mtl, mrn = (row.key for row in compared.rows)
    assert {pair: of.verdict for pair, of in compared.comparisons["pos"].items()} == {
        (mtl, mrn): LOWER,
        (mrn, mtl): HIGHER,
    }
    assert compared.bold == {(mrn, "pos")}
    assert table.comparisons["pos"][mrn, mtl].verdict == UNDECIDED
    assert table.row(mrn).name == "MRN λ=0.05"
    assert [of.name for of in compared.row(mrn).candidates] == [
        row.name for row in table.rows if row.config.paradigm == "mrn"
    ]
    assert max(compared.row(mrn).dev_means, key=compared.row(mrn).dev_means.__getitem__) == mrn


def test_a_baseline_makes_a_family_of_the_differences_from_it() -> None:
    """Of six rows five differences are tested, not 15, so each p is smaller."""
    table = table_of(five_lambdas())
    mtl, *others = (row.key for row in table.rows)
    asked = table.asking(baseline=mtl)
    assert (table.tests, asked.tests, by_method(table).tests) == (15, 5, 1)
    assert {pair for pair in asked.comparisons["pos"] if pair[1] == mtl} == {(key, mtl) for key in others}
    for delta in differences(asked, mtl):
        assert delta.p is not None
        of_all_pairs = table.comparisons["pos"][delta.row.key, mtl]
        assert of_all_pairs.p is not None
        assert delta.paired == of_all_pairs.paired
        assert delta.p < of_all_pairs.p
    assert answers(asked, others[0], others[1]) == []
    with pytest.raises(KeyError):
        table.asking(baseline="none")


def test_what_matters_decides_what_is_equivalent() -> None:
    made = {config(seed=seed): (0.8, 0.801 + seed / 10000) for seed in (1, 2, 3)}
    made |= {config("mtl", seed=seed): (0.8, 0.8) for seed in (1, 2, 3)}
    table = table_of(made)
    mtl, mrn = (row.key for row in table.rows)
    assert answers(table, mrn, mtl)[0].verdict == HIGHER
    (delta,) = answers(table.asking(matters=0.005), mrn, mtl)
    assert delta.sentence.startswith("equivalent within 0.5, +0.12")
    assert by_method(table.asking(matters=0.005)).matters == 0.005
    with pytest.raises(ConfigError, match="matters: -1 is no difference"):
        table.asking(matters=-0.01)


def test_candidates_that_dev_cannot_compare_have_a_row_each_and_a_note() -> None:
    made = {config(lambda_=0.1, seed=1): (0.5, 0.7), config(lambda_=0.3, seed=2): (0.8, 0.9)}
    compared = by_method(table_of(made))
    assert [(row.name, row.choice) for row in compared.rows] == [("MRN λ=0.1", ""), ("MRN λ=0.3", "")]
    assert "Dev cannot choose among the 2 configurations of MRN" in compared.notes[-1]


def test_names_are_distinct_where_a_method_and_a_configuration_would_share_one() -> None:
    made = {config("mtl", epochs=epochs): (0.5 + epochs / 100, 0.7) for epochs in (2, 4)}
    made[config("mtl", lr_schedule="constant")] = (0.5, 0.6)
    names = [row.name for row in by_method(table_of(made)).rows]
    assert len(set(names)) == len(names) == 2, names


def test_the_mean_over_tasks_is_a_family_of_its_own() -> None:
    """Rows with the same two tasks have it; STL of one task has none."""
    values = {"mtl": 0.0, "mrn": 0.02}
    made = {config(paradigm, seed=seed): value for paradigm, value in values.items() for seed in (1, 2, 3)}
    made |= {config("stl", seed=seed): 0.1 for seed in (1, 2, 3)}
    runs = succeeded(list(made))
    noise = {1: 0.0, 2: 0.003, 3: -0.002}
    scores = [
        score(run.id, task, 0.7 + made[run.config] + noise[run.config.seed] * (task == "pos"))
        for run in runs
        for task in run.config.tasks
    ]
    table = tabulate(runs, scores, "test", ("pos", "ner"))
    keys = {row.name.split()[0]: row.key for row in table.rows}
    delta = mean_answer(table, keys["MRN"], keys["MTL"])
    assert delta is not None
    assert (delta.task, delta.seeds) == (MEAN_OF_TASKS, 3)
    assert delta.mean == pytest.approx(0.02)
    assert mean_answer(table, keys["MTL"], keys["STL"]) is None
    assert table.mean_scores(table.row(keys["MRN"])) == "accuracy of pos, F1 of ner"
    view = forest(
        [*differences(table, keys["MTL"]), *mean_differences(table, keys["MTL"])], table, keys["MTL"]
    )
    assert view.targets == ("pos", "ner", MEAN_OF_TASKS)


def test_an_undecided_difference_says_how_many_seeds_it_needs_at_the_level_that_holm_leaves() -> None:
    gains = {1: 0.004, 2: 0.012, 3: 0.001}
    made = {config(lambda_=0.1, seed=seed): (0.7, 0.8 + gain) for seed, gain in gains.items()}
    made |= {config("mtl", seed=seed): (0.7, 0.8) for seed in gains}
    table = table_of(made)
    mtl, mrn = (row.key for row in table.rows)
    (alone,) = answers(table, mrn, mtl)
    assert alone.verdict == UNDECIDED
    assert alone.paired is not None
    assert alone.seeds_needed == seeds_to_decide(alone.paired, matters=alone.matters)
    more = made | {config(lambda_=0.2, seed=seed): (0.7, 0.8 + gain / 2) for seed, gain in gains.items()}
    (of_three,) = answers(table_of(more), mrn, mtl)
    assert of_three.mean == alone.mean
    assert of_three.level == pytest.approx(0.05 / 3)
    few, many = alone.seeds_needed, of_three.seeds_needed
    assert few is not None
    assert many is not None
    assert few.seeds is not None
    assert many.seeds is not None
    assert many.seeds > few.seeds
    decided = by_method(table_of(five_lambdas()))
    assert answers(decided, *(row.key for row in decided.rows))[0].seeds_needed is None


def test_verdicts_are_counted_by_method_over_several_data() -> None:
    """MRN has one λ on the second data: its row has another name there, its method has not."""
    few = {run: of for run, of in five_lambdas().items() if run.lambda_ in (None, 0.05)}
    tables = [by_method(table_of(made)) for made in (five_lambdas(), few)]
    assert [table.rows[1].name for table in tables] == ["MRN", "MRN λ=0.05"]
    deltas = [delta for table in tables for delta in differences(table, table.rows[0].key)]
    counts = verdict_counts(deltas)
    assert counts == {("MRN", "MTL"): {HIGHER: 2}}
    assert counts_sentence("MRN", "MTL", counts["MRN", "MTL"], "2 corpora") == (
        "MRN against MTL, 2 differences on 2 corpora: 2 higher, 0 lower, 0 equivalent, 0 undecided."
    )


def test_the_signature_names_what_a_table_depends_on() -> None:
    table = by_method(table_of(five_lambdas())).asking(matters=0.005)
    assert signature(table) == (
        f"mrnlab {__version__} | demo, text not recorded | test accuracy | 3 seeds | candidate by dev (5) | "
        "paired t, Holm over 1 | equivalent within 0.5"
    )
    asked = table.asking(baseline=table.rows[0].key)
    assert "Holm over 1 against MTL |" in signature(asked)
    assert signature(table_of({config(): (0.5, 0.6)})).endswith("test accuracy | 1 seed | no test")
