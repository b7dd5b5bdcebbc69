"""Hostile text everywhere in a store, and a real browser on every page: nothing of it is read as markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Dialog, Page

from tests.journeys.browser import browser_page, browser_path, running_app
from tests.pages.filled_store import Filled

# What must not have come of it. A page of ours has none of these, nor has Streamlit.
_TRACES = """() => ({
  owned: window.owned ?? 0,
  images: document.querySelectorAll('img[src="x"], img[src*="evil.example"]').length,
  links: [...document.querySelectorAll('a')].filter((a) =>
    /evil\\.example|javascript:/i.test(a.href.baseVal ?? a.href)).length,
  bold: [...document.querySelectorAll('b, strong, tspan')].filter((b) =>
    /^(bold|strong)$/.test(b.textContent) && Number(getComputedStyle(b).fontWeight) > 500).length,
  formulas: [...document.querySelectorAll('.katex')].filter((k) => k.textContent.includes('x^2')).length,
  coloured: [...document.querySelectorAll('span.stMarkdownColoredText')]
    .filter((s) => s.textContent === 'red').length,
})"""
_NOTHING = {"owned": 0, "images": 0, "links": 0, "bold": 0, "formulas": 0, "coloured": 0}


def _links(filled: Filled) -> Iterator[tuple[str, str]]:
    """A page by its name, and the query it is opened with."""
    several = ",".join(map(str, filled.finished[:4]))
    yield "runs", f"run={filled.mrn[0]}"
    yield "run", f"id={filled.failed[0]}"
    yield "launch", f"clone={filled.mrn[0]}"
    yield "curves", f"run={several}"
    yield "compare", f"run={','.join(map(str, filled.finished[:12]))}"
    yield "relations", f"run={filled.mrn[0]}&mode=label"
    yield "tag", f"run={filled.mrn[0]}"


@pytest.mark.slow
@pytest.mark.journey
def test_no_page_reads_a_name_as_markup(request: pytest.FixtureRequest) -> None:
    browser_path()  # skips where there is none, before a store is filled
    home: Path
    home, filled = request.getfixturevalue("hostile_home")
    paths: list[str] = []
    traces = {}

    def refuse(dialog: Dialog) -> None:
        dialog.dismiss()
        pytest.fail("a page opened a dialog")

    with running_app(home) as address, browser_page() as (page, elsewhere, errors):
        page.on("dialog", refuse)
        page.on("request", lambda request: paths.append(urlsplit(request.url).path))
        for name, query in _links(filled):
            page.goto(f"{address}/{name}?{query}")
            page.get_by_role("heading", level=1).wait_for()
            _settled(page)
            # The test means something only where the text is there to be read.
            if name not in ("tag", "launch"):
                page.get_by_text("script>", exact=False).first.wait_for(state="attached")
            _hover(page)
            traces[f"{name}?{query}"] = page.evaluate(_TRACES)
    assert traces == dict.fromkeys(traces, _NOTHING)
    assert not errors
    assert not elsewhere
    assert "/x" not in paths


def _settled(page: Page) -> None:
    """Until the script has run and its elements are drawn."""
    page.wait_for_function("() => !document.querySelector('[data-testid=stStatusWidget]')")
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")


def _hover(page: Page) -> None:
    """Over the charts, so that what is told of their points is drawn too."""
    for plot in page.locator(".js-plotly-plot .nsewdrag").all()[:3]:
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        if box is not None:
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
