"""The main job in a real browser: one click launches twenty runs, and every page shows what they answer.

Three of the five seeds are trained, which decide that MRN is higher; the others are stopped in the queue.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.store import RunState, Store
from tests.journeys.browser import go, picture, running_app
from tests.supervised import wait_for

# What the README promises is a minute on two free cores; CI machines are neither two nor free.
_PATIENCE_S = 900.0
_SEEDS = 3
_TRAINED = 4 * _SEEDS  # MTL, MRN and STL of two tasks

_CHART = "[...document.querySelectorAll('.js-plotly-plot')].find((node) => node.offsetHeight > 300)"
_POINTS = f"({_CHART}?._fullData ?? []).reduce((sum, trace) => sum + (trace._length ?? 0), 0)"
_ZOOM = f"String({_CHART}.layout.xaxis.range)"
_ZOOM_IN = f"window.Plotly.relayout({_CHART}, {{ 'xaxis.range': [5, 25] }}).then(() => {_ZOOM})"

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_try_it_from_the_click_to_the_tagged_sentence(page: Page, tmp_path: Path) -> None:
    with running_app(tmp_path) as address:
        _deep_link_first(page, address)
        _try_it(page)
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
            store.request_stops([run.id for run in store.runs() if run.config.seed > _SEEDS])
            _curves_move_and_keep_their_zoom(page)
            _await_end(store)
        _runs(page)
        _compare(page)
        _relations(page)
        _tag(page, address)


def _deep_link_first(page: Page, address: str) -> None:
    """The first thing ever opened on a fresh server is a link to an inner page."""
    page.goto(f"{address}/relations")
    expect(page.get_by_role("heading", level=1, name="Relations")).to_be_visible()
    expect(page.get_by_test_id("stSidebarNav").get_by_text("Launch", exact=True)).to_be_visible()
    expect(page.get_by_text("No MRN run yet.")).to_be_visible()
    picture(page, "relations-empty")


def _try_it(page: Page) -> None:
    go(page, "Launch")
    expect(page.get_by_text("This makes 15 runs")).to_be_visible()
    picture(page, "launch")
    page.get_by_role("button", name="Try it", exact=True).click()
    page.get_by_role("heading", level=1, name="Runs", exact=True).wait_for()
    expect(page.get_by_text("20 runs chosen")).to_be_visible()


def _curves_move_and_keep_their_zoom(page: Page) -> None:
    go(page, "Curves")
    # The curve appears without a click: the page refreshes itself while something runs.
    training_loss = page.get_by_role("radio", name="Training loss")
    training_loss.wait_for()
    training_loss.click()
    page.wait_for_function(f"{_POINTS} > 30")
    assert page.evaluate(_ZOOM_IN) == "5,25"
    before = page.evaluate(_POINTS)
    page.wait_for_function(f"{_POINTS} > {before}")
    # That it is the same chart while one run goes on is held by test_curves; here the next may have begun,
    # and the chart may have been mounted anew.
    page.wait_for_function(f"{_ZOOM} === '5,25'")
    picture(page, "curves-live")


def _await_end(store: Store) -> None:
    def is_over() -> bool:
        counts = store.counts()
        assert not counts[RunState.FAILED], [run.error for run in store.runs(states={RunState.FAILED})]
        assert not counts[RunState.LOST]
        return counts[RunState.SUCCEEDED] == _TRAINED

    wait_for(is_over, _PATIENCE_S)


def _runs(page: Page) -> None:
    go(page, "Runs")
    expect(page.get_by_text("Idle")).to_be_visible()
    expect(page.get_by_text("3 configurations, 20 runs.")).to_be_visible()
    expect(page.get_by_text("These 20 runs are 3 configurations.")).to_be_visible()
    expect(page.get_by_text(f"{_TRAINED} of 20 done, {20 - _TRAINED} stopped")).to_be_visible()
    picture(page, "runs")
    page.get_by_role("button", name="Compare: does sharing help?").click()
    page.get_by_role("heading", level=1, name="Compare", exact=True).wait_for()


def _compare(page: Page) -> None:
    go(page, "Compare")
    # What the card asked is answered.
    expect(page.get_by_text(re.compile("MRN.*higher")).first).to_be_visible()
    table = page.locator(".sheet")
    for row in ("STL", "MTL", "MRN"):
        expect(table.get_by_text(row).first).to_be_visible()
    picture(page, "compare")


def _relations(page: Page) -> None:
    go(page, "Relations")
    root = page.locator("#root[data-step]")
    root.wait_for()
    numbers = root.locator(".stage > svg text[text-anchor=middle][dominant-baseline=central]")
    expect(numbers).to_have_count(4)  # the mean over the seeds
    values = [float(text.replace("−", "-")) for text in numbers.all_text_contents()]
    assert values[0] == values[3] == 1
    assert values[1] > 0.3, "two tag sets of one language are related"
    picture(page, "relations-tasks")
    last = root.get_attribute("data-step") or ""
    root.get_by_role("button", name="Play").click()
    # It begins anew and goes on by itself.
    expect(root).not_to_have_attribute("data-step", last)
    first = root.get_attribute("data-step") or ""
    expect(root).not_to_have_attribute("data-step", first)
    root.get_by_role("button", name="Pause").click()
    expect(root.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_role("radio", name="Labels").click()
    expect(page.get_by_text("Labels were not learned.")).to_be_visible()


def _tag(page: Page, address: str) -> None:
    page.goto(f"{address}/tag?run=1,2,3,4")  # the first seed
    field = page.get_by_label("Text", exact=True)
    field.fill("Anna Smith of the World Bank flew to Paris on Monday . <script>window.hacked=1</script> <b>")
    page.get_by_text("Already split into words").click()
    field.press("Control+Enter")
    block = page.locator(".block").first
    words = block.locator(".word")
    expect(block.locator(".tag")).to_have_count(3 * 2 * 14)  # lanes come as their models are loaded
    expect(words.last).to_have_text("<b>")  # until the second change counts, the text is split by rules
    texts = words.all_inner_texts()
    assert texts[:3] == ["Anna", "Smith", "of"]
    assert texts[-2:] == ["<script>window.hacked=1</script>", "<b>"]
    assert page.evaluate("() => window.hacked") is None
    assert page.locator(".line b").count() == 0
    assert set(block.locator(".task .name").all_inner_texts()) == {"pos-a", "pos-b"}
    # The two STL runs of the launch answer as one, beside MTL and MRN.
    assert [name.split()[0] for name in block.locator(".who").all_inner_texts()[:3]] == ["STL", "MTL", "MRN"]
    tags = block.locator(".tag").all_inner_texts()
    assert len(tags) == 3 * 2 * len(texts)
    assert all(tag.strip() for tag in tags)
    assert "%" in (block.locator(".cell.plain").first.get_attribute("aria-label") or "")
    picture(page, "tag")
