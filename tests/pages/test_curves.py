"""Curves from the store to views and figures, and the Curves page in its states."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.evaluation.statistics import summary
from core.metrics import METRICS, TOTAL, StepMetrics, metrics_of
from core.store import MetricKey, Store
from core.store.types import MetricSeries, Run, RunState
from dashboard.components.charts import themed_json
from dashboard.curves import numbers
from dashboard.curves.charts import curve_chart, spread_out
from dashboard.curves.numbers import Configuration
from dashboard.curves.panels import _ends
from dashboard.curves.result import result_sentence
from dashboard.curves.views import Curve, CurvesView, Display, Line, Panel, _y_range, curves, last_shared
from dashboard.shared.resources import SeriesCache
from dashboard.theme import PARADIGM_COLOURS, lambda_colour, of_theme, ramp
from tests.making import OWNER
from tests.pages.conftest import Open, figures, sent, words
from tests.pages.filled_store import TASKS, Filled

LOSS, SCORE = METRICS["loss"], METRICS["dev-score"]


def series_of(store: Store, runs: list[Run], metric: str = "loss") -> list[MetricSeries]:
    ids = [run.id for run in runs]
    keys = METRICS[metric].keys_among(store.metric_keys(ids))
    return store.metrics_since({(run_id, key): -1 for run_id in ids for key in keys})


def read(runs: list[Run], reading: Display, metric: str = "loss", **more: Any) -> CurvesView:
    return curves(METRICS[metric], reading, runs, series_of(Store.open(), runs, metric), TASKS, **more)


def band(line: Line) -> tuple[Any, Any, Any]:
    """The lower and the upper end of a line's band, and how many seeds it has, at each x."""
    assert line.low is not None
    assert line.high is not None
    assert line.n is not None
    return line.low, line.high, line.n


def chosen(*ids: int) -> list[Run]:
    return [Store.open().run(run_id) for run_id in ids]


def of_kind(paradigm: str, task: str | None = None) -> list[Run]:
    runs = [run for run in Store.open().runs() if run.config.paradigm == paradigm]
    return [run for run in runs if task is None or run.config.tasks == (task,)]


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
    for metric, sign, words_of in (("dev-score", -1, ("highest", "below")), ("loss", 1, ("lowest", "above"))):
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


def line(key: str, paradigm: str, rank: int = 0, **more: Any) -> Line:
    configuration = Configuration(f"of {key}", paradigm.upper(), paradigm, rank, ramp(rank))
    values: dict[str, Any] = {"name": f"run {key}", "x": np.arange(4.0), "y": np.arange(4.0) + 1}
    return Line(key=key, configuration=configuration, **(values | more))


def drawn(*lines: Line, small: bool = False, **reading: Any) -> Any:
    """The chart of a panel with these lines."""
    panel = Panel("", lines, (0.0, 5.0) if lines else None)
    view = CurvesView(SCORE, Display(**reading), panel, (), ())
    return curve_chart(view, panel, small=small)


def decoded(value: Any) -> list[float]:
    """The numbers of a typed array as the browser gets it."""
    read: list[float] = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist()
    return read


def test_a_paradigm_has_one_line_style_and_a_configuration_one_colour() -> None:
    lines = [line("1", "stl"), line("2", "mtl", rank=1), line("3", "mrn", rank=2)]
    for small in (False, True):
        looks = [(trace["line"]["dash"], trace["line"]["color"]) for trace in drawn(*lines, small=small).data]
        assert looks == [(dash, ramp(rank)) for rank, dash in enumerate(("dot", "dash", "solid"))]


def test_smoothing_keeps_the_raw_line_faint() -> None:
    faint, smoothed = drawn(line("1", "mrn", raw=np.ones(4))).data
    assert faint["line"]["color"].endswith("0.22)")
    assert faint["hoverinfo"] == "skip"
    assert smoothed["line"]["width"] > faint["line"]["width"]


