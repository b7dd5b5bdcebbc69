"""A store full of plausible runs, made through the real Store. Synthetic numbers: for tests of the pages
only.

Run as a script (`python -m tests.pages.filled_store`) it fills the store of MRNLAB_HOME, to look at pages.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from unittest.mock import patch

import numpy as np

from core.config import RunConfig
from core.corpora import load
from core.corpora.types import Split
from core.events import RunFacts, Snapshot, SplitResult, TaskFacts, TaskScore
from core.metrics import TOTAL, EpochMetrics, StepMetrics, relation_metrics
from core.mrn.relations import Relations, correlation
from core.paths import log_path
from core.recording.owner import this_process
from core.registry import MODES
from core.store import ErrorInfo, RunState, Store
from core.tasks import score_task, scores
from core.tasks.confusion import label_confusion
from core.tasks.spans import spans
from tests.making import Clock

TASKS = ("pos", "chunk", "ner")
_POS = [
    "NN", "NNP", "IN", "DT", "JJ", "NNS", "VBD", "CD", "VB", "CC", "RB", "TO",
    "VBN", "VBZ", "PRP", "VBG", "VBP", "MD", "POS", "PRP$", "WDT", "JJR", "WP",
    "RP", "JJS", "EX", "WRB", "RBR", ".", ",", ":", "(", ")",
]  # fmt: skip
_CHUNK = ["O", *(f"{p}-{t}" for t in ("NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT") for p in "BI")]
_NER = ["O", *(f"{p}-{t}" for t in ("LOC", "MISC", "ORG", "PER") for p in "BI")]
LABELS = {"pos": tuple(_POS), "chunk": tuple(_CHUNK), "ner": tuple(_NER)}
SCHEMES = {"pos": "plain", "chunk": "iob2", "ner": "iob2"}
FEATURES = 384
STEPS_PER_EPOCH = 75
_LEVEL = {"pos": 0.957, "chunk": 0.921, "ner": 0.842}
_GAIN = {
    "stl": {"pos": 0.0, "chunk": 0.0, "ner": 0.0},
    "mtl": {"pos": 0.002, "chunk": 0.006, "ner": 0.004},
    "mrn": {"pos": 0.003, "chunk": 0.009, "ner": 0.013},
}
_NOISE = {"pos": 0.0007, "chunk": 0.0015, "ner": 0.004}


@dataclass
class Filled:
    """The numbers of the runs of each kind."""

    finished: list[int] = field(default_factory=list)
    mrn: list[int] = field(default_factory=list)
    disjoint: list[int] = field(default_factory=list)
    vanished: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)


def fill(
    url: str | None = None,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    active: bool = True,
    broken: bool = True,
) -> Filled:
    """Fills the store at that address (the default one) and returns what was made."""
    clock = Clock(time.time() - 4 * 3600)
    store = Store.open(url, clock=clock)
    with contextlib.closing(store), store.transaction():
        filled = Filled()
        for config in _configs(seeds):
            run_id = _finished(store, clock, config)
            filled.finished.append(run_id)
            if config.paradigm == "mrn":
                filled.mrn.append(run_id)
        filled.disjoint.append(_finished(store, clock, _mrn(alignment="disjoint", seed=1)))
        filled.vanished.append(
            _finished(store, clock, _mrn(prior="paper", **{"lambda": 0.05}, seed=1), vanished=True)
        )
        filled.mrn += [*filled.disjoint, *filled.vanished]
        filled.finished += [*filled.disjoint, *filled.vanished]
        if broken:
            filled.failed.append(_failed(store, clock))
            filled.lost.append(_ended_early(store, clock, RunState.LOST))
            filled.cancelled.append(_ended_early(store, clock, RunState.CANCELLED))
        clock.now = time.time() - 75
        if active:
            filled.live.append(_live(store, clock, _mrn(6), 260))
            filled.queued += store.add_runs([_build("mtl", TASKS, 9), _mrn(seed=9)])
        return filled


def fill_pairs(url: str | None = None, seeds: Sequence[int] = (1, 2, 3)) -> list[int]:
    """Adds MTL of every pair of tasks to a store that was filled for these seeds; returns the runs."""
    clock = Clock(time.time() - 3600)
    store = Store.open(url, clock=clock)
    with contextlib.closing(store), store.transaction():
        return [
            _finished(store, clock, _build("mtl", pair, seed))
            for seed in seeds
            for pair in itertools.combinations(TASKS, 2)
        ]


def fill_added(url: str | None = None) -> list[int]:
    """Adds two finished runs that add a task to runs 1 and 2 of a store; returns them."""
    clock = Clock(time.time() - 3600)
    store = Store.open(url, clock=clock)
    with contextlib.closing(store), store.transaction():
        return [
            _finished(store, clock, _build("mrn", ("ner",), 1, prior="predicted", added_to=run))
            for run in ("1", "2")
        ]


def _build(paradigm: str, tasks: Sequence[str], seed: int, **more: object) -> RunConfig:
    values = {"corpus": "demo", "encoder": "minilm", "encoder_training": "frozen", "epochs": 8, **more}
    return RunConfig.build(paradigm=paradigm, tasks=tuple(tasks), seed=seed, **values)


def _mrn(seed: int, **more: object) -> RunConfig:
    learned = {"alignment": "cooccurrence", "lambda": 0.01, "learn": MODES}
    return _build("mrn", TASKS, seed, **{**learned, **more})


def _configs(seeds: Sequence[int]) -> Iterable[RunConfig]:
    for seed in seeds:
        for strength in (0.01, 0.1):
            yield _mrn(seed, **{"lambda": strength})
        yield _build("mtl", TASKS, seed)
        for task in TASKS:
            yield _build("stl", (task,), seed)


def _started(store: Store, clock: Clock, config: RunConfig) -> tuple[int, int]:
    """A claimed run and its number of steps."""
    (run_id,) = store.add_runs([config], sweep="filled")
    clock.now += 2
    claimed = store.claim(this_process(), run_id=run_id)
    assert claimed is not None
    assert claimed.id == run_id
    store.set_facts(run_id, _facts(config))
    with open(log_path(run_id), "w", encoding="utf-8") as log:
        log.write(f"run {run_id}: read corpus {config.corpus}, 1,200 training sentences\n")
        log.writelines(
            f"epoch {epoch}: dev {0.7 + 0.02 * epoch:.4f}\n" for epoch in range(1, config.epochs + 1)
        )
    return run_id, config.epochs * STEPS_PER_EPOCH


def _facts(config: RunConfig) -> RunFacts:
    names = tuple(f"{task}:{label}" for task in config.tasks for label in LABELS[task])
    owners = tuple((task,) for task in config.tasks for _ in LABELS[task])
    is_mrn = config.paradigm == "mrn"
    disjoint = config.alignment == "disjoint"
    return RunFacts(
        device="cpu",
        precision="fp32",
        threads=2,
        versions={"torch": "2.13.0", "transformers": "5.23.0"},
        tasks=tuple(
            TaskFacts(
                name=task,
                scheme=SCHEMES[task],
                labels=LABELS[task],
                score_name="f1_conll" if SCHEMES[task] == "iob2" else "accuracy",
                train_sentences=1200,
                train_tokens=15_800,
                unseen={"test": ("B-MISC",)} if task == "ner" else {},
            )
            for task in config.tasks
        ),
        total_steps=config.epochs * STEPS_PER_EPOCH,
        steps_per_epoch=STEPS_PER_EPOCH,
        features=FEATURES,
        dev_from_train=False,
        selected_by="score",
        alignment=config.alignment,
        alignment_reason="The tasks are annotated on the same sentences." if is_mrn else None,
        label_names=names if is_mrn else (),
        label_owners=owners if is_mrn else (),
        impossible=("task",) if disjoint else (),
        cooccurrence=_gold(names) if is_mrn and not disjoint else (),
        notes=("The test sentences of ner have 1 label that training lacks: B-MISC.",)
        if "ner" in config.tasks
        else (),
    )


def _gold(names: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    random = np.random.default_rng(11)
    factor = random.normal(size=(len(names), 7))
    return tuple(map(tuple, np.round(correlation(factor @ factor.T + 2 * np.eye(len(names))), 3).tolist()))


def _entropy(config: RunConfig) -> list[int]:
    return [config.seed, len(config.tasks), int(1000 * (config.lambda_ or 0))]


def _random(config: RunConfig) -> np.random.Generator:
    return np.random.default_rng(_entropy(config))


def _level(config: RunConfig, task: str, random: np.random.Generator) -> float:
    gain = _GAIN[config.paradigm][task] * (0.4 if (config.lambda_ or 0) > 0.05 else 1.0)
    return _LEVEL[task] + gain + _NOISE[task] * float(random.normal())


def _train(
    store: Store, clock: Clock, run_id: int, config: RunConfig, upto: int, *, vanished: bool = False
) -> None:
    """Metrics, snapshots and progress of the first `upto` steps."""
    random = _random(config)
    total = config.epochs * STEPS_PER_EPOCH
    levels = {task: _level(config, task, random) for task in config.tasks}
    start = clock.now
    batch: list[StepMetrics | EpochMetrics] = []
    for step in range(1, upto + 1):
        seconds = 0.035 * step
        values = {
            (task, "loss"): float((2.6 - levels[task]) * np.exp(-step / 60) + 0.11 + 0.05 * random.random())
            for task in config.tasks
        }
        if config.paradigm == "mrn":
            values[TOTAL, "penalty"] = (
                0.08 * np.exp(-step / 4) if vanished else 0.03 * (1 - np.exp(-step / 90))
            )
        values[TOTAL, "loss"] = sum(values.values())
        values[TOTAL, "lr"] = 2e-3 * (1 - step / total)
        batch.append(StepMetrics(step, step / STEPS_PER_EPOCH, seconds, values))
        if step % STEPS_PER_EPOCH == 0:
            epoch = step // STEPS_PER_EPOCH
            scores = {
                (task, "score"): levels[task] - 0.22 * float(np.exp(-epoch / 1.6)) for task in config.tasks
            }
            scores[TOTAL, "score"] = float(np.mean(list(scores.values())))
            batch.append(EpochMetrics(step, epoch, seconds, scores))
    store.add_metrics(run_id, batch)
    if config.paradigm == "mrn" and config.added_to is None:
        for step in np.unique(np.linspace(1, total, 20).astype(int)):
            if step <= upto:
                snapshot = _snapshot(config, int(step), step / total)
                store.add_snapshot(run_id, snapshot)
                measured = relation_metrics(
                    snapshot.step,
                    snapshot.epoch,
                    0.035 * snapshot.step,
                    snapshot.relations,
                    objective=-1e4 * (1 - np.exp(-3 * step / total)),
                )
                store.add_metrics(run_id, [measured])
    clock.now = start + 0.035 * upto
    store.set_progress(run_id, upto, upto / STEPS_PER_EPOCH, total)


def _snapshot(config: RunConfig, step: int, done: float) -> Snapshot:
    names = [label for task in config.tasks for label in LABELS[task]]
    edges = np.cumsum([0, *(len(LABELS[task]) for task in config.tasks)])
    target = np.array([[1.0, 0.62, 0.41], [0.62, 1.0, -0.18], [0.41, -0.18, 1.0]])
    random = np.random.default_rng([5, config.seed])
    # Seeds differ a little, and a larger λ makes relations larger.
    strength = min(config.lambda_ or 0.0, 0.1)
    shift = np.tril(0.04 * random.normal(size=(3, 3)) + 0.5 * (strength - 0.01), -1)
    target += shift + shift.T
    factor = random.normal(size=(len(names), 5))
    label = correlation(factor @ factor.T + 1.5 * np.eye(len(names)))
    grown = 1 - np.exp(-3 * done)
    task = np.eye(3) + grown * (target - np.eye(3))
    label = np.eye(len(names)) + grown * (0.8 + 2 * strength) * (label - np.eye(len(names)))
    if config.alignment == "disjoint":
        task = np.eye(3)
        mask = np.zeros_like(label)
        for a, b in itertools.pairwise(edges):
            mask[a:b, a:b] = 1
        label = label * mask
    smooth = np.cumsum(random.normal(size=(FEATURES, 24)), axis=0) / 12
    relations = Relations(
        task=task.astype(np.float32),
        label=label.astype(np.float32),
        feature_factor=(grown * smooth).astype(np.float32),
        feature_diagonal=0.6,
    )
    return Snapshot(step, step / STEPS_PER_EPOCH, relations)


def _finished(store: Store, clock: Clock, config: RunConfig, *, vanished: bool = False) -> int:
    run_id, total = _started(store, clock, config)
    _train(store, clock, run_id, config, total, vanished=vanished)
    random = _random(config)
    levels = {task: _level(config, task, random) for task in config.tasks}
    drops: dict[Split, float] = {"dev": 0.0, "test": 0.012}
    for split, drop in drops.items():
        shares = {task: levels[task] - drop for task in config.tasks}
        store.add_result(run_id, _result(split, config.epochs - 1, shares, _score, _entropy(config)))
    clock.now += 1
    # A folder that is no checkpoint: opening it must give a sentence, not a trace.
    checkpoint = str(log_path(run_id).parent / f"no-checkpoint-{run_id}")
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=config.epochs - 1, checkpoint=checkpoint)
    if vanished:
        store.add_event(run_id, "note", "The penalty has vanished: from step 60 on this run trains as MTL.")
    return run_id


def _score(task: str, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TaskScore:
    if SCHEMES[task] == "iob2":
        with patch.object(scores, "find_spec", return_value=None):  # the same report, counted, in no time
            return score_task(task, "iob2", gold, predicted)
    score = score_task(task, "plain", gold, predicted, details=False)
    # The report from the confusions: seqeval's reading of POS, which no page shows, takes seconds in all.
    confusion = label_confusion(gold, predicted)
    support, guesses, right = (
        confusion.counts.sum(axis=1),
        confusion.counts.sum(axis=0),
        np.diag(confusion.counts),
    )
    report = {
        label: {
            "precision": float(right[place] / max(guesses[place], 1)),
            "recall": float(right[place] / max(support[place], 1)),
            "f1": float(2 * right[place] / max(guesses[place] + support[place], 1)),
            "support": int(support[place]),
        }
        for place, label in enumerate(confusion.gold)
    }
    return replace(score, figures={**score.figures, "seqeval_f1": score.score - 0.01}, report=report)


# Predictions with as many mistakes as a score asks for; hard words are hard for every run, as for real ones


Labels = list[list[str]]

_TAKEN_FOR = {
    "NN": ("JJ", "NNP", "VB"), "NNP": ("NN", "JJ", "NNS"), "JJ": ("NN", "VBN", "RB"), "NNS": ("VBZ", "NN"),
    "VBD": ("VBN", "VB"), "VBN": ("VBD", "JJ"), "VB": ("VBP", "NN"), "VBP": ("VB",), "VBZ": ("NNS",),
    "IN": ("RP", "RB", "TO"), "RP": ("IN", "RB"), "RB": ("JJ", "IN"), "CD": ("NN", "JJ"), "DT": ("IN", "PRP"),
    "LOC": ("ORG", "PER"), "ORG": ("LOC", "PER", "MISC"), "PER": ("ORG", "LOC"), "MISC": ("ORG", "LOC"),
    "NP": ("VP", "ADJP"), "VP": ("NP",), "PP": ("SBAR", "PRT"), "SBAR": ("PP",), "PRT": ("ADVP", "PP"),
    "ADVP": ("ADJP", "NP", "PRT"), "ADJP": ("NP", "ADVP"),
}  # fmt: skip
_TRICKY = {"JJ": 1.5, "VBN": 2.0, "RP": 2.5, "MISC": 1.2, "ORG": 0.6, "ADJP": 2.0, "PRT": 2.0, "ADVP": 1.0}


@cache
def _annotated(split: Split, task: str) -> Labels:
    return [list(sentence.labels[task]) for sentence in load("demo").split(split)]


def _result(
    split: Split,
    epoch: int,
    shares: dict[str, float],
    score: Callable[[str, Labels, Labels], TaskScore],
    seed: Sequence[int],
) -> SplitResult:
    """The result of a split with that share of each task's words or spans right, scored by `score`."""
    gold = {task: _annotated(split, task) for task in shares}
    random = np.random.default_rng([*seed, len(split)])
    predicted = {
        task: (_plain if task == "pos" else _spans)(gold[task], share, random)
        for task, share in shares.items()
    }
    scores = tuple(score(task, gold[task], predicted[task]) for task in shares)
    return SplitResult(split, epoch, scores, predicted, gold)


