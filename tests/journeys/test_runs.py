"""Runs in a real browser: find, open a configuration, see what differs, give a keyword, archive, delete."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from core.store import Store
from tests.journeys.browser import picture, settle
from tests.journeys.conftest import Laboratory
from tests.pages.filled_store import Filled
from tests.supervised import wait_for

pytestmark = [pytest.mark.journey, pytest.mark.slow]


@pytest.fixture
def address(filled_laboratory: Laboratory) -> str:
    return filled_laboratory.address


@pytest.fixture
def filled(filled_laboratory: Laboratory) -> Filled:
    return filled_laboratory.filled


def _opened(page: Page, address: str, query: str = "") -> Locator:
    """The table of runs on that page."""
    page.goto(f"{address}/runs{query}")
    table = page.get_by_role("table", name=re.compile("^(Configurations|Runs) on demo"))
    expect(table).to_be_visible()
    return table


def _boxes(table: Locator) -> tuple[Locator, Locator]:
    """Those of the first two lines."""
    return table.get_by_role("checkbox").nth(1), table.get_by_role("checkbox").nth(2)


def _names(table: Locator) -> list[str]:
    return table.get_by_role("rowheader").all_inner_texts()


def test_find_open_choose_and_see_what_differs(page: Page, address: str) -> None:
    table = _opened(page, address)
    expect(page.get_by_text("7 configurations, 23 runs.")).to_be_visible()
    field = page.get_by_role("searchbox", name="Filter")
    field.fill("paradigm:mrn prior:relational alignment:cooccurrence ner>10")
    field.press("Enter")
    expect(page.get_by_text("2 configurations, 6 runs.")).to_be_visible()
    page.wait_for_url("**filter=paradigm%3Amrn**")
    expect(table.get_by_role("row")).to_have_count(3)
    box, other = _boxes(table)
    box.check()
    expect(page.get_by_text("3 runs chosen")).to_be_visible()
    expect(box).to_be_checked()
    # As fast as a reader can: the second tick comes while the page answers the first.
    box.press("Space")
    other.press("Space")
    box.press("Space")
    expect(page.get_by_text("6 runs chosen")).to_be_visible()
    expect(page.get_by_text("These 6 runs are 2 configurations. They differ in λ")).to_be_visible()
    expect(box).to_be_focused()
    expect(table.get_by_role("checkbox", checked=True)).to_have_count(3)
    picture(page, "runs-differences")
    # The link says it all.
    page.reload()
    expect(page.get_by_text("6 runs chosen")).to_be_visible()
    expect(page.get_by_text("2 configurations, 6 runs.")).to_be_visible()
    expect(table.get_by_role("checkbox", checked=True)).to_have_count(3)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_text("Tick rows to select runs")).to_be_visible()
    expect(table.get_by_role("checkbox", checked=True)).to_have_count(0)
    table.get_by_role("checkbox", name="Select all of this table").check()
    expect(page.get_by_text("6 runs chosen")).to_be_visible()
    box.uncheck()
    expect(page.get_by_text("3 runs chosen")).to_be_visible()


def test_sort_and_open_a_run(page: Page, address: str, filled: Filled) -> None:
    """A press on a head sorts the table, a name opens its run, and the way back keeps the filter."""
    table = _opened(page, address, "?filter=paradigm%3Amrn&order=Each+run")
    newest_first = _names(table)
    head = table.get_by_role("columnheader", name="ner")
    for order, sign in (("descending", -1), ("ascending", 1)):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", order)
        scores = [
            float(text)
            for text in table.locator("td.number > span:first-child").all_inner_texts()[2::3]
            if text
        ]
        assert scores == sorted(scores, key=lambda score: sign * score)
        assert len(scores) < len(newest_first), "one is in progress"
    assert sorted(_names(table)) == sorted(newest_first) != newest_first
    head.get_by_role("button").click()
    expect(head).not_to_have_attribute("aria-sort", "ascending")
    assert _names(table) == newest_first
    table.get_by_role("columnheader", name="Name").get_by_role("button").click()
    table.get_by_role("rowheader").first.get_by_role("link").click()
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