def test_a_mean_is_thick_and_its_band_ends_where_one_seed_is_left() -> None:
    low = np.array([0.5, 1.5, np.nan, np.nan])
    mean = line("abc", "mrn", low=low, high=low + 1, n=np.array([3.0, 2, 1, 1]))
    band, thick = drawn(mean, seeds="sd").data
    assert band["fill"] == "toself"
    assert np.nanmax(band["x"]) == 1
    assert band["hoverinfo"] == "skip"
    assert thick["line"]["width"] > 2
    # What the tooltip tells: the half of the band, and from which x on there are how many seeds.
    assert thick["customdata"][:2] == pytest.approx([0.5, 0.5])
    assert np.isnan(thick["customdata"][2:]).all()
    assert thick["meta"]["seeds"] == [[0, 3], [1, 2], [2, 1]]
    assert drawn(mean, seeds="interval").layout["meta"]["tooltip"]["spread"] == "± 95% interval"
    # The epoch that was kept has its mark.
    marker = drawn(line("1", "mrn", kept=(2.0, 3.0))).data[1]
    assert (marker["x"], marker["y"], marker["marker"]["symbol"]) == ((2.0,), (3.0,), "diamond")


def test_bands_of_more_than_three_lines_are_left_to_the_tooltip() -> None:
    low = np.array([0.5, 1.5, 2.5, 3.5])
    lines = [line(str(rank), "mrn", rank, low=low, high=low + 1, n=np.full(4, 3.0)) for rank in range(4)]
    for count, bands in ((3, 3), (4, 0)):
        traces = drawn(*lines[:count], seeds="sd").data
        assert sum(trace["fill"] == "toself" for trace in traces) == bands
        assert all(len(trace["customdata"]) == 4 for trace in traces if trace["fill"] is None)


def test_arrays_travel_as_the_smallest_typed_arrays() -> None:
    (trace,) = json.loads(themed_json(drawn(line("1", "mrn"))))["data"]
    assert (trace["x"]["dtype"], trace["y"]["dtype"]) == ("u2", "f4")
    assert decoded(trace["y"]) == [1, 2, 3, 4]
    x = np.array([0.25, 1, 70_000, 80_000])
    assert drawn(line("1", "mrn", x=x)).data[0]["x"].dtype == np.float32
    assert drawn(line("1", "mrn", x=x.round())).data[0]["x"].dtype == np.int32


@pytest.mark.parametrize("log_y", [False, True])
def test_each_line_has_its_name_and_last_value_at_its_end(log_y: bool) -> None:
    values = np.array([1.0, 2, 3, 3.14159])
    names = ["a", "b", "a name of <b>more</b> than forty letters, all told"]
    chart = drawn(
        *(line(str(rank), "mrn", rank, name=name, y=values) for rank, name in enumerate(names)), log_y=log_y
    )
    ends = chart.layout["annotations"]
    assert [end["text"].split("> ", 1)[1] for end in ends] == [
        "a  <b>3.14</b>",
        "b  <b>3.14</b>",
        "a name of &lt;b>more&lt;/b…y letters, all told  <b>3.14</b>",
    ]
    assert [ramp(rank) in end["text"] for rank, end in enumerate(ends)] == [True] * 3
    assert [(end["x"], end["y"]) for end in ends] == [(3, np.log10(3.14159) if log_y else 3.14159)] * 3
    assert {end["yshift"] for end in ends} == {-15, 0, 15}  # apart, and around the place
    # A line that ends early has its name beside the others, not over them.
    early = line("3", "stl", 3, x=np.arange(2.0), y=np.array([1.0, 4]))
    assert [end["x"] for end in drawn(line("1", "mrn"), early).layout["annotations"]] == [3, 3]
    assert not drawn(*(line(str(rank), "mrn", rank) for rank in range(13))).layout["annotations"]
    assert not drawn(line("1", "mrn"), small=True).layout["annotations"]


@pytest.mark.parametrize(
    "middle", ["sentiment/train", "a corpus with a name of far over sixty letters, which nobody reads"]
)
def test_names_at_ends_are_shortened_but_never_the_same(middle: str) -> None:
    names = [f"MRN λ=0.01 · {middle} {number} · fine-tuned" for number in (1, 2)]
    chart = drawn(*(line(str(rank), "mrn", rank, name=name) for rank, name in enumerate(names)))
    texts = [end["text"] for end in chart.layout["annotations"]]
    assert len({text.split("> ", 1)[1] for text in texts}) == 2


