"""The look in numbers: text that can be read (WCAG AA), tasks that colour-blind readers tell apart."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.store import RunState, Store
from dashboard.theme import (
    PARADIGM_COLOURS,
    RAMP,
    STATES,
    TASK_COLOURS,
    colours,
    configuration_colours,
    faint,
    of_theme,
    order_tasks,
)

SETTINGS = Path(__file__).resolve().parents[2] / "dashboard" / ".streamlit" / "config.toml"
THEMES: dict[str, dict[str, Any]] = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["theme"]
MODES = ("light", "dark")
TEXT, SHAPE = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11
# How much of its colour Streamlit puts into the background of a badge.
BADGE = {"light": 0.1, "dark": 0.2}

# Machado, Oliveira and Fernandes 2009, at full strength, in linear RGB.
SIGHTS = {
    "all colours": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
APART, GLANCE = 15.0, 10.0
"""In units of CIELAB, where 2.3 is just seen and 10 is seen at a glance."""

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
Colour = NDArray[np.float64]


def _rgb(text: str) -> Colour:
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _linear(rgb: Colour) -> Colour:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _contrast(first: Colour, second: Colour) -> float:
    low, high = sorted(float(_TO_XYZ[1] @ _linear(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def _lab(linear: Colour) -> Colour:
    x, y, z = np.cbrt(_TO_XYZ @ np.clip(linear, 0, 1) / (_TO_XYZ @ np.ones(3)))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_black_on_white_is_21() -> None:
    assert _contrast(np.zeros(3), np.ones(3)) == pytest.approx(21)
    assert _lab(np.ones(3)) == pytest.approx([100, 0, 0], abs=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_labels_of_every_task_can_be_read(mode: str) -> None:
    """Also under the pointer, where a cell takes on a little of the task's colour."""
    css = (SETTINGS.parents[1] / "components" / "sentence.css").read_text(encoding="utf-8")
    mixes = re.findall(
        r"color-mix\(in srgb, var\(--task\) (\d+)%, (var\(--st-text-color\)|transparent)\)", css
    )
    shares = {ground: int(share) / 100 for share, ground in mixes}
    text, ground = (_rgb(THEMES[mode][name]) for name in ("textColor", "backgroundColor"))
    for colour in map(_rgb, TASK_COLOURS):
        label = _mixed(colour, text, shares["var(--st-text-color)"])
        for behind in (ground, _mixed(colour, ground, shares["transparent"])):
            assert _contrast(label, behind) >= TEXT, colour


def _mixed(colour: Colour, ground: Colour, share: float) -> Colour:
    return share * colour + (1 - share) * ground


@pytest.mark.parametrize("mode", MODES)
def test_text_can_be_read(mode: str) -> None:
    theme = THEMES[mode]
    of_page, of_sidebar = theme["backgroundColor"], theme["sidebar"]["backgroundColor"]
    grounds = (of_page, theme["secondaryBackgroundColor"], of_sidebar)
    # Grey are the axes of charts and the heads of tables.
    for name in ("textColor", "linkColor", "grayColor"):
        for ground in grounds:
            assert _contrast(_rgb(theme[name]), _rgb(ground)) >= TEXT, (name, ground)


@pytest.mark.parametrize("mode", MODES)
def test_states_can_be_read(mode: str) -> None:
    """The word of a state, as text on the page and on its badge."""
    theme = THEMES[mode]
    page, share = _rgb(theme["backgroundColor"]), BADGE[mode]
    for colour in {look.colour for look in STATES.values()}:
        text = _rgb(theme[f"{colour}TextColor"])
        badge = share * _rgb(theme[f"{colour}Color"]) + (1 - share) * page
        assert _contrast(text, page) >= TEXT, colour
        assert _contrast(text, badge) >= TEXT, colour


@pytest.mark.parametrize("mode", MODES)
def test_the_accent_can_be_seen_and_written_on(mode: str) -> None:
    accent = _rgb(THEMES[mode]["primaryColor"])
    assert _contrast(accent, np.ones(3)) >= TEXT  # Streamlit writes on it in white
    assert _contrast(accent, _rgb(THEMES[mode]["backgroundColor"])) >= SHAPE


@pytest.mark.parametrize("mode", MODES)
def test_lines_of_every_configuration_can_be_seen(mode: str) -> None:
    assert len(set(RAMP)) == len(RAMP)
    for colour in RAMP:
        assert _contrast(_rgb(colour), _rgb(THEMES[mode]["backgroundColor"])) >= SHAPE


def test_the_dotted_line_of_stl_can_be_seen_in_the_dark() -> None:
    """Half of a dotted line is page, so that on near-black it is half as bright as its colour."""
    page = _rgb(THEMES["dark"]["backgroundColor"])
    line = _rgb(PARADIGM_COLOURS["stl"][1])
    bright, dark = (float(_TO_XYZ[1] @ _linear(colour)) for colour in (line, page))
    assert ((bright + dark) / 2 + 0.05) / (dark + 0.05) >= SHAPE


