"""Curves from the store to lines, panels, a legend and a result."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.statistics import summary
from core.metrics import METRICS, TOTAL, StepMetrics, metrics_of
from core.store import MetricKey, Store
from core.store.types import MetricSeries, Run, RunState
from dashboard.curves import numbers
from dashboard.curves.panels import _ends
from dashboard.curves.result import result_sentence
from dashboard.curves.views import Curve, Display, Line, curves, last_shared
from dashboard.shared.resources import SeriesCache
from dashboard.theme import PARADIGM_COLOURS, lambda_colour, of_theme
from tests.pages.curve_runs import LOSS, SCORE, chosen, of_kind, read, series_of
from tests.pages.filled_store import TASKS, Filled


def band(line: Line) -> tuple[Any, Any, Any]:
    """The lower and the upper end of a line's band, and how many seeds it has, at each x."""
    assert line.low is not None
    assert line.high is not None
    assert line.n is not None
    return line.low, line.high, line.n


def test_a_line_per_run_in_a_panel_per_task(finished: Filled) -> None:
    (stl, *_), mrn = of_kind("stl", "ner"), chosen(finished.mrn[0])
    view = read([stl, *mrn], Display("epoch", "lines"), "dev-score")
    assert [(line.key, line.configuration.rank, line.name) for line in view.large.lines] == [
        (str(stl.id), 0, "STL · seed 3"),
        (str(mrn[0].id), 1, "MRN λ=0.01 · seed 1"),
    ]
    assert [(panel.task, len(panel.lines)) for panel in view.small] == [("pos", 1), ("chunk", 1), ("ner", 2)]
    line = view.large.lines[0]
    assert line.x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert line.y.max() > 50  # in percent
    assert line.raw is None
    assert stl.best_epoch is not None
    assert line.kept == pytest.approx((stl.best_epoch, line.y[stl.best_epoch - 1]))
    large = read(mrn, Display(), large="chunk")
    assert (large.large.task, [panel.task for panel in large.small]) == ("chunk", [TOTAL, "pos", "ner"])


def test_a_mean_over_seeds_is_that_of_each_epoch(finished: Filled) -> None:
    runs = of_kind("mtl")
    view = read(runs, Display("epoch", "interval"), "dev-score")
    (line,) = view.large.lines
    store = Store.open()
    stored = store.metrics([run.id for run in runs], MetricKey("", "dev", "score"))
    values = [100 * curve.value for curve in stored]
    low, high, n = band(line)
    for place in range(8):
        expected = summary(curve[place] for curve in values)
        assert (line.y[place], n[place]) == pytest.approx((expected.mean, 3))
        assert (low[place], high[place]) == pytest.approx((expected.low, expected.high))
    sd = read(runs, Display("epoch", "sd"), "dev-score").large.lines[0]
    assert band(sd)[1][-1] - sd.y[-1] == pytest.approx(summary(curve[-1] for curve in values).sd)
    (group,) = view.legend
    assert [curve.seed for curve in group.seeds] == [1, 2, 3]
    last = last_shared(group.seeds, group.seeds)
    assert last is not None
    assert (last[0], len(last[1]), np.mean(last[1])) == pytest.approx((8, 3, line.y[-1]))


@given(
    st.lists(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=8), min_size=1, max_size=4),
    st.data(),
)
def test_the_last_value_is_a_point_of_the_mean(lengths: list[list[float]], data: st.DataObject) -> None:
    """Though seeds stopped at different steps, or have gaps."""
    run = cast("Run", None)
    seeds = [
        Curve((run,), np.arange(len(values), dtype=float), np.array(values), np.array(values))
        for values in lengths
    ]
    ended = data.draw(st.lists(st.sampled_from(seeds), unique_by=id))
    last = last_shared(ended, seeds)
    places = [set(np.flatnonzero(np.isfinite(curve.y))) for curve in ended]
    shared = set.intersection(*places) if places else set()
    if not shared:
        assert last is None
        return
    assert last is not None
    x, values = last
    assert x == max(shared)
    there = [curve.y[int(x)] for curve in seeds if len(curve.y) > x and np.isfinite(curve.y[int(x)])]
    assert values == there


