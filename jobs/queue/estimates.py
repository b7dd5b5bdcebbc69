"""The time and disk that runs will take, from past runs of their kind on the same data on this machine.

A run costs its start and its end (libraries, corpus, features, the last scores), and then so many seconds for
each pass over the data. Both are medians over past runs. Where none has ended here there is no estimate: a
guess from constants was off by more than a factor of two.
"""

from __future__ import annotations

import math
import shutil
import socket
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.corpora import summarise
from core.paths import checkpoint_dir, home
from core.records import TOTAL
from core.registry import ENCODERS, base_name, reads_words
from core.store import MetricKey, Run, RunState, Store
from core.wording import plural
from jobs.engines.local import slot_count

_NEWEST = 400  # runs that succeeded, among which those of a kind are searched
_ENOUGH = 20  # runs of a kind whose medians are taken
_TRAINING_LOSS = MetricKey(TOTAL, "train", "loss")
_RANGE = (0.7, 1.5)
"""How far estimates from past runs have been seen to be off."""

# Megabytes of a fine-tuned encoder's checkpoint, where no run has left one yet; others are small.
_ENCODER_MB = {"minilm": 90.0}
_OTHER_MB = 500.0
_SUBWORDS = 1.4  # per word
_FROZEN_BYTES, _TOP_BYTES = 4, 2  # of a cached number
_OTHER_FEATURES = 768


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds of runs on this machine. `runs` has those of each, None where no past run tells;
    `slots` is how many train at once, `past` how many runs the estimates rest on.
    """

    runs: tuple[float | None, ...]
    slots: int
    past: int

    @property
    def unknown(self) -> int:
        """Of how many runs there is no estimate."""
        return self.runs.count(None)

    @property
    def seconds(self) -> float | None:
        """Until the last of the runs has ended; None where there is no estimate of one of them."""
        return (
            None if self.unknown else sum(filter(None, self.runs)) / max(1, min(self.slots, len(self.runs)))
        )

    @property
    def span(self) -> tuple[float, float] | None:
        """At least and at most."""
        return None if self.seconds is None else (_RANGE[0] * self.seconds, _RANGE[1] * self.seconds)

    @property
    def basis(self) -> str:
        """What it rests on, as the end of a sentence."""
        if not self.unknown:
            return f"from {plural(self.past, 'past run')} of this kind on this machine"
        some = (
            f" for {self.unknown:,} of {plural(len(self.runs), 'run')}"
            if self.unknown < len(self.runs)
            else ""
        )
        return f"no estimate{some}: no run of this kind has finished on this data and machine"


@dataclass(frozen=True)
class Disk:
    """Bytes that runs will leave behind, and bytes that are free where they are kept."""

    needed: float
    free: float

    @property
    def short(self) -> bool:
        """Whether the runs would fill more than nine tenths of what is free."""
        return self.needed > 0.9 * self.free


_Kind = tuple[object, ...]


def _model(config: RunConfig) -> _Kind:
    """What decides how many weights a run trains."""
    sizes = config.bilstm_hidden, config.lstm_layers, config.shared_dense, config.task_dense
    inputs = config.context_encoder, config.characters, config.window, config.task_embedding
    return config.encoder, config.encoder_training, *inputs, *sizes


def _kind(config: RunConfig) -> _Kind:
    """What decides how long a run takes for a pass over its data."""
    data = config.corpus, config.columns, config.tasks
    training = config.paradigm, config.head, config.draw_tasks, config.affinity_every
    return *_model(config), *data, config.batch_size, config.batch_tokens, *training


def cost(store: Store, configs: Sequence[RunConfig]) -> Cost:
    """How long these runs will take on this machine, one after another in each of its slots."""
    return costs(store, [configs])[0]


def costs(store: Store, lots: Sequence[Sequence[RunConfig]]) -> list[Cost]:
    """The cost of several lots of runs, from one look at the past runs."""
    slots = slot_count()
    past: dict[_Kind, list[Run]] = {}
    for run in _past_runs(store):
        past.setdefault(_kind(run.config), []).append(run)
    kinds = {_kind(config) for configs in lots for config in configs} & past.keys()
    paces = {kind: _pace(store, past[kind][:_ENOUGH]) for kind in kinds}
    estimates = []
    for configs in lots:
        seconds = []
        for config in configs:
            start, per_pass = paces.get(_kind(config)) or (math.nan, math.nan)
            each = start + per_pass * config.fraction * config.epochs
            seconds.append(None if math.isnan(each) else each)
        used = {_kind(config) for config in configs} & paces.keys()
        estimates.append(Cost(tuple(seconds), slots, sum(len(past[kind][:_ENOUGH]) for kind in used)))
    return estimates


def _past_runs(store: Store) -> list[Run]:
    """The newest runs that ended well on this machine, at their first try: resumed ones took longer."""
    host = socket.gethostname()
    return [
        run
        for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None, with_facts=False)
        if run.config_problem is None
        and run.attempt == 1
        and run.owner
        and run.owner.host == host
        and run.total_steps
        and run.step
        and run.seconds
    ]


def _pace(store: Store, runs: Sequence[Run]) -> tuple[float, float] | None:
    """Medians over these runs: seconds apart from training, seconds for a pass over all of the data."""
    trained = store.latest_times([run.id for run in runs], _TRAINING_LOSS)
    starts, per_pass = [], []
    for run in runs:
        if run.id in trained and run.total_steps:
            seconds = run.seconds or 0.0
            training = min(trained[run.id][1], seconds)
            starts.append(seconds - training)
            # Training with patience may have ended early.
            passes = run.config.fraction * run.config.epochs * run.step / run.total_steps
            per_pass.append(training / passes)
    return (statistics.median(starts), statistics.median(per_pass)) if starts else None


def eta(store: Store, runs: Sequence[Run]) -> dict[int, float]:
    """Seconds until each of these runs ends at the pace of its steps so far; without runs of which that is
    unknown.

    The pace is that of training alone: a long start (corpus, encoder, features) says nothing about the rest.
    """
    totals = {run.id: run.total_steps for run in runs if run.state is RunState.RUNNING and run.total_steps}
    times = store.latest_times(totals, _TRAINING_LOSS)
    return {
        run_id: max(0.0, seconds / step * (totals[run_id] - step))
        for run_id, (step, seconds) in times.items()
        if step
    }


def queue_left(store: Store) -> float | None:
    """Seconds until everything that waits or trains has ended, by as many workers as train now (this
    machine's slots at least). None where that is unknown.
    """
    training = store.runs(states={RunState.RUNNING}, with_facts=False)
    queued = store.runs(states={RunState.QUEUED}, with_facts=False)
    waiting = [run.config for run in queued if not run.config_problem]
    left = eta(store, training)
    if not waiting:
        return max(left.values()) if training and len(left) == len(training) else None
    expected = cost(store, waiting)
    if expected.unknown:
        return None
    total = sum(filter(None, expected.runs)) + sum(left.values())
    return total / min(max(slot_count(), len(training)), len(waiting) + len(training))


def disk(store: Store, configs: Sequence[RunConfig]) -> Disk:
    """How much disk these runs will fill: their checkpoints, and the features of frozen encoders.

    Raises MRNLabError where a corpus cannot be read.
    """
    models = {_model(config): config for config in configs}
    sizes = {model: _checkpoint_bytes(store, config) for model, config in models.items()}
    needed = sum(sizes[_model(config)] for config in configs)
    # The states of layers that are not trained are kept once for each corpus.
    cached = {
        (config.corpus, config.columns, base_name(config.encoder), config.training.top): config.fraction
        for config in configs
        if config.training.caches_states
    }
    for (corpus, columns, encoder, top), fraction in cached.items():
        words = fraction * summarise(corpus, columns).splits["train"].tokens
        features = ENCODERS[encoder].features if encoder in ENCODERS else _OTHER_FEATURES
        needed += (_TOP_BYTES if top else _FROZEN_BYTES) * _SUBWORDS * features * words
    return Disk(needed, float(shutil.disk_usage(home()).free))


def _checkpoint_bytes(store: Store, config: RunConfig) -> float:
    """The size of the checkpoint of the newest such run; else that of the encoder, where it is fine-tuned."""
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None, with_facts=False):
        if _model(run.config) == _model(config) and run.checkpoint:
            size = sum(path.stat().st_size for path in checkpoint_dir(run.id).rglob("*") if path.is_file())
            if size:  # else it was removed by hand
                return float(size)
    if reads_words(config.encoder) or not config.training.trains_all:
        return 0.0
    return 1e6 * _ENCODER_MB.get(base_name(config.encoder), _OTHER_MB)
