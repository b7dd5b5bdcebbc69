"""The gains and affinities of tasks, as the runs of the store tell them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.store import MetricKey, Run, RunState, SnapshotKey, Store
from core.transfer.affinity import Affinities, Curve, affinities, affinity_curves
from core.transfer.embeddings import cosine_matrix, embedding_curves
from core.transfer.gains import Gains, Pair, group_key, measured_gains
from jobs.queue.submit import up_to_date
from jobs.reports.table import one_per_seed


@dataclass(frozen=True)
class PairGroup:
    """Runs that are alike in all but tasks, paradigm and seed: STL of tasks and MTL of pairs.

    `config` is one of them. `alone` has the STL runs by task and seed, `beside` the MTL runs by their two
    tasks, in the order of `gains.tasks`, and seed; `joint` those of more tasks that measured affinities. All
    are ids of the store.
    """

    key: str
    config: RunConfig
    gains: Gains
    alone: Mapping[str, Mapping[int, int]]
    beside: Mapping[Pair, Mapping[int, int]]
    joint: Mapping[tuple[str, ...], Mapping[int, int]]


def pair_groups(store: Store, order: Sequence[str] = ()) -> list[PairGroup]:
    """The groups with at least one gain, the one with most pairs first.

    Runs on text that has changed since do not count; of a seed the newest that succeeded does.
    """
    by_key: dict[str, list[Run]] = {}
    for run in store.runs(states={RunState.SUCCEEDED}, with_facts=False):
        if run.config_problem is None and (key := group_key(run.config)) is not None:
            by_key.setdefault(key, []).append(run)
    of_pairs = {key: runs for key, runs in by_key.items() if any(len(run.config.tasks) == 2 for run in runs)}
    known = up_to_date(store, [run for runs in of_pairs.values() for run in runs], any_precision=True)
    scores: dict[int, dict[str, float]] = {run.id: {} for run in known}
    for score in store.scores(list(scores), "test", with_reports=False):
        if math.isfinite(score.score):
            scores[score.run_id][score.task] = score.score
    groups = []
    for key, runs in of_pairs.items():
        counted = one_per_seed([run for run in runs if run.id in scores])
        gains = measured_gains([(run.config, scores[run.id]) for run in counted], order)
        if not gains.pairs:
            continue
        place = {task: number for number, task in enumerate(gains.tasks)}
        alone: dict[str, dict[int, int]] = {}
        beside: dict[Pair, dict[int, int]] = {}
        joint: dict[tuple[str, ...], dict[int, int]] = {}
        for run in counted:
            tasks = run.config.tasks
            if len(tasks) == 1:
                alone.setdefault(tasks[0], {})[run.config.seed] = run.id
            elif len(tasks) > 2:
                if run.config.affinity_every is not None:
                    joint.setdefault(tasks, {})[run.config.seed] = run.id
            else:
                first, second = sorted(tasks, key=place.__getitem__)
                beside.setdefault((first, second), {})[run.config.seed] = run.id
        groups.append(PairGroup(key, counted[0].config, gains, alone, beside, joint))
    return sorted(groups, key=lambda group: -len(group.gains.pairs))


def run_affinities(store: Store, run: Run) -> Affinities:
    """What a run with `affinity_every` has measured so far; NaN where nothing."""
    keys = [MetricKey(task, "train", name) for task, name in affinity_curves(run.config.tasks)]
    curves = store.metrics_since({(run.id, key): -1 for key in keys})
    return affinities(run.config.tasks, {(each.key.task, each.key.name): each.value for each in curves})


def run_embeddings(store: Store, run: Run) -> dict[SnapshotKey, NDArray[np.float64]]:
    """How alike the embeddings of a run's tasks were: cosines (T, T) in the order of its facts, by step.

    Empty for a run without task embeddings, and for one that has not begun.
    """
    tasks = [task["name"] for task in run.facts.get("tasks", ())]
    keys = [MetricKey(task, "train", name) for task, name in embedding_curves(tasks)]
    by_step: dict[SnapshotKey, dict[Curve, float]] = {}
    for curve in store.metrics_since({(run.id, key): -1 for key in keys}):
        for step, epoch, value in zip(
            curve.step.tolist(), curve.epoch.tolist(), curve.value.tolist(), strict=True
        ):
            by_step.setdefault(SnapshotKey(step, epoch), {})[curve.key.task, curve.key.name] = value
    in_order = sorted(by_step.items(), key=lambda entry: entry[0].step)
    return {key: cosine_matrix(tasks, values) for key, values in in_order}
