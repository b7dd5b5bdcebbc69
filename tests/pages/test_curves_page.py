"""Curves as figures, and the Curves page in its states."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.metrics import TOTAL, EpochMetrics, StepMetrics
from core.store import Store
from core.store.types import RunState
from dashboard.components.charts import themed_json
from dashboard.curves import numbers
from dashboard.curves.charts import curve_chart, spread_out
from dashboard.curves.numbers import Configuration
from dashboard.curves.views import CurvesView, Display, Line, Panel, curves, steep_until
from dashboard.theme import ramp
from tests.making import OWNER
from tests.pages.conftest import Open, figures, sent, words
from tests.pages.curve_runs import SCORE, chosen, of_kind, read, series_of
from tests.pages.filled_store import TASKS, Filled


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


@pytest.mark.parametrize(
    ("values", "start"),
    [
        ([10.0, 40, 60, 61, 62, 63], 3),
        ([60.0, 60, 60, 60, 60, 60], None),
        ([0.0, 1, 2, 3, 4, 5], None),
        ([10.0, 58, 60, 61, 62, 63], 3),
        ([10.0, 59, 60, 61, 62, 63], 2),  # near the second half, within half of its range
        ([math.nan, 10, 60, 61, 62, 63], 3),
        ([math.nan] * 6, None),
    ],
)
def test_the_steep_start_ends_where_values_are_near_those_of_the_second_half(
    values: list[float], start: float | None
) -> None:
    steep = line("1", "mrn", x=np.arange(1.0, 7), y=np.array(values))
    assert steep_until([steep]) == start
    # One that is at its first steps hides nothing of itself.
    begun = line("2", "mtl", x=np.arange(1.0, 3), y=np.array([9.0, 41]))
    assert steep_until([steep, begun]) in (None, 1)


def test_a_chart_without_the_start_has_whole_lines_in_its_frame_and_says_so(finished: Filled) -> None:
    runs = [run for run in Store.open().runs() if run.config.paradigm in ("stl", "mtl")]
    series = [
        dataclasses.replace(curve, value=np.array([0.1, 0.4, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65]))
        for curve in series_of(Store.open(), runs, "dev-score")
    ]
    views = [curves(SCORE, Display("epoch", of_end=of_end), runs, series, TASKS) for of_end in (True, False)]
    assert [view.start for view in views] == [3, None]
    for view, start in zip(views, (3, 1), strict=True):
        for panel in (view.large, *view.small):
            layout = curve_chart(view, panel, small=panel is not view.large).layout
            assert layout["xaxis"]["range"][0] == pytest.approx(start, abs=0.1)
            assert layout["xaxis"]["tickvals"][0] == start
            bottom, top = layout["yaxis"]["range"]
            drawn_of = [y for of in panel.lines for x, y in zip(of.x, of.y, strict=True) if x >= start]
            assert bottom < min(drawn_of) < max(drawn_of) < top
            texts = [note["text"] for note in layout["annotations"] if note["name"] == "start"]
            assert texts == ["← before epoch 3: not drawn"] * (start == 3 and panel is view.large)


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


def test_the_legend_has_the_best_end_first_once_all_runs_have_ended(
    open_page: Open, finished: Filled
) -> None:
    runs = [*(run.id for run in of_kind("mtl")), *finished.mrn[:2]]
    for metric, sign in (("Dev score", -1), ("Training loss", 1)):
        for of_runs in (runs, runs[::-1]):
            app = open_page("curves", run=",".join(map(str, of_runs)), metric=metric)
            ends = [float(row["cells"][1].partition(" ")[0]) for row in sent(app, "rows")["rows"]]
            assert len(ends) > 1
            assert [sign * end for end in ends] == sorted(sign * end for end in ends)


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


def test_a_button_shows_the_start_and_leaves_it_out(open_page: Open, finished: Filled) -> None:
    with contextlib.closing(Store.open()) as store:
        config = store.run(finished.mrn[0]).config.with_(seed=77)
        (steep,) = store.add_runs([config])
        store.claim(OWNER, run_id=steep)
        scores = (0.1, 0.4, 0.6, 0.61, 0.62, 0.63)
        for epoch, score in enumerate(scores, 1):
            values = {(task, "score"): score for task in (TOTAL, *TASKS)}
            store.add_metrics(steep, [EpochMetrics(10 * epoch, epoch, 1.0, values)])
    app = open_page("curves", run=str(steep), metric="Dev score", over="Epoch", x="2_4")
    for label, first in (("Show all", 3), ("From epoch 3", 1), ("Show all", 3)):
        (large,) = figures(app, "curve_large")
        assert large["layout"]["xaxis"]["range"][0] == pytest.approx(first, abs=0.1)
        button = app.button(key="curve_range")
        assert button.label == label
        button.click().run()
        assert sent(app, "window")["window"] is None
    log = open_page("curves", run=str(steep), metric="Dev score", log="true")
    assert not [button for button in log.button if button.key == "curve_range"]
