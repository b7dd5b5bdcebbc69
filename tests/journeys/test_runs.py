"""Runs in a real browser: find, open a configuration, see what differs, give a keyword, archive, delete."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from core.store import Store
from tests.journeys.browser import picture, settle
from tests.journeys.conftest import Laboratory
from tests.pages.filled_store import Filled
from tests.supervised import wait_for

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_LINE = 33  # the height of a line of the table, and of its head
_TICK, _BUTTON, _HEAD_OF_NAME = 16, 56, 100


@pytest.fixture
def address(filled_laboratory: Laboratory) -> str:
    return filled_laboratory.address


@pytest.fixture
def filled(filled_laboratory: Laboratory) -> Filled:
    return filled_laboratory.filled


def _click(page: Page, line: int, x: int) -> None:
    """Clicks in a line of the table of runs, which is drawn on a canvas."""
    box = page.get_by_test_id("stDataFrame").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + _LINE * (line + 1.5))


def _ticked(page: Page) -> int:
    """How many lines of the table are ticked."""
    table = page.get_by_test_id("stDataFrame").first
    return table.locator("tr[aria-selected=true]").count()


def _opened(page: Page, address: str, query: str = "") -> None:
    page.goto(f"{address}/runs{query}")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()


def test_find_open_choose_and_see_what_differs(page: Page, address: str) -> None:
    _opened(page, address)
    expect(page.get_by_text("7 configurations, 23 runs.")).to_be_visible()
    expect(page.locator("[role=grid][aria-label^='Configurations on demo']")).to_have_count(1)
    field = page.get_by_role("searchbox", name="Filter")
    field.fill("paradigm:mrn prior:relational alignment:cooccurrence ner>10")
    field.press("Enter")
    expect(page.get_by_text("2 configurations, 6 runs.")).to_be_visible()
    page.wait_for_url("**filter=paradigm%3Amrn**")
    _click(page, 0, _TICK)
    expect(page.get_by_text("3 runs chosen")).to_be_visible()
    wait_for(lambda: _ticked(page) == 1)
    _click(page, 1, _TICK)
    expect(page.get_by_text("6 runs chosen")).to_be_visible()
    expect(page.get_by_text("These 6 runs are 2 configurations. They differ in λ")).to_be_visible()
    wait_for(lambda: _ticked(page) == 2)
    picture(page, "runs-differences")
    # The link says it all.
    page.reload()
    expect(page.get_by_text("6 runs chosen")).to_be_visible()
    expect(page.get_by_text("2 configurations, 6 runs.")).to_be_visible()
    wait_for(lambda: _ticked(page) == 2)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text("Tick rows to select runs")).to_be_visible()
    wait_for(lambda: _ticked(page) == 0)


def test_sort_and_open_a_run(page: Page, address: str, filled: Filled) -> None:
    """What is clicked in a sorted table is what is shown there, and the way back keeps the filter."""
    _opened(page, address, "?filter=paradigm%3Amrn&order=Each+run")
    page.wait_for_timeout(1500)
    _click(page, -1, _HEAD_OF_NAME)
    page.wait_for_timeout(1500)  # a click while the table is drawn in its new order only selects the cell
    _click(page, 0, _BUTTON)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(f"Run {filled.mrn[0]} ·")
    expect(page.get_by_text("Training time")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    expect(page.get_by_role("searchbox", name="Filter")).to_have_value("paradigm:mrn")


def test_the_bar_of_the_chosen_runs_stays_in_sight(page: Page, address: str, filled: Filled) -> None:
    page.set_viewport_size({"width": 1024, "height": 480})
    _opened(page, address, f"?run={filled.finished[0]},{filled.finished[1]}")
    delete = page.get_by_role("button", name="Delete", exact=True)
    expect(delete).to_be_in_viewport()
    page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, main.scrollHeight)")
    expect(delete).to_be_in_viewport()


def test_give_a_keyword_archive_undo_and_delete(
    page: Page, address: str, store: Store, filled: Filled
) -> None:
    failed = filled.failed[0]
    page.goto(f"{address}/run?id={failed}")
    expect(page.get_by_text("Failed: the loss is not a number.")).to_be_visible()
    picture(page, "runs-failed")
    _opened(page, address, f"?run={failed}")
    page.get_by_role("button", name="Keywords").click()
    page.get_by_placeholder("Type a keyword and press Enter").fill("Look at it")
    page.keyboard.press("Enter")
    wait_for(lambda: store.run(failed).keywords == ("look-at-it",))
    page.keyboard.press("Escape")
    settle(page)  # until then the bar before it may be there too
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_text("22 runs.")).to_be_visible()
    assert store.run(failed).archived
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("23 runs.")).to_be_visible()
    assert not store.run(failed).archived
    settle(page)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("5 relation snapshots and all curves and logs")).to_be_visible()
    assert store.runs([failed])
    page.get_by_role("button", name="Delete 1 run").click()
    expect(page.get_by_text("Tick rows to select runs")).to_be_visible()
    assert store.runs([failed]) == []
    page.get_by_role("button", name="Undo").click()
    wait_for(lambda: [run.id for run in store.runs([failed])] == [failed])


def test_copy_the_link_of_what_is_shown(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    _opened(page, address, "?filter=paradigm%3Amrn")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
