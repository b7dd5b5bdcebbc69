"""A run's training loss while it trains, and its dev scores by epoch beside its seeds' scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from core.figures import MUTED, TEXT, Chart, Figure, axis, band, kept_mark
from core.metrics import DEV_SCORE, LOSS
from core.results.naming import SCORE_NAMES
from core.results.samples import one_per_seed, readable
from core.store import Store
from core.store.types import ACTIVE, MetricSeries, Run, RunState, RunWithFacts
from core.tasks.scores import scale_text
from core.wording import plural, without_shared
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.text import coloured, escape
from dashboard.theme import faint

_IN_A_ROW = 3
_FEW_POINTS = 30
_MOST_TICKS = 10
_MOST_POINTS = 600


@dataclass(frozen=True)
class DevCurve:
    """Dev scores × 100 of one task by epoch: the run's, and mean and SD of the seeds (none for one)."""

    task: str
    run: pd.Series[float]
    mean: pd.Series[float]
    sd: pd.Series[float]
    kept_epoch: int | None

    @property
    def kept(self) -> float | None:
        """The run's score in the kept epoch; None where it has none."""
        if self.kept_epoch is None or self.kept_epoch not in self.run.index:
            return None
        return float(self.run[self.kept_epoch])


def dev_curves(run: Run, series: Sequence[MetricSeries]) -> list[DevCurve]:
    """A curve for each task of the run with dev scores of two epochs or more.

    The other runs of `series` are its seeds.
    """
    curves = []
    for task in run.config.tasks:
        scores = {
            curve.run_id: pd.Series(100 * curve.value, index=np.round(curve.epoch, 6))
            for curve in series
            if curve.key.task == task
        }
        if len(scores.get(run.id, ())) < 2:
            continue
        seeds = pd.DataFrame(scores) if len(scores) > 1 else pd.DataFrame(dtype=float)
        mean, sd = seeds.mean(axis=1), seeds.std(axis=1)
        curves.append(DevCurve(task, scores[run.id], mean[sd.notna()], sd.dropna(), run.best_epoch))
    return curves


def dev_chart(curve: DevCurve, colour: str) -> Figure:
    """The run's line over the grey mean ± SD of its seeds."""
    drawing = Chart(190, margin={"l": 40, "r": 8, "t": 18, "b": 36})
    if len(curve.mean):
        epochs = curve.mean.index.to_numpy()
        low, high = (curve.mean - curve.sd).to_numpy(), (curve.mean + curve.sd).to_numpy()
        drawing.add("scatter", **band(epochs, low, high, faint(MUTED, 0.18)))
        drawing.add(
            "scatter",
            x=epochs,
            y=curve.mean.to_numpy(),
            customdata=curve.sd.to_numpy(),
            mode="lines",
            line={"color": MUTED, "width": 1},
            hovertemplate="mean %{y:.2f} ± %{customdata:.2f} SD<extra></extra>",
        )
    few = len(curve.run) <= _FEW_POINTS
    drawing.add(
        "scatter",
        x=curve.run.index.to_numpy(),
        y=curve.run.to_numpy(),
        mode="lines+markers" if few else "lines",
        line={"color": colour, "width": 2},
        marker={"size": 5},
        hovertemplate="epoch %{x:g}: %{y:.2f}<extra></extra>",
    )
    if curve.kept_epoch is not None and curve.kept is not None:
        drawing.add("scatter", **kept_mark(curve.kept_epoch, curve.kept, colour, 10), cliponaxis=False)
    first, last = float(curve.run.index.min()), float(curve.run.index.max())
    ticks = {"tick0": first, "dtick": 1} if last - first <= _MOST_TICKS else {}
    margin = (last - first) / 40
    drawing.layout["xaxis"] = axis("Epoch", showgrid=False, range=[first - margin, last + margin], **ticks)
    drawing.layout["yaxis"] = axis(nticks=5)
    return drawing.figure()


