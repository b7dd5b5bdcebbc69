"""What runs will take, in time and on disk: from past runs on this machine, else a rough guess.

A run costs its start-up and its end (corpus, encoder, features, the last scores), and then so many seconds
for each training word of each epoch. Both are medians over the newest past runs that are most alike. The
first run of a worker also loads the libraries.
"""

from __future__ import annotations

import shutil
import socket
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig
from core.corpora import summarise
from core.errors import MRNLabError
from core.paths import checkpoint_dir, home
from core.records import TOTAL
from core.registry import ENCODERS, base_name
from core.store import MetricKey, Run, RunState, Store
from jobs.engines.local import gpu_count, slot_count

# The newest runs that succeeded, of which the most alike are looked for: bounded, however many there are.
_NEWEST = 400
_ALIKE = 20
# So many runs are enough to tell a pace from, with fewer the next wider kind is asked; and so many a spread.
_ENOUGH = 2
_ENOUGH_TO_SPREAD = 3
_TRAINING_LOSS = MetricKey(TOTAL, "train", "loss")

# Seconds for one training sentence in one epoch, dev scores included, on two quiet cores in float32
# (docs/performance.md; of MiniLM, and of the others as BERT base by its number of operations).
_ROUGH_FULL_S = {"minilm": 0.018}
_ROUGH_FULL_OTHER_S = 0.2
# Heads over a frozen encoder's features, with a BiLSTM among them or without.
_ROUGH_HEADS_S = 0.0003
_ROUGH_BILSTM_S = 0.0013
_ROUGH_GPU_FACTOR = 0.05
_ROUGH_START_S = 1.5
_LIBRARIES_S = 9.0  # a worker's first run also imports torch and Transformers
_WORDS_PER_SENTENCE = 15.0  # of the corpora that the rough rates were measured on
# How far a rough guess, and one from a single run or two, has been seen to be off.
_ROUGH_RANGE = (0.4, 2.5)
_FEW_RANGE = (0.7, 1.5)
# Megabytes of a fine-tuned encoder's checkpoint, where no run has left one yet; of bare heads it is nothing.
_ROUGH_MB = {"minilm": 90.0}
_ROUGH_OTHER_MB = 500.0
_SUBWORDS_PER_WORD = 1.4
_BYTES_PER_FEATURE = 4
_OTHER_FEATURES = 768


@dataclass(frozen=True)
class RunCost:
    """Seconds of one run, at least and at most; `rough` where no past run says anything about it."""

    seconds: float
    least: float
    most: float
    rough: bool


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds until the last of the runs has ended, at least and at most, and what that rests on.

    `runs` has what each of them costs, in the order asked for. `first` is how many seconds the first of them
    takes longer, while a worker loads libraries.
    """

    runs: tuple[RunCost, ...]
    first: float
    seconds: float
    least: float
    most: float
    basis: str

    @property
    def rough(self) -> bool:
        """Whether nothing of it comes from past runs."""
        return all(run.rough for run in self.runs)


@dataclass(frozen=True)
class Disk:
    """Bytes that runs will leave behind, and bytes that are free where they are kept."""

    needed: float
    free: float

    @property
    def short(self) -> bool:
        """Whether the runs would fill more than nine tenths of what is free."""
        return self.needed > 0.9 * self.free


@dataclass(frozen=True)
class _Rate:
    """What past runs of a kind took: seconds apart from training, seconds per word and epoch, the spread of
    their ratio to what these two say.
    """

    start: float
    per_word: float
    spread: tuple[float, float]
    runs: int
    alike: bool


_Kind = tuple[Any, ...]
# Kinds are compared as far as here: all of it; without the data; without the paradigm; encoder and training.
_DEPTHS = (6, 4, 3, 2)


def _kind(config: RunConfig) -> _Kind:
    """What decides a run's pace, the most important first."""
    data = (config.corpus, len(config.tasks))
    return (config.encoder, config.encoder_training, config.batch_size, config.paradigm, *data)


