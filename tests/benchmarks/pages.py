"""What the pages cost with 10,000 runs and 14 million points in the store, in a real browser.

`python -m tests.benchmarks.pages [FOLDER]` works on a copy of a store that it fills in the first call, in
some minutes, and keeps in FOLDER. Per page it prints, as medians with quartiles: seconds until the page's
main content stands, in a new tab of a browser that has been here before (its files are in its cache, the
server is warm) and of one that has not; bytes; the server's milliseconds; the time for which the browser was
busy; SQL statements. Beside them an empty page of Streamlit, measured in the same way. Then what an update of
a live page costs, and a step on Relations.

The last line is JSON. `open_s` is the median of the warm openings, `live_update_ms` the time for which the
browser is busy with one update of Curves (20 runs of 5,000 points, every one of which has new points),
`live_update_kb` what is sent for it, `relations_step_ms` from the key that moves the step to the painted
matrix.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext
from sqlalchemy import Engine, event
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.paths import checkpoint_dir
from core.records import TOTAL, StepMetrics
from core.store import Store
from core.tagging import load_tagger
from jobs.engines.local import free_slot
from tests.benchmarks._harness import arguments, laboratory, spread, tell
from tests.benchmarks._pages_store import Contents, filled, looks_alive
from tests.journeys.browser import ROOT, VIEWPORT, chromium, running_app

_STEPS_AN_UPDATE = 20
_LOOK_S = 2.0
_PATIENCE_S = 120
_LAST_STEP = """() => Math.max(...[...document.querySelectorAll('.js-plotly-plot')]
    .flatMap((chart) => (chart._fullData ?? []).map((trace) => trace.x?.[trace.x.length - 1] ?? 0)))"""
# The player measures itself: from the reader's key to the painted matrix (docs/adr/0009-matrix-player.md).
_STEPS = "() => performance.getEntriesByName('relations-step').map((step) => step.duration)"


@dataclass(frozen=True)
class Place:
    """A page, as a link leads to it, and what must be seen there for it to be open."""

    page: str
    mark: str
    query: dict[str, str] = field(default_factory=dict)

    def link(self, address: str) -> str:
        return f"{address}/{self.page}?{urlencode(self.query)}"


def places(contents: Contents) -> list[Place]:
    """Every page, on the runs that have most to show there."""
    live, finished = (",".join(map(str, ids)) for ids in (contents.live, contents.finished))
    line = ".js-plotly-plot .scatterlayer path.js-line"
    sentence = "Boston beat Mexico City in London on Sunday ."
    return [
        Place("launch", "text=/This makes/"),
        Place("runs", "[data-testid=stDataFrame]"),
        Place("curves", line, {"run": live, "metric": "loss"}),
        Place("compare", "[data-testid=stTable]", {"run": finished}),
        Place("relations", "[aria-label='Training step']", {"run": str(contents.relations)}),
        Place("tag", ".word", {"run": str(contents.tagger), "text": sentence}),
    ]


@dataclass(frozen=True)
class Cost:
    """What happened between two moments. `messages_kb` came over the page's own connection, `files_kb` else.

    `server_ms` is from the browser's first message to the last answer, `busy_ms` the time in which the page's
    only thread did something.
    """

    seconds: float
    messages_kb: float
    files_kb: float
    server_ms: float
    busy_ms: float


class Tab:
    """A new tab of a browser, its traffic counted."""

    def __init__(self, context: BrowserContext) -> None:
        self.page = context.new_page()
        self._session = context.new_cdp_session(self.page)
        self._session.send("Network.enable")
        self._session.send("Performance.enable")
        self._session.on("Network.webSocketFrameSent", self._sent)
        self._session.on("Network.webSocketFrameReceived", self._received)
        self._session.on("Network.dataReceived", self._loaded)
        self.begin()

    def begin(self) -> None:
        """Counts from now on."""
        self._messages = self._files = 0
        self._asked: float | None = None
        self._answered = 0.0
        self._busy = self._busy_s()
        self._began = time.perf_counter()

    def cost(self, seconds: float | None = None) -> Cost:
        """What it cost since `begin`, which lasted until now or as long as is said."""
        taken = time.perf_counter() - self._began if seconds is None else seconds
        waited = self._answered - self._asked if self._asked and self._answered else 0.0
        busy = self._busy_s() - self._busy
        return Cost(taken, self._messages / 1e3, self._files / 1e3, 1e3 * waited, 1e3 * busy)

    def open(self, address: str, mark: str) -> Cost:
        """Opens a page; the cost until what `mark` selects is to be seen, and of what came shortly after."""
        self.begin()
        self.page.goto(address, wait_until="commit")
        self.page.locator(mark).first.wait_for(timeout=1e3 * _PATIENCE_S)
        seconds = time.perf_counter() - self._began
        self.page.wait_for_timeout(400)
        return self.cost(seconds)

    def _busy_s(self) -> float:
        values = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(value["value"] for value in values if value["name"] == "TaskDuration"))

    def _sent(self, frame: Mapping[str, Any]) -> None:
        self._asked = self._asked or frame["timestamp"]

    def _received(self, frame: Mapping[str, Any]) -> None:
        # Streamlit's messages are binary, which the browser gives in base64: four characters for three bytes.
        self._messages += len(frame["response"]["payloadData"]) * 3 // 4
        self._answered = frame["timestamp"]

    def _loaded(self, chunk: Mapping[str, Any]) -> None:
        self._files += chunk["encodedDataLength"]


@contextlib.contextmanager
def tab(context: BrowserContext) -> Iterator[Tab]:
    """A new tab, closed at the end of the block."""
    new = Tab(context)
    yield new
    new.page.close()


def opened(browser: Browser, address: str, place: Place, times: int) -> tuple[list[Cost], list[Cost]]:
    """Openings in new tabs: of browsers that were never here, and of one that was."""
    cold, warm = [], []
    for _ in range(max(1, times // 3)):
        context = browser.new_context(viewport=VIEWPORT)
        with tab(context) as first:
            cold.append(first.open(place.link(address), place.mark))
    for _ in range(times):  # the last of those
        with tab(context) as again:
            warm.append(again.open(place.link(address), place.mark))
    return cold, warm


def updates(context: BrowserContext, address: str, place: Place, store: Store, times: int) -> list[Cost]:
    """Updates of Curves: all runs get new points in the store, until the last of them is painted."""
    ids = [int(run_id) for run_id in place.query["run"].split(",")]
    costs = []
    with tab(context) as watched:
        watched.open(place.link(address), place.mark)
        for _ in range(times):
            watched.page.wait_for_timeout(1000 * _LOOK_S)
            step = _train_on(store, ids)
            watched.begin()
            watched.page.wait_for_function(f"({_LAST_STEP})() >= {step}", timeout=1e3 * _PATIENCE_S)
            taken = watched.cost().seconds
            watched.page.wait_for_timeout(300)
            costs.append(watched.cost(taken))
    return costs


def _train_on(store: Store, ids: Sequence[int]) -> int:
    """New points of the losses of these runs; gives the last step."""
    with store.transaction():
        for run in store.runs(ids, with_facts=False):
            steps = range(run.step + 1, run.step + 1 + _STEPS_AN_UPDATE)
            values = {(task, "loss"): 0.5 for task in (TOTAL, *run.config.tasks)}
            store.add_metrics(run.id, [StepMetrics(step, step / 500, 0.35 * step, values) for step in steps])
            store.set_progress(run.id, steps[-1], steps[-1] / 500, run.total_steps)
    return steps[-1]


def relations_steps(context: BrowserContext, address: str, place: Place, times: int) -> list[float]:
    """Milliseconds from the key that moves the step until the features' matrix of that step is painted."""
    with tab(context) as watched:
        features = replace(place, query=place.query | {"mode": "Features"})
        watched.open(features.link(address), place.mark)
        # Steps can be moved once all have come.
        watched.page.get_by_text("% of training").wait_for()
        before = len(watched.page.evaluate(_STEPS))
        for turn in range(times):
            watched.page.get_by_role("slider", name="Training step").press("ArrowLeft")
            watched.page.wait_for_function(f"({_STEPS})().length > {before + turn}")
            watched.page.wait_for_timeout(300)
        return [float(taken) for taken in watched.page.evaluate(_STEPS)[before:]]


