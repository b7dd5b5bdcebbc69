"""The sentence of result over the large chart: where its lines end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.metrics import DEV_LOSS, DEV_SCORE, LOSS, Metric
from core.results.samples import group_by_data
from core.store.types import ACTIVE, Conditions, Run
from core.wording import plural
from dashboard.curves.views import CurvesView, last_shared

_MOST_NAMED = 6


def result_sentence(view: CurvesView, runs: Sequence[Run], conditions: Mapping[int, Conditions]) -> str:
    """`MRN ends highest on dev, at 64.06; MTL 3.12 below`: the drawn lines by the last values of the legend.

    Empty while runs train, where fewer than two configurations are drawn, and where values do not compare.
    """
    metric = view.metric
    drawn = {line.configuration for line in view.large.lines}
    groups = [group for group in view.legend if group.configuration in drawn]
    compares = metric in (DEV_SCORE, DEV_LOSS, LOSS) and len(group_by_data(runs, conditions)) == 1
    if not compares or len(groups) < 2 or any(run.state in ACTIVE for run in runs):
        return ""
    lasts = [last_shared(group.ended, group.seeds) for group in groups]
    sign = -1 if metric.best == "max" else 1
    ends = sorted(
        (sign * _printed(metric, last[1]), group.configuration.rank, group.configuration.name)
        for group, last in zip(groups, lasts, strict=True)
        if last is not None
    )
    if len(ends) < len(groups):
        return ""
    where, beside = ("highest", "below") if metric.best == "max" else ("lowest", "above")
    (best, _, first), *others = ends
    named = others if len(ends) <= _MOST_NAMED else others[:1]
    parts = [f"{name} {metric.text(value - best)} {beside}" for value, _, name in named]
    if left := len(others) - len(named):
        parts.append(f"{plural(left, 'other')} farther {beside}")
    on_dev = " on dev" if metric.split == "dev" else ""
    return f"{first} ends {where}{on_dev}, at {metric.text(sign * best)}; {', '.join(parts)}."


def _printed(metric: Metric, values: Sequence[float]) -> float:
    """The mean as the legend prints it, so that differences are those that a reader finds."""
    return float(metric.text(float(np.mean(values))).replace("−", "-"))
