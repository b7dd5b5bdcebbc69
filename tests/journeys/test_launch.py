"""Launch in a real browser: a sweep with its list and time, an upload previewed, a link from a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.store import RunState, Store
from tests.journeys.browser import picture, settle
from tests.journeys.conftest import Laboratory

_TRAIN = "Anna B-PER NNP\nsings O VBZ\n\nin O IN\nRome B-LOC NNP\n\n"
_TEST = "Mars B-PLANET NNP\nshines O VBZ\n\n"

pytestmark = [pytest.mark.journey, pytest.mark.slow]


def _plan(page: Page, words: str) -> None:
    """Waits for the plan to say so, and for the end of the script: a click before it may be lost."""
    heading = page.get_by_role("heading", name=re.compile(rf"^This makes {words}"))
    expect(heading).to_be_visible()
    settle(page)


def _set(page: Page, label: str, text: str) -> None:
    field = page.get_by_role("textbox", name=label)
    field.fill(text)
    field.press("Enter")


def test_a_sweep_is_listed_and_timed_before_the_button(page: Page, filled_laboratory: Laboratory) -> None:
    page.goto(filled_laboratory.link("launch", paradigm="mrn", encoder="minilm", seed="1-2", epochs="8"))
    _plan(page, r"2 runs, about \d+")
    page.get_by_test_id("stMain").get_by_role("button", name="MTL", exact=True).click()
    _plan(page, "4 runs")
    _set(page, "λ, strength of the prior", "0.02, 0.2")
    _plan(page, "6 runs")
    expect(page.get_by_text(re.compile(r"from .*runs of this kind on this machine")).first).to_be_visible()
    # The two MTL runs were trained before: they are used, and only the others are to be launched.
    expect(page.get_by_text("Use the 2 of 6 that are in the store")).to_be_visible()
    expect(page.get_by_role("button", name="Launch 4 new runs")).to_be_enabled()
    expect(page).to_have_url(re.compile(r"[?&]lambda=0\.02"))
    page.get_by_text("The same from a terminal").click()
    expect(page.get_by_text("--lambda")).to_be_visible()
    table = page.locator(".sheet")
    for row in ("MRN λ=0.02", "MRN λ=0.2", "2 seeds, all in the store"):
        expect(table.get_by_text(row, exact=True)).to_be_visible()
    # The plan stays in sight beside whatever part of the form is looked at.
    page.get_by_text("More settings").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Launch 4 new runs")).to_be_in_viewport()
    picture(page, "launch-sweep")


def test_what_is_wrong_is_one_key_away_and_the_paradigms_are_drawn(
    page: Page, filled_laboratory: Laboratory
) -> None:
    page.goto(filled_laboratory.link("launch", seed="abc", dropout="x", paradigm="stl,mtl,mrn"))
    expect(page.get_by_role("heading", name="Not ready yet")).to_be_visible()
    assert len(page.get_by_test_id("stBaseButton-primary").all()) <= 1
    settle(page)
    beside = page.locator("#problem-seed")
    expect(beside).to_be_attached()  # the browser may still be reading what draws it
    page.get_by_role("link", name="Go to field").first.click()
    expect(beside).to_be_focused()
    expect(beside).to_be_in_viewport()
    _set(page, "Seeds", "1")
    expect(page.get_by_role("link", name="Go to field")).to_have_count(1)
    settle(page)  # a place that is drawn anew would lose the focus
    # A field that is folded away: what is wrong is written under the fold.
    page.get_by_role("link", name="Go to field").click()
    expect(page.locator("#problem-dropout")).to_be_focused()
    page.get_by_role("button", name="What are STL, MTL and MRN?").click()
    for name in ("Single-task learning", "Multi-task learning", "Multilinear relationship network"):
        expect(page.get_by_text(name)).to_be_visible()
    for name in ("STL", "MTL", "MRN"):
        drawn = page.get_by_role("img", name=re.compile(f"^{name}: "))
        expect(drawn).to_be_visible()
        assert drawn.evaluate("(picture) => picture.naturalWidth") > 0
    picture(page, "launch-errors")


def test_an_upload_and_a_clone(page: Page, filled_laboratory: Laboratory, tmp_path: Path) -> None:
    for split, text in (("train", _TRAIN * 5), ("test", _TEST)):
        (tmp_path / f"{split}.conll").write_text(text)
    run = filled_laboratory.filled.disjoint[0]
    page.goto(filled_laboratory.link("launch", clone=str(run)))
    expect(page.get_by_role("heading", name="This run exists")).to_be_visible()
    expect(page.get_by_role("link", name="Watch")).to_be_visible()
    expect(page.get_by_role("textbox", name="Epochs")).to_have_value("8")
    expect(page.get_by_role("link", name=f"Filled in from run {run}")).to_be_visible()
    page.get_by_role("button", name="Use my data").click()
    chooser = page.get_by_test_id("stFileUploader").locator("input[type=file]")
    chooser.set_input_files([tmp_path / "train.conll", tmp_path / "test.conll"])
    expect(page.get_by_text("10 train and 1 test sentences")).to_be_visible()
    expect(page.get_by_role("textbox", name="Columns, from left to right")).to_have_value("tokens, ner, pos")
    # Streamlit draws tables on a canvas; what stands in them is asserted in tests/pages.
    expect(page.get_by_text("training never shows B-PLANET in test").first).to_be_visible()
    picture(page, "launch-upload")


def test_a_run_over_words_is_described_and_launched(
    page: Page, filled_laboratory: Laboratory, store: Store
) -> None:
    store.pause_queue()  # the run is to be seen queued
    page.goto(filled_laboratory.link("launch", seed="1", paradigm="mtl"))
    main = page.get_by_test_id("stMain")
    training = main.get_by_text("Training", exact=True)
    expect(training).to_be_visible()
    # By keyboard: parts of the page that load late move the options away from under the mouse.
    encoder = main.get_by_role("combobox", name="Encoder")
    encoder.fill("sc-lstm")
    expect(page.get_by_role("option", name="sc-lstm")).to_be_visible()
    encoder.press("Enter")
    encoder.press("Escape")
    expect(main.get_by_text("the top layer has a shared cell")).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Remove minilm").click()
    expect(training).to_be_hidden()
    main.get_by_text("More settings").click()
    expect(page.get_by_role("textbox", name="Word vectors")).to_have_attribute("placeholder", "glove")
    expect(page.get_by_role("textbox", name="LSTM layers")).to_be_visible()
    # The button launches the plan beside it, so each click waits for its plan.
    main.get_by_role("button", name="CRF", exact=True).click()
    _plan(page, "2 runs")
    main.get_by_role("button", name="linear", exact=True).first.click()
    _plan(page, "1 run")
    picture(page, "launch-words")
    page.get_by_role("button", name="Launch 1 run").click()
    expect(page.get_by_role("heading", name="1 run queued")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    main.get_by_role("link", name="Runs").click()
    expect(page.get_by_text("sc-lstm").first).to_be_attached()  # a cell of a table on a canvas
    newest = store.runs(limit=1)[0]
    assert newest.state is RunState.QUEUED
    assert (newest.config.encoder, newest.config.head) == ("sc-lstm", "crf")