def statements(place: Place) -> tuple[int, float]:
    """How many SQL statements one opening of a page runs, and its milliseconds, all Python: the page is run
    without a browser, over the store of MRNLAB_HOME.
    """
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=_PATIENCE_S)
    app.switch_page(f"{place.page}/page.py")
    for name, value in place.query.items():
        app.query_params[name] = value
    ran: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            ran.append(statement)

    event.listen(Engine, "after_cursor_execute", note)
    began = time.perf_counter()
    try:
        app.run()
    finally:
        event.remove(Engine, "after_cursor_execute", note)
    assert not app.exception, [error.value for error in app.exception]
    return len(ran), 1e3 * (time.perf_counter() - began)


def measured(home: Path, pages: Sequence[Place], times: int, *, quick: bool) -> dict[str, Any]:
    """All figures of the last line, printed as they come."""
    with (
        contextlib.closing(Store.open()) as store,
        free_slot(store.url) as slot,
        chromium() as browser,
    ):
        # Runs wait, as they do where one works, but no worker may begin to train them while we measure.
        assert slot is not None, "another worker trains on this store"
        values = {"corpus": "demo", "tasks": ("pos", "ner"), "paradigm": "mtl"}
        store.add_runs([RunConfig.build(**values, seed=seed) for seed in (1, 2)])
        looks_alive(store)
        for place in pages:
            for when in ("at first", "again")[: 1 if quick else 2]:
                number, page_ms = statements(place)
                print(f"{place.page:9} SQL {when}: {number} statements, the page {page_ms:.0f} ms")
        if not quick:
            _tell_nothing(browser, home, times)
        with running_app(home) as address:
            return _in_browser(browser, address, pages, store, times)


