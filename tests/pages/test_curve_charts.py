"""Curves as figures, and the Curves page in its states."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.records import TOTAL, StepMetrics
from core.store import Store
from dashboard.components.charts import themed_json
from dashboard.curves.charts import curve_chart, spread_out
from dashboard.curves.numbers import METRICS, Configuration
from dashboard.curves.views import CurvesView, Line, Panel, Reading
from dashboard.theme import ramp
from tests.pages.conftest import Open, figures, sent, words
from tests.pages.filled_store import TASKS, Filled


def line(key: str, paradigm: str, rank: int = 0, **more: Any) -> Line:
    configuration = Configuration(f"of {key}", paradigm.upper(), paradigm, rank)
    values: dict[str, Any] = {"name": f"run {key}", "x": np.arange(4.0), "y": np.arange(4.0) + 1}
    return Line(key=key, configuration=configuration, **(values | more))


def drawn(*lines: Line, small: bool = False, **reading: Any) -> Any:
    """The chart of a panel with these lines."""
    panel = Panel("", lines, (0.0, 5.0) if lines else None)
    view = CurvesView(METRICS["dev-score"], Reading(**reading), panel, (), (), 3.0)
    return curve_chart(view, panel, small=small)


def numbers(value: Any) -> list[float]:
    """The numbers of a typed array as the browser gets it."""
    decoded: list[float] = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist()
    return decoded


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


def test_arrays_travel_as_the_smallest_typed_arrays() -> None:
    (trace,) = json.loads(themed_json(drawn(line("1", "mrn"))))["data"]
    assert (trace["x"]["dtype"], trace["y"]["dtype"]) == ("u2", "f4")
    assert numbers(trace["y"]) == [1, 2, 3, 4]
    x = np.array([0.25, 1, 70_000, 80_000])
    assert drawn(line("1", "mrn", x=x)).data[0]["x"].dtype == np.float32
    assert drawn(line("1", "mrn", x=x.round())).data[0]["x"].dtype == np.int32


@pytest.mark.parametrize("log_y", [False, True])
def test_each_line_has_its_name_and_last_value_at_its_end(log_y: bool) -> None:
    values = np.array([1.0, 2, 3, 3.14159])
    names = ["a", "b", "a name of <b>more</b> than thirty letters"]
    chart = drawn(
        *(line(str(rank), "mrn", rank, name=name, y=values) for rank, name in enumerate(names)), log_y=log_y
    )
    ends = chart.layout["annotations"]
    assert [end["text"].split("> ", 1)[1] for end in ends] == [
        "a  <b>3.14</b>",
        "b  <b>3.14</b>",
        "a name of &lt;b>more&lt;/b> than…  <b>3.14</b>",
    ]
    assert [ramp(rank) in end["text"] for rank, end in enumerate(ends)] == [True] * 3
    assert [(end["x"], end["y"]) for end in ends] == [(3, np.log10(3.14159) if log_y else 3.14159)] * 3
    assert {end["yshift"] for end in ends} == {-15, 0, 15}  # apart, and around the place
    # A line that ends early has its name beside the others, not over them.
    early = line("3", "stl", 3, x=np.arange(2.0), y=np.array([1.0, 4]))
    assert [end["x"] for end in drawn(line("1", "mrn"), early).layout["annotations"]] == [3, 3]
    assert not drawn(*(line(str(rank), "mrn", rank) for rank in range(13))).layout["annotations"]
    assert not drawn(line("1", "mrn"), small=True).layout["annotations"]


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
    assert "Training loss, ner · mean ± SD · smoothed 0.6" in words(app).replace("**", "")


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
    assert numbers(large["data"][0]["y"]) == [1.5, 3.0]


def test_an_ended_run_without_a_curve_says_what_to_do(open_page: Open, filled: Filled) -> None:
    queued = filled.queued[0]
    Store.open().request_stop(queued)
    assert "These runs ended before they had this curve" in words(open_page("curves", run=str(queued)))


def test_curves_of_what_was_learned_in_numbers(open_page: Open, finished: Filled) -> None:
    run = str(finished.mrn[0])
    app = open_page("curves", run=run, metric="Relations", number="Effective rank of labels")
    (total,) = figures(app, "curve_large")
    line = next(trace for trace in total["data"] if "name" in trace)
    assert numbers(line["x"]) == [key.step for key in Store.open().snapshots(finished.mrn[0])]
    assert figures(open_page("curves", run=run, metric="Objective"), "curve_large")
    mtl = next(run.id for run in Store.open().runs() if run.config.paradigm == "mtl")
    assert "Relations" not in open_page("curves", run=str(mtl)).segmented_control(key="metric").options
