"""A report in a real browser, opened from its file with the network off: drawn, quiet, readable, printed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from core.report import ReportAsked
from core.store import Store
from core.studies.recorded import records_of
from dashboard.report.build import build
from jobs.exchange.run_table import RunTable
from tests.journeys.browser import ARTEFACTS, VIEWPORT, barriers, picture
from tests.journeys.conftest import Laboratory
from tests.patience import PATIENCE_MS
from tests.security.hostile import MARKUP, fill_hostile

pytestmark = [pytest.mark.journey, pytest.mark.slow]

_CLIPPED = """[...document.querySelectorAll(".chart text")].filter((text) => {
  const [at, room] = [text, text.closest(".chart")].map((element) => element.getBoundingClientRect())
  return at.width && (at.left < room.left - 1 || at.right > room.right + 1 || at.bottom > room.bottom + 1)
}).map((text) => text.textContent)"""
"""The texts of charts that lie beyond their chart."""
_TEXT = "The *researcher's* text.\n\n@relations\nOn relations."


@dataclass
class Opened:
    """A report in the browser, with all that it asked for and complained of."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self, message: ConsoleMessage) -> None:
        """Keeps an error or a warning of the console."""
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@contextlib.contextmanager
def opened(browser: Browser, file: Path, *, width: int = 1440, dark: bool = False) -> Iterator[Opened]:
    """The file in a context without network. At the end nothing was asked for, and nothing complained of."""
    context = browser.new_context(
        viewport={"width": width, "height": VIEWPORT["height"]},
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    with contextlib.closing(context):
        context.set_default_timeout(PATIENCE_MS)
        report = Opened(context.new_page())
        report.page.on("request", lambda request: report.asked.append(request.url))
        report.page.on("console", report.listen)
        report.page.on("pageerror", lambda error: report.complaints.append(str(error)))
        report.page.goto(file.as_uri())
        expect(report.page.locator(".chart .main-svg").first).to_be_visible()
        yield report
        assert [url for url in report.asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
        assert report.complaints == []


@pytest.fixture(scope="module")
def file(filled_laboratory: Laboratory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on all runs of the laboratory."""
    with (
        contextlib.closing(Store.open(filled_laboratory.url)) as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("MRNLAB_DB", filled_laboratory.url)
        asked = ReportAsked(filled_laboratory.url, tuple(filled_laboratory.filled.finished), text=_TEXT)
        report = build(store, asked)
    assert report.missing == {}
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report.html, encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_a_report_is_drawn_and_accessible(browser: Browser, file: Path, width: int, dark: bool) -> None:
    with opened(browser, file, width=width, dark=dark) as report:
        page = report.page
        expect(page.locator(".matrix output").first).to_contain_text("100% of training")
        expect(page.locator(".sentence .word").first).to_be_visible()
        expect(page.locator(".matrix .loading").first).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(18, 22, 26)" if dark else "rgb(255, 255, 255)")
        assert page.evaluate(_CLIPPED) == []
        assert barriers(page) == []
        picture(page, f"report-{width}-{'dark' if dark else 'light'}")


def test_relations_play_and_words_answer(browser: Browser, file: Path) -> None:
    with opened(browser, file) as report:
        player = report.page.locator(".matrix").first
        player.get_by_role("button", name="One step back").click()
        expect(player.locator("output")).not_to_contain_text("100% of training")
        player.get_by_role("button", name="Play").click()
        expect(player.locator("output")).to_contain_text("100% of training")
        report.page.locator(".sentence .cell").first.hover()
        expect(report.page.locator(".sentence .card")).to_be_visible()


def test_a_report_prints_light_and_unfolded(browser: Browser, file: Path) -> None:
    with opened(browser, file, dark=True) as report:
        printed = report.page.pdf(prefer_css_page_size=True)
        ARTEFACTS.mkdir(exist_ok=True)
        (ARTEFACTS / "report.pdf").write_bytes(printed)
        assert printed.count(b"/Type /Page\n") > 3
        assert report.page.locator("details[open]").count() == 0, "it is as before"


@pytest.fixture(scope="module")
def file_of_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on the recorded runs of a study, in a laboratory that has no others."""
    home = tmp_path_factory.mktemp("study")
    url = f"sqlite:///{home / 'runs.db'}"
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(Store.open(url)) as store:
        patch.setenv("MRNLAB_DB", url)
        RunTable(records_of("priors")[0].path).restore(store)
        report = build(store, ReportAsked(url, tuple(run.id for run in store.runs())))
    path = home / "study.html"
    path.write_text(report.html, encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_a_report_of_a_study_is_drawn_and_accessible(
    browser: Browser, file_of_study: Path, width: int, dark: bool
) -> None:
    with opened(browser, file_of_study, width=width, dark=dark) as report:
        page = report.page
        expect(page.locator("#answer > .answer")).to_contain_text("18 differences on 11 data sets")
        expect(page.locator("#forest .main-svg").last).to_be_visible()
        expect(page.locator("#relations .missing")).to_contain_text(
            "None of these runs is of MRN with stored"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(_CLIPPED) == []
        assert barriers(page) == []
        page.screenshot(path=ARTEFACTS / f"report-study-{width}-{'dark' if dark else 'light'}.png")
        if width == VIEWPORT["width"] and not dark:
            printed = page.pdf(prefer_css_page_size=True)
            (ARTEFACTS / "report-study.pdf").write_bytes(printed)
            assert printed.count(b"/Type /Page\n") > 10


def test_hostile_names_execute_nothing(browser: Browser, tmp_path: Path, laboratory: Path) -> None:
    url = f"sqlite:///{laboratory / 'runs.db'}"
    fill_hostile(url, seeds=(1, 2))
    with contextlib.closing(Store.open(url)) as store:
        report = build(
            store, ReportAsked(url, tuple(run.id for run in store.runs()), title=MARKUP, text=MARKUP)
        )
    file = tmp_path / "hostile.html"
    file.write_text(report.html, encoding="utf-8")
    with opened(browser, file) as shown:
        shown.page.wait_for_timeout(500)
        assert shown.page.evaluate("window.owned") is None
        picture(shown.page, "report-hostile")
