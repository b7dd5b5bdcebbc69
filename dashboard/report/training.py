"""The parts of a report on training: dev scores over the steps, and the player of the learned relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.metrics import DEV_SCORE, TOTAL
from core.mrn.relations import Relations
from core.results.relations import RelationTable, counted, relation_table
from core.results.samples import one_per_seed
from core.store import RunWithFacts, SnapshotKey, Store
from core.wording import plural
from dashboard.curves import numbers
from dashboard.curves.charts import curve_chart
from dashboard.curves.views import Display, curves
from dashboard.relations import views
from dashboard.relations.charts import player_frame, player_numbers, with_counted
from dashboard.relations.matrices import arrangement, picture
from dashboard.relations.summary import player_words
from dashboard.report.placed import NotThere, Placed, caption, key
from dashboard.shared import resources
from jobs.reports.answered import Answered
from jobs.reports.html import html_text

MODES = {"task": "tasks", "label": "labels"}
"""The relations that a report shows; those of features are thousands of cells without names."""


@dataclass(frozen=True)
class Detail:
    """The most steps of a player, and the most points of a curve."""

    steps: int
    points: int


DETAILS = (Detail(80, 960), Detail(24, 480), Detail(8, 120), Detail(2, 30))
"""What is shown; the next where the file would be too large."""


def training(first: Answered, store: Store, placed: Placed, detail: Detail) -> str:
    """The dev score over training: a line a configuration, its mean over seeds, and a chart for each task."""
    ids = [run.id for run in first.runs]
    stored = store.metrics_since(
        {(run, at): -1 for at in DEV_SCORE.keys_among(store.metric_keys(ids)) for run in ids}
    )
    tasks = [task for task in resources.task_order() if any(series.key.task == task for series in stored)]
    large = numbers.first_task([TOTAL, *tasks], first.runs)
    view = curves(
        DEV_SCORE,
        Display(),
        first.runs,
        stored,
        tasks,
        large=large,
        conditions=store.conditions(first.runs),
        most=detail.points,
    )
    if not view.legend:
        raise NotThere("No curve of a dev score is stored for these runs.")
    legend = "".join(key(group.configuration.name, group.configuration.colour) for group in view.legend)
    of = large or "mean of tasks"
    about = (
        f"{first.about}, dev score of {of} over the steps of training; a band is ± SD over seeds. "
        "Dotted: STL, dashed: MTL, solid: MRN. ◆ the epoch whose weights were kept."
    )
    if detail != DETAILS[0]:
        about += f" Thinned: about {detail.points} points a line."
    alt = f"Dev score of {of} over training, {plural(len(view.large.lines), 'line')}"
    return f'<ul class="key">{legend}</ul>{placed.chart(curve_chart(view, view.large), alt)}{caption(about)}'


def relations(of_data: Sequence[Answered], store: Store, placed: Placed, detail: Detail) -> str:
    """The players of the relations between tasks and between labels, of the first MRN row's seeds."""
    pieces: list[str] = []
    runs, snapshots = _with_relations(of_data, store)
    steps = views.aligned(runs, snapshots)
    places = np.unique(np.linspace(0, len(steps.steps) - 1, detail.steps).round().astype(int))
    thinned = views.AlignedSteps(
        tuple(tuple(keys[place] for place in places) for keys in steps.keys),
        tuple(steps.shares[place] for place in places),
        steps.exact,
        steps.cut,
    )
    trajectories = [
        views.Trajectory(run, keys, tuple(store.relations(run.id, at.step)[1] for at in keys))
        for run, keys in zip(runs, thinned.keys, strict=True)
    ]
    for mode, words in MODES.items():
        if any(mode in run.config.learned for run in runs):
            pieces += [f"<h3>Between {words}</h3>", _player(mode, thinned, trajectories, store, placed)]
    if not pieces:
        raise NotThere("These MRN runs learned covariances of features alone, whose rows have no names.")
    which = plural(len(runs), "seed") if len(runs) > 1 else f"seed {runs[0].config.seed}"
    pieces.append(
        caption(
            f"Correlations that the prior of MRN learned, {which} of run {runs[0].id}'s configuration, over "
            "training: press Play, or move the slider. Red: rows of weights move together, blue: opposed."
        )
    )
    if len(places) < len(steps.steps):
        pieces.append(caption(f"Thinned: {len(places)} of the {len(steps.steps)} stored steps are shown."))
    return "".join(pieces)


def _with_relations(
    of_data: Sequence[Answered], store: Store
) -> tuple[list[RunWithFacts], dict[int, list[SnapshotKey]]]:
    """The runs of the first row with snapshots, one a seed, and their snapshots."""
    for each in of_data:
        first = [] if each.pair is None else [each.pair[0]]
        for row in (*first, *each.table.rows):
            stored = {run_id: list(store.snapshots(run_id)) for run_id in row.run_ids}
            runs = [run for run in store.runs_with_facts(row.run_ids) if stored[run.id]]
            counted = {run.id for run in one_per_seed(runs, store.conditions(runs))} if runs else set()
            runs = sorted((run for run in runs if run.id in counted), key=lambda run: run.config.seed)
            if runs and row.config.paradigm == "mrn":
                return runs, {run.id: stored[run.id] for run in runs}
    raise NotThere("None of these runs is of MRN with stored covariances.")


def _player(
    mode: str,
    steps: views.AlignedSteps,
    trajectories: Sequence[views.Trajectory],
    store: Store,
    placed: Placed,
) -> str:
    runs = [trajectory.run for trajectory in trajectories]
    last: list[Relations] = [trajectory.learned[-1] for trajectory in trajectories]
    shared = views.shared_rows(
        [views.rows_of(run, mode, learned) for run, learned in zip(runs, last, strict=True)]
    )
    if len(shared.rows) < 2:
        raise NotThere(f"There are fewer than two {mode}s to relate.")
    order = arrangement(mode, shared, last, "task")
    table = relation_table(store, "", runs, mode)
    verdicts = None if table is None or len(runs) < 2 else table.verdicts
    shown = picture(trajectories, [views.Group("", tuple(runs))], mode, shared, order, verdicts=[verdicts])
    name = f"report-{mode}"
    frame: dict[str, Any] = player_frame(shown, steps, resources.task_colours(), blocks=True)
    if verdicts is not None and table is not None:
        frame = with_counted(frame, counted(verdicts, table.alone), order)
    frame |= {
        "id": name,
        "name": name,
        "alt": f"Correlations between {mode}s, by training step",
        "filename": f"relations-{mode}",
        "step": None,
        "pair": [],
        "total": len(shared.rows),
        "zoomed": False,
        **player_words(mode, frame, len(shared.rows)),
    }
    place = placed.place("matrix", frame, player_numbers(shown, name, name), height=260)
    return _reading(table) + place


def _reading(table: RelationTable | None) -> str:
    """What is decided at the last step, as Relations says it."""
    if table is None or not np.isfinite(table.verdicts.mean).all():
        return f"<p>{html_text('The covariance holds values that are not numbers.')}</p>"
    return f"<p>{html_text(table.headline)}</p>"