def cost(store: Store, configs: Sequence[RunConfig]) -> Cost:
    """How long these runs will take on this machine, one after another in each of its slots.

    Raises MRNLabError where a corpus cannot be read.
    """
    if not configs:
        return Cost((), 0.0, 0.0, 0.0, 0.0, "no runs")
    past = _past_runs(store)
    rates = {kind: _rate(store, past, kind) for kind in dict.fromkeys(map(_kind, configs))}
    words = {data: _words(*data) for data in dict.fromkeys(map(_data, configs))}
    runs = tuple(
        _run_cost(config, rates[_kind(config)], words[_data(config)] * config.fraction) for config in configs
    )
    slots = min(slot_count(), len(configs))
    return Cost(
        runs,
        _LIBRARIES_S,
        _LIBRARIES_S + sum(run.seconds for run in runs) / slots,
        sum(run.least for run in runs) / slots,  # a worker may be there still
        _LIBRARIES_S * _ROUGH_RANGE[1] + sum(run.most for run in runs) / slots,
        _basis(configs, rates),
    )


def _data(config: RunConfig) -> tuple[str, tuple[str, ...] | None, tuple[str, ...]]:
    return config.corpus, config.columns, config.tasks


def _past_runs(store: Store) -> list[Run]:
    """The newest runs that ended well on this machine, at their first try: resumed ones took longer.

    Without those whose steps have a budget of subwords: how many words they saw is not on record.
    """
    host = socket.gethostname()
    return [
        run
        for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None)
        if run.config_problem is None
        and run.attempt == 1
        and run.config.batch_tokens is None
        and run.owner
        and run.owner.host == host
        and run.total_steps
        and run.seconds
    ]


def _rate(store: Store, past: Sequence[Run], kind: _Kind) -> _Rate | None:
    """The pace of the past runs most like that kind; None where none has its encoder and training."""
    groups = [[run for run in past if _kind(run.config)[:depth] == kind[:depth]] for depth in _DEPTHS]
    chosen = next((group for least in (_ENOUGH, 1) for group in groups if len(group) >= least), None)
    if chosen is None:
        return None
    # Facts tell how many words a run has seen; they are read of these few runs only.
    known = store.runs(ids=[run.id for run in chosen[:_ALIKE]])
    trained = store.latest_times([run.id for run in known], _TRAINING_LOSS)
    measured = [
        (run.seconds or 0.0, min(trained[run.id][1], run.seconds or 0.0), work)
        for run in known
        if run.id in trained and (work := _work_done(run))
    ]
    if not measured:
        return None
    start = statistics.median(seconds - training for seconds, training, _ in measured)
    per_word = statistics.median(training / work for _, training, work in measured)
    spread = _FEW_RANGE
    if len(measured) >= _ENOUGH_TO_SPREAD:
        ratios = [seconds / (start + per_word * work) for seconds, _, work in measured]
        tenths = statistics.quantiles(ratios, n=10, method="inclusive")
        spread = min(1.0, tenths[0]), max(1.0, tenths[-1])
    return _Rate(start, per_word, spread, len(measured), chosen is groups[0])


def _work_done(run: Run) -> float:
    """How many words, epoch after epoch, a past run trained on; 0 where its facts do not say."""
    tasks = run.facts.get("tasks", ())
    sentences = sum(task["train_sentences"] for task in tasks)
    if not sentences or not run.total_steps:
        return 0.0
    per_sentence = sum(task["train_tokens"] for task in tasks) / sentences
    return float(run.total_steps * run.config.batch_size * per_sentence)


def _run_cost(config: RunConfig, rate: _Rate | None, words: float) -> RunCost:
    if rate is None:
        seconds, (least, most) = _rough_seconds(config, words / _WORDS_PER_SENTENCE), _ROUGH_RANGE
    else:
        seconds, (least, most) = rate.start + rate.per_word * words * config.epochs, rate.spread
    return RunCost(seconds, least * seconds, most * seconds, rate is None)


def _rough_seconds(config: RunConfig, sentences: float) -> float:
    full = _ROUGH_FULL_S.get(base_name(config.encoder), _ROUGH_FULL_OTHER_S)
    if gpu_count() and config.device != "cpu":
        full *= _ROUGH_GPU_FACTOR
    if config.encoder_training == "full":
        return _ROUGH_START_S + full * sentences * config.epochs
    # One forward pass of each sentence, then the rest alone.
    rest = _ROUGH_HEADS_S if config.bilstm_hidden is None else _ROUGH_BILSTM_S
    return _ROUGH_START_S + full / 6 * sentences + rest * sentences * config.epochs