def _tell_nothing(browser: Browser, home: Path, times: int) -> None:
    """What a page of Streamlit costs that shows a word: what no page of ours can be faster than."""
    folder = home / "nothing"
    folder.mkdir()
    script = folder / "nothing.py"
    script.write_text('import streamlit as st\nst.title("Nothing")\n')
    with running_app(folder, script) as address:
        _, warm = opened(browser, address, Place("", "text=Nothing"), times)
    _show("(nothing) opened", warm)


def _in_browser(
    browser: Browser, address: str, pages: Sequence[Place], store: Store, times: int
) -> dict[str, Any]:
    figures: dict[str, Any] = {"open_s": {}}
    for place in pages:
        cold, warm = opened(browser, address, place, times)
        _show(f"{place.page:9} opened", warm)
        _show(f"{place.page:9} cold  ", cold)
        figures["open_s"][place.page] = spread([cost.seconds for cost in warm])["median"]
    context = browser.new_context(viewport=VIEWPORT)
    for place in pages:
        if place.page == "curves":
            live = updates(context, address, place, store, times)
            _show("curves    update", live)
            figures["live_update_ms"] = spread([cost.busy_ms for cost in live], 1)["median"]
            figures["live_update_kb"] = spread([cost.messages_kb for cost in live], 1)["median"]
        if place.page == "relations":
            steps = spread(relations_steps(context, address, place, times), 1)
            print(f"relations step: {steps} ms")
            figures["relations_step_ms"] = steps["median"]
    return figures


def _show(what: str, costs: Sequence[Cost]) -> None:
    """Each figure's median, and its quartiles in brackets."""
    shown = []
    for name in Cost.__dataclass_fields__:
        figure = spread([getattr(cost, name) for cost in costs], 2)
        shown.append(f"{name} {figure['median']} {figure['quartiles']}")
    print(f"{what}: {', '.join(shown)}", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    default = Path(tempfile.gettempdir()) / "mrnlab-pages"
    parser.add_argument("folder", nargs="?", type=Path, default=default, help="where the store is kept")
    parser.add_argument("--times", type=int, default=7, help="how often each page is opened")
    parser.add_argument("--only", nargs="+", default=(), help="these pages alone")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # pages without a browser warn that there is none
    with tempfile.TemporaryDirectory() as temporary, laboratory(MRNLAB_SLOTS="1") as home:
        kept = Path(temporary) / "kept" if asked.quick else asked.folder.resolve()
        contents = filled(kept, quick=asked.quick)
        # The measuring adds to the store, so it is given one to throw away. A laboratory finds the models of
        # its runs in its own folder.
        shutil.copy(kept / "runs.db", home)
        shutil.copytree(kept / "checkpoints", home / "checkpoints")
        load_tagger(checkpoint_dir(contents.tagger))
        only = asked.only or (("curves", "relations") if asked.quick else ())
        pages = [place for place in places(contents) if not only or place.page in only]
        figures = measured(home, pages, 1 if asked.quick else asked.times, quick=asked.quick)
    tell({"runs": contents.runs, "points": contents.points, **figures})


if __name__ == "__main__":
    main()