def _hardest(names: Sequence[str], share: float, random: np.random.Generator) -> list[int]:
    """The places of the mistakes: most of them the same in every run."""
    always = np.random.default_rng(len(names)).gumbel(size=len(names))
    hardness = always + 0.8 * random.gumbel(size=len(names)) + [_TRICKY.get(name, 0.0) for name in names]
    hardest: list[int] = np.argsort(-hardness)[: round((1 - share) * len(names))].tolist()
    return hardest


def _other(name: str, random: np.random.Generator) -> str:
    return str(random.choice(_TAKEN_FOR.get(name, ("NN", "NNP"))))


def _plain(gold: Labels, share: float, random: np.random.Generator) -> Labels:
    predicted = [list(labels) for labels in gold]
    places = [(row, word) for row, labels in enumerate(gold) for word in range(len(labels))]
    for wrong in _hardest([gold[row][word] for row, word in places], share, random):
        row, word = places[wrong]
        predicted[row][word] = _other(gold[row][word], random)
    return predicted


def _spans(gold: Labels, share: float, random: np.random.Generator) -> Labels:
    """As many spans predicted as annotated, so that the share found is the F1."""
    predicted = [list(labels) for labels in gold]
    places = [(row, span) for row, labels in enumerate(gold) for span in spans(labels)]
    free = [
        (row, word) for row, labels in enumerate(gold) for word, label in enumerate(labels) if label == "O"
    ]
    random.shuffle(free)
    for wrong in _hardest([span.type for _, span in places], share, random):
        row, span = places[wrong]
        labels, kind = predicted[row], random.random()
        if kind < 0.3 and free:
            labels[span.start : span.end] = ["O"] * (span.end - span.start)
            instead, word = free.pop()
            predicted[instead][word] = f"B-{_other(span.type, random)}"
        elif kind < 0.5 and span.end - span.start > 1:
            labels[span.end - 1] = "O"
        else:
            other = _other(span.type, random)
            labels[span.start : span.end] = [f"B-{other}", *[f"I-{other}"] * (span.end - span.start - 1)]
    return predicted


def _failed(store: Store, clock: Clock) -> int:
    config = _build("mrn", TASKS, 6, prior="paper", alignment="exact", **{"lambda": 1.0})
    run_id = _live(store, clock, config, 140)
    trace = 'Traceback (most recent call last):\n  File "trainer.py", line 88, in step\nNotFinite: loss'
    message = "The loss of chunk is not a number at step 140; lower lr_heads."
    store.finish(run_id, RunState.FAILED, error=ErrorInfo("NotFinite", message, trace, 1))
    return run_id


def _ended_early(store: Store, clock: Clock, state: RunState) -> int:
    run_id = _live(store, clock, _build("mtl", TASKS, 7 if state is RunState.LOST else 8), 310)
    if state is RunState.LOST:
        store.mark_lost(run_id, "The worker stopped answering; its process 4711 is gone.")
    else:
        store.request_stop(run_id)
        store.finish(run_id, state)
    return run_id


def _live(store: Store, clock: Clock, config: RunConfig, steps: int) -> int:
    run_id, _ = _started(store, clock, config)
    _train(store, clock, run_id, config, steps)
    return run_id


if __name__ == "__main__":
    print(fill())