def test_lines_of_several_corpora_name_theirs(finished: Filled) -> None:
    mtl, mrn = of_kind("mtl")[0], chosen(finished.mrn[0])[0]
    configs = (mtl.config, mrn.config, mrn.config.with_(corpus="conll2003"))
    runs = [dataclasses.replace(mtl, id=number, config=config) for number, config in enumerate(configs)]
    names = [of.name for of in numbers.configurations(runs).values()]
    assert names == ["MTL · demo", "MRN λ=0.01 · demo", "MRN λ=0.01 · conll2003"]
    assert [of.name for of in numbers.configurations(runs[:2]).values()] == ["MTL", "MRN λ=0.01"]


def test_runs_on_different_data_are_said_not_to_compare(open_page: Open, finished: Filled) -> None:
    with contextlib.closing(Store.open()) as store:
        (other,) = store.add_runs([store.run(finished.mrn[0]).config.with_(corpus="conll2003")])
        store.claim(OWNER, run_id=other)
        losses = {(task, "loss"): 1.0 for task in (TOTAL, *TASKS)}
        store.add_metrics(other, [StepMetrics(step, step / 10, 1.0, losses) for step in (1, 2)])
    for runs, is_said in ((finished.mrn[:2], False), ((finished.mrn[0], other), True)):
        app = open_page("curves", run=",".join(map(str, runs)), metric="Training loss")
        assert ("on different data" in words(app)) == is_said


def test_a_chart_ends_where_its_own_lines_end(finished: Filled) -> None:
    view = read(chosen(finished.mrn[0]), Display())
    first = dataclasses.replace(view.small[0].lines[0], x=np.arange(4.0), y=np.ones(4))
    short = dataclasses.replace(view.small[0], lines=(first,))
    ranges = [curve_chart(view, panel).layout["xaxis"]["range"][1] for panel in (short, view.large)]
    assert ranges[0] == pytest.approx(3.03)
    assert ranges[1] > 100


def test_the_second_half_of_training_fills_the_axis_where_the_first_would(finished: Filled) -> None:
    steep, flat = np.array([10.0, 40, 60, 61, 62, 63]), np.arange(6.0)
    for values, of_end, is_cut in ((steep, True, True), (steep, False, False), (flat, True, False)):
        lines = [line("1", "mrn", x=np.arange(1.0, 7), y=values)]
        panel = Panel("", tuple(lines), _y_range(Display(of_end=of_end), lines))
        assert panel.is_cut == is_cut
        assert panel.x_start == 1


def test_a_log_axis_counts_the_points_that_it_leaves_out(finished: Filled) -> None:
    """Before lines are thinned; a gap is no point."""
    values = np.concatenate([np.zeros(700), [-1.0, math.nan], np.ones(998)])
    key = MetricKey(TOTAL, "train", "penalty")
    runs = chosen(finished.mrn[0])
    series = [MetricSeries(runs[0].id, key, np.arange(1700), *(np.arange(1700.0),) * 2, values)]
    for log_y, count in ((True, 701), (False, 0)):
        view = curves(METRICS["penalty"], Display(log_y=log_y), runs, series, TASKS)
        assert view.large.left_out == count


@given(st.lists(st.floats(0, 400), min_size=1, max_size=12))
def test_labels_are_apart_and_in_order(places: list[float]) -> None:
    given_places = np.array(places)
    apart = spread_out(given_places, 15, 400)
    order = np.argsort(given_places, kind="stable")
    assert (np.diff(apart[order]) >= 15 - 1e-6).all()
    assert ((apart >= 0) & (apart <= 400)).all()
    if (np.diff(given_places[order]) >= 15).all():
        assert apart == pytest.approx(given_places)


def test_user_text_in_a_chart_is_text_and_hidden_lines_are_told() -> None:
    (trace,) = drawn(line("1", "mrn", name="<b>x</b> %{y}")).data
    assert "<b>" not in trace["name"]
    assert "%{y}" not in trace["name"]
    hidden = drawn()
    assert not hidden.data
    assert "All lines are hidden" in hidden.layout["annotations"][0]["text"]


