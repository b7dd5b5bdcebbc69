"""How long runs will take: from past runs on this machine, else from a rough table."""

from __future__ import annotations

import socket
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.corpora import summarise
from core.models.registry import base_name
from core.store import MetricKey, Run, RunState, Store
from core.training.events import TOTAL
from jobs.engines.slots import gpu_count, slot_count

__all__ = ["Estimate", "estimate", "eta"]

# Seconds for one training sentence in one epoch, dev scores included, on two cores in bfloat16 (measured for
# minilm; the others by their number of weights). A frozen encoder's features are computed once.
_ROUGH_FULL_S = {"minilm": 0.025}
_ROUGH_FULL_OTHER_S = 0.2
_ROUGH_FROZEN_S = 0.004
_ROUGH_GPU_FACTOR = 0.05
_ROUGH_START_S = 6.0

_PAST_RUNS = 20
_TRAINING_LOSS = MetricKey(TOTAL, "train", "loss")


@dataclass(frozen=True)
class Estimate:
    """Wall-clock seconds until the last of the runs has ended, and what that rests on, in words."""

    seconds: float
    basis: str


def estimate(store: Store, configs: Sequence[RunConfig]) -> Estimate:
    """How long these runs will take on this machine, one after another in each of its slots.

    Raises MRNLabError where a corpus cannot be read.
    """
    if not configs:
        return Estimate(0.0, "no runs")
    rates = {kind: _past_rate(store, kind) for kind in dict.fromkeys(map(_kind, configs))}
    total = 0.0
    for config in configs:
        known = rates[_kind(config)]
        work = _sentences(config) * config.epochs
        total += _rough_seconds(config, work) if known is None else known * work
    slots = min(slot_count(), len(configs))
    past = [kind for kind, rate in rates.items() if rate is not None]
    if len(past) == len(rates):
        basis = "from past runs with this encoder on this machine"
    elif past:
        basis = f"partly from past runs on this machine ({', '.join(kind[0] for kind in past)}), partly rough"
    else:
        basis = "a rough guess: no run with this encoder has ended on this machine yet"
    return Estimate(total / slots, basis)


def eta(store: Store, runs: Sequence[Run]) -> dict[int, float]:
    """Seconds until each of these runs ends at the pace of its steps so far; runs of which that cannot be
    told are left out.

    The pace is that of training alone: a long start (corpus, encoder, features) says nothing about the rest.
    """
    training = {run.id: run for run in runs if run.state is RunState.RUNNING and run.total_steps}
    left = {}
    for run_id, (step, seconds) in store.latest_times(training, _TRAINING_LOSS).items():
        total = training[run_id].total_steps
        if step and total:
            left[run_id] = max(0.0, seconds / step * (total - step))
    return left


def _kind(config: RunConfig) -> tuple[str, str]:
    return config.encoder, config.encoder_training


def _past_rate(store: Store, kind: tuple[str, str]) -> float | None:
    """The median of seconds per training sentence and epoch of the last such runs that ended here."""
    host = socket.gethostname()
    ended = [
        run.id
        for run in store.runs(states={RunState.SUCCEEDED}, archived=None)
        if _kind(run.config) == kind and run.owner is not None and run.owner.host == host
    ]
    rates = []
    for run in store.runs(ids=ended[:_PAST_RUNS]):
        steps = run.facts.get("total_steps")
        if steps and run.seconds:
            rates.append(run.seconds / (steps * run.config.batch_size))
    return statistics.median(rates) if rates else None


def _rough_seconds(config: RunConfig, work: float) -> float:
    if config.encoder_training == "frozen":
        once = _full_rate(config) / 3 * work / config.epochs  # one forward pass of each sentence
        return _ROUGH_START_S + once + _ROUGH_FROZEN_S * work
    return _ROUGH_START_S + _full_rate(config) * work


def _full_rate(config: RunConfig) -> float:
    rate = _ROUGH_FULL_S.get(base_name(config.encoder), _ROUGH_FULL_OTHER_S)
    return rate * _ROUGH_GPU_FACTOR if gpu_count() and config.device != "cpu" else rate


def _sentences(config: RunConfig) -> int:
    summary = summarise(config.corpus, config.columns)
    return max(1, round(summary.splits["train"].sentences * config.fraction))
