"""Predictors of the gains of a group of runs, and how accurate each is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.corpora import prepare
from core.corpora.loading import read
from core.errors import CorpusError
from core.metrics import LOSS
from core.models.word_vectors import GLOVE, lookup, read_vectors
from core.store import Run, RunState, Store
from core.transfer.features import Features, curve_features, data_features, label_ami
from core.transfer.gains import Pair
from core.transfer.predictors import (
    ALL_FEATURES,
    AMI,
    CORRELATION,
    COSINE,
    CROSS_VALIDATION,
    LEFT_OUT,
    PLANTED,
    Coefficient,
    Contrast,
    Judgement,
    Pairs,
    Predictor,
    baselines,
    coefficients,
    feature_predictors,
    flat_beside_steep,
    judge,
    left_out_probabilities,
    single_number,
)
from jobs.reports.transfer import PairGroup, run_gradients


@dataclass(frozen=True)
class Numbers:
    """A number for each pair (main, aux) that has one, and the seconds of computing them, where known."""

    by_pair: Mapping[Pair, float]
    seconds: float | None = None


@dataclass(frozen=True)
class Evidence:
    """The evidence on a group's pairs: 14 features of each task, in the mean over seeds, and numbers.

    `judgements` has each predictor in both schemes, `probabilities` the probability of a gain by predictor
    and pair (tasks left out), `coefficients` the weights of all features, `flat_beside_steep` a test of the
    published hypothesis.
    """

    features: Mapping[str, Features]
    numbers: Mapping[str, Numbers]
    predictors: tuple[Predictor, ...]
    judgements: tuple[Judgement, ...]
    probabilities: Mapping[str, Mapping[Pair, float]]
    coefficients: tuple[Coefficient, ...]
    flat_beside_steep: Contrast | None


def evidence(store: Store, group: PairGroup) -> Evidence:
    """Computes the evidence on the group's pairs from the runs of the store, which takes seconds."""
    features, data_seconds, curve_seconds = _task_features(store, group)
    joint = store.runs(group.joint)
    numbers = {
        AMI: _label_amis(group),
        CORRELATION: _numbers(
            group, _mrn_runs(store, group), lambda run: store.relations(run.id)[1].correlation("task")
        ),
        COSINE: _numbers(group, joint, lambda run: run_gradients(store, run)),
        PLANTED: _planted(store, group),
    }
    complete = Pairs.from_gains(
        {pair: 100 * gain.mean for pair, gain in group.gains.pairs.items() if features.keys() >= set(pair)}
    )
    predictors = (
        *baselines(complete),
        *feature_predictors(complete, features, data_seconds, curve_seconds),
        *(
            single_number(name, complete, measure.by_pair, measure.seconds)
            for name, measure in numbers.items()
            if measure.by_pair
        ),
    )
    judgements = tuple(
        judge(complete, predictor, scheme)
        for scheme in (CROSS_VALIDATION, LEFT_OUT)
        for predictor in predictors
    )
    fitted = {predictor.name: predictor for predictor in predictors if predictor.features}
    probabilities = {name: left_out_probabilities(complete, each) for name, each in fitted.items()}
    full = fitted[ALL_FEATURES]
    weights = coefficients(complete, full) if full.has_value.any() else ()
    contrast = flat_beside_steep(complete, features)
    return Evidence(features, numbers, predictors, judgements, probabilities, weights, contrast)


