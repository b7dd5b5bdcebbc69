"""The app over a store full of made-up runs, and a browser: shared by the journeys of single pages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.journeys.browser import browser_page, browser_path, chromium, last_words, picture, running_app
from tests.pages.filled_store import Filled, fill


@dataclass(frozen=True)
class Laboratory:
    """A running app: its address, its folder, and what its store was filled with."""

    address: str
    home: Path
    filled: Filled

    def link(self, page: str, **query: str) -> str:
        """The address of a page, `curves` say."""
        return f"{self.address}/{page}?" + "&".join(f"{name}={value}" for name, value in query.items())


@pytest.fixture(scope="package")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Filled]:
    """The folder of a laboratory with runs that have ended, to be copied."""
    browser_path()  # skips where there is none
    home = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        return home, fill(f"sqlite:///{home / 'runs.db'}", seeds=(1, 2, 3), active=False)


@contextlib.contextmanager
def copied_laboratory(filled_home: tuple[Path, Filled], home: Path) -> Iterator[Laboratory]:
    """An app over a copy of it."""
    original, filled = filled_home
    shutil.copytree(original, home, dirs_exist_ok=True)
    with running_app(home) as address:
        yield Laboratory(address, home, filled)


@pytest.fixture(scope="package")
def filled_laboratory(
    filled_home: tuple[Path, Filled], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Laboratory]:
    """One app for all journeys that only look, or leave it as they found it: nothing runs in it."""
    with copied_laboratory(filled_home, tmp_path_factory.mktemp("looked-at")) as laboratory:
        yield laboratory


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
        if "filled_laboratory" in used:
            call.excinfo.value.add_note(last_words(used["filled_laboratory"].home))
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
