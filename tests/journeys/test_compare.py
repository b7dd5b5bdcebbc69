"""Compare in a real browser: the answer, a mistake down to its sentences, a table to paste."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.config import RunConfig
from core.store import Store
from tests import where_store
from tests.journeys.browser import picture
from tests.journeys.conftest import Laboratory

pytestmark = [pytest.mark.journey, pytest.mark.slow]
_DRAWN = "(count) => document.querySelectorAll('.js-plotly-plot .main-svg').length >= count"


def test_from_the_answer_to_the_sentences_and_a_table_to_paste(
    filled_laboratory: Laboratory, page: Page, tmp_path: Path
) -> None:
    page.goto(filled_laboratory.link("compare", to="MTL", closer="Mistakes", task="ner"))
    page.wait_for_function(_DRAWN, arg=4)
    expect(page.get_by_text("A difference counts when p < 0.05")).to_be_visible()
    picture(page, "compare-answer")
    matrix = page.locator(".st-key-confusion .js-plotly-plot")
    matrix.scroll_into_view_if_needed()
    matrix.locator(".heatmaplayer").first.wait_for()
    # The cell of ORG taken for LOC, where the picture itself says that it is.
    at = matrix.evaluate(
        """(chart) => {
            const { xaxis, yaxis } = chart._fullLayout
            const place = (axis, name) => axis.ticktext.findIndex((text) => text.startsWith(name))
            return {
                x: xaxis._offset + xaxis.l2p(place(xaxis, 'LOC')),
                y: yaxis._offset + yaxis.l2p(place(yaxis, 'ORG')),
            }
        }"""
    )
    matrix.click(position=at)
    expect(page.get_by_text("ORG → LOC", exact=True).last).to_be_visible()
    block = page.locator(".block").first
    expect(block.locator(".word").first).to_be_visible()
    assert block.locator(".differs").count() > 0
    assert block.locator(".who").all_inner_texts()[:3] == ["gold", "A", "B"]
    block.scroll_into_view_if_needed()
    picture(page, "compare-mistakes")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).first.click()
    expect(page.get_by_text("Copied LaTeX")).to_be_visible()
    assert "\\toprule" in page.evaluate("navigator.clipboard.readText()")
    formats = page.get_by_role("button", name="Other formats").first
    formats.click()
    page.get_by_role("menuitem", name="Copy Markdown").click()
    expect(page.get_by_text("Copied Markdown")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("| Configuration |")
    formats.click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Save CSV").click()
    download.value.save_as(tmp_path / "scores.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scores.csv").read_text(encoding="utf-8"))))
    assert {row["task"] for row in rows} == {"pos", "chunk", "ner"}
    assert all(0 < float(row["mean"]) < 1 for row in rows)


def test_a_click_on_a_bucket_shows_its_sentences(filled_laboratory: Laboratory, page: Page) -> None:
    page.goto(filled_laboratory.link("compare", to="MTL", closer="Where", task="ner"))
    marks = page.locator(".st-key-where_forest .scatterlayer .point")
    marks.first.wait_for(timeout=60_000)
    marks.first.scroll_into_view_if_needed()
    at = marks.first.bounding_box()
    assert at is not None
    page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    expect(page.get_by_text("makes fewer errors in")).to_be_visible()
    assert "bucket=" in page.url
    picture(page, "compare-where")


def test_suspects_are_saved_for_an_annotator(
    filled_laboratory: Laboratory, store: Store, page: Page, tmp_path: Path
) -> None:
    config = RunConfig.build(corpus="demo?train=200", tasks="pos,ner", paradigm="mtl")
    runs = where_store.fill(store, config, seeds=(1,), wrong=lambda paradigm, is_unseen: 0.9)
    chosen = ",".join(map(str, runs))
    page.goto(filled_laboratory.link("compare", run=chosen, closer="Suspects", task="pos"))
    expect(page.get_by_text("Gold is never changed")).to_be_visible(timeout=60_000)
    lanes = page.locator(".block").first.locator(".who")
    expect(lanes.nth(1)).to_be_visible()
    assert lanes.all_inner_texts()[:2] == ["gold", "runs"]
    with page.expect_download() as download:
        page.get_by_role("button", name="CoNLL").click()
    download.value.save_as(tmp_path / "suspects.conll")
    assert (tmp_path / "suspects.conll").read_text(encoding="utf-8").startswith("# pos, test sentence")
    picture(page, "compare-suspects")
