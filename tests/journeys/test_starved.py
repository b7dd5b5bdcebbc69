"""A server that is hardly given any time, on busy cores: every address is drawn once that has ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, expect

from core.store import Store
from tests.journeys.browser import browser_page
from tests.journeys.conftest import copied_laboratory
from tests.pages.conftest import page_names
from tests.pages.filled_store import Filled

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_STOPPED_S, _CONTINUED_S = 0.4, 0.1
_LOADED_MS = 6000
# Does not wait for the answer, which a starved server may give late.
_OPEN = "(address) => { setTimeout(() => { location.href = address }) }"


@contextlib.contextmanager
def _starved(address: str) -> Iterator[None]:
    """Keeps the cores busy, and stops and continues the server of this address in turn."""
    (server,) = (
        child for child in psutil.Process().children() if address.rpartition(":")[2] in child.cmdline()
    )
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(4 * (os.cpu_count() or 1))]
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
        for loop in loops:
            loop.kill()
            loop.wait()


def test_every_page_is_drawn_once_a_starved_server_is_fed(
    browser: Browser, filled_home: tuple[Path, Filled], tmp_path: Path
) -> None:
    with copied_laboratory(filled_home, tmp_path) as lab:
        with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
            store.pause_queue()  # the runs stay queued, for which pages look every two seconds
            store.add_runs([store.run(lab.filled.mrn[0]).config.with_(seed=99)])
        for name in [*page_names(), *["launch"] * 3]:
            with browser_page(browser) as (page, _, _):
                with _starved(lab.address):
                    page.evaluate(_OPEN, lab.link(name))
                    page.wait_for_timeout(_LOADED_MS)
                expect(page.get_by_role("heading", level=1)).to_have_text(name.capitalize())
                if name == "launch":
                    expect(page.get_by_test_id("stTable")).to_be_visible()  # its last part
