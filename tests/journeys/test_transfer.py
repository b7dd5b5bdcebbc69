"""Transfer in a real browser: the matrix, a pair by click and by key."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from core.store import Store
from tests.journeys.browser import picture
from tests.journeys.conftest import Laboratory
from tests.pages.filled_store import fill_pairs

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_a_pair_by_click_and_by_key(
    page: Page, filled_laboratory: Laboratory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRNLAB_HOME", str(filled_laboratory.home))
    fill_pairs(filled_laboratory.url)
    page.goto(filled_laboratory.link("transfer", main="pos", aux="chunk"))
    expect(page.get_by_text("Nothing can transfer")).to_be_visible()
    cell = page.locator("button[data-at='2,0']")
    expect(cell).to_be_visible()
    widths = page.locator("button[data-at]").evaluate_all(
        "cells => cells.map((cell) => Math.round(cell.getBoundingClientRect().width))"
    )
    assert max(widths) - min(widths) <= 1, widths
    assert max(widths) < 200, widths
    cell.click()
    expect(page.get_by_text("Mistakes on ner")).to_be_visible()
    # Over the diagonal by the arrow keys.
    cell.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("ner beside chunk")).to_be_visible()
    picture(page, "transfer-pair")
