"""Curves in a real browser: bands, zoom and hidden lines over live updates, pictures and tables as files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Download, Page, expect

from core.metrics import TOTAL, StepMetrics
from core.recording.owner import this_process
from core.store import MetricKey, RunState, Store
from dashboard.components.charts import read_asset
from tests.journeys.browser import picture
from tests.journeys.conftest import Laboratory
from tests.pages.filled_store import TASKS

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_CHART = """() => {
    const chart = document.querySelector('.js-plotly-plot')
    if (!chart?._fullData) return null
    const ends = chart._fullData.filter((trace) => trace.showlegend).map((trace) => trace.x.at(-1))
    return {
        lines: ends.length,
        last: Math.max(...ends),
        bands: chart._fullData.filter((trace) => trace.fill === 'toself').length,
        range: chart.layout.xaxis.range.map(Math.round),
        tip: [...document.querySelectorAll('.chart-tip:not([hidden]) td:nth-child(2)')]
            .map((cell) => cell.textContent),
        same: chart.dataset.same ?? 'no',
    }
}"""

# The small charts show the part of x that the large one does.
_SAME_RANGES = """() => {
    const charts = [...document.querySelectorAll('.js-plotly-plot')]
    const ranges = charts.map((chart) => String(chart.layout.xaxis.range))
    return ranges.length === 4 && new Set(ranges).size === 1
}"""

_BUTTONS = "() => [...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)"


@dataclass(frozen=True)
class Live:
    """An app over finished runs and one that this test trains."""

    address: str
    store: Store
    mtl: list[int]
    run_id: int

    def train(self, first: int, last: int) -> None:
        """Losses of the steps first..last."""
        rows = []
        for step in range(first, last + 1):
            loss = {(task, "loss"): 1.5 / step**0.5 + 0.01 * (step % 7) for task in TASKS}
            values = loss | {(TOTAL, "loss"): sum(loss.values())}
            rows.append(StepMetrics(step, step / 75, 0.04 * step, values))
        self.store.add_metrics(self.run_id, rows)


@pytest.fixture
def live(filled_laboratory: Laboratory, store: Store) -> Iterator[Live]:
    ended = store.runs(states={RunState.SUCCEEDED})
    mtl = [run.id for run in ended if run.config.paradigm == "mtl"]
    (run_id,) = store.add_runs([store.run(mtl[0]).config.with_(seed=4)])
    assert store.claim(this_process())
    yield Live(filled_laboratory.address, store, mtl, run_id)
    if store.state(run_id) is RunState.RUNNING:
        store.request_stop(run_id)
        store.finish(run_id, RunState.CANCELLED)


def test_curves_live_zoomed_hidden_and_saved(live: Live, page: Page) -> None:
    live.train(1, 800)
    mrn = 1
    runs = ",".join(map(str, [*live.mtl, live.run_id, mrn]))
    page.goto(f"{live.address}/curves?run={runs}&metric=Training+loss&seeds=Each+run")
    _await(page, "(chart) => chart.lines === 5 && chart.bands === 0 && chart.last === 800")
    page.locator(".modebar-btn").first.wait_for(state="attached")
    assert page.evaluate(_BUTTONS) == ["Zoom", "Pan", "Zoom in", "Zoom out", "Autoscale"]  # none uploads
    picture(page, "curves-lines")
    _zoom_holds_over_updates(page, live)
    _lines_are_hidden(page, live)
    _bands(page)
    live.store.request_stop(live.run_id)
    live.store.finish(live.run_id, RunState.CANCELLED)
    expect(page.get_by_text("Idle")).to_be_visible()
    _files(page, live)


def _await(page: Page, condition: str) -> dict[str, Any]:
    page.wait_for_function(
        f"() => {{ const chart = ({_CHART})(); return chart && ({condition})(chart) }}", polling=200
    )
    chart: dict[str, Any] = page.evaluate(_CHART)
    return chart


def _zoom_holds_over_updates(page: Page, live: Live) -> None:
    page.evaluate("() => { document.querySelector('.js-plotly-plot').dataset.same = 'yes' }")
    box = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert box is not None
    top = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.4 * box["width"], top)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], top, steps=4)
    page.mouse.up()
    zoomed = _await(page, "(chart) => chart.range[0] > 280 && chart.range[1] < 440")
    page.wait_for_url(re.compile("[?&]x="))
    page.wait_for_function(_SAME_RANGES, polling=200)
    page.mouse.move(box["x"] + 0.7 * box["width"], top)
    of_mtl = [f"MTL · seed {seed}" for seed in (1, 2, 3, 4)]
    tip = _await(page, "(chart) => chart.tip.length > 0")["tip"]
    assert sorted(tip) == ["MRN λ=0.01 · seed 1", *of_mtl]
    live.train(801, 850)
    after = _await(page, "(chart) => chart.last === 850")
    assert after["range"] == zoomed["range"]
    assert after["same"] == "yes"
    _await(page, "(chart) => chart.tip.length === 5")
    picture(page, "curves-zoomed")
    page.locator("[data-title='Autoscale']").click()
    _await(page, "(chart) => chart.range[0] === 0 && chart.range[1] >= 850")
    page.wait_for_url(lambda url: not re.search("[?&]x=", url))


def _lines_are_hidden(page: Page, live: Live) -> None:
    page.get_by_role("button", name="4 runs of MTL").click()
    name = f"Show MTL, seed {live.store.run(live.mtl[0]).config.seed}"
    page.get_by_role("checkbox", name=name).uncheck()
    _await(page, "(chart) => chart.lines === 4")
    page.wait_for_url(re.compile(f"hide={live.mtl[0]}"))
    live.train(851, 900)
    _await(page, "(chart) => chart.last === 900 && chart.lines === 4")
    expect(page.get_by_role("checkbox", name=name)).not_to_be_checked()
    page.get_by_role("checkbox", name="Show MTL", exact=True).uncheck()
    _await(page, "(chart) => chart.lines === 1")
    page.get_by_role("checkbox", name="Show all lines").check()
    _await(page, "(chart) => chart.lines === 5")


def _bands(page: Page) -> None:
    page.get_by_role("button", name="View").click()
    page.get_by_role("radio", name="Mean ± SD").click()
    _await(page, "(chart) => chart.bands === 1 && chart.lines === 2")
    expect(page.get_by_text("4 seeds, ✓ 3 Succeeded")).to_be_visible()
    page.keyboard.press("Escape")
    picture(page, "curves-mean-sd")
    page.get_by_role("radio", name="ner").click()
    expect(page.get_by_text("Training loss, ner").first).to_be_visible()


def _files(page: Page, live: Live) -> None:
    png = _downloaded(page, "png")
    assert png.suggested_filename == f"training-loss-ner-runs-{'-'.join(_shown(live))}.png"
    content = png.path().read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 20_000
    svg = _downloaded(page, "svg").path().read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "Training loss, nats per label" in svg
    assert ">MTL<" in svg  # the legend
    assert "rgb(255, 255, 255)" in svg  # on white
    table = pd.read_csv(io.BytesIO(_downloaded(page, "csv").path().read_bytes()), keep_default_na=False)
    assert set(table["run"]) == {int(number) for number in _shown(live)}
    of_ner = table[(table["run"] == live.run_id) & (table["task"] == "ner")]
    (stored,) = live.store.metrics([live.run_id], MetricKey("ner", "train", "loss"))
    assert of_ner["value"].tolist() == stored.value.tolist()
    assert of_ner["step"].tolist() == list(range(1, 901))


def _shown(live: Live) -> list[str]:
    return [str(number) for number in (*live.mtl, live.run_id, 1)]


def _downloaded(page: Page, button: str) -> Download:
    with page.expect_download() as download:
        page.locator(f".st-key-curve_{button} button").first.click()
    return download.value


# Draws a legend of these names; gives its element, what the server is told, and how the drawing is ended.
_LEGEND = """
    const address = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
    const legend = (await import(address)).default
    const told = []
    const drawn = (names) => {
        const parentElement = document.body.appendChild(document.createElement('div'))
        parentElement.innerHTML = '<div id="root"></div>'
        const line = { colour: '#888', dash: 'solid', hidden: false, cells: [], runs: [] }
        const rows = [...names].map((name) => ({ ...line, key: name.toLowerCase(), name }))
        const setTriggerValue = (_, value) => told.push(value)
        const data = { columns: ['Configuration'], rows }
        return [parentElement, legend({ key: names, data, parentElement, setTriggerValue })]
    }"""
# Twice, as Streamlit may for a moment; the second time from what the server said before it heard of the
# reader's click.
_TWO_LEGENDS = f"""async (source) => {{{_LEGEND}
    const [former, end] = drawn('AB')
    former.querySelector('[aria-label="Show A"]').click()
    const [anew] = drawn('AB')
    end()
    anew.querySelector('[aria-label="Show B"]').click()
    return told
}}"""
# The names that are seen at first, and after a click on what is left.
_TEN = f"""async (source) => {{{_LEGEND}
    const [element] = drawn('ABCDEFGHIJ')
    const names = () => [...element.querySelectorAll('.name')].map((cell) => cell.textContent).join('')
    const more = element.querySelector('.more')
    const seen = [names(), more.textContent]
    more.click()
    return [...seen, names()]
}}"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(_TWO_LEGENDS, [["a"], ["a", "b"]], id="drawn anew it knows what the reader has hidden"),
        pytest.param(
            _TEN, ["ABCDEFGH", "2 more configurations", "ABCDEFGHIJ"], id="it says what it leaves out"
        ),
    ],
)
def test_a_legend(script: str, expected: list[object], page: Page) -> None:
    source = read_asset("marks.js") + read_asset("curve_legend.js")
    assert page.evaluate(script, source) == expected
