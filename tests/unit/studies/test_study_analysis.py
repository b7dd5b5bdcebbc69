"""What a study says of its runs, on numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.config import RunConfig
from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED
from core.evaluation.statistics import holm
from core.studies.analysis import MEAN, RARE, FinalScores, Floats, Outcome, Result, analyse
from core.studies.answer import answer
from core.studies.study import DevByRun, with_runs
from core.tasks.scores import rarer_half_f1
from jobs.studies.report import setting_sheet
from tests.studying import score_of, setting, study

DEV = {"mtl": 0.6, "stl": 0.5, "mrn": 0.7}
# pos and ner by seed
TEST: Mapping[str, Mapping[int, tuple[float, float]]] = {
    "mtl": {1: (0.80, 0.60), 2: (0.82, 0.61), 3: (0.81, 0.62)},
    "stl": {1: (0.70, 0.70), 2: (0.71, 0.50), 3: (0.72, 0.60)},
    "mrn": {1: (0.81, 0.62), 2: (0.83, 0.64), 3: (0.82, 0.66)},
}


def analysed(
    left_out: frozenset[RunConfig] = frozenset(), *, is_failure: bool = True, **changes: Any
) -> Result:
    made = study(**changes)
    setting_runs = with_runs(made, made.settings[0])
    dev, test, rare = {}, {}, {}
    for run in setting_runs.runs():
        if run not in left_out:
            dev[run] = dict.fromkeys(run.tasks, DEV[run.paradigm] + (run.lambda_ == 0.1) / 100)
        if run.lambda_ in (None, 0.1) and run not in left_out:
            both = dict(zip(("pos", "ner"), TEST[run.paradigm][run.seed], strict=True))
            test[run] = {task: both[task] for task in run.tasks}
            rare[run] = {task: both[task] / 2 for task in run.tasks}
    failed = left_out if is_failure else frozenset[RunConfig]()
    return analyse(setting_runs, DevByRun(dev), FinalScores(test, rare), failed)


class TestAnalysis:
    def test_scores(self) -> None:
        mrn = analysed().outcome("mrn")
        assert (mrn.chosen, mrn.failed) == ("λ=0.1", 0)
        assert mrn.dev is not None
        assert (mrn.dev.mean, mrn.dev.n) == pytest.approx((0.71, 3))
        assert (mrn.scores["pos"].mean, mrn.scores["pos"].sd) == pytest.approx((0.82, 0.01))
        assert mrn.by_seed[MEAN] == {seed: pytest.approx(sum(TEST["mrn"][seed]) / 2) for seed in (1, 2, 3)}
        assert mrn.scores[MEAN].n == 3
        assert mrn.scores[RARE].mean == pytest.approx(mrn.scores[MEAN].mean / 2)
        assert mrn.differences[RARE].mean == pytest.approx(mrn.differences[MEAN].mean / 2)

    def test_what_was_learned_is_the_mean_over_pairs_with_a_target(self) -> None:
        """One of two tasks is the target; seeds 1 to 3 learned 0.2, 0.4 and 0.6."""
        made = study(replace(setting(), targets=("pos",), methods=("mtl", "mrn")))
        setting_runs = with_runs(made, made.settings[0])
        runs = list(setting_runs.runs())
        scores = {run: {"pos": 0.5 + (run.lambda_ == 0.1) / 10} for run in runs}

        def relations(run: RunConfig) -> Floats | None:
            return None if run.paradigm == "mtl" else np.array([[1.0, 0.2 * run.seed], [0.2 * run.seed, 1.0]])

        result = analyse(setting_runs, DevByRun(scores), FinalScores(scores, relations=relations))
        assert result.outcome("mtl").learned is None
        learned = result.outcome("mrn").learned
        assert learned is not None
        assert (learned.mean, learned.n) == pytest.approx((0.4, 3))

    def test_differences(self) -> None:
        result = analysed()
        assert result.outcome("mtl").differences == {}
        on_ner = result.outcome("mrn").differences["ner"]
        assert on_ner.paired is not None
        assert on_ner.mean == pytest.approx(0.03)  # of 0.02, 0.03, 0.04
        # 0.03 / (0.01 / √3) = 5.196 with 2 degrees of freedom; the half width is 4.3027 · 0.01 / √3
        assert on_ner.paired.p == pytest.approx(0.03509, abs=1e-5)
        assert on_ner.paired.low == pytest.approx(0.03 - 0.024841, abs=1e-5)
        assert on_ner.p == pytest.approx(2 * 0.03509, abs=2e-5)  # the smaller of two
        assert on_ner.paired.low is not None
        assert on_ner.paired.low > 0
        assert on_ner.verdict == UNDECIDED  # the interval alone excludes zero, the corrected p does not
        alone = analysed(settings=(replace(setting(), methods=("mtl", "mrn")),)).outcome("mrn")
        assert alone.differences["ner"].verdict == HIGHER
        assert result.outcome("stl").differences["pos"].verdict == LOWER
        assert result.outcome("stl").differences["ner"].verdict == UNDECIDED

    def test_what_is_missing(self) -> None:
        setting_runs = with_runs(study(), setting())
        pos, _ner = setting_runs.candidates["stl"][0].runs[2]
        stl = analysed(frozenset({pos})).outcome("stl")
        assert (stl.scores["pos"].n, stl.scores["ner"].n, stl.scores[MEAN].n, stl.failed) == (2, 3, 2, 1)
        assert stl.differences[MEAN].seeds == 2
        nothing = analyse(setting_runs, DevByRun({}), FinalScores({}))
        assert [outcome.candidate is None for outcome in nothing.outcomes] == [False, False, True]
        assert not any(outcome.scores or outcome.differences for outcome in nothing.outcomes)
        single = analysed(seeds=(1,), search_seeds=(1,)).outcome("mrn").differences["ner"]
        assert (single.verdict, single.interval, single.p) == (UNDECIDED, None, None)

    def test_while_runs_are_missing_each_comparison_has_its_own_seeds_and_two_at_least(self) -> None:
        """Seeds 2 and 3 of STL's NER and seed 3 of MTL are still to come."""
        setting_runs = with_runs(study(), setting())
        (mtl,), (stl,) = setting_runs.candidates["mtl"], setting_runs.candidates["stl"]
        missing = frozenset({*mtl.runs[3], stl.runs[2][1], stl.runs[3][1]})
        part = analysed(missing, is_failure=False)
        assert (part.done, part.planned, part.is_complete) == (13, 16, False)
        mrn = part.outcome("mrn").differences[MEAN]
        assert mrn.seeds == 2
        assert mrn.paired is not None
        # Of 0.015 and 0.02, with one degree of freedom: 12.706 · 0.0025.
        assert (mrn.mean, mrn.paired.low) == pytest.approx((0.0175, 0.0175 - 0.031766), abs=1e-5)
        assert mrn.verdict == UNDECIDED
        assert part.outcome("stl").differences.keys() == {"pos"}
        assert answer(part).endswith("undecided for MRN. 2 seeds. 13 of 16 runs recorded.")
        row = dict(setting_sheet(part).blocks[0].rows)
        head = setting_sheet(part).head[1:]
        shown = {name: dict(zip(head, cells, strict=True))["Difference"] for name, cells in row.items()}
        assert shown["MRN"] is not None
        assert (shown["MRN"].n, shown["STL"]) == (2, None)
        assert "recorded" not in answer(analysed())

    def test_test_scores_choose_nothing(self) -> None:
        setting_runs = with_runs(study(), setting())
        scores = {
            split: {run: dict.fromkeys(run.tasks, score_of(run, split)) for run in setting_runs.runs()}
            for split in ("dev", "test")
        }

        def mrn(test: dict[RunConfig, dict[str, float]]) -> Outcome:
            return analyse(setting_runs, DevByRun(scores["dev"]), FinalScores(test)).outcome("mrn")

        assert mrn(scores["test"]).candidate == mrn({}).candidate == {"paradigm": "mrn", "lambda": 0.1}


def test_holm_by_hand() -> None:
    # Smallest first: 4 · 0.01, 3 · 0.015, 2 · 0.03, then 0.055, which may not fall below the one before.
    assert holm([0.03, 0.01, 0.055, 0.015]) == pytest.approx([0.06, 0.04, 0.06, 0.045])
    assert holm([]) == []


def test_the_rarer_half_is_of_labels_that_are_annotated() -> None:
    """Four annotated labels, the two rarest of them count; one that was only predicted does not."""
    supports = {"a": (5, 0.9), "b": (1, 0.2), "c": (0, 0.0), "d": (2, 0.6), "e": (9, 1.0)}
    report = {label: {"support": n, "f1": f1} for label, (n, f1) in supports.items()}
    assert rarer_half_f1(report) == pytest.approx(0.4)
    assert rarer_half_f1({"a": report["a"]}) is None