def test_the_whole_of_stl_is_the_mean_of_its_tasks_runs(finished: Filled) -> None:
    runs = of_kind("stl")
    view = read(runs, Display("epoch"), "dev-score")
    (line,) = view.large.lines
    assert line.name == "STL"
    assert [len(panel.lines) for panel in view.small] == [1, 1, 1]
    assert {panel.lines[0].configuration for panel in view.small} == {line.configuration}
    totals = Store.open().metrics([run.id for run in runs], MetricKey("", "dev", "score"))
    assert line.y == pytest.approx(100 * np.mean([curve.value for curve in totals], axis=0))
    assert set(band(line)[2]) == {3}
    # A line each is one per seed too; a seed that lacks a task is left out.
    lacking = [run for run in runs if (run.config.tasks, run.config.seed) != (("ner",), 2)]
    each = read(lacking, Display("epoch", "lines"), "dev-score").large.lines
    assert [line.name for line in each] == ["STL · seed 1", "STL · seed 3"]


def test_the_mean_over_tasks_comes_first_where_it_is_of_the_same_tasks(finished: Filled) -> None:
    stl, mtl = of_kind("stl"), of_kind("mtl")
    tasks = (TOTAL, *TASKS)
    assert numbers.first_task(tasks, [*stl, *mtl]) == TOTAL
    assert numbers.first_task(tasks, [*of_kind("stl", "ner"), *mtl]) == "ner"
    assert numbers.first_task((TOTAL,), mtl) == TOTAL
    assert numbers.first_task((), mtl) == TOTAL


def test_two_configurations_never_have_one_name_or_colour(finished: Filled) -> None:
    """Though names leave `columns` out."""
    (run, *_) = of_kind("mrn")
    other = run.config.with_(columns=("tokens", "pos", "chunk", "ner"))
    runs = [run, dataclasses.replace(run, id=run.id + 1, configuration_id="other", config=other)]
    one, two = numbers.configurations(runs).values()
    assert one.name != two.name
    assert one.rank != two.rank
    assert one.colour != two.colour


def test_a_paradigm_has_its_colour_and_lambda_a_ramp_whatever_was_chosen_first(finished: Filled) -> None:
    runs = sorted(Store.open().runs(finished.finished), key=lambda run: run.id)
    forth, back = (
        {
            (run.config.paradigm, run.config.lambda_, run.config.alignment): configuration[run.id].colour
            for run in runs
        }
        for configuration in (numbers.configurations(runs), numbers.configurations(runs[::-1]))
    )
    for paradigm in ("stl", "mtl"):
        kinds = [kind for kind in forth if kind[0] == paradigm]
        assert {forth[kind] for kind in kinds} == {back[kind] for kind in kinds}
        assert {forth[kind] for kind in kinds} == {of_theme(*PARADIGM_COLOURS[paradigm])}
    ramped = {kind: forth[kind] for kind in forth if kind[2] == "cooccurrence"}
    assert [ramped[kind] for kind in sorted(ramped, key=str)][-1] == lambda_colour(1.0)
    (alone,) = set(numbers.configurations([run for run in runs if run.config.lambda_ == 0.1]).values())
    assert alone.colour == of_theme(*PARADIGM_COLOURS["mrn"])


def test_a_seed_that_was_run_again_is_no_further_sample(finished: Filled) -> None:
    store = Store.open()
    runs = of_kind("mtl")
    again = dataclasses.replace(runs[0], id=max(run.id for run in store.runs()) + 1)
    series = series_of(store, runs, "dev-score")
    series += [dataclasses.replace(curve, run_id=again.id) for curve in series if curve.run_id == runs[0].id]
    for seeds in ("sd", "interval"):
        view = curves(SCORE, Display("epoch", seeds), [*runs, again], series, TASKS)
        (line,) = view.large.lines
        assert set(band(line)[2]) == {3}
        assert [curve.seed for curve in view.legend[0].seeds] == [1, 2, 3]
    each = curves(SCORE, Display("epoch", "lines"), [*runs, again], series, TASKS).large.lines
    seed = f"MTL · seed {again.config.seed}"
    assert [line.name for line in each if seed in line.name] == [
        f"{seed} · run {run.id}" for run in (runs[0], again)
    ]