def _words(corpus: str, columns: tuple[str, ...] | None, tasks: Sequence[str]) -> float:
    """How many words a run of these tasks trains on: those of the sentences annotated for one of them."""
    summary = summarise(corpus, columns)
    annotated = sum(
        sum(counts.get("train", {}).values()) for task, counts in summary.counts.items() if task in tasks
    )
    words = min(summary.splits["train"].tokens, annotated)
    return words if "dev" in summary.splits else 0.9 * words


def _basis(configs: Sequence[RunConfig], rates: Mapping[_Kind, _Rate | None]) -> str:
    """What the times rest on, as the end of a sentence."""
    known = [rate for rate in rates.values() if rate is not None]
    unknown = dict.fromkeys(
        f"{encoder} ({'frozen' if training == 'frozen' else 'fine-tuned'})"
        for (encoder, training, *_), rate in rates.items()
        if rate is None
    )
    if not known:
        return f"a rough guess: no run with {', '.join(unknown)} has ended on this machine yet"
    if unknown:
        rough = sum(rates[_kind(config)] is None for config in configs)
        return (
            f"from past runs on this machine, but for {rough} of {len(configs)} runs a rough guess: "
            f"none with {', '.join(unknown)} has ended here yet"
        )
    if all(rate.alike for rate in known):
        number = min(rate.runs for rate in known)
        kinds = "this kind" if len(known) == 1 else "each kind at least"
        return f"from {number} past {'run' if number == 1 else 'runs'} of {kinds} on this machine"
    return "from past runs on this machine, of other data or paradigms over the same encoder"


def eta(store: Store, runs: Sequence[Run]) -> dict[int, float]:
    """Seconds until each of these runs ends at the pace of its steps so far; runs of which that cannot be
    told are left out.

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
    machine's slots at least). None where it cannot be told: no past run is like these, or data are not here.
    """
    training = store.runs(states={RunState.RUNNING}, with_facts=False)
    queued = store.runs(states={RunState.QUEUED}, with_facts=False)
    waiting = [run.config for run in queued if not run.config_problem]
    left = eta(store, training)
    if not waiting:
        return max(left.values()) if training and len(left) == len(training) else None
    try:
        expected = cost(store, waiting)
        workers = max(slot_count(), len(training))
    except MRNLabError:
        return None
    if expected.rough:
        return None
    total = sum(run.seconds for run in expected.runs) + sum(left.values())
    return total / min(workers, len(waiting) + len(training))


def disk(store: Store, configs: Sequence[RunConfig]) -> Disk:
    """How much disk these runs will fill: their checkpoints, and the features of frozen encoders.

    Raises MRNLabError where a corpus cannot be read.
    """
    kinds = [(config.encoder, config.encoder_training) for config in configs]
    sizes = {kind: _checkpoint_bytes(store, *kind) for kind in set(kinds)}
    needed = sum(sizes[kind] for kind in kinds)
    # The features of each frozen encoder and each set of sentences are kept once.
    frozen = {
        (
            config.corpus,
            config.columns,
            base_name(config.encoder),
            config.fraction,
            config.seed * (config.fraction < 1),
        )
        for config in configs
        if config.encoder_training == "frozen"
    }
    for corpus, columns, encoder, fraction, _ in frozen:
        features = ENCODERS[encoder].features if encoder in ENCODERS else _OTHER_FEATURES
        words = fraction * summarise(corpus, columns).splits["train"].tokens
        needed += _BYTES_PER_FEATURE * features * _SUBWORDS_PER_WORD * words
    return Disk(needed, float(shutil.disk_usage(home()).free))


def _checkpoint_bytes(store: Store, encoder: str, training: str) -> float:
    """What the newest such run has left, else a guess."""
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None):
        if (run.config.encoder, run.config.encoder_training) == (encoder, training) and run.checkpoint:
            size = sum(path.stat().st_size for path in checkpoint_dir(run.id).rglob("*") if path.is_file())
            if size:  # else it was removed by hand
                return float(size)
    return 0.0 if training == "frozen" else 1e6 * _ROUGH_MB.get(base_name(encoder), _ROUGH_OTHER_MB)
