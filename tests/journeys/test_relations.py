"""Relations in a real browser: played without the server, compared, clustered, zoomed into, saved."""

from __future__ import annotations

import csv
import io
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.results.relations import seeds_of
from core.store import Store
from core.store.types import SnapshotKey
from tests.journeys.browser import browser_page, picture
from tests.journeys.conftest import Laboratory
from tests.supervised import wait_for

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_PIXELS = """(root) => {
    const canvas = root.querySelector('canvas')
    return Array.from(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data)
        .reduce((sum, value, at) => (sum + value * (at % 251)) % 1000003, 0)
}"""


def player(page: Page) -> Locator:
    """The player, once it has painted."""
    root = page.locator("#root[data-step]")
    root.wait_for()
    return root


def opened(page: Page, laboratory: Laboratory, **query: str) -> Locator:
    page.goto(laboratory.link("relations", **query))
    return player(page)


def stored(laboratory: Laboratory, run_id: int, step: int | None = None) -> tuple[SnapshotKey, Any]:
    store = Store.open(f"sqlite:///{laboratory.home / 'runs.db'}")
    try:
        return store.relations(run_id, step)
    finally:
        store.close()


def seeds_of_first(laboratory: Laboratory) -> str:
    """All seeds of the first MRN configuration, as the address has them."""
    store = Store.open(f"sqlite:///{laboratory.home / 'runs.db'}")
    try:
        return ",".join(map(str, seeds_of(store, laboratory.filled.mrn[0])))
    finally:
        store.close()


def at(root: Locator, across: float, down: float) -> tuple[float, float]:
    """A place of the picture, as shares of it."""
    box = root.locator(".stage").bounding_box()
    assert box is not None
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def repainted(root: Locator, before: int) -> None:
    """Waits for another picture than that."""
    wait_for(lambda: root.evaluate(_PIXELS) != before)


def values_of(page: Page, root: Locator) -> list[list[str]]:
    """What the reader gets as CSV."""
    with page.expect_download() as saved:
        root.get_by_role("button", name="CSV").click()
    return list(csv.reader(io.StringIO(saved.value.path().read_text(encoding="utf-8"))))


def test_play_moves_in_the_browser_and_the_page_follows(filled_laboratory: Laboratory, page: Page) -> None:
    run = filled_laboratory.filled.mrn[0]
    root = opened(page, filled_laboratory, run=str(run))
    last = root.get_attribute("data-step")
    assert last == "600"
    _a_cell_shows_its_line(page, root, stored(filled_laboratory, run)[1].correlation("task")[0, 1])
    before = root.evaluate(_PIXELS)
    root.get_by_role("button", name="Play").click()
    expect(root).not_to_have_attribute("data-step", last)
    repainted(root, before)
    root.get_by_role("button", name="Pause").click()
    paused = root.get_attribute("data-step")
    # Pairs, numbers, words and the link follow.
    page.wait_for_url(re.compile(rf"step={paused}\b"))
    expect(root).to_have_attribute("data-step", paused or "")
    slider = root.get_by_role("slider", name="Training step")
    slider.press("Home")
    expect(root).to_have_attribute("data-step", "1")
    slider.press("ArrowRight")
    expect(root).to_have_attribute("data-step", "32")
    slider.press("End")
    page.wait_for_url(lambda url: "step=" not in url)
    # How long each step took is measured for tests.benchmarks.pages.
    assert page.evaluate("() => performance.getEntriesByName('relations-step').length") > 5


