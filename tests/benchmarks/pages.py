"""What the pages cost with 10,000 runs and 12 million points in the store, in a real browser.

`python -m tests.benchmarks.pages [FOLDER]` works on a copy of the store that `tests.benchmarks.pages_store`
fills (and keeps, in FOLDER). Per page it prints, as medians with quartiles: seconds until the page's main
content stands, in a new tab of a browser that has been here before (its files are in its cache, the server is
warm) and of one that has not; bytes; the server's milliseconds; the time for which the browser was busy; SQL
statements. Beside them an empty page of Streamlit, measured in the same way. Then what an update of a live
page costs, and a step on Relations.

The last line is JSON. `open_s` is the median of the warm openings, `live_update_ms` the time for which the
browser is busy with one update of Curves (20 runs of 5,000 points, every one of which has new points),
`live_update_kb` what is sent for it, `relations_step_ms` from the key that moves the step to the painted
matrix.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext

from core.config import RunConfig
from core.store import Store
from core.training.events import TOTAL, StepMetrics
from jobs.engines.slots import free_slot
from tests.benchmarks.pages_browser import Cost, Tab
from tests.benchmarks.pages_statements import Statements, statements
from tests.benchmarks.pages_store import DEFAULT, filled
from tests.journeys.browser import VIEWPORT, chromium, running_app

_STEPS_AN_UPDATE = 20
_LOOK_S = 2.0

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


def places(store: Store) -> list[Place]:
    """Every page, on the runs that have most to show there."""
    newest = store.runs(limit=200)
    live = [str(run.id) for run in newest if run.sweep == "live"]
    told = [run for run in newest if run.sweep == "told"]
    mrn = next(str(run.id) for run in told if run.config.paradigm == "mrn")
    return [
        Place("launch", "text=/This makes/"),
        Place("runs", "[data-testid=stDataFrame]"),
        Place(
            "curves",
            ".js-plotly-plot .scatterlayer path.js-line",
            {"run": ",".join(live), "metric": "loss"},
        ),
        Place("compare", "[data-testid=stTable]", {"run": ",".join(str(run.id) for run in told)}),
        Place("relations", "[aria-label='Training step']", {"run": mrn}),
        Place("tag", ".word", {"run": mrn, "text": "Boston beat Mexico City in London on Sunday ."}),
    ]


def opened(browser: Browser, address: str, place: Place, times: int) -> tuple[list[Cost], list[Cost]]:
    """Openings in new tabs: of browsers that were never here, and of one that was."""
    cold = []
    for _ in range(max(2, times // 3)):
        context = browser.new_context(viewport=VIEWPORT)
        with Tab(context) as tab:
            cold.append(tab.open(place.link(address), place.mark))
        context.close()
    context = browser.new_context(viewport=VIEWPORT)
    with Tab(context) as tab:
        tab.open(place.link(address), place.mark)
    warm = []
    for _ in range(times):
        with Tab(context) as tab:
            warm.append(tab.open(place.link(address), place.mark))
    context.close()
    return cold, warm


def looks(context: BrowserContext, address: str, place: Place, times: int) -> Cost:
    """What a page costs per look while runs train but nothing new has come from them."""
    with Tab(context) as tab:
        tab.open(place.link(address), place.mark)
        tab.page.wait_for_timeout(1000 * _LOOK_S)
        tab.begin()
        tab.page.wait_for_timeout(1000 * _LOOK_S * times)
        all_of_it = tab.cost()
    return Cost(_LOOK_S, all_of_it.messages_kb / times, 0.0, 0.0, all_of_it.busy_ms / times)


def updates(context: BrowserContext, address: str, place: Place, store: Store, times: int) -> list[Cost]:
    """Updates of Curves: all runs get new points in the store, until the last of them is painted."""
    ids = [int(run_id) for run_id in place.query["run"].split(",")]
    costs = []
    with Tab(context) as tab:
        tab.open(place.link(address), place.mark)
        for _ in range(times):
            tab.page.wait_for_timeout(1000 * _LOOK_S)
            step = _train_on(store, ids)
            tab.begin()
            tab.page.wait_for_function(f"({_LAST_STEP})() >= {step}", timeout=30_000)
            taken = tab.cost().seconds
            tab.page.wait_for_timeout(300)
            costs.append(tab.cost(taken))
    return costs


def _train_on(store: Store, ids: Sequence[int]) -> int:
    """New points of the losses of these runs; gives the last step."""
    with store.transaction():
        for run in store.runs(ids, with_facts=False):
            steps = range(run.step + 1, run.step + 1 + _STEPS_AN_UPDATE)
            values = dict.fromkeys([TOTAL, *run.config.tasks], 0.5)
            rows = [
                StepMetrics(
                    step, step / 500, 0.35 * step, {(task, "loss"): value for task, value in values.items()}
                )
                for step in steps
            ]
            store.add_metrics(run.id, rows)
            store.set_progress(run.id, steps[-1], steps[-1] / 500, run.total_steps)
    return steps[-1]


def relations_steps(context: BrowserContext, address: str, place: Place, times: int) -> list[float]:
    """Milliseconds from the key that moves the step until the features' matrix of that step is painted."""
    with Tab(context) as tab:
        features = replace(place, query=place.query | {"mode": "Features"})
        tab.open(features.link(address), place.mark)
        # Steps can be moved once all have come.
        tab.page.get_by_text("% of training").wait_for()
        before = len(tab.page.evaluate(_STEPS))
        for turn in range(times):
            tab.page.get_by_role("slider", name="Training step").press("ArrowLeft")
            tab.page.wait_for_function(f"({_STEPS})().length > {before + turn}")
            tab.page.wait_for_timeout(300)
        return [float(taken) for taken in tab.page.evaluate(_STEPS)[before:]]