def test_minutes_of_seeds_differ(filled: Filled) -> None:
    runs = chosen(filled.mrn[0], filled.mrn[2])
    series = series_of(Store.open(), runs)
    slower = [dataclasses.replace(curve, seconds=curve.seconds * curve.run_id) for curve in series]
    for axis in ("minutes", "step"):
        assert curves(LOSS, Display(axis, "sd"), runs, slower, TASKS).interpolated == (axis == "minutes")


def test_hidden_lines_stay_in_the_legend(finished: Filled) -> None:
    runs = chosen(*finished.mrn[:2])
    keys = [run.configuration_id for run in runs]
    view = read(runs, Display(), hidden=keys[:1])
    assert [line.key for line in view.large.lines] == keys[1:]
    assert [group.configuration.key for group in view.legend] == keys
    nothing = read(runs, Display(seeds="lines"), hidden=keys)
    assert nothing.legend
    assert nothing.large.y_range is None


def test_the_legend_tells_last_and_best_of_all_points(finished: Filled) -> None:
    (run,) = chosen(finished.mrn[0])
    (series,) = Store.open().metrics([run.id], MetricKey(TOTAL, "train", "loss"))
    (curve,) = read([run], Display()).legend[0].seeds
    assert last_shared([curve], [curve]) == (600, [series.value[-1]])
    assert curve.best(LOSS) == pytest.approx((series.step[series.value.argmin()], series.value.min()))
    # The smoothed line brings its raw one, and is what the legend tells of.
    smoothed = read([run], Display(smoothing=0.9))
    (line,) = smoothed.large.lines
    (curve,) = smoothed.legend[0].seeds
    assert last_shared([curve], [curve]) == (600, [line.y[-1]])
    assert line.raw is not None
    assert np.abs(np.diff(line.y)).mean() < np.abs(np.diff(line.raw)).mean()


def test_many_lines_share_the_points_of_a_chart(finished: Filled) -> None:
    runs = [dataclasses.replace(chosen(1)[0], id=number) for number in range(1, 31)]
    steps = np.arange(1, 5001)
    y = np.random.default_rng(0).random(5000)
    key = MetricKey(TOTAL, "train", "loss")
    many = [MetricSeries(run.id, key, steps, steps / 500, steps / 30, y) for run in runs]
    view = curves(LOSS, Display(seeds="lines"), runs, many, TASKS)
    assert sum(len(line.x) for line in view.large.lines) <= 9_000
    assert all(line.y.max() == y.max() for line in view.large.lines)
    (alone,) = curves(LOSS, Display(), runs[:1], many[:1], TASKS).large.lines
    assert 800 < len(alone.x) <= 1000


def test_a_log_axis_counts_the_points_that_it_leaves_out(finished: Filled) -> None:
    """Before lines are thinned; a gap is no point."""
    values = np.concatenate([np.zeros(700), [-1.0, math.nan], np.ones(998)])
    key = MetricKey(TOTAL, "train", "penalty")
    runs = chosen(finished.mrn[0])
    series = [MetricSeries(runs[0].id, key, np.arange(1700), *(np.arange(1700.0),) * 2, values)]
    for log_y, count in ((True, 701), (False, 0)):
        view = curves(METRICS["penalty"], Display(log_y=log_y), runs, series, TASKS)
        assert view.large.left_out == count


