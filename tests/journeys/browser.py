"""What journeys share: the real app as a process, a real browser, and pictures of what they saw."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, ViewportSize, expect, sync_playwright

from core.store import ACTIVE, Store
from tests.patience import PATIENCE_MS, PATIENCE_S
from tests.serving import APP, running_server

ARTEFACTS = Path(__file__).parent / "artefacts"
# The first has no window to be hidden, and is the quicker for it.
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
VIEWPORT: ViewportSize = {"width": 1440, "height": 1000}
_AXE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, nodes }) => nodes.map((node) => ({ id, node })))
    .map(({ id, node }) => `${id}: ${node.target} ${node.failureSummary}`)"""
_LOG_LINES = 60
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # Nothing leaves this machine: no other name or address can be found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def browser_path() -> str:
    """The system's Chromium, or a skip that says what is missing."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip(
        f"no browser: none of {', '.join(BROWSERS)} is on the PATH; install chromium to run the journeys"
    )


def last_words(home: Path) -> str:
    """The end of what the app of that laboratory has printed."""
    lines = (home / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(["The app printed:", *lines[-_LOG_LINES:]])


@contextlib.contextmanager
def running_app(home: Path, script: Path = APP) -> Iterator[str]:
    """`streamlit run dashboard/app.py` (or another script) over a laboratory of its own; gives its address.

    Its workers end with it.
    """
    # A file saved meanwhile is not this journey's business.
    options = ("--server.headless", "true", "--server.fileWatcherType", "none")
    try:
        with running_server(home, *options, script=script) as server:
            yield server.address
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(last_words(home))
        raise
    finally:
        _end_workers(home)


def _end_workers(home: Path) -> None:
    """Workers outlive the dashboard on purpose; those of this test's store are ended, by their id."""
    store = Store.open(f"sqlite:///{home / 'runs.db'}")
    try:
        pids = {run.owner.pid for run in store.runs() if run.owner is not None}
        for run in store.runs(states=ACTIVE):
            store.request_stop(run.id)
    finally:
        store.close()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.environ().get("MRNLAB_HOME") == str(home):
                process.terminate()
                process.wait(timeout=PATIENCE_S)


@contextlib.contextmanager
def browser_page(
    program: Browser | None = None, *, dark: bool = False
) -> Iterator[tuple[Page, list[str], list[str]]]:
    """A page of the real browser, with the addresses it asked for elsewhere and the errors it threw.

    Of that running browser, whose pages share what was downloaded, or of one of its own.
    """
    elsewhere: list[str] = []
    errors: list[str] = []

    def note(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https") and address.hostname not in ("127.0.0.1", "localhost"):
            elsewhere.append(request.url)

    with contextlib.ExitStack() as stack:
        program = program or stack.enter_context(chromium())
        context = program.contexts[0] if program.contexts else program.new_context(viewport=VIEWPORT)
        stack.callback(context.clear_cookies)
        page = stack.enter_context(contextlib.closing(context.new_page()))
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("request", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        try:
            yield page, elsewhere, errors
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"The page as it was: {picture(page, 'failed')}")
            raise


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The real browser, without a window."""
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=browser_path(), args=list(_OPTIONS))
        try:
            yield program
        finally:
            program.close()


@contextlib.contextmanager
def chromium_of_a_reader(profile: Path) -> Iterator[BrowserContext]:
    """The browser of one who comes again: what it has read and compiled is kept in that folder."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=browser_path(), args=list(_OPTIONS), viewport=VIEWPORT
        )
        try:
            yield context
        finally:
            context.close()


def picture(page: Page, name: str) -> Path:
    """The whole page as a picture among the artefacts; gives its file."""
    ARTEFACTS.mkdir(exist_ok=True)
    path = ARTEFACTS / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    return path


def barriers(page: Page) -> list[str]:
    """What axe-core finds on the page that is serious or critical: its rule, the element and the reason."""
    bundled = pytest.importorskip(
        "axe_playwright_python", reason="axe-core is not installed: pip install -e '.[test]'"
    )
    page.evaluate((Path(bundled.__path__[0]) / "axe.min.js").read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(_AXE)
    return found


def settle(page: Page) -> None:
    """Waits until the page's script has ended."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def go(page: Page, name: str) -> None:
    """To another page of the app, by its link in the sidebar."""
    page.get_by_test_id("stSidebarNav").get_by_text(name, exact=True).click()
    page.get_by_role("heading", level=1, name=name, exact=True).wait_for()
