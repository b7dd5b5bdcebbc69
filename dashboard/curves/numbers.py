"""The arithmetic of curves: smoothing, seeds side by side, thinning, their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.config import RunConfig, comparison_key
from core.metrics import TOTAL, Metric, MetricKey
from core.results.naming import (
    corpus_name,
    field_texts,
    settings_text,
    short_name,
    shortest_names,
)
from core.store.types import ACTIVE, MetricSeries, Run
from core.wording import plural
from dashboard.theme import configuration_colours

AXES: Mapping[str, str] = {"step": "Step", "epoch": "Epoch", "minutes": "Minutes"}
PLACES: Mapping[str, str] = {"step": "steps", "epoch": "epochs", "minutes": "minutes"}
_ALIKE = 1.1
"""By what factor the numbers of steps of runs may differ where their curves open over steps."""


def tasks_of(metric: Metric, keys: Iterable[MetricKey], order: Iterable[str]) -> list[str]:
    """The tasks that have this curve, TOTAL first where the whole has it, then in their order."""
    stored = {key.task for key in metric.keys_among(keys)}
    return [task for task in dict.fromkeys((TOTAL, *order, *sorted(stored))) if task in stored]


def place_text(axis: str, x: float) -> str:
    """`epoch 4`."""
    text = f"{x:,.0f}" if axis == "step" else f"{x:.3g}" if axis == "epoch" else f"{x:.2f}"
    return f"{AXES[axis].lower().removesuffix('s')} {text}"


Floats = NDArray[np.float64]
Places = NDArray[np.int64]


def smooth(values: Floats, weight: float) -> Floats:
    """Exponential moving average, corrected for its start, over all points; `weight` is that of the past.

    A point that is no number stays none, and counts for nothing after it.
    """
    if not weight:
        return values
    known = np.where(np.isfinite(values), values, np.nan)
    running = np.array(pd.Series(known).ewm(alpha=1 - weight, adjust=True).mean(), dtype=float)
    running[np.isnan(known)] = np.nan
    return running


def side_by_side(xs: Sequence[Floats], ys: Sequence[Floats]) -> tuple[Floats, Floats, bool]:
    """Seeds on one x: x (X,), values (S, X) with NaN where a seed has none, and whether any was interpolated.

    Seeds that logged at the same places, as far as each has come, keep their own values. Others are
    interpolated linearly between their points, never beyond their ends or into a gap, at the places of all
    of them.
    """
    first = xs[0]
    if all(x is first or np.array_equal(x, first) for x in xs[1:]):
        return first, np.stack(ys), False
    union = np.unique(np.concatenate(xs))
    spans = [np.searchsorted(union, (x[0], x[-1])) if len(x) else (0, -1) for x in xs]
    same = all(end - start + 1 == len(x) for x, (start, end) in zip(xs, spans, strict=True))
    values = np.full((len(xs), len(union)), np.nan)
    for row, x, y in zip(values, xs, ys, strict=True):
        if not same and len(x):
            row[:] = np.interp(union, x, y, left=np.nan, right=np.nan)
        # Its own points exactly: interpolation loses one beside a gap.
        places = np.minimum(np.searchsorted(union, x), len(union) - 1)
        logged_here = union[places] == x
        row[places[logged_here]] = y[logged_here]
    return union, values, not same


def kept(x: Floats, ys: Sequence[Floats], most: int) -> Places:
    """About `most` points that draw the same lines over the same x (rising).
    They are the first, the last, each stretch's lowest and highest of every line, and one of its gaps.
    """
    if len(x) <= most:
        return np.arange(len(x))
    starts = np.unique(
        np.linspace(0, len(x), max(2, (most - 2) // (2 * len(ys))), endpoint=False).astype(int)
    )
    return np.unique(np.concatenate([[0, len(x) - 1], *(_extremes(y, starts) for y in ys)]))


def _extremes(y: Floats, starts: Places) -> Places:
    """The first lowest, the first highest and the first missing point of each stretch."""
    missing = np.isnan(y)
    stretch = np.zeros(len(y), dtype=int)
    stretch[starts[1:]] = 1
    stretch = np.cumsum(stretch)
    low, high = np.where(missing, np.inf, y), np.where(missing, -np.inf, y)
    lowest = low == np.minimum.reduceat(low, starts)[stretch]
    highest = high == np.maximum.reduceat(high, starts)[stretch]
    marked = map(np.flatnonzero, (lowest, highest, missing))
    return np.concatenate([places[np.diff(stretch[places], prepend=-1) > 0] for places in marked])


def positions(axis: str, step: NDArray[np.int64], epoch: Floats, seconds: Floats) -> Floats:
    """The positions of a curve's points on that axis, never falling, though a resumed clock may go back."""
    x = {"step": step.astype(float), "epoch": epoch, "minutes": seconds / 60}[axis]
    return np.maximum.accumulate(x) if len(x) else x