def _task_features(store: Store, group: PairGroup) -> tuple[dict[str, Features], float, float]:
    """The features of the tasks trained alone, in the mean over seeds, and two times in seconds.

    The times are those of computing the features of the data, and of training for the features of the curves,
    for all tasks and one seed.
    """
    ids = [run_id for by_seed in group.alone.values() for run_id in by_seed.values()]
    runs = {run.id: run for run in store.runs(ids)}
    keys = {(run.id, LOSS.key(run.config.tasks[0])): -1 for run in runs.values()}
    curves = {series.run_id: series for series in store.metrics_since(keys)}
    words = _words_of(group.config.vectors or GLOVE)
    features: dict[str, Features] = {}
    data_seconds = curve_seconds = 0.0
    for task, by_seed in group.alone.items():
        values, notes = [], dict[str, None]()
        for run_id in by_seed.values():
            began = time.perf_counter()
            data = data_features(
                prepare(runs[run_id].config), task, lambda word: lookup(word, words) is not None
            )
            data_seconds += (time.perf_counter() - began) / len(by_seed)
            curve_seconds += (runs[run_id].seconds or 0.0) / len(by_seed)
            curve = curves.get(run_id)
            fitted = curve_features([], []) if curve is None else curve_features(curve.step, curve.value)
            values.append(data | dict(fitted.values))
            notes |= dict.fromkeys(fitted.notes)
        features[task] = Features(dict(pd.DataFrame(values).mean()), tuple(notes))
    return features, data_seconds, curve_seconds


@lru_cache(maxsize=1)
def _words_of(vectors: str) -> Mapping[str, int]:
    """The words that have a vector, which takes seconds to read."""
    return dict.fromkeys(read_vectors(vectors, lambda word: True).words, 0)


def _label_amis(group: PairGroup) -> Numbers:
    """The AMI of each pair of tasks on the words that both label."""
    began = time.perf_counter()
    try:
        corpus = read(group.config.corpus, group.config.columns)
    except CorpusError:
        return Numbers({})
    names = {task.name for task in corpus.tasks}
    amis: dict[Pair, float] = {}
    for main, aux in group.gains.pairs:
        if {main, aux} <= names:
            amis[main, aux] = amis[aux, main] if (aux, main) in amis else label_ami(corpus, main, aux)
    finite = {pair: ami for pair, ami in amis.items() if np.isfinite(ami)}
    return Numbers(finite, time.perf_counter() - began)


def _planted(store: Store, group: PairGroup) -> Numbers:
    """The AMI of simulated tasks from the facts of their runs; empty for other corpora."""
    ami: dict[Pair, float] = {}
    for run in store.runs_with_facts([next(iter(runs.values())) for runs in group.beside]):
        if run.facts and (planted := run.facts.planted):
            for main, row in zip(planted.tasks, planted.ami, strict=True):
                ami |= {(main, aux): value for aux, value in zip(planted.tasks, row, strict=True)}
    return Numbers({pair: ami[pair] for pair in group.gains.pairs if pair in ami})


def _mrn_runs(store: Store, group: PairGroup) -> list[Run]:
    """The MRN runs that learned relations of all the group's tasks on the same corpus."""
    return [
        run
        for run in store.runs(states={RunState.SUCCEEDED})
        if run.config_problem is None
        and run.config.paradigm == "mrn"
        and run.config.corpus == group.config.corpus
        and {*group.gains.tasks} <= {*run.config.tasks}
        and "task" in (run.config.learn or ())
        and store.snapshots(run.id)
    ]


def _mean_of_runs(runs: Sequence[Run], matrix_of: Callable[[Run], NDArray[Any]]) -> dict[Pair, float]:
    """The mean over runs of a matrix of their tasks, by pair, where a run has a number."""
    matrices = [pd.DataFrame(matrix_of(run), run.config.tasks, run.config.tasks) for run in runs]
    mean: dict[Any, Any] = pd.concat(matrices).groupby(level=0).mean().to_dict("index") if matrices else {}
    return {
        (main, aux): value
        for main, row in mean.items()
        for aux, value in row.items()
        if main != aux and np.isfinite(value)
    }


def _numbers(group: PairGroup, runs: Sequence[Run], matrix_of: Callable[[Run], NDArray[Any]]) -> Numbers:
    mean = _mean_of_runs(runs, matrix_of)
    seconds = [run.seconds for run in runs if run.seconds is not None]
    return Numbers(
        {pair: mean[pair] for pair in group.gains.pairs if pair in mean},
        float(np.mean(seconds)) if seconds else None,
    )
