"""Curves as figures, and the Curves page in its states."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.records import TOTAL, StepMetrics
from core.store import RunState, Store
from dashboard.curves.charts import curve_chart, small_charts
from dashboard.curves.numbers import METRICS
from dashboard.curves.views import CurvesView, Line, Panel, Reading
from dashboard.theme import DASHES, TASK_COLOURS, colours, ramp
from tests.pages.conftest import Open, labels, words
from tests.pages.filled_store import TASKS, Filled
from tests.pages.test_pages import figures


def line(key: str, paradigm: str, task: str = "", apart: bool = True, **more: Any) -> Line:
    values: dict[str, Any]
    values = {"name": f"run {key}", "rank": 0, "thin": False, "x": np.arange(4.0), "y": np.arange(4.0) + 1}
    return Line(key=key, paradigm=paradigm, task=task, apart=apart, **(values | more))


def view(*lines: Line, small: tuple[Panel, ...] = (), **reading: Any) -> CurvesView:
    panel = Panel("", lines, (0.0, 5.0) if lines else None)
    return CurvesView(METRICS["dev-score"], Reading(**reading), panel, small, (), 3.0)


def numbers(value: Any) -> list[float]:
    """The numbers of a typed array as the browser gets it."""
    decoded: list[float] = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist()
    return decoded


def test_a_paradigm_has_one_line_style() -> None:
    chart = curve_chart(view(line("1", "stl", "ner"), line("2", "mtl"), line("3", "mrn")), {})
    assert [trace.line.dash for trace in chart.data] == ["dot", "dash", "solid"]
    assert set(DASHES) == {"stl", "mtl", "mrn"}


def test_a_task_has_its_colour_where_dashes_tell_lines_apart() -> None:
    look = colours(["pos", "chunk", "ner"])
    chart = curve_chart(view(line("1", "stl", "ner"), line("2", "mtl", rank=1)), look)
    assert [trace.line.color for trace in chart.data] == [TASK_COLOURS[2], ramp(1)]
    panel = Panel("ner", (line("1", "mrn", "ner"), line("2", "mtl", "ner")), (0, 5))
    (small,) = small_charts(view(small=(panel,)), look)["panels"]
    assert [one["colour"] for one in small["lines"]] == [look["ner"]] * 2
    several = Panel("ner", tuple(line(str(i), "mrn", "ner", False, rank=i) for i in range(3)), (0, 5))
    (small,) = small_charts(view(small=(several,)), look)["panels"]
    assert [one["colour"] for one in small["lines"]] == [ramp(0), ramp(1), ramp(2)]
    assert small["colour"] == look["ner"]


def test_small_charts_of_tasks_share_their_range() -> None:
    panels = (Panel("", (), (0.0, 90.0)), Panel("pos", (), (1.0, 4.0)), Panel("ner", (), (2.0, 9.0)))
    shared = small_charts(view(small=panels), {})["panels"]
    assert [panel["y"] for panel in shared] == [(0.0, 90.0), (1.0, 9.0), (1.0, 9.0)]
    own = small_charts(view(small=panels), {}, same=False)["panels"]
    assert [panel["y"] for panel in own] == [(0.0, 90.0), (1.0, 4.0), (2.0, 9.0)]


def test_small_charts_travel_in_small_steps() -> None:
    y = np.array([-3.0, np.nan, 0.0, 7.0])
    panel = Panel("ner", (line("1", "mrn", "ner", y=y),), (0, 5))
    sent = small_charts(view(small=(panel,)), {})["panels"][0]["lines"][0]["y"]
    low, high, packed = json.loads(json.dumps(sent))
    steps = np.frombuffer(base64.b64decode(packed), dtype="<u2")
    assert steps[1] == 65535
    back = low + steps[[0, 2, 3]] / 65534 * (high - low)
    assert back == pytest.approx([-3, 0, 7], abs=1e-3)


def test_smoothing_keeps_the_raw_line_faint() -> None:
    chart = curve_chart(view(line("1", "mrn", raw_x=np.arange(4.0), raw=np.ones(4))), {})
    faint, smoothed = chart.data
    assert faint.line.color.endswith("0.22)")
    assert faint.hoverinfo == "skip"
    assert smoothed.line.width > faint.line.width


def test_a_mean_is_thick_and_its_band_ends_where_one_seed_is_left() -> None:
    low = np.array([0.5, 1.5, np.nan, np.nan])
    mean = line("abc", "mrn", low=low, high=low + 1, n=np.array([3.0, 2, 1, 1]))
    band, thick, alone = curve_chart(view(mean, seeds="sd"), {}).data
    assert band.fill == "toself"
    assert np.nanmax(band.x) == 1
    assert band.hoverinfo == "skip"
    assert thick.line.width > 2
    assert thick.customdata[:, 0].tolist() == [3, 2, 1, 1]
    assert "±" in thick.hovertemplate
    assert (alone.x.tolist(), alone.y.tolist()) == ([1, 2, 3], [2, 3, 4])
    assert "±" not in alone.hovertemplate
    assert (thick.showlegend, alone.showlegend) == (None, False)
    assert "95% from" in curve_chart(view(mean, seeds="interval"), {}).data[1].hovertemplate
    (one,) = small_charts(view(small=(Panel("ner", (mean,), (0, 5)),)), {})["panels"][0]["lines"]
    assert len(one["band"]) == 2


def test_a_marked_line_stands_out_and_lies_on_top() -> None:
    chart = curve_chart(view(line("1", "mrn"), line("2", "mtl"), line("3", "mtl")), {}, marked="2")
    assert [trace.name for trace in chart.data] == ["run 1", "run 3", "run 2"]
    assert [trace.opacity for trace in chart.data] == [0.25, 0.25, None]


def test_the_kept_epoch_has_its_mark() -> None:
    marker = curve_chart(view(line("1", "mrn", chosen=(2.0, 3.0))), {}).data[1]
    assert (marker.x, marker.y, marker.marker.symbol) == ((2.0,), (3.0,), "diamond")


def test_arrays_travel_as_the_smallest_typed_arrays() -> None:
    (sent,) = json.loads(curve_chart(view(line("1", "mrn")), {}).to_json())["data"]
    assert (sent["x"]["dtype"], sent["y"]["dtype"]) == ("u2", "f4")
    assert numbers(sent["y"]) == [1, 2, 3, 4]
    x = np.array([0.25, 1, 70_000, 80_000])
    assert curve_chart(view(line("1", "mrn", x=x)), {}).data[0].x.dtype == np.float32
    assert curve_chart(view(line("1", "mrn", x=x.round())), {}).data[0].x.dtype == np.int32


def test_user_text_in_a_chart_is_text() -> None:
    (trace,) = curve_chart(view(line("1", "mrn", name="<b>x</b> %{y}")), {}).data
    assert "<b>" not in trace.name
    assert "%{y}" not in trace.name


def test_all_lines_hidden_is_said() -> None:
    chart = curve_chart(view(), {})
    assert not chart.data
    assert "Every line is hidden" in chart.layout.annotations[0].text


# The page


def component(app: AppTest, part: str) -> dict[str, Any]:
    """What the page sends to the component whose data has this field."""
    sent = [json.loads(one.proto.json or "{}") for one in app.get("bidi_component")]
    return next(one for one in sent if part in one)


def test_total_is_large_and_tasks_are_small(open_page: Open, filled: Filled) -> None:
    live, done, failed = filled.live[0], filled.mrn[0], filled.failed[0]
    app = open_page("curves", run=f"{live},{done},{failed}")
    assert [panel["task"] for panel in component(app, "panels")["panels"]] == list(TASKS)
    legend = component(app, "rows")
    assert legend["columns"] == ["Run", "State", "Last", "Best"]
    assert [row["key"] for row in legend["rows"]] == [str(live), str(done), str(failed)]
    assert [row["cells"][0] for row in legend["rows"]] == ["▶ Running", "✓ Succeeded", "✕ Failed"]
    assert legend["rows"][0]["cells"][1].endswith("at step 260")


def test_another_task_is_made_large(open_page: Open, finished: Filled, doubled_values: list[str]) -> None:
    app = open_page("curves", run=str(finished.mrn[0]))
    app.segmented_control(key="of").set_value("ner").run()
    assert [panel["title"] for panel in component(app, "panels")["panels"]] == ["Total", "pos", "chunk"]
    app.session_state["curve_enlarge"] = "pos"  # as a click on its small chart does
    app.run()
    assert app.segmented_control(key="of").value == "pos"
    assert not doubled_values
    app.segmented_control(key="of").set_value("ner").run()
    assert "Training loss, ner" in words(app).replace("**", "")


def test_a_link_hides_marks_and_zooms(open_page: Open, finished: Filled) -> None:
    one, two, three = finished.mrn[:3]
    app = open_page("curves", run=f"{one},{two},{three}", hide=str(two), mark=str(three), x="100_200")
    rows = component(app, "rows")["rows"]
    assert [(row["hidden"], row["marked"]) for row in rows] == [(False, False), (True, False), (False, True)]
    (large,) = figures(app, "curve_large")
    assert [trace["name"].split(" ")[0] for trace in large["data"] if "name" in trace] == [
        str(one),
        str(three),
    ]
    assert component(app, "panels")["window"] == [100, 200]
    odd = open_page("curves", run=str(one), hide="x,,7", mark="999", x="nan_3")
    assert component(odd, "panels")["window"] is None


@pytest.mark.parametrize("seeds", ["Mean ± SD", "Mean, 95% interval"])
def test_seeds_as_a_mean_with_a_band(open_page: Open, finished: Filled, seeds: str) -> None:
    mtl = [run.id for run in Store.open().runs() if run.config.paradigm == "mtl"]
    app = open_page("curves", run=",".join(map(str, mtl)))
    app.segmented_control(key="seeds").set_value({"Mean ± SD": "sd"}.get(seeds, "interval")).run()
    (large,) = figures(app, "curve_large")
    band, mean = large["data"]
    assert (band["fill"], "name" in band) == ("toself", False)
    assert len(numbers(mean["customdata"])) == len(numbers(mean["x"])) * (2 if seeds == "Mean ± SD" else 3)
    (row,) = component(app, "rows")["rows"]
    assert row["cells"][0] == "1, 2, 3 (n = 3)"
    assert set(labels(app, "download_button")) >= {"CSV", "CSV of means"}


def test_one_seed_has_no_band_and_the_page_says_so(open_page: Open, finished: Filled) -> None:
    app = open_page("curves", run=str(finished.mrn[0]))
    app.segmented_control(key="seeds").set_value("sd").run()
    assert "One seed has no spread" in words(app)


def test_a_diverged_loss_is_told(open_page: Open, filled: Filled) -> None:
    run_id = filled.live[0]
    rows = [StepMetrics(step, step / 75, 9.0, {("ner", "loss"): float("nan")}) for step in (261, 262)]
    Store.open().add_metrics(run_id, rows)
    app = open_page("curves", run=str(run_id))
    assert f"Run {run_id} has no number as its training loss of ner at 2 steps" in words(app) or (
        f"Run {run_id} has no number as its training loss of ner from step 261 on" in words(app)
    )


def test_a_curve_that_nobody_knows_is_offered_by_its_name(open_page: Open, filled: Filled) -> None:
    run_id = filled.live[0]
    rows = [StepMetrics(step, step / 75, 9.0, {(TOTAL, "grad_norm"): 1.5 * step}) for step in (1, 2, 3)]
    Store.open().add_metrics(run_id, rows)
    app = open_page("curves", run=str(run_id))
    app.segmented_control(key="metric").set_value("others").run()
    assert app.selectbox(key="number").options == ["grad_norm"]
    (large,) = figures(app, "curve_large")
    assert numbers(large["data"][0]["y"]) == [1.5, 3.0, 4.5]


def test_pictures_are_asked_for_once(open_page: Open, finished: Filled) -> None:
    app = open_page("curves", run=str(finished.mrn[0]))
    app.button(key="curve_svg").click().run()
    asked = component(app, "save")["save"]
    assert (asked["format"], asked["name"]) == ("svg", f"training-loss-total-runs-{finished.mrn[0]}")
    app.run()
    assert component(app, "save")["save"] is None


def test_an_ended_run_without_a_curve_says_what_to_do(open_page: Open, filled: Filled) -> None:
    store = Store.open()
    (queued,) = filled.queued[:1]
    store.request_stop(queued)
    assert store.run(queued).state is RunState.CANCELLED
    assert "These runs ended before they had this curve" in words(open_page("curves", run=str(queued)))
