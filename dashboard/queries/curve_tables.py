"""Curves as tables, with all their points: for a file, and for what must be said in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from core.evaluation.band import band
from core.store.records import Conditions, MetricSeries, Run
from dashboard.queries.curve_metrics import Metric
from dashboard.queries.curve_numbers import positions, side_by_side
from dashboard.queries.naming import differing
from dashboard.text import plural
from jobs.samples import one_per_seed

__all__ = ["band_table", "missing", "point_table"]


def point_table(runs: Sequence[Run], series: Iterable[MetricSeries]) -> pd.DataFrame:
    """Every point as it is stored (scores as shares): run, configuration, seed, task, metric, step, epoch,
    minutes, value. The whole's task is empty.
    """
    by_id = {run.id: run for run in runs}
    names = _names(runs)
    parts = [
        pd.DataFrame(
            {
                "run": one.run_id,
                "configuration": names[one.run_id],
                "seed": by_id[one.run_id].config.seed,
                "task": one.key.task,
                "metric": f"{one.key.split} {one.key.name}",
                "step": one.step,
                "epoch": one.epoch,
                "minutes": one.seconds / 60,
                "value": one.value,
            }
        )
        for one in series
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def band_table(
    runs: Sequence[Run],
    series: Iterable[MetricSeries],
    axis: str,
    conditions: Mapping[int, Conditions] | None = None,
) -> pd.DataFrame:
    """Mean, SD (n - 1) and 95% interval over the seeds of each configuration at every point, unsmoothed, of
    the runs that `jobs.samples.one_per_seed` counts.
    """
    by_id = {run.id: run for run in runs}
    names = _names(runs)
    groups: dict[tuple[str, str, str], list[MetricSeries]] = {}
    for one in series:
        name = f"{one.key.split} {one.key.name}"
        groups.setdefault((by_id[one.run_id].configuration_id, one.key.task, name), []).append(one)
    parts = []
    for (_, task, metric), same in groups.items():
        counted = {run.id for run in one_per_seed([by_id[one.run_id] for one in same], conditions)}
        members = [one for one in same if one.run_id in counted]
        xs = [positions(axis, one.step, one.epoch, one.seconds) for one in members]
        x, values, _ = side_by_side(xs, [one.value for one in members])
        of = band(values)
        parts.append(
            pd.DataFrame(
                {
                    "configuration": names[members[0].run_id],
                    "task": task,
                    "metric": metric,
                    axis: x,
                    "seeds": of.n,
                    "mean": of.mean,
                    "sd": of.sd,
                    "low": of.low,
                    "high": of.high,
                }
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _names(runs: Sequence[Run]) -> Mapping[int, str]:
    named = zip(runs, differing([run.config for run in runs]), strict=True) if runs else ()
    return {
        run.id: f"{name} {run.config.tasks[0]}" if run.config.paradigm == "stl" else name
        for run, name in named
    }


def missing(metric: Metric, series: Iterable[MetricSeries]) -> list[str]:
    """A sentence for each curve with points that are no numbers: a diverged loss is nan or infinite."""
    said = []
    for one in series:
        wrong = np.flatnonzero(~np.isfinite(one.value))
        if not len(wrong):
            continue
        what = f"{metric.title.lower()} of {one.key.task}" if one.key.task else metric.title.lower()
        first = int(one.step[wrong[0]])
        if wrong[-1] == len(one.value) - 1 and len(wrong) == len(one.value) - wrong[0]:
            where = f"from step {first} on"
        else:
            where = f"at {plural(len(wrong), 'step')}, the first of them {first}"
        said.append(f"Run {one.run_id} has no number as its {what} {where}.")
    return said
