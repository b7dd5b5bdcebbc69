"""How fast curves are: an exact band over seeds, and what one live update of Curves costs the server.

`python -m tests.benchmarks.curves` prints milliseconds for the mean and 95% band over 100 runs of 5,000
points (50 are allowed) beside pandas and scipy doing the same; then for 20 live runs of 5,000 points of four
tasks and their total: reading what is new, making the view and the figures. What an update sends to the
browser and costs there, `tests.benchmarks.pages` measures. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from core.config import RunConfig
from core.evaluation.statistics import band
from core.recording.owner import this_process
from core.records import TOTAL, StepMetrics
from core.store import Store
from dashboard.curves.charts import curve_chart, small_charts
from dashboard.curves.numbers import METRICS, metric_keys, side_by_side
from dashboard.curves.views import Reading, curves
from dashboard.shared.resources import SeriesCache
from dashboard.theme import colours
from tests.benchmarks._harness import arguments, laboratory, milliseconds, tell

TASKS = ("pos", "chunk", "ner", "dep")


def shortest(work: Callable[[], object], times: int = 7) -> float:
    """The shortest of several times, after one that is not counted: what else runs only adds."""
    return round(min(milliseconds(work, times + 1)[1:]), 2)


def band_ms(runs: int, points: int) -> dict[str, float]:
    """The exact band over so many runs, and the naive way to the same numbers."""
    random = np.random.default_rng(3)
    x = np.arange(1.0, points + 1)
    xs = [x.copy() for _ in range(runs)]
    ys = [np.exp(-x / 800) + 0.1 * random.random(points) for _ in range(runs)]

    def exact() -> Any:
        return band(side_by_side(xs, ys)[1])

    def naive() -> pd.DataFrame:
        table = pd.concat([pd.Series(y, index=x) for x, y in zip(xs, ys, strict=True)], axis=1)
        mean, sd, n = table.mean(axis=1), table.std(axis=1), table.count(axis=1)
        half = stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n)
        return pd.DataFrame({"mean": mean, "sd": sd, "low": mean - half, "high": mean + half})

    for name, values in naive().items():
        np.testing.assert_allclose(getattr(exact(), str(name)), values, rtol=1e-9)
    return {"band_ms": shortest(exact), "naive_ms": shortest(naive, times=3)}


def live_runs(store: Store, number: int, points: int) -> list[int]:
    """Claimed runs with so many points, five seeds of each configuration."""
    ids = []
    for place in range(number):
        prior = {"alignment": "cooccurrence", "lambda": 0.01 * 10 ** (place % 4)} if place % 4 else {}
        values: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "seed": place // 4 + 1}
        config = RunConfig.build(paradigm="mrn" if prior else "mtl", **values, **prior)
        ids += store.add_runs([config], sweep="live")
        store.claim(this_process(), due_in=3600)
        random = np.random.default_rng(place)
        losses = np.exp(-np.arange(1, points + 1) / 800)[:, None] + 0.1 * random.random((points, len(TASKS)))
        rows = []
        for step, row in enumerate(losses.tolist(), start=1):
            values = {(task, "loss"): loss for task, loss in zip(TASKS, row, strict=True)}
            rows.append(StepMetrics(step, step / 500, 0.03 * step, values | {(TOTAL, "loss"): sum(row)}))
        store.add_metrics(ids[-1], rows)
    return ids


def server_ms(store: Store, ids: list[int]) -> dict[str, float]:
    """What an update costs without Streamlit: reading what is new, the view, the figures."""
    cache, runs = SeriesCache(), store.runs(ids, with_facts=False)
    metric, colour = METRICS["loss"], colours(TASKS)
    keys = metric_keys(metric, store.metric_keys(ids))
    (first_ms,) = milliseconds(lambda: cache.get(store, runs, keys))
    series = cache.get(store, runs, keys)
    view = curves(metric, Reading(), runs, series, TASKS)
    mean = Reading(seeds="interval", smoothing=0.9)
    return {
        "first_read_ms": round(first_ms, 1),
        "read_on_ms": shortest(lambda: cache.get(store, runs, keys)),
        "view_ms": shortest(lambda: curves(metric, Reading(), runs, series, TASKS)),
        "mean_view_ms": shortest(lambda: curves(metric, mean, runs, series, TASKS)),
        "figure_ms": shortest(lambda: curve_chart(view, colour).to_json()),
        "large_bytes": len(curve_chart(view, colour).to_json()),
        "small_bytes": len(json.dumps(small_charts(view, colour))),
    }


def main() -> None:
    """All figures, each part as it comes, then all in one line."""
    quick = arguments(__doc__).parse_args().quick
    figures: dict[str, float] = band_ms(5, 50) if quick else band_ms(100, 5000)
    tell(figures)
    with laboratory(), contextlib.closing(Store.open()) as store:
        figures |= server_ms(store, live_runs(store, *(4, 50) if quick else (20, 5000)))
    tell(figures)


if __name__ == "__main__":
    main()
