"""The figures of ADR 45, from recorded scores: STL, MTL and MRN at five λ, on a tenth of the demo corpus."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import correlation, fmean

from core.config import RunConfig
from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED
from core.results.comparisons import Difference, answers, mean_answer
from core.results.methods import by_method
from core.results.plan import Plan, plan_state
from core.results.table import MEAN_OF_TASKS, ResultTable, tabulate
from tests.pages.compared import config, score, succeeded

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "claims" / "data" / "five-lambdas.csv"
ADR = ROOT / "docs" / "adr" / "0045-methods-are-the-family.md"
TASKS = ("pos", "chunk", "ner")


def recorded() -> dict[RunConfig, dict[str, dict[str, float]]]:
    """By run and split the score of each task, in [0, 1]."""
    runs: dict[RunConfig, dict[str, dict[str, float]]] = defaultdict(lambda: {"dev": {}, "test": {}})
    with RECORD.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            lambda_ = {"lambda_": float(line["lambda"])} if line["lambda"] else {}
            tasks = (line["task"],) if line["paradigm"] == "stl" else TASKS
            run = config(line["paradigm"], int(line["seed"]), tasks=tasks, fraction=0.1, **lambda_)
            for split, of_split in runs[run].items():
                of_split[line["task"]] = float(line[split])
    return runs


def table() -> ResultTable:
    """The table of three seeds."""
    scored = {run: of for run, of in recorded().items() if run.seed <= 3}
    runs = succeeded(list(scored))
    scores = [
        score(run.id, task, value, split)
        for run in runs
        for split, of_split in scored[run.config].items()
        for task, value in of_split.items()
    ]
    return tabulate(runs, scores, "test", TASKS)


def differences(of: ResultTable) -> dict[str, Difference]:
    """Of MRN at λ 0.03 from MTL, by task."""
    mrn = next(row for row in of.rows if row.config.lambda_ == 0.03)
    mtl = next(row for row in of.rows if row.config.paradigm == "mtl")
    mean = mean_answer(of, mrn.key, mtl.key)
    assert mean is not None
    return {each.task: each for each in (*answers(of, mrn.key, mtl.key), mean)}


def test_the_figures_of_three_seeds() -> None:
    text = re.sub(r"\s+", " ", ADR.read_text(encoding="utf-8"))
    rows, methods = table(), by_method(table())
    assert (rows.tests, methods.tests) == (21, 3)
    (chosen,) = [row for row in methods.rows if row.choice]
    assert (chosen.config.lambda_, chosen.choice) == (0.03, "best of 5 on dev")
    as_rows, as_methods = differences(rows), differences(methods)
    assert {each.verdict for each in as_rows.values()} == {UNDECIDED}
    assert {task: each.verdict for task, each in as_methods.items() if each.is_decided} == {
        MEAN_OF_TASKS: HIGHER
    }
    for task, name in (("chunk", "chunk"), ("ner", "ner"), (MEAN_OF_TASKS, "mean")):
        row, method = as_rows[task], as_methods[task]
        assert f"| {name} | {row.in_points} | {row.p:.2f} | {method.p:.3f} |" in text


def test_dev_and_test_of_a_run_correlate_as_is_said() -> None:
    correlations = {}
    for name, lambda_ in (("mrn", 0.03), ("mtl", None)):
        of_runs = [of for run, of in recorded().items() if (run.paradigm, run.lambda_) == (name, lambda_)]
        assert len(of_runs) == 20
        means = [[fmean(of[split].values()) for of in of_runs] for split in ("dev", "test")]
        correlations[name] = correlation(*means)
    text = re.sub(r"\s+", " ", ADR.read_text(encoding="utf-8"))
    assert "{mrn:.2f} (MRN) and {mtl:.2f} (MTL)".format(**correlations) in text


def test_seeds_until_it_is_decided() -> None:
    text = re.sub(r"\s+", " ", ADR.read_text(encoding="utf-8"))
    by_task: dict[str, dict[str, dict[int, float | None]]] = {
        side: {task: {} for task in TASKS} for side in ("mrn", "mtl")
    }
    of_side = {}
    for run, scores in recorded().items():
        if run.paradigm == "mtl" or run.lambda_ == 0.03:
            of_side[run.paradigm] = run
            for task, value in scores["test"].items():
                by_task[run.paradigm][task][run.seed] = value
    plan = Plan(
        (of_side["mrn"],), (of_side["mtl"],), names=("MRN", "MTL"), tasks=TASKS, seeds=tuple(range(1, 21))
    )
    state = plan_state(plan, by_task["mrn"], by_task["mtl"])
    assert {task: at.verdict for task, at in state.looks.items()} == {
        "pos": LOWER, "chunk": HIGHER, "ner": HIGHER,
    }  # fmt: skip
    for task, at in state.looks.items():
        sentence = at.sentence.partition(" at level")[0]
        assert f"{task} {sentence} after {at.seeds} seeds" in text
