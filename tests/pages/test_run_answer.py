"""What a run's page answers: its scores among its seeds', a task that falls on dev, a best last epoch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.metrics import DEV_SCORE
from core.store import Run, Store
from core.store.types import MetricSeries
from dashboard.runs.answer import is_unusual, run_answer
from dashboard.runs.curves import dev_curves
from tests.making import config

OTHERS = {"pos": [0.92, 0.93, 0.925, 0.928], "ner": [0.57, 0.58, 0.56, 0.575]}
ORDINARY = {"pos": 0.926, "ner": 0.565}


@pytest.fixture
def run(laboratory: Path) -> Run:
    (run_id,) = Store.open().add_runs([config(tasks=("pos", "ner"), paradigm="mtl")])
    return Store.open().run(run_id)


def answered(run: Run, kept: int | None, **dev: list[float]) -> str:
    """The answer with these dev scores by epoch, in percent."""
    series = [
        MetricSeries(run.id, DEV_SCORE.key(task), steps, epochs, epochs, np.array(values) / 100)
        for task, values in dev.items()
        for steps in [np.arange(1, len(values) + 1)]
        for epochs in [steps.astype(np.float64)]
    ]
    run = replace(run, best_epoch=kept)
    return run_answer(run, ORDINARY, OTHERS, dev_curves(run, series))


def test_scores_among_those_of_the_other_seeds(run: Run) -> None:
    assert run_answer(run, ORDINARY, OTHERS, ()) == "Its test scores are ordinary for its 5 seeds."
    one = run_answer(run, ORDINARY | {"ner": 0.4}, OTHERS, ())
    assert one == "On test ner (40.00) is unusually low among its 5 seeds."
    assert run_answer(run, ORDINARY, {}, ()).startswith("The only seed")
    assert "too few" in run_answer(run, ORDINARY, {task: of[:1] for task, of in OTHERS.items()}, ())


def test_usual_scores_of_normal_seeds_are_called_unusual_in_one_of_twenty() -> None:
    draws = np.random.default_rng(0).normal(size=(2000, 4))
    share = np.mean([is_unusual(own, others) for own, *others in draws.tolist()])
    assert share == pytest.approx(0.05, abs=0.015)


def test_a_task_that_falls_after_the_kept_epoch(run: Run) -> None:
    falling = answered(run, 2, pos=[88, 90, 91, 92], ner=[58, 57.5, 55, 52])
    assert falling.endswith("On dev ner falls from 57.50 to 52.00 after epoch 2, whose weights were kept.")
    assert "falls" not in answered(run, 2, pos=[88, 90, 91, 92], ner=[58, 57.5, 58, 52])
    assert "falls" not in answered(run, 2, pos=[88, 90, 91, 92], ner=[58, 57.5, 57, 57])


def test_a_run_whose_last_epoch_is_the_best_may_be_too_short(run: Run) -> None:
    longer = "On dev the last epoch, 2, is the best: longer training may help."
    assert answered(run, 2, pos=[88, 90], ner=[50, 57.5]).endswith(longer)
    assert "longer" not in answered(run, 1, pos=[88, 87], ner=[58, 57.5])
    assert "longer" not in answered(replace(run, config=run.config.with_(select_by="last")), 2, pos=[8, 9])
