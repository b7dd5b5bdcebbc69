"""Transfer in a real browser: the matrix, a pair by click and by key, groups of tasks, on to Launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.browser import picture
from tests.journeys.conftest import copied_laboratory
from tests.pages.filled_store import Filled, fill_pairs

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_from_the_matrix_to_a_launch_of_groups(
    filled_home: tuple[Path, Filled], page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied_laboratory(filled_home, tmp_path) as laboratory:
        monkeypatch.setenv("MRNLAB_HOME", str(tmp_path))
        fill_pairs(f"sqlite:///{tmp_path / 'runs.db'}")
        page.goto(laboratory.link("transfer", main="pos", aux="chunk"))
        expect(page.get_by_text("Of 6 ordered pairs")).to_be_visible()
        cell = page.locator("button[data-at='2,0']")
        cell.click()
        expect(page.get_by_text("Mistakes on ner")).to_be_visible()
        # Over the diagonal by the arrow keys.
        cell.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.get_by_text("ner beside chunk")).to_be_visible()
        picture(page, "transfer-pair")
        page.get_by_role("radio", name="Groups").click()
        models = page.get_by_label("Models, at most")
        models.fill("1")
        models.press("Enter")
        expect(page.get_by_text("1 model", exact=False).first).to_be_visible()
        picture(page, "transfer-groups")
        page.get_by_role("link", name="Launch these groups").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Launch")
        page.wait_for_url(lambda address: "task_groups=" in address)