def _a_cell_shows_its_line(page: Page, root: Locator, correlation: float) -> None:
    """By a click, by the keys, and from the list."""
    cells = root.locator(".stage > svg text[text-anchor=middle][dominant-baseline=central]")
    cells.nth(7).click()  # third row, second column
    page.wait_for_url(re.compile("pair=ner&pair=chunk|pair=chunk&pair=ner"))
    page.mouse.move(5, 5)
    stage = root.locator(".stage")
    stage.focus()
    stage.press("ArrowRight")
    stage.press("ArrowRight")
    expect(root.locator(".tip .names")).to_have_text(re.compile(r"pos\s+×\s+chunk"))
    shown = root.locator(".tip dd").first.inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(correlation, abs=1e-3)
    stage.press("Enter")
    page.wait_for_url(re.compile("pair=pos&pair=chunk|pair=chunk&pair=pos"))
    chosen = page.get_by_role("table", name="Strongest pairs").locator("[aria-pressed=true]")
    expect(chosen).to_have_text("pos – chunk")
    page.get_by_role("button", name="pos – ner").click()
    page.wait_for_url(re.compile("pair=pos&pair=ner"))
    expect(chosen).to_have_text("pos – ner")
    picture(page, "relations-pair")


def test_configurations_beside_each_other_one_seed_and_gold_labels(
    filled_laboratory: Laboratory, page: Page
) -> None:
    seeds = seeds_of_first(filled_laboratory)
    beside = f"{seeds},{filled_laboratory.filled.disjoint[0]}"
    root = opened(page, filled_laboratory, run=beside, mode="Labels")
    expect(root.get_by_text("mean of 3 seeds").first).to_be_visible()
    expect(page.locator("[data-tag]")).to_have_count(2)
    picture(page, "relations-configurations")
    page.get_by_role("combobox", name="Seeds").click()
    page.get_by_role("option", name="Seed 2").click()
    page.wait_for_url(re.compile("seed="))
    expect(page.get_by_text("Nothing is decided by seed 2 alone.")).to_be_visible()
    root = opened(page, filled_laboratory, run=seeds, mode="Labels", gold="true")
    expect(root.get_by_text("Gold labels").first).to_be_visible()
    plain = root.evaluate(_PIXELS)
    page.get_by_role("radio", name="Clustered").click()
    page.wait_for_url(re.compile("order=Clustered"))
    repainted(root, plain)
    expect(page.get_by_text("Rank correlation of learned and gold")).to_be_visible()
    picture(page, "relations-clustered-gold")


def test_zoom_into_features_gives_the_stored_values(filled_laboratory: Laboratory, page: Page) -> None:
    run = filled_laboratory.filled.mrn[0]
    root = opened(page, filled_laboratory, run=str(run), mode="Features")
    page.mouse.move(*at(root, 0.3, 0.3))
    expect(root.locator(".tip dd").first).to_contain_text("≈")
    page.mouse.click(*at(root, 0.3, 0.3))
    page.wait_for_url(re.compile("zoom="))
    expect(root.get_by_role("button", name="Whole matrix")).to_be_visible()
    rows = values_of(page, root)
    assert rows[0][-1] == "relative variance"
    columns = [int(name.removeprefix("feature ")) for name in rows[0][1:-1]]
    features = [int(row[0].removeprefix("feature ")) for row in rows[1:]]
    assert len(features) == 64
    _, learned = stored(filled_laboratory, run)
    exact = learned.correlation("feature")[np.ix_(features, columns)]
    copied = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(copied[:, :-1], exact, atol=1e-4)
    variances = np.diagonal(learned.covariance("feature"))
    np.testing.assert_allclose(copied[:, -1], (variances / variances.mean())[features], rtol=1e-3)
    picture(page, "relations-zoom")
    saved_pictures = {}
    for kind in ("png", "svg"):
        with page.expect_download() as saved:
            root.get_by_role("button", name=kind.upper()).click()
        assert saved.value.suggested_filename == f"relations-feature-run-{run}-step-600.{kind}"
        saved_pictures[kind] = saved.value.path().read_bytes()
    assert saved_pictures["png"].startswith(b"\x89PNG")
    svg = ElementTree.fromstring(saved_pictures["svg"])
    squares = svg.findall("./{*}g[1]/{*}rect")
    # A background, and a square for each cell, in other colours where it is another correlation.
    assert len(squares) == 1 + exact.size
    assert len({square.get("fill") for square in squares}) > 20
    root.get_by_role("button", name="Whole matrix").click()
    page.wait_for_url(lambda url: "zoom=" not in url)


