"""mrnlab compare and lab.compare: a row a method, verdicts, seeds still needed, claims, refusals."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest

import core
from core.events import SplitResult
from tests.making import config, finished, task_score
from tests.unit.cli.conftest import Laboratory

SEEDS = (1, 2, 3, 4, 5)
NOISE = (0.0, 0.012, 0.004, 0.009, 0.001)
LAMBDAS = (0.001, 0.01, 0.1)


def _finish(lab: Laboratory, seed: int, scores: dict[str, float], dev: float, **fields: Any) -> int:
    """A run of pos and ner with these test scores, and one dev score."""
    results = (
        SplitResult("dev", 1, tuple(task_score(task, dev) for task in scores), {}, {}),
        SplitResult("test", 1, tuple(task_score(task, score) for task, score in scores.items()), {}, {}),
    )
    return finished(lab.store, config(tasks=tuple(scores), seed=seed, **fields), *results)


@pytest.fixture
def swept(lab: Laboratory) -> list[int]:
    """MTL and MRN with three λ, five seeds: dev chooses 0.01, which gains on ner and hardly on pos."""
    ids = []
    for place, seed in enumerate(SEEDS):
        base = {"pos": 0.8 + NOISE[place], "ner": 0.7 + NOISE[-1 - place]}
        ids.append(_finish(lab, seed, base, 0.7, paradigm="mtl"))
        for strength in LAMBDAS:
            apart = 0.0 if strength == 0.01 else strength * 0.01 * place
            gain = {"pos": (-1) ** seed * 0.004 + apart, "ner": 0.03 + 0.002 * place + apart}
            scores = {task: base[task] + gain[task] for task in base}
            dev = 0.75 if strength == 0.01 else 0.72
            ids.append(_finish(lab, seed, scores, dev, paradigm="mrn", **{"lambda": strength}))
    return ids


def test_over_several_data_the_verdicts_of_tasks_are_counted(lab: Laboratory, swept: list[int]) -> None:
    assert "data sets" not in lab.call("compare").stderr
    for seed in SEEDS:
        for paradigm, gain in (("mtl", 0.0), ("mrn", 0.1)):
            scores = dict.fromkeys(("pos", "ner"), 0.5 + gain * (1 + NOISE[seed - 1]))
            _finish(lab, seed, scores, 0.7, paradigm=paradigm, fraction=0.5)
    counted = "MRN against MTL, 4 differences on 2 data sets: 3 higher, 0 lower, 0 equivalent, 1 undecided."
    assert counted in lab.call("compare").stderr


def test_a_sweep_is_one_row_and_the_undecided_say_how_many_seeds_they_need(
    lab: Laboratory, swept: list[int]
) -> None:
    result = lab.call("compare")
    assert result.exit_code == 0
    assert "MRN scores higher than MTL on ner (+3.40)" in result.stdout
    assert "undecided on pos." in result.stdout  # the mean over tasks is no task
    assert "mean of tasks: " in result.stdout
    assert "pos: " in result.stdout
    assert "would decide it." in result.stdout
    assert "candidate by dev (3)" in result.stderr
    assert "Holm over 1" in result.stderr
    (document,) = lab.json("compare")["comparisons"]
    by_task = {each["task"]: each for each in document["differences"]}
    assert by_task.keys() == {"pos", "ner", "mean of tasks"}
    assert by_task["ner"]["verdict"] == "higher"
    assert by_task["ner"]["difference"] == pytest.approx(0.034)
    assert by_task["ner"]["more_seeds"] is None
    assert by_task["pos"]["verdict"] == "undecided"
    # All rows: each difference is one of six tests.
    (rows,) = lab.json("compare", "--every-row")["comparisons"]
    assert len({each["configuration"] for each in rows["differences"]}) == len(LAMBDAS)
    assert "Holm over 6" in rows["signature"]


def test_page_verb_library_and_csv_have_the_same_figures(lab: Laboratory, swept: list[int]) -> None:
    frame = core.Laboratory().compare()
    (document,) = lab.json("compare")["comparisons"]
    rows = list(csv.DictReader(io.StringIO(lab.answer("compare", "--format", "csv"))))
    assert len(frame) == len(document["differences"]) == len(rows) == 3
    for record, shown, row in zip(frame.to_dict("records"), document["differences"], rows, strict=True):
        for name, value in shown.items():
            there = record[name]
            is_missing = there is None or (isinstance(there, float) and math.isnan(there))
            assert (None if is_missing else there) == (pytest.approx(value) if value is not None else None)
        assert float(row["difference"]) == pytest.approx(shown["difference"])
        assert row["verdict"] == shown["verdict"]


def test_what_matters_makes_a_small_difference_equivalent(lab: Laboratory, swept: list[int]) -> None:
    out = lab.answer("compare", "--matters", "1.5", "--task", "pos")
    assert "equivalent within 1.5 on pos" in out
    assert "ner" not in out.split("\n")[0]
    assert "matters" in lab.refusal("compare", "--matters", "-1")
    assert core.Laboratory().compare(matters=1.5).set_index("task").loc["pos", "verdict"] == "equivalent"


def test_a_baseline_makes_the_family(lab: Laboratory, swept: list[int]) -> None:
    (document,) = lab.json("compare", "--baseline", "mtl", "--every-row")["comparisons"]
    assert (document["baseline"], document["family"]) == ("MTL", "baseline")
    assert "Holm over 3 against MTL" in document["signature"]
    assert "'crf'; name" in lab.refusal("compare", "--baseline", "crf")
    assert "is the name of 3 rows" in lab.refusal("compare", "--baseline", "mrn", "--every-row")


@pytest.mark.parametrize(
    ("claims", "holds"),
    [
        (("mrn > mtl on ner",), True),
        (("mtl < mrn on ner",), False),
        (("MTL < MRN on ner", "mrn > mtl on mean of tasks"), False),
        (("mtl = mrn on ner",), False),
        (("mrn < mtl on ner",), False),
        (("mrn > mtl on pos",), False),
    ],
)
def test_claims_hold_or_are_named(
    lab: Laboratory, swept: list[int], claims: tuple[str, ...], holds: bool
) -> None:
    options = [word for claim in claims for word in ("--expect", claim)]
    result = lab.call("compare", *options)
    # MTL less MRN is lower, so both ways of writing a claim hold.
    holds = holds or claims[0].casefold() == "mtl < mrn on ner"
    assert result.exit_code == (0 if holds else 1), result.stderr
    if not holds:
        assert f"'{claims[0]}' does not hold on demo" in result.stderr


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ("mrn better than mtl", "is no claim"),
        ("mrn > crf on ner", "names no two rows that are compared on a task"),
        ("mrn > mtl on chunk", "names no two rows that are compared on a task"),
    ],
)
def test_claims_that_name_nothing_are_refused(
    lab: Laboratory, swept: list[int], claim: str, problem: str
) -> None:
    assert problem in lab.refusal("compare", "--expect", claim)


def test_without_two_rows_there_is_nothing_to_compare(lab: Laboratory) -> None:
    _finish(lab, 1, {"pos": 0.8, "ner": 0.7}, 0.7, paradigm="mtl")
    assert "There are no two rows with test scores" in lab.refusal("compare")


def test_runs_and_filters_choose_what_is_compared(lab: Laboratory, swept: list[int]) -> None:
    assert "no two rows" in lab.refusal("compare", "--filter", "paradigm:mtl")
    (document,) = lab.json("compare", "--filter", "seed<4")["comparisons"]
    assert {each["seeds"] for each in document["differences"]} == {3}