def test_gaps_break_lines_and_are_told(finished: Filled) -> None:
    run = chosen(1)[0]
    steps = np.arange(1, 11)

    def loss(task: str, wrong: dict[int, float]) -> MetricSeries:
        y = steps.astype(float)
        y[list(wrong)] = list(wrong.values())
        return MetricSeries(run.id, MetricKey(task, "train", "loss"), steps, steps / 5, steps / 5, y)

    for curve, sentence in (
        (loss("ner", dict.fromkeys(range(3, 10), math.nan)), " of ner is not a number from step 4 on."),
        (gaps := loss(TOTAL, {3: math.inf, 6: math.nan}), " is not a number at 2 steps, first at step 4."),
    ):
        assert numbers.missing(LOSS, [curve]) == [f"Run 1: training loss{sentence}"]
    (line,) = curves(LOSS, Display(), [run], [gaps], TASKS).large.lines
    assert np.isnan(line.y[[3, 6]]).all()
    assert not numbers.missing(LOSS, [loss(TOTAL, {})])


def test_every_stored_curve_is_offered() -> None:
    names = [("", "train", "loss"), ("ner", "train", "loss"), ("", "dev", "grad_norm")]
    names += [("", "train", "grad_norm"), ("pos", "train", "entropy")]
    keys = [MetricKey(*parts) for parts in names]
    offered = metrics_of(keys)
    assert next(iter(offered)) == "loss"
    titles = [metric.title for metric in offered.values() if metric.shown == "others"]
    assert titles == ["grad_norm on dev", "entropy", "grad_norm on train"]
    assert numbers.tasks_of(LOSS, keys, ["pos", "ner"]) == [TOTAL, "ner"]


def test_the_table_has_every_point_as_it_was_stored(finished: Filled) -> None:
    runs = chosen(finished.mrn[0], of_kind("stl", "ner")[0].id)
    series = series_of(Store.open(), runs, "dev-score")
    table = numbers.point_table(runs, series)
    fields = ["run", "configuration", "seed", "task", "metric", "step", "epoch", "minutes", "value"]
    assert list(table) == fields
    assert len(table) == sum(len(curve.value) for curve in series)
    of_ner = table[(table["run"] == runs[0].id) & (table["task"] == "ner")]
    (stored,) = Store.open().metrics([runs[0].id], MetricKey("ner", "dev", "score"))
    assert of_ner["value"].tolist() == stored.value.tolist()
    assert set(table["configuration"]) == {"MRN λ=0.01", "STL"}
    smoothed = numbers.point_table(runs, series, 0.6)
    assert list(smoothed) == [*fields, "smoothed 0.6"]
    assert smoothed["value"].tolist() == table["value"].tolist()


def test_the_legend_has_the_best_and_its_epoch_and_dashes_where_no_value_is_a_number(
    finished: Filled,
) -> None:
    view = read(of_kind("mtl"), Display("epoch"), "dev-score")
    (group,) = view.legend
    last, best = _ends(view, group.seeds, group.seeds)
    assert re.fullmatch(r"[\d.]+ ± [\d.]+ at epoch 8", last)
    assert re.fullmatch(r"[\d.]+ ± [\d.]+ at epoch \d( to \d)?", best)
    none = [dataclasses.replace(curve, y=curve.y * np.nan) for curve in group.seeds]
    assert _ends(view, none, none) == _ends(view, [], []) == ("–", "–")


def test_nothing_to_show() -> None:
    assert not curves(SCORE, Display("minutes", "sd", 0.5), [], [], TASKS).legend
    assert numbers.point_table([], []).empty


def said(runs: list[Run], metric: str = "dev-score", **more: Any) -> str:
    return result_sentence(read(runs, Display(), metric, **more), runs, {})


def test_the_result_is_made_of_the_last_values_of_the_legend(finished: Filled) -> None:
    runs = [*of_kind("mtl"), *chosen(*finished.mrn[:2])]
    for metric, sign, words_of in (
        ("dev-score", -1, ("highest on dev", "below")),
        ("loss", 1, ("lowest", "above")),
    ):
        view = read(runs, Display(), metric)
        ends = {}
        for group in view.legend:
            last = last_shared(group.seeds, group.seeds)
            assert last is not None
            ends[group.configuration.name] = float(METRICS[metric].text(float(np.mean(last[1]))))
        first, *others = sorted(ends, key=lambda name: sign * ends[name])
        text = view.metric.text
        rest = [f"{name} {text(abs(ends[name] - ends[first]))} {words_of[1]}" for name in others]
        expected = f"{first} ends {words_of[0]}, at {text(ends[first])}; {', '.join(rest)}."
        assert said(runs, metric) == expected


