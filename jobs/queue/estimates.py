"""The time and disk that runs will take: from past runs of their kind on this machine, else a rough guess.

A run costs its start-up and its end (corpus, encoder, features, the last scores), and then so many seconds
for each training word of each epoch, of both texts of a pair, and for each task where the encoder reads a
sentence once for each. Both are medians over past runs of the kind (`_kind`). The first run of
a worker also loads the libraries.
"""

from __future__ import annotations

import math
import shutil
import socket
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.config import RunConfig
from core.corpora import summarise
from core.corpora.described import PartSize, TrainingSize
from core.errors import MRNLabError
from core.paths import checkpoint_dir, home
from core.records import TOTAL
from core.registry import ENCODERS, base_name, reads_words
from core.store import MetricKey, Run, RunState, Store
from core.tasks import KINDS
from jobs.engines.local import gpu_count, slot_count, taken_slots

_NEWEST = 400  # runs that succeeded, among which those of a kind are searched
_ENOUGH = 20  # runs of a kind whose medians are taken
_TRAINING_LOSS = MetricKey(TOTAL, "train", "loss")

# Seconds for one training sentence in one epoch, dev scores included, on two quiet cores in float32
# (docs/performance.md; of MiniLM, and of the others as BERT base by its number of operations).
_ROUGH_FULL_S = {"minilm": 0.018}
_ROUGH_FULL_OTHER_S = 0.2
# Adapters save the gradients of the other weights (measured).
_ROUGH_ADAPTERS = 0.8
# Heads over a frozen encoder's features, with a BiLSTM among them or without.
_ROUGH_HEADS_S = 0.0003
_ROUGH_BILSTM_S = 0.0013
# Seconds for one training word of an encoder over words: for itself, for its characters, and for each weight
# of its LSTMs (measured at 90 thousand to 7 million weights, batches of 10 and 16).
_ROUGH_WORD_S, _ROUGH_CHARACTERS_S, _ROUGH_WEIGHT_S = 3e-5, 7e-5, 1.25e-10
_WORD_FEATURES, _CAPITALS, _CHARACTER_FEATURES = 100, 8, 128
_WITH_TASK_GATES = ("sc-lstm",)
_ROUGH_GPU_FACTOR = 0.05
_ROUGH_START_S = 1.5
_LIBRARIES_S = 9.0  # a worker's first run also imports torch and Transformers
_WORDS_PER_SENTENCE = 15.0  # of the corpora that the rough rates were measured on
# How far a rough guess, and one from past runs, has been seen to be off.
_ROUGH_RANGE = (0.4, 2.5)
_KNOWN_RANGE = (0.7, 1.5)
# Megabytes of a fine-tuned encoder's checkpoint, where no run has left one yet; of bare heads it is nothing.
_ROUGH_MB = {"minilm": 90.0}
_ROUGH_OTHER_MB = 500.0
# A layer has about 12 matrices of features x features, in float32; adapters and heads are nothing.
_BYTES_PER_LAYER_AND_SQUARE = 4 * 12
# Different words of a text of n words: so many times the square root of n (CoNLL-2003: 23,600 of 204,000).
_FORMS = 52.0
_SUBWORDS = 1.4  # per word
_FROZEN_BYTES, _TOP_BYTES = 4, 2  # of a cached number
_OTHER_FEATURES, _OTHER_LAYERS = 768, 12


@dataclass(frozen=True)
class RunCost:
    """Seconds of one run; `rough` where no past run says anything about it."""

    seconds: float
    rough: bool


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds until the last of the runs has ended, at least and at most, and what that rests on.

    `runs` has what each of them costs, in the order asked for. `first` is how many seconds a worker needs
    before the first of them, to load libraries; 0 where one is there.
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
    """The medians of past runs: seconds apart from training, seconds per word and epoch."""

    start: float
    per_word: float


_Data = tuple[str, tuple[str, ...] | None, tuple[str, ...], bool]
"""What decides how many words are read: corpus, columns, tasks, whether each task reads its sentences."""

_Kind = tuple[object, ...]
"""What decides a run's pace per word."""

Size = Callable[[str, Sequence[str] | None, Sequence[str]], TrainingSize]
"""How much text a corpus (with the names of its columns) has to train these tasks on."""


def _read_size(corpus: str, columns: Sequence[str] | None, _tasks: Sequence[str]) -> TrainingSize:
    summary = summarise(corpus, columns)
    return TrainingSize((PartSize(summary.splits["train"].tokens, summary.words),), "dev" in summary.splits)


