"""Texts and pairs in a real browser: seen on Launch, trained, and compared each by its own measure."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from core.store import ACTIVE, RunState, Store
from tests.journeys.browser import picture
from tests.journeys.conftest import copied_laboratory
from tests.pages.filled_store import Filled
from tests.pages.text_store import TASKS, text_folders
from tests.supervised import wait_for
from tests.tiny import tiny_bert

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def test_texts_from_the_preview_to_their_scores(
    page: Page, filled_home: tuple[Path, Filled], tmp_path: Path
) -> None:
    with copied_laboratory(filled_home, tmp_path / "home") as lab:
        corpus, encoder = text_folders(lab.home / "texts"), str(tiny_bert(lab.home / "tiny"))
        settings = {"paradigm": "mtl", "encoder_training": "full", "seed": "1", "epochs": "1"}
        link = {"corpus": quote(corpus), "encoder": quote(encoder), "max_length": "32", **settings}
        page.goto(lab.link("launch", **link))
        expect(page.get_by_text("120 train and 60 test texts and pairs")).to_be_visible()
        expect(page.get_by_text("And its other half , 0 .").first).to_be_visible()
        page.get_by_text("labels and numbers are distributed").click()
        page.get_by_role("tab", name="alike").click()
        expect(page.get_by_text("Train: 40 pairs, from 0 to 5")).to_be_visible()
        picture(page, "launch-texts")
        page.get_by_role("button", name="Launch 1 run").click()
        expect(page.get_by_text("1 run queued").first).to_be_visible()
        with contextlib.closing(Store.open(f"sqlite:///{lab.home / 'runs.db'}")) as store:
            (run,) = (run for run in store.runs() if run.config.tasks == TASKS)
            wait_for(lambda: store.state(run.id) not in ACTIVE)
            assert store.state(run.id) is RunState.SUCCEEDED
        page.goto(lab.link("compare", run=str(run.id)))
        table = page.get_by_test_id("stTable")
        for head in ("mood (accuracy)", "same (accuracy)", "alike (Pearson × 100)"):
            expect(table.get_by_text(head)).to_be_visible()
        picture(page, "compare-texts")
