"""What holds on every page: a link reproduces it, keys reach it, its words can be read, and it is quiet while
nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.journeys.browser import browser_page, picture
from tests.journeys.conftest import Laboratory

pytestmark = pytest.mark.journey

_ASK = (Path(__file__).parent / "everywhere.js").read_text(encoding="utf-8")
_LOOK_MS = 30_000
_QUIET_MS = 4000
_SETTLE_MS = 1500
_MOST_KEYS, _KEYS_IN_A_TABLE = 250, 15

# Each page otherwise than it opens by itself: its query, and what is on it for that.
LINKS = {
    "launch": ({"paradigm": "mtl", "seed": "1,2"}, "This makes 2 runs"),
    "runs": ({"run": "{mrn}"}, "1 run chosen"),
    "curves": ({"run": "{mrn}", "over": "epoch"}, "Training loss"),
    "compare": ({"on": "dev"}, "A closer look"),
    "relations": ({"run": "{mrn}", "mode": "label"}, "of training"),
    "tag": ({"run": "{mrn}"}, "Runs to ask"),
}
PAGES = tuple(LINKS)


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    with browser_page(browser, dark=request.param == "dark") as (page, _, _errors):
        yield page


def _opened(page: Page, laboratory: Laboratory, name: str) -> None:
    query, told = LINKS[name]
    page.goto(
        laboratory.link(
            name, **{key: text.format(mrn=laboratory.filled.mrn[0]) for key, text in query.items()}
        )
    )
    expect(page.get_by_role("heading", level=1)).to_have_text(name.capitalize(), timeout=_LOOK_MS)
    expect(page.get_by_text(told).first).to_be_visible(timeout=_LOOK_MS)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=_LOOK_MS)
    page.wait_for_timeout(_SETTLE_MS)  # tables and charts mount a moment after the script has ended


@pytest.mark.parametrize("name", PAGES)
def test_words_can_be_read(name: str, themed: Page, filled_laboratory: Laboratory) -> None:
    _opened(themed, filled_laboratory, name)
    themed.evaluate(_ASK)
    assert themed.evaluate("() => mrnlab.faint()") == []


@pytest.mark.parametrize("name", PAGES)
def test_keys_reach_every_control(name: str, page: Page, filled_laboratory: Laboratory) -> None:
    """The Tab key comes to each, each shows that it has the focus and says what it is."""
    _opened(page, filled_laboratory, name)
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


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_while_nothing_runs(name: str, page: Page, filled_laboratory: Laboratory) -> None:
    """It sends nothing and is sent nothing, however long it stays open."""
    said: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda message: said.append(message))
        socket.on("framereceived", lambda message: said.append(message))

    page.on("websocket", listen)
    _opened(page, filled_laboratory, name)
    assert said
    said.clear()
    page.wait_for_timeout(_QUIET_MS)
    assert not said
    picture(page, f"everywhere-{name}")
