"""Estimates the time and disk of runs from runs of their kind on the same data on this machine.

A run costs its start and its end (corpus, features, the last scores), and seconds per pass over the data.
They are medians over runs that have ended, or else over those that train now, from their first batches on.
Without either there is a rough range from the steps of other runs of the encoder, if some were trained here;
else no estimate: a guess from constants was off by more than a factor of two.

The first run of a worker also loads the libraries, and the first run on its data computes the features of all
others, so their starts say nothing of later ones. Where they are all that is known, each worker pays once.
"""

from __future__ import annotations

import math
import shutil
import socket
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from core.config import RunConfig
from core.metrics import LOSS
from core.paths import checkpoint_dir, home
from core.store import Run, RunState, Store
from core.wording import plural
from jobs.worker.cores import Sharing

_NEWEST = 400  # runs that succeeded, which are searched for runs of a kind
_ENOUGH = 20  # runs of a kind whose medians are taken
_RANGE = (0.7, 1.5)
"""How far estimates from past runs have been seen to be off."""


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds of runs on this machine.

    `runs` has the seconds of each, None without an estimate; `slots` is how many may train at once, `past`
    the number of runs behind the estimates, `held_back` why fewer train at once (`Sharing.held_back`).
    Where a run has none, `rough` may have a range of seconds for all, from the steps of `near` other runs.
    """

    runs: tuple[float | None, ...]
    slots: int
    past: int
    held_back: str = ""
    rough: tuple[float, float] | None = None
    near: int = 0

    @property
    def at_once(self) -> int:
        """How many of these runs train at the same time."""
        return min(self.slots, len(self.runs))

    @property
    def unknown(self) -> int:
        """The number of runs without an estimate."""
        return self.runs.count(None)

    @property
    def seconds(self) -> float | None:
        """Seconds until the last run has ended; None where a run has no estimate."""
        return None if self.unknown else sum(filter(None, self.runs)) / max(1, self.at_once)

    @property
    def about(self) -> float | None:
        """`seconds`, or of a rough range what is as many times its least as its most is of that."""
        return math.sqrt(self.rough[0] * self.rough[1]) if self.rough else self.seconds

    @property
    def span(self) -> tuple[float, float] | None:
        """The lower and the upper bound of `seconds`, or the rough range."""
        return self.rough if self.seconds is None else (_RANGE[0] * self.seconds, _RANGE[1] * self.seconds)

    @property
    def basis(self) -> str:
        """The evidence for the estimate, as the end of a sentence."""
        if not self.unknown:
            return f"from {plural(self.past, 'run')} of this kind on this machine"
        if self.rough:
            steps = f"from the steps of {plural(self.near, 'other run')} with this encoder on this machine"
            return f"{steps}; no run of this kind was trained here yet"
        some = (
            f" for {self.unknown:,} of {plural(len(self.runs), 'run')}"
            if self.unknown < len(self.runs)
            else ""
        )
        return f"no estimate{some} yet: the first run will measure it"


@dataclass(frozen=True)
class Disk:
    """Bytes that runs will leave behind, and bytes that are free on that disk."""

    needed: float
    free: float

    @property
    def is_short(self) -> bool:
        """Whether the runs would fill more than nine tenths of the free bytes."""
        return self.needed > 0.9 * self.free


_Kind = tuple[object, ...]


def _model(config: RunConfig) -> _Kind:
    """The fields that decide how many weights a run trains."""
    sizes = config.bilstm_hidden, config.lstm_layer_count, config.shared_dense, config.task_dense
    inputs = config.context_encoder, config.characters, config.window, config.task_embedding
    return config.encoder, config.encoder_training, *inputs, *sizes


def _features(config: RunConfig) -> _Kind:
    """The fields of runs that share the features of their data."""
    return *_model(config), config.corpus, config.columns, config.tasks


def _kind(config: RunConfig) -> _Kind:
    """The fields that decide how long a run takes for a pass over its data."""
    training = config.paradigm, config.head, config.draw_tasks, config.affinity_every, config.balancing
    return *_features(config), config.batch_size, config.batch_tokens, *training


def cost(
    store: Store,
    configs: Sequence[RunConfig],
    *,
    warm: int = 0,
    sentences: Callable[[RunConfig], int] | None = None,
) -> Cost:
    """The cost of these runs on this machine, one after another in each of its slots.

    `warm` workers train already, and have their first start behind them. With `sentences`, how many a run's
    corpus has for training, there is a rough range for runs without an estimate.
    """
    (price,) = costs(store, [configs], warm=warm)
    return _with_rough(store, configs, price, sentences) if sentences and price.unknown else price


def _with_rough(
    store: Store, configs: Sequence[RunConfig], price: Cost, sentences: Callable[[RunConfig], int]
) -> Cost:
    """The cost with a rough range, if each run without an estimate has a run of its encoder beside it.

    A step over a larger batch takes at least as long and at most as many times longer as the batch is larger.
    """
    past = _timed_runs(store, RunState.SUCCEEDED)
    trained = store.last_points([run.id for run in past], LOSS.key())
    near: dict[_Kind, list[Run]] = {}
    for run in past:
        if run.id in trained and trained[run.id][0]:
            near.setdefault((run.config.encoder, run.config.encoder_training), []).append(run)
    used: dict[int, Run] = {}
    least = most = 0.0
    for config, seconds in zip(configs, price.runs, strict=True):
        if seconds is not None:
            least, most = least + seconds, most + seconds
            continue
        group = near.get((config.encoder, config.encoder_training), ())
        alike = ([run for run in group if _model(run.config) == _model(config)] or group)[:_ENOUGH]
        if not alike or config.batch_tokens:
            return price
        used |= {run.id: run for run in alike}
        steps = math.ceil(sentences(config) * config.fraction / config.batch_size) * config.epochs
        start = statistics.median([_start(run, trained[run.id][1]) for run in alike])
        paces = [trained[run.id][1] / trained[run.id][0] for run in alike]
        larger = [config.batch_size / run.config.batch_size for run in alike]
        of_steps = list(zip(paces, larger, strict=True))
        least += start + steps * statistics.median([pace * min(1.0, times) for pace, times in of_steps])
        most += start + steps * statistics.median([pace * max(1.0, times) for pace, times in of_steps])
    at_once = max(1, price.at_once)
    return replace(price, rough=(_RANGE[0] * least / at_once, _RANGE[1] * most / at_once), near=len(used))


def costs(store: Store, lots: Sequence[Sequence[RunConfig]], *, warm: int = 0) -> list[Cost]:
    """The cost of several lots of runs, from one query of the runs that have ended or train."""
    sharing = Sharing.of(store, [config for configs in lots for config in configs])
    ended = _timed_runs(store, RunState.SUCCEEDED)
    training = _timed_runs(store, RunState.RUNNING)
    past = _by_kind([*ended, *training])
    threads = [sharing.threads(configs) for configs in lots]
    planned = {
        (_kind(config), number)
        for configs, numbers in zip(lots, threads, strict=True)
        for config, number in zip(configs, numbers, strict=True)
    }
    times = _times(
        store,
        {
            # Runs with the same number of threads, if there are any.
            (kind, number): ([run for run in past[kind] if run.threads == number] or past[kind])[:_ENOUGH]
            for kind, number in planned
            if kind in past
        },
        _first_runs(ended, training),
    )
    return [
        Cost(
            runs=_run_seconds(configs, numbers, times, at_once=sharing.at_once(numbers), warm=warm),
            slots=sharing.at_once(numbers),
            past=_evidence(past, set(map(_kind, configs))),
            held_back=sharing.held_back(numbers),
        )
        for configs, numbers in zip(lots, threads, strict=True)
    ]


def _run_seconds(
    configs: Sequence[RunConfig],
    threads: Sequence[int | None],
    times: Mapping[tuple[_Kind, int | None], _Times],
    *,
    at_once: int,
    warm: int,
) -> tuple[float | None, ...]:
    """The seconds of each run, None for a kind without times.

    Where only the starts of first runs are known, those of each kind are spread over its runs.
    """
    counts = Counter(map(_kind, configs))
    seconds: list[float | None] = []
    for config, number in zip(configs, threads, strict=True):
        kind = _kind(config)
        measured = times.get((kind, number))
        if measured is None:
            seconds.append(None)
            continue
        start = measured.start
        if start is None:
            first_starts = max(0, min(at_once, counts[kind]) - warm)
            start = measured.first_start * first_starts / counts[kind]
        seconds.append(start + measured.per_pass * config.fraction * config.epochs)
    return tuple(seconds)


def _evidence(past: Mapping[_Kind, Sequence[Run]], kinds: Collection[_Kind]) -> int:
    """The number of runs behind the estimates of these kinds: ended ones, else those that train."""
    groups = [past[kind] for kind in kinds if kind in past]
    ended = [[run for run in runs if run.state is RunState.SUCCEEDED] for runs in groups]
    return sum(len((of_kind or runs)[:_ENOUGH]) for of_kind, runs in zip(ended, groups, strict=True))


def _by_kind(runs: Sequence[Run]) -> dict[_Kind, list[Run]]:
    """The runs of each kind, in their order."""
    kinds: dict[_Kind, list[Run]] = {}
    for run in runs:
        kinds.setdefault(_kind(run.config), []).append(run)
    return kinds


def _timed_runs(store: Store, state: RunState) -> list[Run]:
    """The newest runs in this state that trained on this machine at their first attempt."""
    host = socket.gethostname()
    return [
        run
        for run in store.runs(states={state}, limit=_NEWEST, archived=None)
        if run.config_problem is None
        and run.attempt == 1
        and run.owner
        and run.owner.host == host
        and run.total_steps
        and run.step
        and run.seconds
    ]


def _first_runs(ended: Sequence[Run], training: Sequence[Run]) -> set[int]:
    """The ids of the runs that began before any run of their worker, or on their data, had ended."""
    first_end: dict[object, datetime] = {}
    for run in ended:
        for shared in (run.owner, _features(run.config)):
            if run.finished_at is not None:
                first_end[shared] = min(first_end.get(shared, run.finished_at), run.finished_at)
    return {
        run.id
        for run in (*ended, *training)
        for end in (first_end.get(run.owner), first_end.get(_features(run.config)))
        if end is None or run.started_at is None or run.started_at < end
    }


class _Times(NamedTuple):
    """The seconds that runs of a kind take: their start and end, and a pass over the data.

    `first_start` is that of a worker's first run, `start` of later ones, None if only first runs are known.
    """

    first_start: float
    start: float | None
    per_pass: float


def _times(
    store: Store, runs: Mapping[tuple[_Kind, int | None], Sequence[Run]], first: Collection[int]
) -> dict[tuple[_Kind, int | None], _Times]:
    """The times of each kind, as medians over its runs."""
    trained = store.last_points({run.id for group in runs.values() for run in group}, LOSS.key())
    timed = {key: [run for run in group if run.id in trained] for key, group in runs.items()}
    starts = {run.id: _start(run, trained[run.id][1]) for group in timed.values() for run in group}
    later_starts: dict[_Kind, list[float]] = {}  # of a model
    for group in timed.values():
        for run in group:
            if run.id not in first:
                later_starts.setdefault(_model(run.config), []).append(starts[run.id])
    times = {}
    for key, group in timed.items():
        if not group:
            continue
        own = [starts[run.id] for run in group if run.id not in first]
        of_model = later_starts.get(_model(group[0].config))
        start = None
        if len(own) > 1:
            start = statistics.median_low(own)
        elif of_model:  # the only run of its kind may have computed its features
            start = min([statistics.median_low(of_model), *own])
        ended = [run for run in group if run.state is RunState.SUCCEEDED]
        paces = [_seconds_per_pass(run, *trained[run.id][:2]) for run in ended or group]
        first_start = statistics.median_low([starts[run.id] for run in group])
        times[key] = _Times(first_start, start, statistics.median(paces))
    return times


def _start(run: Run, trained_seconds: float) -> float:
    """The seconds of a run outside its training."""
    return max(0.0, (run.seconds or 0.0) - trained_seconds)


def _seconds_per_pass(run: Run, trained_step: int, trained_seconds: float) -> float:
    # Training with patience may have ended early.
    step = min(run.step, trained_step) if run.state is RunState.RUNNING else run.step
    passes = run.config.fraction * run.config.epochs * step / (run.total_steps or 1)
    return min(trained_seconds, run.seconds or 0.0) / passes


def eta(store: Store, runs: Sequence[Run]) -> dict[int, float]:
    """The seconds until each of these runs ends at its pace so far, where that is known.

    The pace is that of training alone, without the start of the run (corpus, encoder, features).
    """
    totals = {run.id: run.total_steps for run in runs if run.state is RunState.RUNNING and run.total_steps}
    points = store.last_points(totals, LOSS.key())
    return {
        run_id: max(0.0, seconds / step * (totals[run_id] - step))
        for run_id, (step, seconds, _) in points.items()
        if step
    }


def queue_left(store: Store, ids: Collection[int] | None = None) -> float | None:
    """The seconds until all queued and running runs have ended, or these; None where that is unknown.

    As many workers are assumed as train now, and at least one for each slot of this machine. A queued run of
    a kind without an estimate takes the mean of the other runs of its model here.
    """
    training = store.runs(states={RunState.RUNNING})
    queued = store.runs(states={RunState.QUEUED})
    if ids is not None:
        order = store.next_queued(len(queued))
        last = max((place for place, run_id in enumerate(order, 1) if run_id in ids), default=0)
        ahead = set(order[:last])
        queued = [run for run in queued if run.id in ahead]
        training = training if queued else [run for run in training if run.id in ids]
    left = eta(store, training)
    waiting = [run.config for run in queued if not run.config_problem]
    readable = [run for run in training if not run.config_problem]
    configs = [*waiting, *(run.config for run in readable)]
    expected = cost(store, configs, warm=len(training))
    for run, seconds in zip(readable, expected.runs[len(waiting) :], strict=True):
        if seconds is not None:
            # Without a batch all is left; the pace of the first batches is too slow.
            left[run.id] = min(left.get(run.id, seconds), seconds)
    if not waiting:
        return max(left.values()) if training and len(left) == len(training) else None
    of_model: dict[_Kind, list[float]] = {}
    for config, seconds in zip(configs, expected.runs, strict=True):
        if seconds is not None:
            of_model.setdefault(_model(config), []).append(seconds)
    if any(_model(config) not in of_model for config in waiting):
        return None
    total = sum(left.values())
    for config, seconds in zip(waiting, expected.runs, strict=False):
        total += statistics.mean(of_model[_model(config)]) if seconds is None else seconds
    return total / min(max(expected.slots, len(training)), len(waiting) + len(training))


def disk(store: Store, configs: Sequence[RunConfig]) -> Disk:
    """The disk that these runs need: each as much as the newest run of its model, else 0."""
    wanted, left = set(map(_model, configs)), dict[_Kind, float]()
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None):
        if run.checkpoint and (model := _model(run.config)) in wanted - left.keys():
            size = sum(path.stat().st_size for path in checkpoint_dir(run.id).rglob("*") if path.is_file())
            if size:  # else it was removed by hand
                left[model] = float(size)
    needed = sum(left.get(_model(config), 0.0) for config in configs)
    return Disk(needed, float(shutil.disk_usage(home()).free))
