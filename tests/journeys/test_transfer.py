"""Transfer in a real browser: the matrix, a pair by click and by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.browser import picture
from tests.journeys.conftest import copied_laboratory
from tests.pages.filled_store import Filled, fill_pairs

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_a_pair_by_click_and_by_key(
    filled_home: tuple[Path, Filled], page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied_laboratory(filled_home, tmp_path) as laboratory:
        monkeypatch.setenv("MRNLAB_HOME", str(tmp_path))
        fill_pairs(f"sqlite:///{tmp_path / 'runs.db'}")
        page.goto(laboratory.link("transfer", main="pos", aux="chunk"))
        expect(page.get_by_text("Nothing can transfer")).to_be_visible()
        cell = page.locator("button[data-at='2,0']")
        cell.click()
        expect(page.get_by_text("Mistakes on ner")).to_be_visible()
        # Over the diagonal by the arrow keys.
        cell.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.get_by_text("ner beside chunk")).to_be_visible()
        picture(page, "transfer-pair")
