"""The app over a store full of made-up runs, and a browser: shared by the journeys of single pages."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from core.store import Store
from tests.journeys.browser import browser_page, browser_path, chromium, last_words, picture, running_app
from tests.pages.filled_store import Filled, fill
from tests.trained import tagger_configs, text_tagger_configs, train_runs


@dataclass(frozen=True)
class Laboratory:
    """A running app: its address, its folder, and what its store was filled with."""

    address: str
    home: Path
    filled: Filled

    @property
    def url(self) -> str:
        """The address of its store."""
        return f"sqlite:///{self.home / 'runs.db'}"

    def link(self, page: str, **query: str) -> str:
        """The address of a page, `curves` say."""
        return f"{self.address}/{page}?{urlencode(query)}"


@pytest.fixture(scope="package")
def filled_laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """One app for all journeys that only look, or leave it as they found it: all its runs have ended."""
    browser_path()  # skips where there is none
    home = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        filled = fill(f"sqlite:///{home / 'runs.db'}", seeds=(1, 2, 3), active=False)
    with running_app(home) as address:
        yield Laboratory(address, home, filled)


@pytest.fixture
def store(filled_laboratory: Laboratory) -> Iterator[Store]:
    """The store of that app. Runs that the test adds are deleted when it has ended, and the queue goes on."""
    with contextlib.closing(Store.open(filled_laboratory.url)) as opened:
        before = {run.id for run in opened.runs()}
        yield opened
        opened.delete_runs([run.id for run in opened.runs() if run.id not in before])
        opened.unpause_queue()


@pytest.fixture(scope="package")
def tagging_laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """An app over trained models: runs 1 to 4 of `tagger_configs`, runs 5 to 8 of `text_tagger_configs`."""
    browser_path()  # skips where there is none
    home = tmp_path_factory.mktemp("tagging")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open()) as store:
            runs = train_runs(store, [*tagger_configs(home), *text_tagger_configs(home)])
    with running_app(home) as address:
        yield Laboratory(address, home, Filled(finished=runs))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A journey that fails leaves a picture of its page, and tells what the app printed."""
    used = getattr(item, "funcargs", {})
    if (
        call.when == "call"
        and call.excinfo is not None
        and not call.excinfo.errisinstance(pytest.skip.Exception)
    ):
        if "page" in used:
            seen = picture(used["page"], f"failed-{item.name}")
            call.excinfo.value.add_note(f"The page as it was: {seen}")
        for laboratory in (used[name] for name in used if name.endswith("_laboratory")):
            call.excinfo.value.add_note(last_words(laboratory.home))
    return (yield)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for all journeys: starting it takes longer than many of them."""
    with chromium() as program:
        yield program


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of the real browser. It fails the test for errors in scripts and for requests elsewhere."""
    with browser_page(browser) as (page, elsewhere, errors):
        yield page
        assert not errors
        assert not elsewhere, "the pages asked another machine for something"
