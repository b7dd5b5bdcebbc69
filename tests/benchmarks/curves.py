"""How fast curves are: an exact band over seeds, and one live update of the Curves page.

`python -m tests.benchmarks.curves` prints milliseconds for the mean and 95% band over 100 runs of 5,000
points (50 are allowed) beside pandas and scipy doing the same; then for 20 live runs of 5,000 points of four
tasks and their total: reading what is new, making the view and the figures, and, where there is a Chromium,
what one update sends to the browser (150 kB are allowed) and what it costs its main thread (150 ms of
processor time). The last line is JSON.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from playwright.sync_api import Page, WebSocket
from scipy import stats

from core.config import RunConfig
from core.evaluation.band import band
from core.store import Store
from core.store.records import MetricSeries
from core.training.events import TOTAL, StepMetrics
from dashboard.caches.curves import SeriesCache
from dashboard.charts import curve_chart, small_charts
from dashboard.queries.curve_metrics import METRICS, metric_keys
from dashboard.queries.curve_numbers import side_by_side
from dashboard.queries.curve_views import Reading
from dashboard.queries.curves import curves
from dashboard.theme import colours
from jobs.processes import this_process
from tests.journeys.browser import BROWSERS, browser_page, running_app

TASKS = ("pos", "chunk", "ner", "dep")
POINTS = 5000
LIVE_RUNS = 20
UPDATES = 6


def milliseconds(work: Callable[[], object], times: int = 7) -> float:
    """The shortest of several times, after one that is not counted: what else runs only adds."""
    work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - began))
    return round(min(taken), 2)


def band_ms(runs: int = 100) -> dict[str, float]:
    """The exact band over so many runs, and the naive way to the same numbers."""
    random = np.random.default_rng(3)
    x = np.arange(1.0, POINTS + 1)
    xs = [x.copy() for _ in range(runs)]
    ys = [np.exp(-x / 800) + 0.1 * random.random(POINTS) for _ in range(runs)]

    def exact() -> Any:
        return band(side_by_side(xs, ys)[1])

    def naive() -> pd.DataFrame:
        table = pd.concat([pd.Series(y, index=x) for x, y in zip(xs, ys, strict=True)], axis=1)
        mean, sd, n = table.mean(axis=1), table.std(axis=1), table.count(axis=1)
        half = stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n)
        return pd.DataFrame({"mean": mean, "sd": sd, "low": mean - half, "high": mean + half})

    ours, theirs = exact(), naive()
    for name in ("mean", "sd", "low", "high"):
        np.testing.assert_allclose(getattr(ours, name), theirs[name], rtol=1e-9)
    return {"band_ms": milliseconds(exact), "naive_ms": milliseconds(naive, times=3)}


def steps_of(run: int, first: int, last: int) -> list[StepMetrics]:
    """Made-up losses of the steps first..last of a run."""
    random = np.random.default_rng([run, first])
    rows = []
    for step in range(first, last + 1):
        loss = {(task, "loss"): float(np.exp(-step / 800) + 0.1 * random.random()) for task in TASKS}
        rows.append(StepMetrics(step, step / 500, 0.03 * step, loss | {(TOTAL, "loss"): sum(loss.values())}))
    return rows


def live_runs(store: Store) -> list[int]:
    """Twenty claimed runs, five seeds of four configurations, one update short of their points."""
    owner = this_process()
    made = []
    for number in range(LIVE_RUNS):
        prior = {"alignment": "cooccurrence", "lambda": 0.01 * 10 ** (number % 4)} if number % 4 else {}
        config = RunConfig.build(
            corpus="demo",
            paradigm="mrn" if prior else "mtl",
            tasks=("pos", "chunk", "ner"),
            seed=number // 4 + 1,
            **prior,
        )
        (run_id,) = store.add_runs([config], sweep="live")
        store.claim(owner, due_in=3600)
        store.add_metrics(run_id, steps_of(run_id, 1, POINTS))
        made.append(run_id)
    return made


def server_ms(store: Store, ids: Sequence[int]) -> dict[str, float]:
    """What an update costs without Streamlit: reading what is new, the view, the figures."""
    cache, runs = SeriesCache(), store.runs(ids, with_facts=False)
    keys = metric_keys(METRICS["loss"], store.metric_keys(ids))
    began = time.perf_counter()
    series: list[MetricSeries] = cache.get(store, runs, keys)
    first = 1000 * (time.perf_counter() - began)
    view = curves(METRICS["loss"], Reading(), runs, series, TASKS)
    colour = colours(TASKS)
    figure = curve_chart(view, colour).to_json()
    return {
        "first_read_ms": round(first, 1),
        "read_on_ms": milliseconds(lambda: cache.get(store, runs, keys)),
        "view_ms": milliseconds(lambda: curves(METRICS["loss"], Reading(), runs, series, TASKS)),
        "mean_view_ms": milliseconds(
            lambda: curves(METRICS["loss"], Reading(seeds="interval", smoothing=0.9), runs, series, TASKS)
        ),
        "figure_ms": milliseconds(lambda: curve_chart(view, colour).to_json()),
        "large_bytes": len(figure),
        "small_bytes": len(json.dumps(small_charts(view, colour))),
    }


def browser_ms(store: Store, home: Path, ids: Sequence[int]) -> dict[str, float]:
    """Bytes and main-thread milliseconds of an update in a real browser: of all that it gets and does while
    the runs go on, by the number of times that the large chart was drawn.
    """
    last = POINTS
    with running_app(home) as address, browser_page() as (page, _, _):
        received: list[int] = []

        def listen(socket_: WebSocket) -> None:
            socket_.on("framereceived", lambda frame: received.append(len(frame)))

        page.on("websocket", listen)
        page.goto(f"{address}/curves?run={','.join(map(str, ids))}")
        _await_point(page, last)
        page.wait_for_timeout(1000)
        page.evaluate(_COUNT)
        received.clear()
        before = _main_thread_ms()
        for _ in range(UPDATES):
            for run_id in ids:
                store.add_metrics(run_id, steps_of(run_id, last + 1, last + 20))
            last += 20
            _await_point(page, last)
        spent = _main_thread_ms() - before
        drawn = page.evaluate("() => window.drawn")
        return {
            "updates_drawn": drawn,
            "update_bytes": round(sum(received) / drawn),
            "main_thread_ms": round(spent / drawn, 1),
        }


_COUNT = """() => {
    const react = window.Plotly.react
    window.drawn = 0
    window.Plotly.react = (...given) => {
        window.drawn += 1
        return react(...given)
    }
}"""
_LAST = """(last) => {
    const chart = document.querySelector('.js-plotly-plot')
    return chart?._fullData?.some((trace) => trace.x[trace.x.length - 1] >= last)
}"""


def _await_point(page: Page, last: int) -> None:
    """Until the chart shows that step; asked seldom, for asking is work of the main thread too."""
    page.wait_for_function(_LAST, arg=last, timeout=120_000, polling=500)


def _main_thread_ms() -> float:
    """Processor time of the main thread of the page, the busiest of the browser's."""
    pages = [
        process
        for process in psutil.Process().children(recursive=True)
        if "--type=renderer" in process.cmdline()
    ]
    return 1000 * max(
        thread.user_time + thread.system_time
        for process in pages
        for thread in process.threads()
        if thread.id == process.pid
    )


def main() -> None:
    """All figures, each part as it comes, then all in one line."""
    found: dict[str, float] = band_ms()
    print(json.dumps(found), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = Store.open(f"sqlite:///{home / 'runs.db'}")
        ids = live_runs(store)
        found |= server_ms(store, ids)
        print(json.dumps(found), flush=True)
        if any(map(shutil.which, BROWSERS)):
            found |= browser_ms(store, home, ids)
        store.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