@dataclass(frozen=True)
class Configuration:
    """The properties of the lines of one colour.
    `name` is the difference from other configurations, `rank` the place. All keys, names and ranks differ.
    `settings` has all that is not the default.
    """

    key: str
    name: str
    paradigm: str
    rank: int
    colour: str
    settings: str = ""


def configurations(runs: Sequence[Run]) -> Mapping[int, Configuration]:
    """Each run's configuration by the run's id. STL's runs of all tasks are one, as in a table of results."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(comparison_key(run.config), []).append(run)
    firsts = [group[0].config for group in groups.values()]
    names = _with_corpus(shortest_names(firsts), firsts)
    taken = Counter(names)
    colours = configuration_colours([(config.paradigm, config.lambda_) for config in firsts])
    by_run: dict[int, Configuration] = {}
    for rank, (name, group, colour) in enumerate(zip(names, groups.values(), colours, strict=True)):
        own_name = name if taken[name] == 1 else f"{name} (run {group[0].id})"
        key = min(run.configuration_id for run in group)
        config = group[0].config
        settings = f"{short_name(config)} on {corpus_name(config.corpus)} · {settings_text(config)}"
        configuration = Configuration(key, own_name, config.paradigm, rank, colour, settings)
        by_run |= {run.id: configuration for run in group}
    return by_run


def _with_corpus(names: Sequence[str], configs: Sequence[RunConfig]) -> list[str]:
    """The names, each with its corpus where these differ: `MTL · demo` beside `MRN λ=0.01 · conll2003`."""
    corpora = field_texts("corpus", [config.corpus for config in configs])
    if len(set(corpora)) < 2:
        return list(names)
    return [
        name if corpus in name.split(" · ") else f"{name} · {corpus}"
        for name, corpus in zip(names, corpora, strict=True)
    ]


def tasks_of_seeds(runs: Sequence[Run]) -> Mapping[tuple[str, int], frozenset[str]]:
    """The tasks of each configuration (by its key of comparison) and seed, which STL's runs have together."""
    tasks: dict[tuple[str, int], frozenset[str]] = {}
    for run in runs:
        of = comparison_key(run.config), run.config.seed
        tasks[of] = tasks.get(of, frozenset()).union(run.config.tasks)
    return tasks


def first_task(tasks: Sequence[str], runs: Sequence[Run]) -> str:
    """The task to show first.
    The whole, if offered, when all configurations and seeds have the same tasks; else the first task that
    most runs have.
    """
    if TOTAL in tasks and len(set(tasks_of_seeds(runs).values())) <= 1:
        return TOTAL
    shared = Counter(task for run in runs for task in run.config.tasks)
    return max(tasks, key=lambda task: shared[task], default=TOTAL)


def first_axis(runs: Sequence[Run]) -> str:
    """Epochs where the ended runs took different numbers of steps, by more than a tenth; else steps."""
    steps = [run.step for run in runs]
    ended = not any(run.state in ACTIVE for run in runs) and all(run.epoch > 0 for run in runs)
    return "epoch" if ended and max(steps) > _ALIKE * min(steps) else "step"


def point_table(runs: Sequence[Run], series: Iterable[MetricSeries], smoothing: float = 0.0) -> pd.DataFrame:
    """Every point as stored (scores as shares), and as smoothed where it is; the task of a total is empty."""
    by_id = {run.id: run for run in runs}
    configuration = configurations(runs)
    parts = [
        pd.DataFrame(
            {
                "run": curve.run_id,
                "configuration": configuration[curve.run_id].name,
                "seed": by_id[curve.run_id].config.seed,
                "task": curve.key.task,
                "metric": f"{curve.key.split} {curve.key.name}",
                "step": curve.step,
                "epoch": curve.epoch,
                "minutes": curve.seconds / 60,
                "value": curve.value,
            }
            | ({f"smoothed {smoothing:g}": smooth(curve.value, smoothing)} if smoothing else {})
        )
        for curve in series
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def missing(metric: Metric, series: Iterable[MetricSeries]) -> list[str]:
    """A sentence for each curve with points that are no numbers: a diverged loss is nan or infinite."""
    sentences = []
    for curve in series:
        wrong = np.flatnonzero(~np.isfinite(curve.value))
        if not len(wrong):
            continue
        of_task = f" of {curve.key.task}" if curve.key.task else ""
        first = int(curve.step[wrong[0]])
        where = f"at {plural(len(wrong), 'step')}, first at step {first}"
        if len(wrong) == len(curve.value) - wrong[0]:
            where = f"from step {first} on"
        sentences.append(f"Run {curve.run_id}: {metric.title.lower()}{of_task} is not a number {where}.")
    return sentences