# The page


def test_the_legend_counts_seeds_where_configurations_differ_in_them(
    open_page: Open, finished: Filled
) -> None:
    mtl = [run.id for run in of_kind("mtl")]
    for ids, seeds, of in ((mtl, "", "3 seeds"), ([*mtl, finished.mrn[0]], "Seeds", "seeds")):
        app = open_page("curves", run=",".join(map(str, ids)))
        legend = sent(app, "rows")
        assert legend["columns"][:2] == ["Configuration", seeds]
        assert all(bool(row["cells"][0]) == bool(seeds) for row in legend["rows"])
        assert f"mean of {of} ± SD" in words(app)


def test_an_axis_tells_the_unit_and_a_picture_the_name_too(finished: Filled) -> None:
    for metric, unit, picture in (
        ("dev-score", "Percent", "Dev score, mean over tasks, × 100"),
        ("loss", "Nats per label", "Training loss, total, nats per label"),
        ("penalty", "MRN penalty, weighted by λ", "MRN penalty, weighted by λ"),
    ):
        view = read(chosen(finished.mrn[0]), Display(), metric)
        layout = curve_chart(view, view.large).layout
        assert (layout["yaxis"]["title"]["text"], layout["meta"]["picture"]) == (unit, picture)


def test_a_result_of_scores_leads_to_compare(open_page: Open, finished: Filled) -> None:
    runs = ",".join(str(run.id) for run in [*of_kind("mtl"), *chosen(finished.mrn[0])])
    for metric, leads in (("Dev score", True), ("Training loss", False)):
        app = open_page("curves", run=runs, metric=metric, of="ner")
        assert (" ends " in words(app)) is True
        labels = [str(link.proto.label) for link in app.get("page_link")]
        assert any("Compare says whether" in label for label in labels) == leads
    # The total of MRN's loss has its penalty, of MTL's it has none.
    assert " ends " not in words(open_page("curves", run=runs, metric="Training loss"))


def small(app: AppTest) -> list[str]:
    """The tasks of the small charts, in their order."""
    keys = {"": "curve_total"} | {task: f"curve_small_{task}" for task in TASKS}
    return [task for task, key in keys.items() if figures(app, key)]


def test_the_whole_is_large_and_tasks_are_small(open_page: Open, filled: Filled) -> None:
    live, done, failed = filled.live[0], filled.mrn[0], filled.failed[0]
    app = open_page("curves", run=f"{live},{done},{failed}", metric="Training loss")
    assert small(app) == list(TASKS)
    legend = sent(app, "rows")
    assert legend["columns"] == ["Configuration", "Seeds", "Last, smoothed", "Best, smoothed"]
    mrn, other = legend["rows"]
    assert mrn["title"].startswith(f"{mrn['name'].split(' · ')[0]} on demo")
    assert [run["key"] for run in mrn["runs"]] == [str(live), str(done)]
    assert [run["cells"][0] for run in (*mrn["runs"], *other["runs"])] == [
        "▶ Running",
        "✓ Succeeded",
        "✕ Failed",
    ]
    assert mrn["runs"][0]["cells"][1].endswith("at step 260")
    # The mean of last values does not mix an unfinished seed with a finished one.
    assert mrn["cells"][0] == "2 seeds, ▶ 1 running, ✓ 1 succeeded"
    assert mrn["cells"][1].endswith("at step 600")
    app.segmented_control(key="of").set_value("ner").run()
    assert small(app) == ["", "pos", "chunk"]
    assert "**Training loss, ner** :gray[:small[· mean of seeds ± SD · smoothed 0.6]]" in words(app)