def loss_chart(loss: MetricSeries) -> Figure:
    """The training loss by step, with at most `_MOST_POINTS` points."""
    every = -(-len(loss.step) // _MOST_POINTS)
    drawing = Chart(240, margin={"l": 40, "r": 8, "t": 6, "b": 36})
    drawing.add(
        "scatter",
        x=loss.step[::every],
        y=loss.value[::every].astype(np.float32),
        mode="lines",
        line={"color": TEXT, "width": 1.5},
        hovertemplate="step %{x}: %{y:.4f}<extra></extra>",
    )
    drawing.layout["xaxis"] = axis("Step", showgrid=False, rangemode="tozero")
    drawing.layout["yaxis"] = axis(nticks=5)
    return drawing.figure()


def show_loss(run: Run) -> None:
    """Draws the training loss of a run that trains, once it has two steps."""
    if run.state not in ACTIVE:
        return
    for loss in resources.curve_series([run], [LOSS.key()]):
        if len(loss.step) > 1:
            st.caption("Training loss by step.")
            chart(loss_chart(loss), key="run_loss", alt="Training loss of this run by step", still=True)


_KEPT = {
    "score": "Epoch {} has the best {}dev score{}; its weights were kept.",
    "loss": "Epoch {} has the lowest {}dev loss{}; its weights were kept.",
    "last": "The last epoch is {}; its weights were kept.",
}


def kept_sentence(run: RunWithFacts) -> str:
    """Which epoch's weights the run kept, and why; empty before it has one."""
    if run.best_epoch is None:
        return ""
    selected_by = (run.facts and run.facts.selected_by) or run.config.select_by
    mean = ("mean ", " over tasks") if len(run.config.tasks) > 1 else ("", "")
    return _KEPT[selected_by].format(run.best_epoch, *mean)


def other_seeds(store: Store, run: Run) -> list[Run]:
    """The runs of the same description that make a mean over seeds with this one, which is not among them."""
    others = store.runs_of([run.configuration_id], {RunState.SUCCEEDED})
    conditions = store.conditions(others)
    others, _ = readable(others if run.problem is None else (), conditions)
    return [seed for seed in one_per_seed(others, conditions) if seed.config.seed != run.config.seed]


def dev_curves_of(run: Run, seeds: Sequence[Run]) -> list[DevCurve]:
    """The curves of this run beside these other seeds."""
    keys = [DEV_SCORE.key(task) for task in run.config.tasks]
    return dev_curves(run, resources.curve_series([run, *seeds], keys))


def show_dev_curves(store: Store, run: RunWithFacts) -> None:
    """Draws a small chart for each task with dev scores, below a sentence that explains its lines."""
    seeds = other_seeds(store, run)
    curves = dev_curves_of(run, seeds)
    if not curves:
        return
    n = len(seeds) + 1
    beside = f"Grey: mean ± SD of its {plural(n, 'seed')}, this one included." if seeds else ""
    scale = scale_text(task.score_name for task in run.task_facts)
    kept = f"◆ {kept}" if (kept := kept_sentence(run)) else ""
    st.caption(" ".join(filter(None, (f"Dev score by epoch, {scale}.", beside, kept))))
    short = without_shared(run.config.tasks)
    measures = {task.name: SCORE_NAMES.get(task.score_name, task.score_name) for task in run.task_facts}
    for start in range(0, len(curves), _IN_A_ROW):
        for column, curve in zip(st.columns(_IN_A_ROW), curves[start : start + _IN_A_ROW], strict=False):
            with column:
                title = coloured(short[curve.task], resources.task_colour(curve.task))
                kept_score = f" ◆ {curve.kept:.2f}" if curve.kept is not None else ""
                st.markdown(f"**{title}, dev {escape(measures.get(curve.task, 'score'))}**{kept_score}")
                alt = f"Dev score of {curve.task} by epoch, beside the mean of the configuration's seeds"
                chart(
                    dev_chart(curve, resources.task_colour(curve.task)),
                    key=f"dev_{curve.task}",
                    alt=alt,
                    still=True,
                )