def _model(config: RunConfig) -> tuple[object, ...]:
    """What decides how many weights a run trains."""
    sizes = config.bilstm_hidden, config.lstm_layers, config.shared_dense, config.task_dense
    inputs = config.context_encoder, config.characters, config.window, config.task_embedding
    return config.encoder, config.encoder_training, *inputs, *sizes


def _kind(config: RunConfig) -> _Kind:
    training = config.paradigm, config.head, config.draw_tasks, config.affinity_every
    return *_model(config), config.batch_size, *training


def cost(store: Store, configs: Sequence[RunConfig]) -> Cost:
    """How long these runs will take on this machine, one after another in each of its slots.

    Raises MRNLabError where a corpus cannot be read.
    """
    return Estimator(store).cost(configs)


class Estimator:
    """Tells the time of several lots of runs by what has ended until now. `size` says how much text a corpus
    has for tasks, and raises MRNLabError where it cannot; by itself it reads the corpus.
    """

    def __init__(self, store: Store, size: Size = _read_size) -> None:
        self._store, self._size = store, size
        self._rates: dict[_Kind, _Rate | None] = {}
        self._slots = slot_count()
        # A worker that is there has loaded them.
        self._first = 0.0 if taken_slots(store.url) else _LIBRARIES_S

    def cost(self, configs: Sequence[RunConfig]) -> Cost:
        """As `cost`. Raises MRNLabError where the size of a corpus is not to be had."""
        if not configs:
            return Cost((), 0.0, 0.0, 0.0, 0.0, "no runs")
        words = {data: _words(data, self._size) for data in dict.fromkeys(map(_data, configs))}
        runs = []
        for config in configs:
            rate, seen = self._rate(_kind(config)), words[_data(config)] * config.fraction
            seconds = (
                _rough_seconds(config, seen / _WORDS_PER_SENTENCE)
                if rate is None
                else rate.start + rate.per_word * seen * config.epochs
            )
            runs.append(RunCost(seconds, rate is None))
        slots = min(self._slots, len(configs))
        least, most = (
            sum((_ROUGH_RANGE if run.rough else _KNOWN_RANGE)[end] * run.seconds for run in runs) / slots
            for end in (0, 1)
        )
        return Cost(
            tuple(runs),
            self._first,
            self._first + sum(run.seconds for run in runs) / slots,
            least,
            self._first * _ROUGH_RANGE[1] + most,
            _basis(runs),
        )

    def _rate(self, kind: _Kind) -> _Rate | None:
        if kind not in self._rates:
            past = [run for run in self._past if _kind(run.config) == kind]
            self._rates[kind] = _rate(self._store, past, self._size)
        return self._rates[kind]

    @cached_property
    def _past(self) -> list[Run]:
        return _past_runs(self._store)


def _basis(runs: Sequence[RunCost]) -> str:
    """What the times rest on, as the end of a sentence."""
    rough = sum(run.rough for run in runs)
    if not rough:
        return "from past runs of this kind on this machine"
    if rough == len(runs):
        return "a rough guess: no run of this kind has ended on this machine yet"
    return f"from past runs on this machine, but for {rough} of {len(runs)} runs a rough guess"


def _past_runs(store: Store) -> list[Run]:
    """The newest runs that ended well on this machine, at their first try: resumed ones took longer.

    Without those whose steps have a budget of subwords: how many words they saw is not on record.
    """
    host = socket.gethostname()
    return [
        run
        for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None, with_facts=False)
        if run.config_problem is None
        and run.attempt == 1
        and run.config.batch_tokens is None
        and run.owner
        and run.owner.host == host
        and run.total_steps
        and run.seconds
    ]


def _rate(store: Store, past: Sequence[Run], size: Size) -> _Rate | None:
    """The pace of these runs; None where none of them tells one."""
    runs = store.runs(ids=[run.id for run in past[:_ENOUGH]])  # with their facts
    trained = store.latest_times([run.id for run in runs], _TRAINING_LOSS)
    starts, per_word = [], []
    for run in runs:
        if run.id in trained and (work := _work_done(run, size)):
            seconds = run.seconds or 0.0
            training = min(trained[run.id][1], seconds)
            starts.append(seconds - training)
            per_word.append(training / work)
    return _Rate(statistics.median(starts), statistics.median(per_word)) if starts else None


def _work_done(run: Run, size: Size) -> float:
    """How many words, epoch after epoch, a past run trained on; 0 where its facts do not say."""
    tasks = run.facts.get("tasks", ())
    if any(KINDS[task["scheme"]].reads != "words" for task in tasks) or _once_per_task(run.config):
        return _passes(run, size)
    sentences = sum(task["train_sentences"] for task in tasks)
    if not sentences or not run.total_steps:
        return 0.0
    per_sentence = sum(task["train_tokens"] for task in tasks) / sentences
    # Training with patience may have ended early.
    steps = run.step if run.config.patience else run.total_steps
    return float(steps * run.config.batch_size * per_sentence)


