"""Figures from views: what is drawn, in which colours and scales."""

from __future__ import annotations

import base64
import dataclasses
import json

import numpy as np
import plotly.graph_objects as go
import pytest

from core.mrn.rows import Block
from core.store import RunState
from core.store.records import SnapshotKey
from dashboard.charts import curve_chart, matrix_chart, pair_chart, planted_chart, small_multiples
from dashboard.queries.curves import METRICS, Curve, CurvesView
from dashboard.queries.relation_numbers import Planted, PlantedPair
from dashboard.queries.relations import PairLine, RelationsView
from dashboard.theme import DASHES, DIVERGING, STATES, TASK_COLOURS, TEXT, colours, faint, order_tasks


def curve(run_id: int, paradigm: str, task: str = "", raw: bool = False, name: str = "a run") -> Curve:
    x = np.arange(4.0)
    y = x + run_id
    return Curve(run_id, name, task, paradigm, 0, x, y, x if raw else None, y if raw else None, float(y[-1]))


def view(*lines: Curve, by_task: dict[str, tuple[Curve, ...]] | None = None) -> CurvesView:
    return CurvesView(METRICS["dev-score"], "step", tuple(lines), by_task or {})


def numbers(value: object) -> list[float]:
    """The numbers of a typed array as the browser gets it."""
    assert isinstance(value, dict)
    return np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"]).tolist()


def test_a_paradigm_has_one_line_style() -> None:
    chart = curve_chart(
        view(curve(1, "stl", "ner"), curve(2, "mtl"), curve(3, "mrn")), colours(["pos", "ner"])
    )
    assert [trace.line.dash for trace in chart.data] == ["dot", "dash", "solid"]
    assert set(DASHES) == {"stl", "mtl", "mrn"}


def test_a_task_has_its_colour_in_every_chart() -> None:
    look = colours(["pos", "chunk", "ner"])
    chart = curve_chart(view(curve(1, "stl", "ner")), look)
    assert chart.data[0].line.color == look["ner"] == TASK_COLOURS[2]
    small = small_multiples(view(by_task={"ner": (curve(1, "mrn", "ner"), curve(2, "mtl", "ner"))}), look)
    assert [trace.line.color for trace in small["ner"].data] == [look["ner"]] * 2


def test_small_charts_share_their_range() -> None:
    lines = {"pos": (curve(1, "mrn", "pos"),), "ner": (curve(50, "mrn", "ner"),)}
    charts = small_multiples(view(by_task=lines), colours(lines))
    ranges = {tuple(chart.layout.yaxis.range) for chart in charts.values()}
    assert len(ranges) == 1
    (low, high) = ranges.pop()
    assert low < 1
    assert high > 53


def test_smoothing_keeps_the_raw_line_faint() -> None:
    chart = curve_chart(view(curve(1, "mrn", raw=True)), {})
    raw, smoothed = chart.data
    assert raw.line.color.endswith("0.22)")
    assert raw.hoverinfo == "skip"
    assert smoothed.line.width > raw.line.width


def test_a_marked_run_stands_out() -> None:
    chart = curve_chart(view(curve(1, "mrn"), curve(2, "mtl")), {}, marked=2)
    assert [trace.opacity for trace in chart.data] == [0.18, 1.0]


def test_arrays_travel_as_typed_arrays() -> None:
    data = json.loads(curve_chart(view(curve(1, "mrn")), {}).to_json())["data"][0]
    assert data["y"]["dtype"] == "f4"
    assert numbers(data["y"]) == [1, 2, 3, 4]


def test_user_text_in_a_chart_is_text() -> None:
    chart = curve_chart(view(curve(1, "mrn", name="<b>x</b> %{y}")), {})
    assert "<b>" not in chart.data[0].hovertemplate.replace("<br>", "").replace("<extra></extra>", "")
    assert "%{y}" not in chart.data[0].name


def test_an_empty_view_draws_an_empty_chart() -> None:
    chart = curve_chart(view(), {})
    assert not chart.data
    assert "see the tasks below" in chart.layout.annotations[0].text
    assert small_multiples(view(), {}) == {}