def test_what_cannot_be_learned_is_hatched_in_the_dark_too(
    filled_laboratory: Laboratory, browser: Browser
) -> None:
    run = filled_laboratory.filled.disjoint[0]
    with browser_page(browser, dark=True) as (page, elsewhere, errors):
        root = opened(page, filled_laboratory, run=str(run), mode="Labels")
        expect(root.get_by_text("cannot be learned").first).to_be_visible()
        assert root.locator("path.impossible").count() == 1
        page.mouse.move(*at(root, 0.75, 0.3))
        expect(
            root.get_by_text("Cannot be learned: the alignment shares no label between these two.")
        ).to_be_visible()
        picture(page, "relations-impossible-dark")
        assert not errors
        assert not elsewhere


@pytest.mark.parametrize("width", [1440, 390])
def test_every_matrix_is_readable(width: int, filled_laboratory: Laboratory, page: Page) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    run = str(filled_laboratory.filled.mrn[0])
    for query in ({}, {"mode": "Labels", "gold": "true"}, {"mode": "Features"}):
        root = opened(page, filled_laboratory, run=run, **query)
        sizes = root.locator(".stage text").evaluate_all(
            "(texts) => texts.map((text) => text.attributes['font-size'].value)"
        )
        assert min(map(float, sizes)) >= 11
        # The variances of tasks and labels are equal there.
        if query.get("mode") == "Features":
            expect(root.get_by_text("variance").first).to_be_visible()
            expect(root.locator("text.tick").first).to_have_text("1")
        else:
            expect(root.get_by_text("variance")).to_have_count(0)
        if not query:
            boxes = [
                root.locator(".stage text").get_by_text("1.00").nth(place).bounding_box() for place in (0, 2)
            ]
            assert boxes[0] is not None
            assert boxes[1] is not None
            assert 1.5 * (boxes[1]["x"] - boxes[0]["x"]) <= 420
        if not query and width == 1440:
            line = page.locator(".st-key-relations_course").bounding_box()
            assert line is not None
            assert line["y"] + line["height"] < 1000


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_seeds_have_verdicts_with_intervals_and_controls_to_launch(
    look: str, filled_laboratory: Laboratory, browser: Browser
) -> None:
    with browser_page(browser, dark=look == "dark") as (page, elsewhere, errors):
        if look == "narrow":
            page.set_viewport_size({"width": 390, "height": 1400})
        root = opened(page, filled_laboratory, run=seeds_of_first(filled_laboratory))
        expect(page.get_by_text("Against ±0.1 over 3 seeds")).to_be_visible()
        expect(root.locator(".stage > svg").get_by_text("undecided", exact=True)).to_be_visible()
        cells = root.locator(".stage > svg text[text-anchor=middle][dominant-baseline=central]")
        cells.nth(1).hover()
        expect(root.locator(".tip").get_by_text("Verdict")).to_be_visible()
        expect(root.locator(".tip").get_by_text("95% interval of the mean")).to_be_visible()
        picture(page, f"relations-verdicts-{look}")
        saved = {(row[0].partition(": ")[2], row[1]): row[2:] for row in values_of(page, root)}
        words = saved["verdict", "pos"]
        assert words[0] == ""
        assert {*words[1:3]} <= {"related", "opposed", "none that matters", "undecided"}
        low, mean, high = (float(saved[part, "pos"][1]) for part in ("low", "", "high"))
        assert low < mean < high
        # Verdicts are of the last step.
        root.get_by_role("slider", name="Training step").press("Home")
        cells.nth(1).hover()
        expect(root.locator(".tip").get_by_text("Verdict")).to_have_count(0)
        page.get_by_role("button", name="Launch controls").first.click()
        expect(page.get_by_text("Tasks to shuffle")).to_be_visible()
        expect(page.get_by_text(re.compile(r"^6 runs"))).to_be_visible()
        picture(page, f"relations-controls-{look}")
        assert not errors
        assert not elsewhere
