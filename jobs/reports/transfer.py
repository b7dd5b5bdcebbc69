"""The gains of pairs of tasks and the cosines of their gradients and embeddings, from a store's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.metrics import StepMetrics
from core.results.samples import one_per_seed
from core.store import MetricKey, Run, RunState, RunWithFacts, SnapshotKey, Store
from core.transfer.cosines import Curve, NamesCurve, cosine_matrix, curves_of, embedding_curve, gradient_curve
from core.transfer.gains import Gains, group_key, measured_gains
from jobs.queue.submit import up_to_date

Runs = Mapping[int, int]
"""The ids of runs by seed."""


@dataclass(frozen=True)
class PairGroup:
    """Runs that differ only in tasks, paradigm and seed: STL of tasks and MTL of pairs.

    `config` is one of their descriptions. `runs` has by tasks the runs of one task, of two, and of more tasks
    if they measured gradient cosines. `scored_by` has the name of each task's score.
    """

    key: str
    config: RunConfig
    gains: Gains
    runs: Mapping[frozenset[str], Runs]
    scored_by: Mapping[str, str]

    def of(self, *tasks: str) -> Runs:
        """The STL runs of this task, or the MTL runs of these tasks."""
        return self.runs.get(frozenset(tasks), {})

    @property
    def alone(self) -> dict[str, Runs]:
        """The STL runs by task."""
        return {task: self.of(task) for task in self.gains.tasks if self.of(task)}

    @property
    def beside(self) -> list[Runs]:
        """The MTL runs of each pair of tasks."""
        return [runs for tasks, runs in self.runs.items() if len(tasks) == 2]

    @property
    def of_pairs(self) -> list[int]:
        """The runs that the gains are measured on."""
        return [run for runs in (*self.alone.values(), *self.beside) for run in runs.values()]

    @property
    def joint(self) -> list[int]:
        """The MTL runs of more than two tasks, with gradient cosines."""
        return [run for tasks, runs in self.runs.items() if len(tasks) > 2 for run in runs.values()]


def pair_groups(store: Store, order: Sequence[str] = ()) -> list[PairGroup]:
    """The groups with at least one gain, the group with most pairs first.

    Runs on text that has changed since do not count; of a seed the newest successful run does.
    """
    by_key: dict[str, list[Run]] = {}
    for run in store.runs(states={RunState.SUCCEEDED}):
        if run.config_problem is None and (key := group_key(run.config)) is not None:
            by_key.setdefault(key, []).append(run)
    with_pairs = {
        key: runs for key, runs in by_key.items() if any(len(run.config.tasks) == 2 for run in runs)
    }
    current = up_to_date(store, [run for runs in with_pairs.values() for run in runs], any_precision=True)
    scores: dict[int, dict[str, float]] = {run.id: {} for run in current}
    scored_by: dict[int, dict[str, str]] = {run.id: {} for run in current}
    for score in store.scores(list(scores), "test", with_reports=False):
        if score.is_defined:
            scores[score.run_id][score.task] = score.score
            scored_by[score.run_id][score.task] = score.score_name
    groups = []
    for key, runs in with_pairs.items():
        newest: dict[tuple[frozenset[str], bool, int], Run] = {}
        # The newest comes first. The tasks of a pair may be in either order, which makes two configurations.
        for run in one_per_seed([run for run in runs if run.id in scores]):
            tasks, has_cosines = frozenset(run.config.tasks), run.config.affinity_every is not None
            newest.setdefault((tasks, len(tasks) > 2 and has_cosines, run.config.seed), run)
        counted = list(newest.values())
        gains = measured_gains([(run.config, scores[run.id]) for run in counted], order)
        by_tasks: dict[frozenset[str], dict[int, int]] = {}
        for run in counted:
            if len(run.config.tasks) <= 2 or run.config.affinity_every is not None:
                by_tasks.setdefault(frozenset(run.config.tasks), {})[run.config.seed] = run.id
        if gains.pairs:
            names = {task: name for run in counted for task, name in scored_by[run.id].items()}
            groups.append(PairGroup(key, counted[0].config, gains, by_tasks, names))
    return sorted(groups, key=lambda group: -len(group.gains.pairs))


def run_gradients(store: Store, run: Run) -> NDArray[np.float64]:
    """The cosines (T, T) of the gradients of a run's tasks, in the mean over its measurements."""
    curves = store.metrics_since({(run.id, key): -1 for key in _keys(gradient_curve, run.config.tasks)})
    means = {
        (curve.key.task, curve.key.name): float(finite.mean())
        for curve in curves
        if len(finite := curve.value[np.isfinite(curve.value)])
    }
    return cosine_matrix(gradient_curve, run.config.tasks, means)


def run_embeddings(store: Store, run: RunWithFacts) -> dict[SnapshotKey, NDArray[np.float64]]:
    """The cosines (T, T) of a run's task embeddings by step, in the order of its facts.

    Empty for a run without task embeddings, and for one that has not begun.
    """
    tasks = [task.name for task in run.task_facts]
    by_step: dict[SnapshotKey, dict[Curve, float]] = {}
    for curve in store.metrics_since({(run.id, key): -1 for key in _keys(embedding_curve, tasks)}):
        for step, epoch, value in zip(
            curve.step.tolist(), curve.epoch.tolist(), curve.value.tolist(), strict=True
        ):
            by_step.setdefault(SnapshotKey(step, epoch), {})[curve.key.task, curve.key.name] = value
    return {
        key: cosine_matrix(embedding_curve, tasks, by_step[key])
        for key in sorted(by_step, key=lambda key: key.step)
    }


def _keys(curve: NamesCurve, tasks: Sequence[str]) -> list[MetricKey]:
    return [MetricKey(task, StepMetrics.split, name) for task, name in curves_of(curve, tasks)]
