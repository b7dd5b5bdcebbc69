"""Stores as sweeps, imports and accidents leave them, drawn by Hypothesis. Synthetic numbers.

A plan is drawn first, which can be read in a falsifying example; `build` makes its store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from core.config import OTHER, RunConfig
from core.errors import ConfigError
from core.events import RunFacts, Snapshot, SplitResult, TaskFacts
from core.metrics import TOTAL, EpochMetrics, StepMetrics, relation_metrics
from core.mrn.relations import Relations
from core.registry import UNKNOWN_ENCODER
from core.store import ErrorInfo, RunState, Store
from core.tasks import KINDS, score_task
from jobs.queue.sweeps import Sweep
from tests.making import OWNER, run_facts

_LONG = "the relation of a word to its head in the dependency tree of part"
# By corpus its tasks with their kinds; the last is a folder that is gone.
_CORPORA: Mapping[str, Mapping[str, str]] = {
    "demo": {"pos": "plain", "chunk": "iob2", "ner": "iob2"},
    "demo?train=100": {"pos": "plain", "ner": "iob2"},
    "demo-both-pos": {"pos-a": "plain", "pos-b": "plain"},
    "/gone/texts": {"mood": "text", "same": "pair", "alike": "score", "intent": "sentence"},
    "/gone/many": {f"{_LONG} {number}": ("iob2", "plain")[number % 2] for number in range(7)},
}
_LABELS = {"iob2": ("O", "B-PER", "I-PER", "B-LOC"), "score": ("0.5", "1", "2.5", "4")}
_SWEPT: Mapping[str, Sequence[Any]] = {
    "lambda": (0.001, 0.03),
    "prior": ("map", "none"),
    "alignment": ("exact", "disjoint"),
    "dropout": (0.0, 0.1),
    "epochs": (2, 4),
    "fraction": (0.5, 1.0),
    "encoder": ("minilm", "bilstm"),
    "encoder_training": ("frozen", "full"),
    "task_embedding": (None, "tanh"),
    "permuted": (None, "pos"),
}
_OF_MRN = ("lambda", "prior", "alignment")
_PARADIGMS = (("mrn",), ("mtl",), ("stl",), ("mtl", "mrn"), ("stl", "mtl", "mrn"))
_STATES = [state for state in RunState if state is not RunState.SUCCEEDED]
_DAMAGE = ('{"corpus": "demo"', '{"corpus": "demo", "tasks": ["pos"], "lambda": "much"}', "[]")
_MOST_RUNS = 18

WHOLE = "whole"
RECORDS = (
    WHOLE,
    "without scores",
    "without predictions",
    "without curves",
    "one snapshot",
    "undefined",
    "dev",
)
"""What a run that succeeded has recorded."""


@dataclass(frozen=True)
class Fate:
    """What became of a run: its state, what it has recorded, and what happened to it since."""

    state: RunState = RunState.SUCCEEDED
    record: str = WHOLE
    imported: bool = False
    archived: bool = False
    damage: str = ""


@dataclass(frozen=True)
class SweepWithFates:
    """The runs of a sweep, some seeds of which are missing, each with its fate."""

    corpus: str
    runs: tuple[tuple[RunConfig, Fate], ...]


_fates = st.builds(
    Fate,
    st.sampled_from([*[RunState.SUCCEEDED] * 5, *_STATES]),
    st.sampled_from(RECORDS),
    st.booleans(),
    st.sampled_from([False] * 5 + [True]),
    st.sampled_from(["", "", "", "", *_DAMAGE]),
)


@st.composite
def sweeps(draw: st.DrawFn) -> SweepWithFates:
    """One sweep over up to three settings."""
    corpus = draw(st.sampled_from(sorted(_CORPORA)))
    paradigms = draw(st.sampled_from(_PARADIGMS))
    fields = [name for name in _SWEPT if "mrn" in paradigms or name not in _OF_MRN]
    if paradigms == ("stl",):
        fields.remove("task_embedding")
    swept = draw(st.lists(st.sampled_from(fields), max_size=3, unique=True))
    seeds = draw(st.sampled_from([(1,), (1, 2), (1, 2, 3)]))
    lists = {"paradigm": paradigms, **{name: _SWEPT[name] for name in swept}, "seed": seeds}
    lists.setdefault("encoder_training", ("frozen",))
    sweep = Sweep(corpus, None, tuple(_CORPORA[corpus]), lists=lists)
    try:
        configs = sweep.runs()
    except ConfigError:  # settings that exclude each other
        configs = Sweep(corpus, None, tuple(_CORPORA[corpus]), lists={"paradigm": paradigms}).runs()
    if draw(st.booleans()):
        keep = draw(st.lists(st.booleans(), min_size=len(configs), max_size=len(configs)))
        configs = [config for config, kept in zip(configs, keep, strict=True) if kept] or configs[:1]
    configs = configs[:_MOST_RUNS]
    if draw(st.sampled_from([False, False, True])):
        configs += other_systems(corpus, seeds)
    fate = draw(st.sampled_from([st.just(Fate()), st.just(Fate(imported=True)), _fates]))
    return SweepWithFates(corpus, tuple((config, draw(fate)) for config in configs))


def other_systems(corpus: str, seeds: Sequence[int]) -> list[RunConfig]:
    """The runs of a system that was trained elsewhere, whose predictions were imported."""
    described = {"paradigm": OTHER, "system": "flair 0.15", "encoder": UNKNOWN_ENCODER, "corpus": corpus}
    tasks = list(_CORPORA[corpus])[:2]
    return [RunConfig.build(**described, tasks=tasks, seed=seed) for seed in seeds]


def swept(*fields: str) -> SweepWithFates:
    """A sweep over these settings, of which every run has succeeded."""
    lists = {"paradigm": ("mrn",), **{name: _SWEPT[name] for name in fields}, "seed": (1, 2)}
    lists.setdefault("encoder_training", ("frozen",))
    runs = Sweep("demo", None, tuple(_CORPORA["demo"]), lists=lists).runs()
    return SweepWithFates("demo", tuple((run, Fate()) for run in runs))


stores = st.lists(sweeps(), min_size=1, max_size=3)
"""Up to three sweeps, of which the newest is the last."""


def build(plan: Sequence[SweepWithFates]) -> list[int]:
    """Makes the runs in the store of MRNLAB_HOME, and returns those that are left."""
    with contextlib.closing(Store.open()) as store, store.transaction():
        return [
            _run(store, config, fate, _CORPORA[sweep.corpus], f"sweep {number}")
            for number, sweep in enumerate(plan)
            for config, fate in sweep.runs
        ]


def _run(store: Store, config: RunConfig, fate: Fate, kinds: Mapping[str, str], sweep: str) -> int:
    if config.paradigm == OTHER:
        fate = replace(fate, state=RunState.SUCCEEDED, record="without curves", imported=True)
    (run_id,) = store.add_runs([config], sweep)
    if fate.state is not RunState.QUEUED:
        assert store.claim(OWNER, run_id=run_id) is not None
        _record(store, run_id, config, fate, kinds)
        _end(store, run_id, fate.state)
    if fate.state is RunState.SUCCEEDED and fate.imported:
        record = store.record(run_id)
        store.delete_runs([run_id])
        run_id = store.import_record(record, "Imported.")
    if fate.archived and fate.state in (RunState.SUCCEEDED, RunState.FAILED):
        store.archive([run_id])
    if fate.damage:
        with store.transaction() as connection:
            damaged = (fate.damage, run_id)
            connection.exec_driver_sql("UPDATE runs SET config = ? WHERE id = ?", damaged)
    return run_id


def _end(store: Store, run_id: int, state: RunState) -> None:
    if state in (RunState.CANCELLING, RunState.CANCELLED):
        store.request_stop(run_id)
    if state is RunState.LOST:
        store.mark_lost(run_id, "The worker stopped answering.")
    elif state is RunState.FAILED:
        store.finish(run_id, state, error=ErrorInfo("NotFinite", "The loss is not a number.", "", 1))
    elif state in (RunState.SUCCEEDED, RunState.CANCELLED):
        store.finish(run_id, state, best_epoch=1, checkpoint=f"/gone/{run_id}")


def _record(store: Store, run_id: int, config: RunConfig, fate: Fate, kinds: Mapping[str, str]) -> None:
    random = np.random.default_rng([run_id, config.seed])
    store.set_facts(run_id, _facts(config, kinds))
    store.set_progress(run_id, 20, 2.0, 10 * config.epochs)
    if fate.record != "without curves":
        store.add_metrics(run_id, list(_curves(config, random)))
        for step in (20,) if fate.record == "one snapshot" else (1, 10, 20):
            if config.paradigm == "mrn":
                relations = _relations(config, kinds, random)
                store.add_snapshot(run_id, Snapshot(step, step / 10, relations))
                store.add_metrics(run_id, [relation_metrics(step, step / 10, 0.1 * step, relations, -1.0)])
    if fate.state is RunState.SUCCEEDED and fate.record != "without scores":
        for split in ("dev",) if fate.record == "dev" else ("dev", "test"):
            store.add_result(run_id, _result(split, config, fate.record, kinds, random))


def _labels(kind: str) -> tuple[str, ...]:
    return _LABELS.get(kind, ("NN", "VB", "JJ"))


def _facts(config: RunConfig, kinds: Mapping[str, str]) -> RunFacts:
    tasks = tuple(
        TaskFacts(
            task,
            kinds[task],
            () if KINDS[kinds[task]].is_number else _labels(kinds[task]),
            KINDS[kinds[task]].score_name(),
            train_sentences=40,
            train_tokens=400,
            scale=(0.0, 5.0) if KINDS[kinds[task]].is_number else None,
        )
        for task in config.tasks
    )
    rows = [(task, row) for task in config.tasks for row in _rows(kinds[task])]
    is_mrn = config.paradigm == "mrn"
    return run_facts(
        tasks=tasks,
        total_steps=10 * config.epochs,
        alignment=("exact" if config.alignment == "auto" else config.alignment) if is_mrn else None,
        label_names=tuple(f"{task}:{row}" for task, row in rows) if is_mrn else (),
        label_owners=tuple((task,) for task, _ in rows) if is_mrn else (),
        impossible=("task",) if config.alignment == "disjoint" else (),
    )


def _rows(kind: str) -> tuple[str, ...]:
    return KINDS[kind].rows(_labels(kind))


def _curves(config: RunConfig, random: np.random.Generator) -> Iterator[StepMetrics | EpochMetrics]:
    for step in range(1, 21):
        values = {(task, "loss"): float(random.random()) for task in (*config.tasks, TOTAL)}
        if config.paradigm == "mrn":
            values[TOTAL, "penalty"] = float(random.random())
        yield StepMetrics(step, step / 10, 0.1 * step, values)
    for epoch in (1, 2):
        scores = {(task, "score"): float(random.random()) for task in (*config.tasks, TOTAL)}
        yield EpochMetrics(10 * epoch, epoch, float(epoch), scores)


def _relations(config: RunConfig, kinds: Mapping[str, str], random: np.random.Generator) -> Relations:
    labels = sum(len(_rows(kinds[task])) for task in config.tasks)
    task, label = random.normal(size=(2, labels, labels))
    task = task[: len(config.tasks), : len(config.tasks)]
    factor = random.normal(size=(16, 3))
    return Relations(
        task @ task.T + np.eye(len(task)), label @ label.T + np.eye(labels), factor, feature_diagonal=0.1
    )


def _result(
    split: str, config: RunConfig, record: str, kinds: Mapping[str, str], random: np.random.Generator
) -> SplitResult:
    gold, predicted = {}, {}
    for task in config.tasks:
        labels = _labels(kinds[task])
        is_whole = KINDS[kinds[task]].reads != "words"
        lengths = [1] * 8 if is_whole else [3] * 4
        # One gold number leaves a correlation undefined.
        known = labels[:1] if record == "undefined" else labels
        gold[task] = [
            [known[(place + word) % len(known)] for word in range(n)] for place, n in enumerate(lengths)
        ]
        predicted[task] = [[str(random.choice(labels)) for _ in range(n)] for n in lengths]
    scores = tuple(
        score_task(task, kinds[task], gold[task], predicted[task], details=True) for task in config.tasks
    )
    if record == "without predictions":
        return SplitResult(split, 1, scores, {}, {})
    return SplitResult(split, 1, scores, predicted, gold)