def _shown(colour: str, mode: str) -> str:
    """A colour of a configuration as the components resolve it."""
    pair = re.fullmatch(r"light-dark\((#\w+),(#\w+)\)", colour)
    return colour if pair is None else pair[1 + MODES.index(mode)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_lines_of_paradigms_and_of_each_lambda_can_be_seen(mode: str, count: int) -> None:
    kinds = [("stl", None), ("mtl", None), *(("mrn", 10.0**place) for place in range(count))]
    for colour in configuration_colours(kinds):
        assert _contrast(_rgb(_shown(colour, mode)), _rgb(THEMES[mode]["backgroundColor"])) >= SHAPE, colour


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_paradigms_and_five_lambdas_are_told_apart(mode: str, sight: str, count: int) -> None:
    kinds = [("stl", None), ("mtl", None), *(("mrn", 10.0**place) for place in range(count))]
    colours = [_shown(colour, mode) for colour in configuration_colours(kinds)]
    seen = [_lab(SIGHTS[sight] @ _linear(_rgb(colour))) for colour in colours]
    for (one, first), (other, second) in itertools.combinations(zip(colours, seen, strict=True), 2):
        assert np.linalg.norm(first - second) >= GLANCE, (one, other)


def test_a_larger_lambda_stands_out_more_from_the_page() -> None:
    for mode in MODES:
        page = _rgb(THEMES[mode]["backgroundColor"])
        colours = configuration_colours([("mrn", strength) for strength in (0.3, 0.001, 0.01)])
        contrasts = [_contrast(_rgb(_shown(colour, mode)), page) for colour in colours]
        assert contrasts[1] < contrasts[2] < contrasts[0]


def test_configurations_of_one_paradigm_have_further_colours() -> None:
    first, second, third, other = configuration_colours(
        [("mtl", None), ("mtl", None), ("mrn", 0.1), ("other", None)]
    )
    assert first == of_theme(*PARADIGM_COLOURS["mtl"])
    assert (second, other) == (RAMP[1], RAMP[2])
    assert third == of_theme(*PARADIGM_COLOURS["mrn"])
    assert faint(first, 0.5) == "light-dark(rgba(86,97,107,0.5),rgba(195,203,209,0.5))"


def test_scripts_of_charts_have_no_table_of_colours_beside_the_themes() -> None:
    """But that of a picture for paper, which is white in both themes."""
    components = SETTINGS.parents[1] / "components"
    for script in (components / name for name in ("chart.js", "curve_legend.js", "marks.js")):
        text = re.sub(r"const PAPER = \{.*?\n\}", "", script.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r'"#[0-9A-Fa-f]{6}"', text), script.name


@pytest.mark.parametrize("sight", SIGHTS)
def test_tasks_are_told_apart(sight: str) -> None:
    seen = {colour: _lab(SIGHTS[sight] @ _linear(_rgb(colour))) for colour in TASK_COLOURS}
    for first, second in itertools.combinations(TASK_COLOURS, 2):
        assert np.linalg.norm(seen[first] - seen[second]) >= APART, (first, second)


@given(st.lists(st.lists(st.sampled_from("abcdefghijklmn"), min_size=1, max_size=12, unique=True)), st.data())
def test_a_task_keeps_the_colour_that_it_was_given(corpora: list[list[str]], data: st.DataObject) -> None:
    """Whatever corpora come later, and whichever runs are deleted."""
    store = Store.open("sqlite://")
    given_places: dict[str, int] = {}
    for count in range(1, len(corpora) + 1):
        shown = data.draw(st.lists(st.sampled_from(corpora[:count])))
        places = store.task_places([*shown, corpora[count - 1]])
        assert given_places.items() <= places.items()
        new = [task for task in corpora[count - 1] if task not in given_places]
        others = {places[task] for task in corpora[count - 1]} - {places[task] for task in new}
        assert len({places[task] for task in new} - others) == len(new)
        given_places = places
    store.close()


def test_twelve_tasks_have_twelve_colours_in_a_store_of_other_corpora() -> None:
    store = Store.open("sqlite://")
    tasks = [f"task {index}" for index in range(12)]
    alone = Store.open("sqlite://")
    store.task_places([["other", "task 30"]])
    places = store.task_places([tasks])
    assert {task: places[task] for task in tasks} == alone.task_places([tasks])
    assert len(set(colours(tasks).values())) == 12
    store.close()
    alone.close()


@pytest.mark.parametrize("mode", MODES)
def test_charts_of_streamlit_have_the_tasks_colours(mode: str) -> None:
    assert tuple(THEMES[mode]["chartCategoricalColors"]) == TASK_COLOURS


def test_every_state_task_and_paradigm_has_a_look() -> None:
    assert set(STATES) == set(RunState)
    # No state is told by its colour alone, and no two look the same without it.
    for part in ("word", "icon", "mark"):
        assert len({getattr(look, part) for look in STATES.values()} - {""}) == 7
    blue, orange, green, *_ = TASK_COLOURS
    # A colour that was given stays; the others are taken in turn, and repeat when all are.
    assert colours("abc", {"b": blue, "x": orange}) == {"a": orange, "b": blue, "c": green}
    assert tuple(colours(map(str, range(13))).values()) == (*TASK_COLOURS, blue)
    assert faint("#0072B2", 0.5) == "rgba(0,114,178,0.5)"
    assert order_tasks([("b", "a"), ("a", "c")]) == ["b", "a", "c"]


@pytest.mark.parametrize("mode", MODES)
def test_the_lines_under_labels_can_be_seen(mode: str) -> None:
    """On the page and on a tinted word."""
    style = (SETTINGS.parents[1] / "components" / "sentence.css").read_text(encoding="utf-8")
    (line,) = re.findall(r"--drawn: color-mix\(in srgb, var\(--task\) (\d+)%", style)
    (tint,) = re.findall(r"in-question \{ .*?var\(--st-orange-color\) (\d+)%", style)
    theme = {name: _rgb(value) for name, value in THEMES[mode].items() if str(value).startswith("#")}
    share, amber = int(line) / 100, int(tint) / 100
    page = theme["backgroundColor"]
    for colour, ground in itertools.product(
        TASK_COLOURS, (page, amber * theme["orangeColor"] + (1 - amber) * page)
    ):
        drawn = share * _rgb(colour) + (1 - share) * theme["textColor"]
        assert _contrast(drawn, ground) >= SHAPE, (share, colour)
