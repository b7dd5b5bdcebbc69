"""What the pages cost with 10,000 runs and 14 million points in the store, in a real browser.

`python -m tests.benchmarks.pages [FOLDER]` works on a copy of a store that the first call fills, in some
minutes, and keeps in FOLDER. For each page, and for an empty page of Streamlit, it prints what an opening
costs in a new tab (the browser has its files and what it compiled of them, the server is warm), as medians
with quartiles: seconds until the main content is visible, kB, and the processor time of the browser and of
the server, which other programs change least. Then the same for an update of a live page, and the time of a
step on Relations.

`--pages curves,compare` measures only those.

The last line is JSON. `open_s` is the median of the openings, `open_cpu_s` of the processor time of browser
and server together, `live_update_ms` the browser's processor time for one update of Curves (20 runs of 5,000
points, each with new points), `live_update_kb` what is sent for it, `relations_step_ms` the time from the key
that moves the step to the painted matrix.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
from playwright.sync_api import BrowserContext

from core.config import RunConfig
from core.metrics import TOTAL, StepMetrics
from core.store import Store
from jobs.worker.slots import free_slot
from tests.benchmarks._harness import arguments, laboratory, print_json, spread
from tests.benchmarks._pages_store import Contents, adopt_running, fill_store
from tests.benchmarks.startup import processor_seconds
from tests.journeys.browser import chromium_of_a_reader, running_app

_TIMES = 8
_STEPS_PER_UPDATE = 20
_POLL_S = 2.0
_PATIENCE_MS = 120_000.0
_LAST_STEP = """() => Math.max(...[...document.querySelectorAll('.js-plotly-plot')]
    .flatMap((chart) => (chart._fullData ?? []).map((trace) => trace.x?.[trace.x.length - 1] || 0)))"""
# The player measures itself: from the reader's key to the painted matrix (docs/adr/0009-matrix-player.md).
_STEPS = "() => performance.getEntriesByName('relations-step').map((step) => step.duration)"


@dataclass(frozen=True)
class Place:
    """A page as a link leads to it; `mark` selects what must be visible for it to be open."""

    page: str
    mark: str
    query: dict[str, str] = field(default_factory=dict)

    def link(self, address: str) -> str:
        return f"{address}/{self.page}?{urlencode(self.query)}"


def places(contents: Contents) -> list[Place]:
    """Every page, on the runs that show most there; only Curves and Relations of a quick store."""
    live, finished = (",".join(map(str, ids)) for ids in (contents.live, contents.finished))
    line = ".js-plotly-plot .scatterlayer path.js-line"
    measured = [
        Place("curves", line, {"run": live, "metric": "Training loss"}),
        Place(
            "relations", "[aria-label='Training step']", {"run": str(contents.relations), "mode": "Features"}
        ),
    ]
    if contents.tagger is None:
        return measured
    sentence = "Boston beat Mexico City in London on Sunday ."
    return [
        Place("launch", "text=/This makes/"),
        Place("runs", "table[aria-label^=Configurations]"),
        *measured,
        Place("compare", ".sheet table", {"run": finished}),
        Place("studies", "[class*='st-key-study_row_']"),
        Place("transfer", ".st-key-answer_transfer p"),
        Place("tag", ".word", {"run": str(contents.tagger), "text": sentence}),
    ]


@dataclass(frozen=True)
class Cost:
    """Seconds, kB over the page's WebSocket, and processor milliseconds of the page's main thread and of the
    server.
    """

    seconds: float
    kb: float
    browser_ms: float
    server_ms: float


class Tab:
    """A new tab whose traffic is counted. It closes with its `with` block."""

    def __init__(self, context: BrowserContext) -> None:
        self.page = context.new_page()
        self._session = context.new_cdp_session(self.page)
        self._session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
        self._session.send("Performance.enable")
        self._server = _server()
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.begin()

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()

    def begin(self) -> None:
        """Count from now on."""
        self._bytes = 0
        self._browser, self._served = self._browser_s(), processor_seconds(self._server)
        self._began = time.perf_counter()

    def cost(self) -> Cost:
        """The cost since `begin`. Work shortly after is counted too, but not its time."""
        seconds = time.perf_counter() - self._began
        self.page.wait_for_timeout(400)
        browser, server = (self._browser_s() - self._browser, processor_seconds(self._server) - self._served)
        return Cost(seconds, self._bytes / 1e3, 1e3 * browser, 1e3 * server)

    def open(self, address: str, mark: str) -> None:
        """Open a page and wait until what `mark` selects is visible."""
        self.begin()
        self.page.goto(address, wait_until="commit")
        self.page.locator(mark).first.wait_for(timeout=_PATIENCE_MS)

    def _browser_s(self) -> float:
        values = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(value["value"] for value in values if value["name"] == "TaskDuration"))

    def _count(self, payload: str | bytes) -> None:
        self._bytes += len(payload)


@contextlib.contextmanager
def openings(
    context: BrowserContext, address: str, place: Place, times: int
) -> Iterator[tuple[Tab, list[Cost]]]:
    """Costs of openings in new tabs, and the last tab; of several, the first cost is not counted."""
    costs = []
    for number in range(1, times + 1):
        with Tab(context) as tab:
            tab.open(place.link(address), place.mark)
            costs.append(tab.cost())
            if number == times:
                yield tab, costs[1:] or costs


def updates(tab: Tab, store: Store, ids: Sequence[int], times: int) -> list[Cost]:
    """Costs of updates of Curves, from new points of all these runs in the store until they are painted."""
    costs = []
    for _ in range(times):
        tab.page.wait_for_timeout(1000 * _POLL_S)
        step = _train_on(store, ids)
        tab.begin()
        tab.page.wait_for_function(f"({_LAST_STEP})() >= {step}", timeout=_PATIENCE_MS)
        costs.append(tab.cost())
    return costs


def _train_on(store: Store, ids: Sequence[int]) -> int:
    """Add new points to all runs, in one transaction; their last step."""
    with store.transaction():
        for run in store.runs(ids):
            steps = range(run.step + 1, run.step + _STEPS_PER_UPDATE + 1)
            values = {(task, "loss"): 0.5 for task in (TOTAL, *run.config.tasks)}
            store.add_metrics(run.id, [StepMetrics(step, step / 500, 0.35 * step, values) for step in steps])
            store.set_progress(run.id, steps[-1], steps[-1] / 500, run.total_steps)
    return steps[-1]


def relations_steps(tab: Tab, times: int) -> list[float]:
    """Milliseconds from the key that moves the step until the matrix of that step is painted."""
    tab.page.get_by_text("% of training").wait_for()  # until then, steps cannot be moved
    before = len(tab.page.evaluate(_STEPS))
    for number in range(times):
        tab.page.get_by_role("slider", name="Training step").press("ArrowLeft")
        tab.page.wait_for_function(f"({_STEPS})().length > {before + number}")
        tab.page.wait_for_timeout(300)
    return [float(duration) for duration in tab.page.evaluate(_STEPS)[before:]]


def _server() -> psutil.Process:
    """The app that `running_app` has started."""
    children = psutil.Process().children()
    return next(child for child in reversed(children) if "streamlit" in child.cmdline())


def measure(
    context: BrowserContext, home: Path, contents: Contents, store: Store, pages: Sequence[str]
) -> dict[str, Any]:
    """All figures of the last line, printed as they come."""
    times = 1 if contents.tagger is None else _TIMES
    figures: dict[str, Any] = {"open_s": {}, "open_cpu_s": {}}
    if contents.tagger is not None:  # no page can be faster than an empty one
        empty = home / "empty"
        empty.mkdir()
        (empty / "empty.py").write_text('import streamlit as st\nst.title("Nothing")\n')
        with (
            running_app(empty, empty / "empty.py") as address,
            openings(context, address, Place("", "text=Nothing"), times) as (_tab, costs),
        ):
            _print("(empty) opened", costs)
    with running_app(home) as address:
        for place in places(contents):
            if pages and place.page not in pages:
                continue
            with openings(context, address, place, times) as (tab, costs):
                _print(f"{place.page} opened", costs)
                figures["open_s"][place.page] = spread([cost.seconds for cost in costs])["median"]
                cpu = [(cost.browser_ms + cost.server_ms) / 1e3 for cost in costs]
                figures["open_cpu_s"][place.page] = spread(cpu)["median"]
                if place.page == "curves":
                    costs = updates(tab, store, contents.live, times)
                    _print("curves update", costs)
                    figures["live_update_ms"] = spread([cost.browser_ms for cost in costs], 1)["median"]
                    figures["live_update_kb"] = spread([cost.kb for cost in costs], 1)["median"]
                if place.page == "relations":
                    steps = spread(relations_steps(tab, times), 1)
                    print(f"relations step: {steps} ms")
                    figures["relations_step_ms"] = steps["median"]
    return figures


def _print(what: str, costs: Sequence[Cost]) -> None:
    figures = {part.name: spread([getattr(cost, part.name) for cost in costs], 2) for part in fields(Cost)}
    print(f"{what}: {figures}", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    default = Path(tempfile.gettempdir()) / "mrnlab-pages"
    parser.add_argument("folder", nargs="?", type=Path, default=default, help="where the store is kept")
    parser.add_argument("--pages", type=lambda names: names.split(","), default=[], help="only these")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, laboratory(MRNLAB_SLOTS="1") as home:
        kept = Path(temporary) / "kept" if args.quick else args.folder.resolve()
        contents = fill_store(kept, quick=args.quick)
        # A copy, because updates add to the store. A laboratory finds its runs' models in its own folder.
        shutil.copy(kept / "runs.db", home)
        if contents.tagger is not None:
            shutil.copytree(kept / "checkpoints", home / "checkpoints")
        with (
            contextlib.closing(Store.open()) as store,
            free_slot(store.url) as slot,
            chromium_of_a_reader(Path(temporary) / "profile") as context,
        ):
            # Runs wait, as on a laboratory in use, but the only slot is taken: no worker trains them.
            assert slot is not None
            values = {"corpus": "demo", "tasks": ("pos", "ner"), "paradigm": "mtl"}
            store.add_runs([RunConfig.build(**values, seed=seed) for seed in (1, 2)])
            adopt_running(store)
            figures = measure(context, home, contents, store, args.pages)
    print_json({"runs": contents.runs, "points": contents.points, **figures})


if __name__ == "__main__":
    main()
