"""What the browser gets of a picture, and the lines and points beside it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation.relation_verdicts import RELATED, UNDECIDED, CellVerdict
from core.mrn.relations import Block
from core.results.series import Series
from core.store.types import SnapshotKey
from dashboard.relations.charts import (
    AgainstLine,
    Course,
    against_chart,
    course_chart,
    player_frame,
    player_numbers,
)
from dashboard.relations.matrices import Axis, Panel, Picture
from dashboard.relations.views import AlignedSteps, Rows, row_meanings
from dashboard.theme import MATRIX_SCALE
from tests.pages.matrices import unpacked

STEPS = AlignedSteps(((SnapshotKey(5, 0.5), SnapshotKey(10, 1.0)),), (0.5, 1.0), exact=True, cut=False)


def axis(size: int, block: int = 1, start: int = 0) -> Axis:
    owners = tuple(("a",) if i < size // 2 else ("b",) for i in range(size))
    names = tuple(f"{task}:l{i}" for i, (task,) in enumerate(owners))
    return Axis(Rows(names, owners), start, start + block * size, block)


def picture(values: np.ndarray, block: int = 1, limit: float = 1.0, mode: str = "label") -> Picture:
    _, rows, columns = values.shape
    down = axis(rows, block)
    across = down if rows == columns else axis(columns, block, start=7)
    return Picture(
        mode, down, across, (Panel("Learned", "correlation", limit, values, (Block(0, 1, 1, 2),)),)
    )


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 9),
    steps=st.integers(1, 4),
    block=st.sampled_from([1, 4]),
    limit=st.sampled_from([0.02, 1.0, 2.0]),
)
def test_numbers_come_back_as_they_went(seed: int, rows: int, steps: int, block: int, limit: float) -> None:
    random = np.random.default_rng(seed)
    values = random.uniform(-limit, limit, size=(steps, rows, rows))
    values = (values + values.transpose(0, 2, 1)) / 2
    shown = picture(values, block, limit)
    spread = np.tile(np.arange(rows) / 7, (steps, 1))
    shown = dataclasses.replace(shown, panels=(dataclasses.replace(shown.panels[0], variances=spread),))
    header, (matrices,), (variances,) = unpacked(player_numbers(shown, "x", "id-1"))
    assert (header["name"], header["id"]) == ("x", "id-1")
    error = limit / (2 * (127 if block > 1 else 32767))
    np.testing.assert_allclose(matrices, values, atol=error * 1.001)
    assert variances[0].tolist() == pytest.approx(np.arange(rows) / 7)
    # A symmetric matrix travels as its upper half.
    assert header["panels"][0]["size"] == rows * (rows + 1) // 2


def test_a_part_travels_whole_and_no_number_is_told() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, size=(2, 3, 5))
    values[1, 2, 4] = np.nan
    header, (matrices,), _ = unpacked(player_numbers(picture(values), "x", "id"))
    assert header["panels"][0]["triangle"] is False
    np.testing.assert_allclose(matrices, values, atol=2e-5)
    assert np.isnan(matrices[1, 2, 4])


def test_the_frame_says_all_but_the_numbers() -> None:
    look = {"b": "#E69F00", "a": "#0072B2", "elsewhere": "#009E73"}
    frame = player_frame(picture(np.zeros((2, 4, 4))), STEPS, look, blocks=True)
    json.dumps(frame)
    assert frame["steps"] == [5, 10]
    assert frame["rows"]["short"] == ["l0", "l1", "l2", "l3"]
    assert frame["rows"]["stretches"] == [[0, 2, "a", "#0072B2"], [2, 4, "b", "#E69F00"]]
    assert frame["edges"] == [2]
    assert [task["name"] for task in frame["rows"]["legend"]] == ["b", "a"]
    assert frame["panels"][0]["impossible"] == [[0, 1, 1, 2]]
    shuffled = player_frame(picture(np.zeros((2, 4, 4))), STEPS, look, blocks=False)
    assert (shuffled["edges"], shuffled["stretches"]) == ([], False)


def test_labels_of_known_tag_sets_have_their_meanings() -> None:
    names = ("pos:NN", "pos:,", "chunk:I-NP", "chunk:O", "own:x")
    rows = Rows(names, tuple((name.partition(":")[0],) for name in names))
    assert row_meanings(rows) == {
        "pos:NN": "noun, singular or mass",
        "pos:,": "comma",
        "chunk:I-NP": "noun phrase, later word",
        "chunk:O": "no span",
    }
    # A row that tasks share is named by its label alone.
    assert row_meanings(Rows(("NN", ":"), (("a", "b"), ("a",)))) == {
        "NN": "noun, singular or mass",
        ":": "colon, semicolon or dash",
    }
    panels = (Panel("Learned", "correlation", 1.0, np.zeros((2, 5, 5))),)
    axis = Axis(rows, 0, 5, 1)
    frame = player_frame(Picture("label", axis, axis, panels), STEPS, {}, blocks=True)
    assert frame["rows"]["meanings"][2:] == ["noun phrase, later word", "no span", ""]


def test_features_are_named_where_they_are_single_or_in_order() -> None:
    coarse = player_frame(picture(np.zeros((1, 4, 4)), block=3, mode="feature"), STEPS, {}, blocks=True)
    assert coarse["named"]
    shuffled = player_frame(picture(np.zeros((1, 4, 4)), block=3, mode="feature"), STEPS, {}, blocks=False)
    assert not shuffled["named"]
    assert (coarse["rows"]["start"], coarse["rows"]["stop"], coarse["rows"]["block"]) == (0, 12, 3)
    fine = player_frame(picture(np.zeros((1, 4, 6)), mode="feature"), STEPS, {}, blocks=True)
    assert fine["named"]
    assert (fine["columns"]["start"], fine["columns"]["stop"]) == (7, 13)


def test_colours_are_neutral_at_zero_in_both_themes() -> None:
    for stops in MATRIX_SCALE.values():
        assert dict(stops)[0.5] == "var(--st-background-color)"
        assert [at for at, _ in stops] == sorted(at for at, _ in stops)
        assert (stops[0][0], stops[-1][0]) == (0, 1)


def test_a_line_over_training_is_thick_beside_its_thin_seeds() -> None:
    x, seeds = np.array([1.0, 5.0]), np.array([[0.0, 0.4], [0.0, 0.5], [0.0, 0.6]])
    single = course_chart([Course("a – b", "#0072B2", x, seeds[0])], 1, 200)
    assert single.layout["yaxis"]["range"] == pytest.approx((-0.018, 0.418))
    assert list(single.layout["yaxis"]["tickvals"]) == [0, 0.1, 0.2, 0.3, 0.4]
    assert list(single.layout["xaxis"]["tickvals"]) == [0, 1, 2, 3, 4, 5]
    # A line that stays high has an axis of its own reach, and what the alignment alone gives beside it.
    high = Course("a – b", "#0072B2", x, np.array([0.94, 0.95]))
    flat = course_chart([high], 1, 200, bound=True, alone=0.99)
    assert min(flat.layout["yaxis"]["tickvals"]) > 0.85
    assert [each["text"] for each in flat.layout["annotations"]] == ["alignment alone: 0.99"]
    # Its name stands where the line is farther away.
    rising = Course("a – b", "#0072B2", x, np.array([0.2, 0.95]))
    sides = [
        course_chart([rising], 1, 200, alone=at).layout["annotations"][0]["xanchor"] for at in (0.3, 0.8)
    ]
    assert sides == ["right", "left"]
    low = course_chart([Course("a – b", "#0072B2", x, np.array([0.02, -0.03]))], 1, 200, bound=True)
    assert [each["y"] for each in low.layout["annotations"]] == [0.1, -0.1]
    assert list(single.data[0]["x"]) == [1, 5]
    assert single.layout["yaxis"]["title"]["text"] == "Correlation"
    assert not single.layout["showlegend"]
    mean = Course("a – b", "#0072B2", x, seeds.mean(axis=0), seeds.std(axis=0, ddof=1), seeds)
    band, *thin, thick = course_chart([mean], 1, 200).data
    assert band["fill"] == "toself"
    assert {trace["line"]["width"] for trace in thin} == {1}
    assert (len(thin), thick["line"]["width"]) == (3, 2.4)
    assert thick["y"].tolist() == pytest.approx([0, 0.5])
    assert thick["text"] == ("0.000 ± 0.000", "0.500 ± 0.100")
    # Runs of other lengths share an axis of shares.
    two = course_chart([Course(name, "#0072B2", 20 * x, seeds[0]) for name in "ab"], 0, 200, by_share=True)
    assert "Share of training" in two.layout["xaxis"]["title"]["text"]
    assert two.layout["showlegend"]


def test_correlations_against_a_number_are_filled_where_decided() -> None:
    series = Series("lambda", {0.001: [], 0.01: [], 0.1: []})
    cells = {
        0.001: CellVerdict(0, 1, 0.05, (-0.5, 0.6), 1.0, UNDECIDED, False),
        0.1: CellVerdict(0, 1, 0.5, (0.4, 0.6), 0.001, RELATED, False),
    }
    figure = against_chart([AgainstLine("a – b", "#0072B2", cells)], series, 300)
    (line,) = figure.data
    assert list(line["x"]) == [0.001, 0.1]
    assert line["marker"]["symbol"] == ("circle-open", "circle")
    assert list(line["error_y"]["array"]) == pytest.approx([0.55, 0.1])
    assert figure.layout["xaxis"]["type"] == "log"
    assert figure.layout["yaxis"]["title"]["text"] == "Correlation"
    assert figure.layout["xaxis"]["ticktext"] == ("0.001", "0.1")
    # Two lines stand beside each other.
    two = against_chart([AgainstLine(name, "#0072B2", cells) for name in "ab"], series, 300).data
    assert two[0]["x"][0] < 0.001 < two[1]["x"][0]