def relations_view(mode: str, size: int, impossible: tuple[Block, ...] = ()) -> RelationsView:
    matrix = np.linspace(-1, 1, size * size, dtype=np.float32).reshape(size, size)
    names = tuple(f"t{i % 2}:l{i}" for i in range(size))
    owners = tuple(("a",) if i < size // 2 else ("b",) for i in range(size))
    rows = tuple(range(size))
    return RelationsView(mode, SnapshotKey(5, 0.5), names, names, owners, matrix, 1, impossible, (), rows)


def heat(chart: go.Figure) -> go.Heatmap:
    return chart.data[0]


def test_matrix_colours_are_fixed_and_neutral_at_zero() -> None:
    trace = heat(matrix_chart(relations_view("task", 3)))
    assert (trace.zmin, trace.zmax) == (-1, 1)
    assert dict(DIVERGING)[0.5] == "var(--st-background-color)"
    assert [stop[0] for stop in trace.colorscale] == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(("size", "written"), [(3, 9), (12, 144), (13, 0)])
def test_numbers_in_cells_up_to_twelve(size: int, written: int) -> None:
    text = heat(matrix_chart(relations_view("task", size))).text
    assert sum(map(len, text or [])) == written


def test_labels_are_short_in_their_block_and_whole_on_hover() -> None:
    chart = matrix_chart(relations_view("label", 20), {"a": "#0072B2", "b": "#E69F00"})
    assert chart.layout.xaxis.ticktext[3] == "l3"
    assert heat(chart).customdata[0][1] == "t0:l0 and t1:l1"
    assert {note.text for note in chart.layout.annotations} == {"<b>a</b>", "<b>b</b>"}
    assert [shape.type for shape in chart.layout.shapes] == ["rect", "line", "line"]
    assert chart.layout.meta["rows"] == 20


def test_a_negative_zero_is_written_as_zero() -> None:
    view = dataclasses.replace(relations_view("task", 2), matrix=np.array([[1, -1e-4], [-0.2, 1]]))
    assert heat(matrix_chart(view)).text == (["1.00", "0.00"], ["−0.20", "1.00"])


def test_planted_and_learned_are_a_point_per_task() -> None:
    pairs = tuple(PlantedPair(f"sim-{i}", 0.9, i / 10, (10 - i) / 10) for i in range(3))
    chart = planted_chart(Planted("pos", pairs, None), {"sim-1": "#0072B2"})
    (points,) = chart.data
    assert points.x.tolist() == pytest.approx([0, 0.1, 0.2])
    assert points.y.tolist() == pytest.approx([1, 0.9, 0.8])
    assert list(points.marker.color) == [TEXT, "#0072B2", TEXT]
    assert points.mode == "markers+text"
    many = Planted("pos", pairs * 5, None)
    assert planted_chart(many, {}).data[0].mode == "markers"


def test_blocks_are_named_where_there_is_room() -> None:
    view = relations_view("label", 60)
    many = tuple(f"task-{i}" for i in range(5))
    owners = (many,) * 30 + (("a", "b"),) * 28 + (("long-name",),) * 2
    chart = matrix_chart(dataclasses.replace(view, owners=owners))
    assert {note.text for note in chart.layout.annotations} == {"<b>5 tasks</b>", "<b>a + b</b>"}


def test_what_is_impossible_is_hatched() -> None:
    chart = matrix_chart(relations_view("task", 4, (Block(0, 2, 2, 4),)))
    hatch = chart.data[1]
    assert hatch.marker.pattern.shape == "/"
    assert (hatch.x[0], hatch.width[0], hatch.base[0], hatch.y[0]) == (2.5, 2, -0.5, 2)
    # No number is written into a cell that holds none.
    assert [bool(cell) for cell in heat(chart).text[0]] == [True, True, False, False]


def test_pair_line_runs_from_minus_one_to_one() -> None:
    chart = pair_chart(PairLine("a", "b", np.array([1, 5]), np.array([0.0, 0.4])), at_step=5)
    assert tuple(chart.layout.yaxis.range) == (-1.05, 1.05)
    assert list(chart.data[0].x) == [1, 5]


def test_look_of_states_and_tasks() -> None:
    assert set(STATES) == set(RunState)
    assert len({look.word for look in STATES.values()}) == len(STATES)
    assert len({look.mark for look in STATES.values()}) == len(STATES)
    many = colours(f"t{i}" for i in range(12))
    assert many["t0"] == "#0072B2"
    assert many["t11"] == TASK_COLOURS[-1]
    assert faint("#0072B2", 0.5) == "rgba(0,114,178,0.5)"
    assert order_tasks([("b", "a"), ("a", "c")]) == ["b", "a", "c"]
