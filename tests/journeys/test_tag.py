"""The Tag page in a real browser, over models that were really trained."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.store import RunState, Store
from tests.journeys.browser import barriers, browser_page, picture
from tests.journeys.conftest import Laboratory
from tests.making import OWNER

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_RIGHT = "German J B-MISC\nlamb N I-MISC\nrejects V O\nEU N B-ORG\n. . O\n"
_EVIL = f"<script>window.hacked=1</script> <b> {'x' * 400} \u05e9\u05dc\u05d5\u05dd 我爱北京 👩‍👩‍👧 lamb"
_ASK = (Path(__file__).parent / "everywhere.js").read_text(encoding="utf-8")


def _words(page: Page) -> Locator:
    return page.locator(".block .word")


def _lane(page: Page, task: str, who: str) -> list[str]:
    """The labels of a lane of the first block, as they are told to who cannot see them."""
    cells = page.locator(".block").first.locator(f'.cell[aria-label*=", {task}, {who},"]').all()
    return [(cell.get_attribute("aria-label") or "").split(", ")[3] for cell in cells]


def test_a_sentence_the_next_one_at_once_and_its_card(tagging_laboratory: Laboratory, page: Page) -> None:
    page.goto(tagging_laboratory.link("tag", run="1"))
    expect(page.get_by_text("Enter a sentence", exact=True)).to_be_visible()
    page.get_by_role("button", name="German lamb").first.click()
    expect(_words(page).first).to_have_text("German")
    field = page.get_by_label("Text", exact=True)
    field.fill("German lamb rejects EU. Mr. EU can't call 3.5 lamb!")
    field.press("Control+Enter")
    second = ["Mr.", "EU", "ca", "n't", "call", "3.5", "lamb", "!"]
    expect(_words(page)).to_have_text(["German", "lamb", "rejects", "EU", ".", *second])
    assert page.locator(".block").count() == 2
    assert page.locator(".block").first.locator(".span .type").first.inner_text().startswith("MISC")
    assert "text=German" in page.url
    page.wait_for_timeout(300)
    field.fill("German lamb rejects EU .")
    field.press("Control+Enter")
    expect(_words(page)).to_have_text(["German", "lamb", "rejects", "EU", "."])
    picture(page, "tag-sentence")
    _card_by_mouse_and_keyboard(page)


def _card_by_mouse_and_keyboard(page: Page) -> None:
    first = page.locator(".cell").first
    card = page.locator(".card")
    first.hover()
    expect(card).to_be_visible()
    assert card.locator(".choice").count() == 5
    assert card.locator(".choice bdi").first.inner_text() == "J"
    assert card.locator(".choice > span").first.inner_text().endswith("%")
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()
    first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(card.locator(".token")).to_have_text("EU")
    expect(card.locator(".choice bdi").first).to_have_text("B-ORG")
    picture(page, "tag-card")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_runs_beside_each_other(tagging_laboratory: Laboratory, page: Page) -> None:
    page.goto(tagging_laboratory.link("tag", run="1,2,3,4", text="German lamb rejects EU ."))
    _words(page).first.wait_for()
    expect(page.locator(".who")).to_have_count(3 * 2)  # lanes come as their models are loaded
    names = [name.strip().removesuffix(" reference") for name in page.locator(".who").all_inner_texts()]
    stl, taught_name, untaught_name = names[:3]
    assert names == names[:3] * 2
    assert [name[:14] for name in names[:3]] == ["STL", "MTL · 9 epochs", "MTL · 1 epoch"]
    taught, untaught = _lane(page, "pos", taught_name), _lane(page, "pos", untaught_name)
    differing = sum(map(str.__ne__, taught, untaught))
    assert differing
    assert taught == _lane(page, "pos", stl)
    answer = page.get_by_text("All three configurations agree on ")
    expect(answer).to_have_count(1)
    assert differing > 4 or " disagree on " in answer.inner_text()
    outlined = page.locator(f'.cell.plain.differs[aria-label*="{untaught_name}"]')
    assert outlined.count() == differing
    # Run 2 has learned nothing: its lines fade, its letters do not.
    assert page.locator(".share").count() == 0
    page.get_by_text("Show confidence").click()
    expect(page.locator(".tag .share")).to_have_count(15)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(500)
        page.evaluate(_ASK)
        assert page.evaluate("() => mrnlab.faint()") == []
        picture(page, f"tag-runs-{scheme}")
    assert barriers(page) == []


def test_the_seeds_of_a_lane_are_opened(tagging_laboratory: Laboratory, page: Page) -> None:
    with contextlib.closing(Store.open(tagging_laboratory.url)) as store:
        (second,) = store.add_runs([store.run(1).config.with_(seed=2)])
        store.claim(OWNER)
        store.finish(second, RunState.SUCCEEDED, checkpoint=str(store.run(2).checkpoint))
    page.goto(tagging_laboratory.link("tag", run=f"1,{second}", text="German lamb rejects EU ."))
    seeds = page.locator(".who").get_by_role("button")
    expect(seeds).to_have_count(2)
    expect(page.locator(".seeds")).to_have_text("2 seeds")
    expect(page.get_by_text("split", exact=True).first).to_be_visible()
    pos = seeds.first
    pos.press("Enter")
    expect(pos).to_be_focused()
    expect(page.locator(".who.seed")).to_have_text(["seed 1", "seed 2"])
    page.reload()
    expect(page.locator(".who.seed")).to_have_count(0)


def test_a_sentence_is_copied_and_saved(tagging_laboratory: Laboratory, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(
        tagging_laboratory.link("tag", run="1", text="German lamb rejects EU .\nrejects .", split="yes")
    )
    copies = page.get_by_role("button", name="Copy")
    copies.first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines()[:2] == ["German\tJ\tB-MISC", "lamb\tN\tI-MISC"]
    expect(page.get_by_role("button", name="Copied")).to_have_count(0)
    page.get_by_role("button", name="Copy spans").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    spans = json.loads(page.evaluate("() => navigator.clipboard.readText()"))["ner"]
    assert [(span["text"], span["start"], span["end"]) for span in spans] == [
        ("German lamb", 0, 11),
        ("EU", 20, 22),
    ]
    kinds = {"PNG": b"\x89PNG", "SVG": b"<svg "}
    for kind, begin in kinds.items():
        with page.expect_download() as downloading:
            page.get_by_role("button", name=kind).first.click()
        saved = Path(downloading.value.path()).read_bytes()
        assert saved.startswith(begin)
    texts = [node.text for node in ElementTree.fromstring(saved.decode()).iter() if node.text]
    assert " ".join(texts) == "German lamb rejects EU . pos J N V N . ner MISC ORG"
    # The second sentence names nobody: its lane is folded away, and comes when it is asked for.
    second = page.locator(".block").nth(1)
    assert second.locator(".task").all_inner_texts() == ["pos"]
    second.get_by_role("button", name="No ner").click()
    expect(second.locator(".task")).to_have_count(2)


def test_test_sentences(tagging_laboratory: Laboratory, page: Page) -> None:
    page.goto(tagging_laboratory.link("tag", run="2,1", input="Test sentences"))
    _words(page).first.wait_for()
    assert page.locator(".differs").count() > 0
    page.evaluate(_ASK)
    assert page.evaluate("() => mrnlab.faint()") == []
    picture(page, "tag-test-sentence")
    # A span over two lines is named on both.
    page.set_viewport_size({"width": 170, "height": 900})
    page.goto(tagging_laboratory.link("tag", run="1", text="German lamb rejects EU ."))
    _words(page).first.wait_for()
    assert page.locator(".block .line").count() > 1
    labels = page.locator(".span .type").all_inner_texts()
    assert "MISC" in labels
    assert "… MISC" in labels


def test_a_file_is_tagged_and_scored(tagging_laboratory: Laboratory, page: Page) -> None:
    page.goto(tagging_laboratory.link("tag", run="1", input="File"))
    upload = page.locator("input[type=file]")
    upload.wait_for(state="attached")
    text = f"{_RIGHT}\nGerman J B-MISC\nlamb N I-MISC\nrejects V O\nlamb N O\n. . O\n"
    upload.set_input_files({"name": "news.txt", "mimeType": "text/plain", "buffer": text.encode()})
    read = page.get_by_text("2 sentences, 10 words; gold labels of pos, ner.")
    expect(read).to_be_visible()
    # Columns are detected in a .txt; the reader may say otherwise.
    expect(page.get_by_text("Read as columns: 1 word, 2 pos, 3 ner.")).to_be_visible()
    page.get_by_role("button", name="Change").click()
    for option, seen in (
        ("Text, a sentence a line", page.get_by_text("10 sentences, 30 words; no gold labels.")),
        ("As detected", read),
    ):
        page.get_by_role("combobox", name="Read as").click()
        page.get_by_role("option", name=option).click()
        expect(seen).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Tag the file").click()
    button = page.get_by_role("button", name="Download CoNLL")
    button.wait_for()
    with page.expect_download() as downloading:
        button.click()
    assert downloading.value.suggested_filename == "news-run-1.conll"
    written = Path(downloading.value.path()).read_text(encoding="utf-8")
    rows = [line.split("\t") for line in written.splitlines() if line]
    words = [*("German", "lamb", "rejects", "EU", "."), *("German", "lamb", "rejects", "lamb", ".")]
    assert [row[0] for row in rows] == words
    assert [row[1] for row in rows] == [row[2] for row in rows] == ["J", "N", "V", "N", "."] * 2
    ner = ["B-MISC", "I-MISC", "O", "B-ORG", "O", "B-MISC", "I-MISC", "O", "O", "O"]
    assert [row[3] for row in rows] == [row[4] for row in rows] == ner
    expect(page.get_by_text("Scored as in training")).to_be_visible()
    picture(page, "tag-file")


def test_any_text_is_drawn_and_none_is_run(tagging_laboratory: Laboratory, browser: Browser) -> None:
    with browser_page(browser, dark=True) as (page, elsewhere, errors):
        page.set_viewport_size({"width": 1100, "height": 900})
        page.goto(tagging_laboratory.link("tag", run="1,2", text=f"{_EVIL}\nمرحبا بالعالم EU", split="yes"))
        _words(page).first.wait_for()
        assert _words(page).all_inner_texts() == [*_EVIL.split(), "مرحبا", "بالعالم", "EU"]
        assert page.evaluate("() => window.hacked") is None
        assert page.locator(".stage b, .stage script").count() == 0
        # No word is wider than the page, and Arabic reads from right to left with its lanes.
        width = page.locator(".stage").evaluate("(node) => node.clientWidth")
        assert all(box["width"] <= width for box in map(Locator.bounding_box, _words(page).all()) if box)
        right, left = page.locator(".block").last.locator(".word").all()[:2]
        first, second = right.bounding_box(), left.bounding_box()
        assert first is not None
        assert second is not None
        assert first["x"] > second["x"]
        picture(page, "tag-any-text-dark")
        assert not errors
        assert not elsewhere