def measured(home: Path, times: int, only: Sequence[str]) -> dict[str, Any]:
    """All figures of the last line, told as they come."""
    store = Store.open(f"sqlite:///{home / 'runs.db'}")
    with free_slot(store.url) as slot:
        # Runs wait, as they do where one works, but no worker may begin to train them while we measure.
        assert slot is not None, "another worker trains on this store"
        _queue_some(store)
        pages = [place for place in places(store) if not only or place.page in only]
        for place in pages:
            first, again = statements(place.page, place.query)
            print(f"{place.page:9} SQL at first {_said(first)}; again {_said(again)}")
        with chromium() as browser:
            _tell_nothing(browser, home, times)
            with running_app(home) as address:
                figures = _in_browser(browser, address, pages, store, times)
    store.close()
    return figures


def _tell_nothing(browser: Browser, home: Path, times: int) -> None:
    """What a page of Streamlit costs that shows a word: what no page of ours can be faster than."""
    folder = home / "nothing"
    folder.mkdir()
    script = folder / "nothing.py"
    script.write_text('import streamlit as st\nst.title("Nothing")\n')
    with running_app(folder, script) as address:
        _, warm = opened(browser, address, Place("", "text=Nothing"), times)
    _tell("(nothing) opened", warm)


def _in_browser(
    browser: Browser, address: str, pages: Sequence[Place], store: Store, times: int
) -> dict[str, Any]:
    open_s = {}
    for place in pages:
        cold, warm = opened(browser, address, place, times)
        _tell(f"{place.page:9} opened", warm)
        _tell(f"{place.page:9} cold  ", cold)
        open_s[place.page] = round(statistics.median(cost.seconds for cost in warm), 3)
    context = browser.new_context(viewport=VIEWPORT)
    for place in pages:
        cost = looks(context, address, place, times)
        print(
            f"{place.page:9} a look every {_LOOK_S:g} s:",
            f"{cost.messages_kb:.1f} kB of messages, busy {cost.busy_ms:.0f} ms",
        )
    found: dict[str, Any] = {"open_s": open_s}
    for place in pages:
        if place.page == "curves":
            live = updates(context, address, place, store, times)
            _tell("curves    update", live)
            found["live_update_ms"] = round(statistics.median(cost.busy_ms for cost in live), 1)
            found["live_update_kb"] = round(statistics.median(cost.messages_kb for cost in live), 1)
        if place.page == "relations":
            steps = relations_steps(context, address, place, times)
            print(f"relations step: {_spread(steps, 0)} ms")
            found["relations_step_ms"] = round(statistics.median(steps), 1)
    return found


def _queue_some(store: Store) -> None:
    store.add_runs(
        [RunConfig.build(corpus="demo", tasks=("pos", "ner"), paradigm="mtl", seed=seed) for seed in (1, 2)]
    )


def _said(one: Statements) -> str:
    return f"{one.count} statements, the page {one.page_ms:.0f} ms"


def _tell(what: str, costs: Sequence[Cost]) -> None:
    told = (
        f"{_spread([cost.seconds for cost in costs], 2)} s",
        f"{_spread([cost.messages_kb for cost in costs], 1)} kB of messages",
        f"{_spread([cost.files_kb for cost in costs], 0)} kB of files",
        f"server {_spread([cost.server_ms for cost in costs], 0)} ms",
        f"busy {_spread([cost.busy_ms for cost in costs], 0)} ms",
    )
    print(what, ", ".join(told))


def _spread(values: Sequence[float], digits: int) -> str:
    """The median, and the quartiles in brackets."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=DEFAULT, help="where the filled store is kept"
    )
    parser.add_argument("--times", type=int, default=7, help="how often each page is opened")
    parser.add_argument("--only", nargs="+", default=(), help="these pages alone")
    chosen = parser.parse_args()
    kept = filled(chosen.folder)
    made = json.loads((kept / "filled.json").read_text())
    logging.disable(logging.WARNING)  # pages without a browser warn that there is none
    with tempfile.TemporaryDirectory() as folder:
        # The measuring adds to the store, so it is given one to throw away.
        shutil.copy(kept / "runs.db", folder)
        os.environ |= {"MRNLAB_HOME": folder, "MRNLAB_SLOTS": "1"}
        figures = measured(Path(folder), chosen.times, chosen.only)
    print(json.dumps({"runs": made["runs"], "points": made["points"], **figures}))


if __name__ == "__main__":
    main()