def test_a_link_hides_and_zooms(open_page: Open, finished: Filled) -> None:
    first, second, third = finished.mrn[:3]
    link = {"run": f"{first},{second},{third}", "seeds": "Each run", "x": "100_200"}
    app = open_page("curves", hide=str(second), **link)
    rows = sent(app, "rows")["rows"]
    assert [(run["key"], run["hidden"]) for row in rows for run in row["runs"]] == [
        (str(run), run == second) for run in (first, third, second)
    ]
    (large,) = figures(app, "curve_large")
    assert len([trace for trace in large["data"] if "name" in trace]) == 2
    assert sent(app, "window")["window"] == [100, 200]
    odd = open_page("curves", run=str(first), hide="x,,7", x="nan_3")
    assert sent(odd, "window")["window"] is None


def test_pictures_are_asked_for_once(open_page: Open, finished: Filled) -> None:
    app = open_page("curves", run=str(finished.mrn[0]))
    app.button(key="curve_svg").click().run()
    picture = sent(app, "save")["save"]
    assert (picture["format"], picture["name"]) == ("svg", f"dev-score-total-runs-{finished.mrn[0]}")
    app.segmented_control(key="over").set_value("epoch").run()
    assert sent(app, "save")["save"] is None


def test_a_diverged_loss_is_told_and_an_unknown_curve_is_offered(open_page: Open, filled: Filled) -> None:
    run_id = filled.live[0]
    losses = [{("ner", "loss"): math.nan, (TOTAL, "grad_norm"): 1.5 * step} for step in (1, 2)]
    Store.open().add_metrics(run_id, [StepMetrics(261 + i, 3.5, 9.0, losses[i]) for i in (0, 1)])
    app = open_page("curves", run=str(run_id), metric="Training loss")
    assert len(app.info) == 1
    app.segmented_control(key="metric").set_value("others").run()
    assert app.selectbox(key="number").options == ["grad_norm"]
    (large,) = figures(app, "curve_large")
    assert decoded(large["data"][0]["y"]) == [1.5, 3.0]


def test_an_ended_run_without_a_curve_says_what_to_do(open_page: Open, filled: Filled) -> None:
    queued = filled.queued[0]
    Store.open().request_stop(queued)
    assert "These runs ended before they had this curve" in words(open_page("curves", run=str(queued)))


def test_runs_of_different_steps_open_over_epochs(open_page: Open, finished: Filled) -> None:
    first, second = chosen(*finished.mrn[:2])
    for step, epoch, state, axis in (
        (first.step, 8.0, RunState.SUCCEEDED, "step"),
        (int(0.95 * first.step), 8.0, RunState.SUCCEEDED, "step"),
        (int(0.5 * first.step), 8.0, RunState.SUCCEEDED, "epoch"),
        (int(0.5 * first.step), 8.0, RunState.RUNNING, "step"),
        (0, 0.0, RunState.FAILED, "step"),
    ):
        other = dataclasses.replace(second, step=step, epoch=epoch, state=state)
        assert numbers.first_axis([first, other]) == axis
    with contextlib.closing(Store.open()) as store:
        store.set_progress(second.id, second.step // 2, 8.0)
    for over, axis in (({}, "epoch"), ({"over": "Step"}, "step"), ({"over": "Minutes"}, "minutes")):
        app = open_page("curves", run=f"{first.id},{second.id}", metric="Training loss", **over)
        assert app.segmented_control(key="over").value == axis
    # Other runs open on their own axis.
    app = open_page("curves", run=f"{first.id},{second.id}")
    app.multiselect(key="curves_runs").set_value([str(first.id)]).run()
    assert app.segmented_control(key="over").value == "step"


def test_curves_of_what_was_learned_in_numbers(open_page: Open, finished: Filled) -> None:
    run = str(finished.mrn[0])
    app = open_page("curves", run=run, metric="Relations", number="Effective rank of labels")
    (total,) = figures(app, "curve_large")
    line = next(trace for trace in total["data"] if "name" in trace)
    assert decoded(line["x"]) == [key.step for key in Store.open().snapshots(finished.mrn[0])]
    assert "number of directions that share the variance" in app.selectbox(key="number").help
    assert figures(open_page("curves", run=run, metric="Objective"), "curve_large")
    mtl = next(run.id for run in Store.open().runs() if run.config.paradigm == "mtl")
    assert "Relations" not in open_page("curves", run=str(mtl)).segmented_control(key="metric").options
