"""Curves from the store to views: lines, means, legend, gaps, tables; and what is read of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from core.evaluation.statistics import summary
from core.records import TOTAL, StepMetrics
from core.store import MetricKey, Store
from core.store.records import MetricSeries, Run
from dashboard.curves.numbers import (
    METRICS,
    choices,
    metric_keys,
    missing,
    others,
    point_table,
    tasks_of,
)
from dashboard.curves.views import CurvesView, Reading, curves
from dashboard.shared.resources import SeriesCache
from tests.pages.filled_store import TASKS, Filled

LOSS, SCORE = METRICS["loss"], METRICS["dev-score"]


def series_of(store: Store, runs: list[Run], metric: str = "loss") -> list[MetricSeries]:
    ids = [run.id for run in runs]
    keys = metric_keys(METRICS[metric], store.metric_keys(ids))
    return store.metrics_since({(run_id, key): -1 for run_id in ids for key in keys})


def read(runs: list[Run], reading: Reading, metric: str = "loss", **more: Any) -> CurvesView:
    return curves(METRICS[metric], reading, runs, series_of(Store.open(), runs, metric), TASKS, **more)


def chosen(*ids: int) -> list[Run]:
    found = {run.id: run for run in Store.open().runs(ids=ids)}
    return [found[run_id] for run_id in ids]


def of_kind(paradigm: str, task: str | None = None) -> list[Run]:
    runs = [run for run in Store.open().runs() if run.config.paradigm == paradigm]
    return [run for run in runs if task is None or run.config.tasks == (task,)]


def test_a_line_per_run_in_a_panel_per_task(finished: Filled) -> None:
    (stl, *_), mrn = of_kind("stl", "ner"), chosen(finished.mrn[0])
    view = read([stl, *mrn], Reading("epoch"), "dev-score")
    assert [line.key for line in view.large.lines] == [str(stl.id), str(mrn[0].id)]
    assert [line.rank for line in view.large.lines] == [0, 1]
    assert [panel.task for panel in view.small] == list(TASKS)
    assert [len(panel.lines) for panel in view.small] == [1, 1, 2]
    line = view.large.lines[0]
    assert line.x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert line.y.max() > 50  # in percent
    assert line.raw is None
    assert stl.best_epoch is not None
    assert line.kept == pytest.approx((stl.best_epoch, line.y[stl.best_epoch - 1]))


def test_a_task_can_be_large(finished: Filled) -> None:
    view = read(chosen(finished.mrn[0]), Reading(), large="chunk")
    assert view.large.task == "chunk"
    assert [panel.task for panel in view.small] == [TOTAL, "pos", "ner"]


def test_a_mean_over_seeds_is_that_of_each_epoch(finished: Filled) -> None:
    runs = of_kind("mtl")
    view = read(runs, Reading("epoch", "interval"), "dev-score")
    (line,) = view.large.lines
    store = Store.open()
    values = [100 * one.value for one in store.metrics([r.id for r in runs], MetricKey("", "dev", "score"))]
    assert line.low is not None
    assert line.high is not None
    assert line.n is not None
    for place in range(8):
        expected = summary(one[place] for one in values)
        assert (line.y[place], line.low[place], line.high[place], line.n[place]) == pytest.approx(
            (expected.mean, expected.low, expected.high, 3)
        )
    sd = read(runs, Reading("epoch", "sd"), "dev-score").large.lines[0]
    assert sd.high is not None
    assert sd.high[-1] - sd.y[-1] == pytest.approx(summary(one[-1] for one in values).sd)
    assert view.legend[0].seeds == (1, 2, 3)
    assert view.legend[0].last == pytest.approx((8, line.y[-1]))


def test_stl_runs_of_each_task_have_their_own_mean(finished: Filled) -> None:
    view = read(of_kind("stl"), Reading(seeds="sd"), "dev-score")
    assert sorted(line.name for line in view.legend) == ["STL chunk", "STL ner", "STL pos"]
    assert {len(line.seeds) for line in view.legend} == {3}


def test_a_seed_that_was_run_again_is_no_further_sample(finished: Filled) -> None:
    store = Store.open()
    runs = of_kind("mtl")
    again = dataclasses.replace(runs[0], id=max(run.id for run in store.runs()) + 1)
    series = series_of(store, runs, "dev-score")
    series += [dataclasses.replace(one, run_id=again.id) for one in series if one.run_id == runs[0].id]
    for seeds in ("sd", "interval"):
        (line,) = curves(SCORE, Reading("epoch", seeds), [*runs, again], series, TASKS).large.lines
        assert line.n is not None
        assert set(line.n) == {3}
    view = curves(SCORE, Reading("epoch", "sd"), [*runs, again], series, TASKS)
    assert view.legend[0].seeds == (1, 2, 3)


def test_a_live_seed_is_shorter_and_its_mean_says_so(filled: Filled) -> None:
    runs = chosen(filled.mrn[0], filled.live[0])
    assert runs[0].configuration_id == runs[1].configuration_id
    (line,) = read(runs, Reading(seeds="interval")).large.lines
    assert line.n is not None
    assert line.low is not None
    assert set(line.n[line.x <= 260]) == {2}
    assert set(line.n[line.x > 260]) == {1}
    assert np.isnan(line.low[line.x > 260]).all()
    assert np.isfinite(line.y).all()
    assert not read(runs, Reading(seeds="interval")).interpolated


def test_minutes_of_seeds_differ(filled: Filled) -> None:
    runs = chosen(filled.mrn[0], filled.mrn[2])
    series = series_of(Store.open(), runs)
    slower = [dataclasses.replace(one, seconds=one.seconds * one.run_id) for one in series]
    view = curves(LOSS, Reading("minutes", "sd"), runs, slower, TASKS)
    assert view.interpolated
    assert not curves(LOSS, Reading("step", "sd"), runs, slower, TASKS).interpolated


def test_hidden_lines_stay_in_the_legend(finished: Filled) -> None:
    runs = chosen(*finished.mrn[:2])
    view = read(runs, Reading(), hidden=[str(runs[0].id)])
    assert [line.key for line in view.large.lines] == [str(runs[1].id)]
    assert [line.key for line in view.legend] == [str(run.id) for run in runs]
    nothing = read(runs, Reading(), hidden=[str(run.id) for run in runs])
    assert nothing.legend
    assert nothing.large.y_range is None


def test_the_legend_tells_last_and_best_of_all_points(finished: Filled) -> None:
    (run,) = chosen(finished.mrn[0])
    (series,) = Store.open().metrics([run.id], MetricKey(TOTAL, "train", "loss"))
    (line,) = read([run], Reading(smoothing=0.9)).legend
    assert line.last == pytest.approx((600, series.value[-1]))
    assert line.best == pytest.approx((series.step[series.value.argmin()], series.value.min()))
    assert read([run], Reading(), "lr").legend[0].best is None


def test_a_smoothed_line_brings_its_raw_one(finished: Filled) -> None:
    (line,) = read(chosen(finished.mrn[0]), Reading(smoothing=0.9)).large.lines
    assert line.raw is not None
    assert np.abs(np.diff(line.y)).mean() < np.abs(np.diff(line.raw)).mean()


def test_small_charts_of_tasks_share_their_range(finished: Filled) -> None:
    total, *shared = read(chosen(finished.mrn[0]), Reading(), large="chunk").small
    assert len({panel.y_range for panel in shared}) == 1
    assert total.y_range not in {panel.y_range for panel in shared}


def test_many_lines_share_the_points_of_a_chart(finished: Filled) -> None:
    runs = [dataclasses.replace(chosen(1)[0], id=number) for number in range(1, 31)]
    steps = np.arange(1, 5001)
    y = np.random.default_rng(0).random(5000)
    key = MetricKey(TOTAL, "train", "loss")
    many = [MetricSeries(run.id, key, steps, steps / 500, steps / 30, y) for run in runs]
    view = curves(LOSS, Reading(), runs, many, TASKS)
    assert sum(len(line.x) for line in view.large.lines) <= 12_000
    assert all(line.y.max() == y.max() for line in view.large.lines)
    (alone,) = curves(LOSS, Reading(), runs[:1], many[:1], TASKS).large.lines
    assert 1500 < len(alone.x) <= 2000


def test_calm_ranges_leave_out_the_first_steps(finished: Filled) -> None:
    run = chosen(1)[0]
    steps = np.arange(1, 1001)
    y = np.where(steps <= 5, 500.0, 1.0) + 0.1 * np.sin(steps)
    one = MetricSeries(run.id, MetricKey(TOTAL, "train", "loss"), steps, steps / 9, steps / 9, y)

    def y_range(reading: Reading) -> tuple[float, float]:
        found = curves(LOSS, reading, [run], [one], TASKS).large.y_range
        assert found is not None
        return found

    assert y_range(Reading())[1] > 500
    low, high = y_range(Reading(calm=True))
    assert (low > 0.8, high < 1.2) == (True, True)
    assert y_range(Reading(log_y=True)) == pytest.approx((-0.046, 2.7), abs=0.2)


def test_gaps_break_lines_and_are_told(finished: Filled) -> None:
    run = chosen(1)[0]
    steps, y = np.arange(1, 11), np.arange(1.0, 11.0)
    y[3:] = np.nan
    key = MetricKey("ner", "train", "loss")
    one = MetricSeries(run.id, key, steps, steps / 5, steps / 5, y)
    assert missing(LOSS, [one]) == ["Run 1 has no number as its training loss of ner from step 4 on."]
    y = np.arange(1.0, 11.0)
    y[[3, 6]] = math.inf, math.nan
    one = dataclasses.replace(one, key=dataclasses.replace(key, task=TOTAL), value=y)
    assert missing(LOSS, [one]) == [
        "Run 1 has no number as its training loss at 2 steps, the first of them 4."
    ]
    (line,) = curves(LOSS, Reading(), [run], [one], TASKS).large.lines
    assert np.isnan(line.y[[3, 6]]).all()
    assert not missing(LOSS, [dataclasses.replace(one, value=steps.astype(float))])


def test_every_stored_curve_is_offered() -> None:
    keys = [
        MetricKey(*parts)
        for parts in (("", "train", "loss"), ("ner", "train", "loss"), ("", "dev", "grad_norm"))
    ]
    keys += [MetricKey("", "train", "grad_norm"), MetricKey("pos", "train", "entropy")]
    assert choices(keys) == ["loss"]
    assert [metric.title for metric in others(keys).values()] == [
        "grad_norm on dev",
        "entropy",
        "grad_norm on train",
    ]
    assert tasks_of(LOSS, keys, ["pos", "ner"]) == [TOTAL, "ner"]


def test_the_table_has_every_point_as_it_was_stored(finished: Filled) -> None:
    runs = chosen(finished.mrn[0], of_kind("stl", "ner")[0].id)
    series = series_of(Store.open(), runs, "dev-score")
    table = point_table(runs, series)
    assert list(table) == [
        "run",
        "configuration",
        "seed",
        "task",
        "metric",
        "step",
        "epoch",
        "minutes",
        "value",
    ]
    assert len(table) == sum(len(one.value) for one in series)
    one = table[(table["run"] == runs[0].id) & (table["task"] == "ner")]
    assert one["value"].tolist() == series_of_key(runs[0], "ner").value.tolist()
    assert set(table["configuration"]) == {"MRN λ 0.01", "STL ner"}


def series_of_key(run: Run, task: str) -> MetricSeries:
    return Store.open().metrics([run.id], MetricKey(task, "dev", "score"))[0]


def test_nothing_to_show() -> None:
    assert not curves(SCORE, Reading("minutes", "sd", 0.5), [], [], TASKS).legend
    assert point_table([], []).empty


def test_a_live_curve_is_read_on_and_an_ended_one_never_again(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open()
    cache, key = SeriesCache(), MetricKey(TOTAL, "train", "loss")
    live, done = filled.live[0], filled.finished[0]
    runs = store.runs(ids=[live, done])
    assert {one.run_id: len(one.step) for one in cache.get(store, runs, [key])} == {live: 260, done: 600}
    store.add_metrics(live, [StepMetrics(261, 3.5, 9.0, {(TOTAL, "loss"): 1.25})])
    asked: list[dict[tuple[int, MetricKey], int]] = []
    since = store.metrics_since

    def noted(steps: dict[tuple[int, MetricKey], int]) -> list[MetricSeries]:
        asked.append(steps)
        return since(steps)

    monkeypatch.setattr(store, "metrics_since", noted)
    again = {one.run_id: one for one in cache.get(store, runs, [key])}
    assert asked == [{(live, key): 260}]
    assert again[live].value[-1] == 1.25
    assert np.array_equal(again[live].step, np.arange(1, 262))


def test_a_second_attempt_is_another_curve(filled: Filled) -> None:
    store = Store.open()
    cache, key = SeriesCache(), MetricKey(TOTAL, "train", "loss")
    failed = filled.failed[0]
    assert len(cache.get(store, store.runs(ids=[failed]), [key])[0].step) == 140
    store.requeue(failed)
    assert cache.get(store, store.runs(ids=[failed]), [key]) == []


def test_what_is_longest_unused_is_read_again(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open()
    cache, key = SeriesCache(most_bytes=600 * 8 * 4), MetricKey(TOTAL, "train", "loss")
    asked: list[int] = []
    since = store.metrics_since

    def noted(steps: Mapping[tuple[int, MetricKey], int]) -> list[MetricSeries]:
        asked.extend(run_id for run_id, _ in steps)
        return since(steps)

    monkeypatch.setattr(store, "metrics_since", noted)
    first, second = filled.finished[:2]
    for run_id in (first, first, second, first):
        assert len(cache.get(store, store.runs(ids=[run_id]), [key])[0].step) == 600
    assert asked == [first, second, first]
