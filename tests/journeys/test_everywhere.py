"""What holds on every page: a link reproduces it, keys reach it, its words can be read, and it is quiet while
nothing runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from core.store import Store
from dashboard.shared import resources
from tests.journeys.browser import VIEWPORT, barriers, browser_page, picture
from tests.journeys.conftest import Laboratory
from tests.pages.conftest import page_names

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_ASK = (Path(__file__).parent / "everywhere.js").read_text(encoding="utf-8")
_QUIET_MS = round(1000 * (resources.IDLE + 2))
_MOST_LOOKS, _MOST_BYTES = 2, 12_000
_SETTLE_MS = 1500
_MOST_KEYS, _KEYS_IN_A_TABLE = 250, 15

_STILL = """(ms) => new Promise((still) => {
    let timer = setTimeout(still, ms)
    const again = () => { clearTimeout(timer); timer = setTimeout(still, ms) }
    new MutationObserver(again).observe(document, { childList: true, subtree: true })
})"""
_BACKGROUND = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"

# Each page otherwise than it opens by itself: its query, and what is on it for that.
LINKS = {
    "launch": ({"paradigm": "mtl", "seed": "1,2"}, "This makes 2 runs"),
    "runs": ({"run": "{mrn}"}, "1 run chosen"),
    "curves": ({"run": "{mrn}", "over": "epoch"}, "Dev score"),
    "compare": ({"on": "dev"}, "How verdicts are made"),
    "studies": ({"study": "priors"}, "All studies"),
    "transfer": ({}, "No pair of tasks yet"),
    "relations": ({"run": "{mrn}", "mode": "Labels"}, "of training"),
    "tag": ({"run": "{mrn}"}, "Models"),
}
PAGES = tuple(page_names())
_HEADINGS = {name: name.capitalize() for name in PAGES} | {"studies": "Priors"}


@dataclass(frozen=True)
class Opened:
    """A page that is opened once for all tests, with the messages it sent and received."""

    name: str
    page: Page
    elsewhere: list[str]
    errors: list[str]
    sent: list[str | bytes] = field(default_factory=list)
    received: list[str | bytes] = field(default_factory=list)


@pytest.fixture(scope="module")
def opened_pages(browser: Browser, filled_laboratory: Laboratory) -> Iterator[dict[str, Opened]]:
    """All pages by their links, in the light, open at the same time."""
    with contextlib.ExitStack() as stack:
        pages: dict[str, Opened] = {}
        for name in PAGES:
            query, _ = LINKS[name]
            page, elsewhere, errors = stack.enter_context(browser_page(browser))
            pages[name] = opened = Opened(name, page, elsewhere, errors)
            page.on("websocket", partial(_listen, opened))
            query = {key: part.format(mrn=filled_laboratory.filled.mrn[0]) for key, part in query.items()}
            page.goto(filled_laboratory.link(name, **query), wait_until="commit")
        for name, opened in pages.items():
            expect(opened.page.get_by_role("heading", level=1)).to_have_text(_HEADINGS[name])
            expect(opened.page.get_by_text(LINKS[name][1]).first).to_be_visible()
        _settle(*(opened.page for opened in pages.values()))
        yield pages


def _listen(opened: Opened, socket: WebSocket) -> None:
    socket.on("framesent", lambda message: opened.sent.append(message))
    socket.on("framereceived", lambda message: opened.received.append(message))


@pytest.fixture(params=PAGES)
def opened(request: pytest.FixtureRequest, opened_pages: dict[str, Opened]) -> Iterator[Opened]:
    """One of them. It fails the test for errors in scripts and for requests elsewhere."""
    opened = opened_pages[request.param]
    yield opened
    assert not opened.errors
    assert not opened.elsewhere, "the pages asked another machine for something"


@pytest.fixture
def page(opened: Opened) -> Page:
    return opened.page


def _settle(*pages: Page) -> None:
    """Until nothing is added any more: tables and charts mount a moment after the script has ended."""
    for page in pages:
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        page.evaluate(f"(ms) => {{ window.still = ({_STILL})(ms) }}", _SETTLE_MS)
    for page in pages:
        page.evaluate("() => window.still")


def test_pages_send_almost_nothing_while_nothing_runs(opened_pages: dict[str, Opened]) -> None:
    """Each asks now and then whether something was launched elsewhere, in a few kilobytes."""
    for opened in opened_pages.values():
        assert opened.sent
        opened.sent.clear()
        opened.received.clear()
    opened_pages["launch"].page.wait_for_timeout(_QUIET_MS)
    for opened in opened_pages.values():
        assert 1 <= len(opened.sent) <= _MOST_LOOKS, opened.name
        assert sum(map(len, [*opened.sent, *opened.received])) <= _MOST_BYTES, opened.name


def test_keys_reach_every_control(page: Page) -> None:
    """The Tab key comes to each, each shows that it has the focus and says what it is."""
    page.evaluate(_ASK)
    assert page.evaluate("() => mrnlab.nameless()") == []
    # What comes gradually could not be told from what stays.
    page.add_style_tag(content="*, *::before { transition: none !important; animation: none !important }")
    page.locator("body").press("Tab")
    stale = 0
    for _ in range(_MOST_KEYS):
        # A table keeps the focus for a few keys, which move about in it.
        stale = 0 if page.evaluate("() => mrnlab.visit()") else stale + 1
        if stale > _KEYS_IN_A_TABLE:
            break
        page.keyboard.press("Tab")
    assert page.evaluate("() => mrnlab.unreached()") == []
    assert page.evaluate("() => mrnlab.unseen()") == []


@pytest.mark.parametrize("name", ["launch", "relations", "runs"])
def test_the_first_key_passes_the_sidebar(name: str, page: Page, filled_laboratory: Laboratory) -> None:
    """To *Launch*, to the page's answer, or to its title where it has none."""
    place = {"launch": ".st-key-launch button", "relations": ".st-key-answer_relations", "runs": "h1"}[name]
    page.goto(filled_laboratory.link(name))
    _settle(page)
    page.locator("body").press("Tab")
    expect(page.locator("#skip-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(place)).to_be_focused()
    expect(page.locator(place)).to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_and_a_checker_of_accessibility_finds_nothing_serious(
    scheme: Literal["light", "dark"], opened: Opened, page: Page, filled_laboratory: Laboratory
) -> None:
    """The page turns dark with the reader's machine."""
    before = page.evaluate(_BACKGROUND)
    page.emulate_media(color_scheme=scheme)
    if scheme == "dark":
        page.wait_for_function(f"(before) => ({_BACKGROUND})() !== before", arg=before)
        _settle(page)
    page.evaluate(_ASK)
    assert page.evaluate("() => mrnlab.faint()") == []
    assert barriers(page) == []
    picture(page, f"everywhere-{opened.name}-{scheme}")
    if opened.name == "runs":
        page.goto(filled_laboratory.link("run", id=str(filled_laboratory.filled.mrn[0])))
        _settle(page)
        assert barriers(page) == []
        page.go_back()
        _settle(page)


def test_the_sidebar_is_a_rail_of_icons_on_a_narrow_screen(opened_pages: dict[str, Opened]) -> None:
    """It leaves the width to the page, and opens for the mouse and for the keyboard."""
    page = opened_pages["runs"].page
    page.set_viewport_size({"width": 1024, "height": 700})
    page.mouse.move(900, 600)
    label = page.get_by_test_id("stSidebarNav").get_by_text("Curves")
    expect(label).to_be_hidden()
    # The sidebar takes a moment to become narrow.
    page.wait_for_function("() => document.querySelector('[data-testid=stMain]').clientWidth > 950")
    page.get_by_test_id("stSidebarNavLink").first.focus()
    expect(label).to_be_visible()
    page.locator("body").press("Escape")
    page.set_viewport_size(VIEWPORT)


def test_an_idle_page_notices_what_is_queued_elsewhere(
    opened_pages: dict[str, Opened], filled_laboratory: Laboratory, store: Store
) -> None:
    assert resources.IDLE + 2 <= 10
    with store.transaction():  # no worker starts
        store.pause_queue()
        store.add_runs([store.run(filled_laboratory.filled.mrn[0]).config.with_(seed=99)])
    for opened in opened_pages.values():
        expect(opened.page.get_by_test_id("stSidebar").get_by_text("1 queued").first).to_be_visible()