def test_there_is_no_result_where_lines_do_not_compare(finished: Filled) -> None:
    runs = [*of_kind("mtl"), *chosen(finished.mrn[0])]
    mtl = runs[0].configuration_id
    assert said(runs)
    other = dataclasses.replace(runs[-1], config=runs[-1].config.with_(corpus="conll2003"))
    going_on = dataclasses.replace(runs[-1], state=RunState.RUNNING)
    for none in (
        said(runs[:3]),  # one configuration
        said(runs, hidden=[mtl]),
        said(runs, hidden=[run.configuration_id for run in runs]),
        said([*runs[:3], other]),
        said([*runs[:3], going_on]),
        said(runs, "objective"),
        said([]),
    ):
        assert not none


def test_the_result_names_two_of_many(finished: Filled) -> None:
    (run, *_) = of_kind("mrn")
    runs = [
        dataclasses.replace(
            run, id=run.id + n, configuration_id=str(n), config=run.config.with_(lambda_=n / 8)
        )
        for n in range(1, 8)
    ]
    (total,) = Store.open().metrics([run.id], MetricKey(TOTAL, "dev", "score"))
    series = [dataclasses.replace(total, run_id=of.id, value=total.value / of.id) for of in runs]
    for count, ending in ((6, " below."), (7, ", 5 others farther below.")):
        view = curves(SCORE, Display(), runs[:count], series[:count], TASKS)
        sentence = result_sentence(view, runs[:count], {})
        assert sentence.endswith(ending)
        assert sentence.count(" below") == min(count - 1, 2 if count > 6 else 5)


# What is kept of curves that were read

TRAIN_LOSS = MetricKey(TOTAL, "train", "loss")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, int]]:
    """Each time curves are read from a store, the runs, each with the step after which."""
    noted: list[dict[int, int]] = []
    since = Store.metrics_since

    def note(store: Store, steps: Mapping[tuple[int, MetricKey], int]) -> list[MetricSeries]:
        noted.append({run_id: step for (run_id, _), step in steps.items()})
        return since(store, steps)

    monkeypatch.setattr(Store, "metrics_since", note)
    return noted


def test_a_live_curve_is_read_on_and_an_ended_one_never_again(
    filled: Filled, reads: list[dict[int, int]]
) -> None:
    store, cache = Store.open(), SeriesCache()
    live, done = filled.live[0], filled.finished[0]
    runs = store.runs(ids=[live, done])
    lengths = {curve.run_id: len(curve.step) for curve in cache.get(store, runs, [TRAIN_LOSS])}
    assert lengths == {live: 260, done: 600}
    store.add_metrics(live, [StepMetrics(261, 3.5, 9.0, {(TOTAL, "loss"): 1.25})])
    again = {curve.run_id: curve for curve in cache.get(store, runs, [TRAIN_LOSS])}
    assert reads[1:] == [{live: 260}]
    assert again[live].value[-1] == 1.25
    assert np.array_equal(again[live].step, np.arange(1, 262))


def test_a_second_attempt_is_another_curve(filled: Filled) -> None:
    store, cache, failed = Store.open(), SeriesCache(), filled.failed[0]
    assert len(cache.get(store, store.runs(ids=[failed]), [TRAIN_LOSS])[0].step) == 140
    store.requeue(failed)
    assert cache.get(store, store.runs(ids=[failed]), [TRAIN_LOSS]) == []


def test_what_is_longest_unused_is_read_again(filled: Filled, reads: list[dict[int, int]]) -> None:
    store, cache = Store.open(), SeriesCache(most_bytes=600 * 8 * 4)
    first, second = filled.finished[:2]
    for run_id in (first, first, second, first):
        assert len(cache.get(store, store.runs(ids=[run_id]), [TRAIN_LOSS])[0].step) == 600
    assert [list(runs) for runs in reads if runs] == [[first], [second], [first]]
