"""A link is cut in a real browser: the button queues runs without it, whose rows say what was cut."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.store import RunState, Store
from tests.cut_store import corpus, trained
from tests.journeys.browser import browser_page, picture, running_app, settle

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_SEEDS = range(1, 7)
_LOSS = "Cutting a–b costs a 1"


@contextlib.contextmanager
def cutting_app(folder: Path) -> Iterator[tuple[Store, str]]:
    """An app over six seeds of two tasks that share rows; nothing that it queues is trained."""
    home = folder / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open()) as store:
            config = corpus(folder / "small", "exact")
            for seed in _SEEDS:
                trained(store, config.with_(seed=seed), seed % 2)
            store.pause_queue()
            with running_app(home) as address:
                yield store, address


def pictured(page: Page, address: str, name: str, text: str) -> None:
    """Opens the address, waits for that text, and takes a picture."""
    page.goto(address)
    expect(page.get_by_text(text).first).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)  # what the browser has yet to read
    settle(page)
    picture(page, name)


def test_a_cut_is_queued_named_and_its_loss_shown(browser: Browser, tmp_path: Path) -> None:
    seeds = ",".join(map(str, _SEEDS))
    with cutting_app(tmp_path) as (store, address):
        pair = f"{address}/relations?run={seeds}&pair=a&pair=b"
        with browser_page(browser) as (page, elsewhere, errors):
            pictured(page, pair, "relations-cut", "a and b are related")
            page.get_by_role("button", name="Cut this link").click()
            expect(page.get_by_text("Runs without the link a–b are queued.")).to_be_visible()
            assert not errors
            assert not elsewhere
        queued = store.runs(states={RunState.QUEUED})
        assert {run.config.seed for run in queued} == set(_SEEDS)
        for run in queued:
            store.request_stop(run.id)
        store.delete_runs([run.id for run in queued])
        store.unpause_queue()
        for run in queued:  # what they would have come to
            seed = run.config.seed
            trained(store, run.config, 6 + seed % 2 + (seed == 1))
        every = ",".join(str(run.id) for run in store.runs())
        for look, width in (("light", 1440), ("dark", 1440), ("narrow", 390)):
            with browser_page(browser, dark=look == "dark") as (page, _, errors):
                page.set_viewport_size({"width": width, "height": 1000})
                pictured(page, pair, f"relations-cut-loss-{look}", _LOSS)
                pictured(page, f"{address}/compare?run={every}", f"compare-cut-{look}", _LOSS)
                expect(page.get_by_text("without a–b").first).to_be_visible()
                assert not errors