def _passes(run: Run, size: Size) -> float:
    """As `_work_done`, by the corpus: the facts do not say how many words texts have. 0 where it is gone."""
    try:
        words = _words(_data(run.config), size) * run.config.fraction * run.config.epochs
    except MRNLabError:
        return 0.0
    return words * run.step / run.total_steps if run.total_steps else 0.0


def _rough_seconds(config: RunConfig, sentences: float) -> float:
    on_gpu = _ROUGH_GPU_FACTOR if gpu_count() and config.device != "cpu" else 1.0
    full = on_gpu * _ROUGH_FULL_S.get(config.transformer or "", _ROUGH_FULL_OTHER_S)
    if reads_words(config.encoder):
        per_word = _ROUGH_WORD_S + _ROUGH_WEIGHT_S * _lstm_weights(config)
        per_word += _ROUGH_CHARACTERS_S if config.characters == "cnn" else 0.0
        once = full / 6 if config.context_encoder else 0.0
        each_epoch = on_gpu * per_word * _WORDS_PER_SENTENCE
        return _ROUGH_START_S + sentences * (once + each_epoch * config.epochs)
    if not config.training.caches_states:
        share = 1.0 if config.training.trains_all else _ROUGH_ADAPTERS
        return _ROUGH_START_S + share * full * sentences * config.epochs
    # One forward pass of each sentence, then the rest alone.
    rest = _ROUGH_HEADS_S if config.bilstm_hidden is None else _ROUGH_BILSTM_S
    rest += full * min(1.0, config.training.top / _layers(base_name(config.encoder)))
    return _ROUGH_START_S + full / 6 * sentences + rest * sentences * config.epochs


def _lstm_weights(config: RunConfig) -> float:
    """About how many weights the LSTMs of an encoder over words have, both directions together."""
    hidden, tasks = config.bilstm_hidden or 0, len(config.tasks)
    layers = config.lstm_layers or tasks  # without a number of its own, one for each task
    inputs = _WORD_FEATURES + _CAPITALS + (_CHARACTER_FEATURES if config.characters == "cnn" else 0)
    inputs += _features(config.context_encoder) if config.context_encoder else 0
    weights = 8 * hidden * (inputs + hidden + (layers - 1) * 3 * hidden)
    if config.encoder in _WITH_TASK_GATES:
        weights += tasks * 2 * hidden * (hidden + (inputs if layers == 1 else 2 * hidden))
    return float(weights)


def _features(encoder: str) -> int:
    return ENCODERS[encoder].features if encoder in ENCODERS else _OTHER_FEATURES


def _layers(encoder: str) -> int:
    return ENCODERS[encoder].layers if encoder in ENCODERS else _OTHER_LAYERS


def _data(config: RunConfig) -> _Data:
    return config.corpus, config.columns, config.tasks, _once_per_task(config)


def _once_per_task(config: RunConfig) -> bool:
    """Whether a sentence is read once for each of its tasks."""
    return config.draw_tasks != "together" or config.task_embedding not in (None, "none")


def _words(data: _Data, size: Size) -> float:
    """How many words a run trains on in each epoch."""
    corpus, columns, tasks, per_task = data
    return size(corpus, columns, tasks).words(tasks, per_task=per_task)


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
    machine's slots at least). None where that is unknown: no past run is of their kind, or data are not here.
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
        needed += (_TOP_BYTES if top else _FROZEN_BYTES) * _SUBWORDS * _features(encoder) * words
    return Disk(needed, float(shutil.disk_usage(home()).free))


def _checkpoint_bytes(store: Store, config: RunConfig) -> float:
    """The size of the checkpoint of the newest such run, else a guess."""
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None, with_facts=False):
        if _model(run.config) == _model(config) and run.checkpoint:
            size = sum(path.stat().st_size for path in checkpoint_dir(run.id).rglob("*") if path.is_file())
            if size:  # else it was removed by hand
                return float(size)
    if reads_words(config.encoder):
        forms = _FORMS * math.sqrt(_words(_data(config), _read_size))
        return 4 * (_lstm_weights(config) + _WORD_FEATURES * forms)
    if config.training.trains_all:
        return 1e6 * _ROUGH_MB.get(base_name(config.encoder), _ROUGH_OTHER_MB)
    features = _features(base_name(config.encoder))
    return _BYTES_PER_LAYER_AND_SQUARE * config.training.top * features**2
