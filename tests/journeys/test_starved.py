"""A server that is hardly given any time: every address is drawn once that has ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Browser, expect

from core.store import Store
from tests.journeys.browser import browser_page
from tests.journeys.conftest import Laboratory
from tests.pages.conftest import page_names

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_STOPPED_S, _CONTINUED_S = 0.45, 0.05
_LOADED_MS = 6000
# Does not wait for the answer, which a starved server may give late.
_OPEN = "(address) => { setTimeout(() => { location.href = address }) }"


@contextlib.contextmanager
def _starved(address: str) -> Iterator[None]:
    """Stops and continues the server of this address in turn."""
    (server,) = (
        child for child in psutil.Process().children() if address.rpartition(":")[2] in child.cmdline()
    )
    is_over = threading.Event()

    def stutter() -> None:
        while not is_over.wait(_CONTINUED_S):
            server.suspend()
            is_over.wait(_STOPPED_S)
            server.resume()

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("names", [page_names(), ["launch"] * 3], ids=["all", "launch"])
def test_every_page_is_drawn_once_a_starved_server_is_fed(
    names: list[str], browser: Browser, filled_laboratory: Laboratory, store: Store
) -> None:
    """The pages of a window that is opened anew, in tabs beside each other."""
    store.pause_queue()  # the run stays queued, for which pages look every two seconds
    store.add_runs([store.run(filled_laboratory.filled.mrn[0]).config.with_(seed=99)])
    with contextlib.ExitStack() as stack:
        tabs = [(name, stack.enter_context(browser_page(browser))[0]) for name in names]
        with _starved(filled_laboratory.address):
            for name, page in tabs:
                page.evaluate(_OPEN, filled_laboratory.link(name))
            page.wait_for_timeout(_LOADED_MS)
        for name, page in tabs:
            expect(page.get_by_role("heading", level=1)).to_have_text(name.capitalize())
            if name == "launch":
                expect(page.locator(".sheet")).to_be_visible()  # its last part
