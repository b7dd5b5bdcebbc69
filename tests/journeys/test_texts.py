"""Texts and pairs in a real browser: seen on Launch, trained, and compared each by its own measure."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.store import ACTIVE, RunState, Store
from tests.journeys.browser import picture
from tests.journeys.conftest import Laboratory
from tests.pages.text_store import TASKS, text_folders
from tests.supervised import wait_for
from tests.tiny import tiny_bert

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_texts_from_the_preview_to_their_scores(
    page: Page, filled_laboratory: Laboratory, store: Store, tmp_path: Path
) -> None:
    corpus, encoder = text_folders(tmp_path / "texts"), str(tiny_bert(tmp_path / "tiny"))
    settings = {"paradigm": "mtl", "encoder_training": "full", "seed": "1", "epochs": "1"}
    link = {"corpus": corpus, "encoder": encoder, "max_length": "32", **settings}
    page.goto(filled_laboratory.link("launch", **link))
    expect(page.get_by_text("120 train and 60 test texts and pairs")).to_be_visible()
    expect(page.get_by_text("And its other half , 0 .").first).to_be_visible()
    page.get_by_text("labels and numbers are distributed").click()
    page.get_by_role("tab", name="alike").click()
    expect(page.get_by_text("Train: 40 pairs, from 0 to 5")).to_be_visible()
    picture(page, "launch-texts")
    page.get_by_role("button", name="Launch 1 run").click()
    expect(page.get_by_text("1 run queued").first).to_be_visible()
    (run,) = (run for run in store.runs() if run.config.tasks == TASKS)
    wait_for(lambda: store.state(run.id) not in ACTIVE)
    assert store.state(run.id) is RunState.SUCCEEDED
    page.goto(filled_laboratory.link("compare", run=str(run.id)))
    table = page.locator(".sheet")
    for head in ("mood (accuracy)", "same (accuracy)", "alike (Pearson × 100)"):
        expect(table.get_by_text(head)).to_be_visible()
    picture(page, "compare-texts")
