"""Tag with texts and pairs in a real browser, over models that were really trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.browser import barriers, picture
from tests.journeys.conftest import Laboratory

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_ASK = (Path(__file__).parent / "everywhere.js").read_text(encoding="utf-8")
_EVIL = "<script>window.hacked=1</script> <b>lamb</b>"


def test_a_text_a_pair_and_a_file(tagging_laboratory: Laboratory, page: Page, tmp_path: Path) -> None:
    page.goto(tagging_laboratory.link("tag", run="5,6"))
    first, second = page.get_by_label("Text", exact=True), page.get_by_label("Second text")
    first.fill("EU rejects German lamb")
    first.press("Control+Enter")
    answers = page.get_by_role("table", name="Answers on the whole text")
    expect(answers.locator("tbody")).to_have_count(1)
    expect(page.get_by_text("same and alike need a second text")).to_be_visible()
    expect(page.locator(".block .word")).to_have_count(4)
    second.fill(_EVIL)
    second.press("Control+Enter")
    expect(answers.locator("tbody")).to_have_count(3)
    expect(answers.locator("thead th")).to_have_count(2)
    expect(answers.locator(".scale")).to_have_count(2)
    assert page.evaluate("() => window.hacked") is None
    shares = answers.locator("tbody").first.locator(".share").all_inner_texts()
    assert len(shares) == 4
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(500)
        page.evaluate(_ASK)
        assert page.evaluate("() => mrnlab.faint()") == []
        picture(page, f"tag-texts-{scheme}")
    assert barriers(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    expect(answers).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1440, "height": 1000})

    page.goto(tagging_laboratory.link("tag", run="7", input="File"))
    file = tmp_path / "pairs.csv"
    file.write_text('text1,text2,score\n"EU, lamb",lamb EU,5\ncall,to,0\n')
    page.locator('input[type="file"]').set_input_files(file)
    page.get_by_role("button", name="Answer the file").click()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download TSV").click()
    rows = [line.split("\t") for line in Path(downloading.value.path()).read_text().splitlines()]
    assert rows[0] == ["text1", "text2", "same", "alike_gold", "alike"]
    assert rows[1][0] == "EU, lamb"
    assert len(rows) == 3


def test_a_test_pair_shows_its_gold_number(tagging_laboratory: Laboratory, page: Page) -> None:
    page.goto(tagging_laboratory.link("tag", run="6", input="Test sentences", wrong="alike"))
    answers = page.get_by_role("table", name="Answers on the whole text")
    expect(answers.locator(".line b")).to_have_count(1)
    expect(page.locator("blockquote")).to_have_count(2)
    expect(answers.locator(".gold")).to_have_count(1)
