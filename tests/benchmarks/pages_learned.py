"""What the runs of `pages_store` have learned and know of their data: covariances and facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.mrn.relations import Relations, correlation
from core.store.snapshot_codec import encode
from core.training.events import RunFacts, TaskFacts
from core.training.relation_metrics import relation_metrics
from tests.benchmarks.pages_plan import LABELS, SCHEMES, TASKS, Planned

__all__ = ["Learned", "known"]

_SENTENCES = {"demo": 1200, "conll2003": 14_041}


class Learned:
    """Covariances of MRN runs over training: drawn and encoded once, stored for many runs."""

    MOST = 50

    def __init__(self) -> None:
        learned = [_relations(turn / self.MOST, 768, 20) for turn in range(1, self.MOST + 1)]
        self._encoded = [encode(one) for one in learned]
        self._numbers = [
            {
                name: value
                for (_, name), value in relation_metrics(1, 0.1, 1.0, one, -50.0 * turn).values.items()
            }
            for turn, one in enumerate(learned)
        ]
        self._last = encode(_relations(1.0, 384, 3))

    def rows(self, run_id: int, run: Planned) -> Iterator[dict[str, Any]]:
        """Rows of `snapshots`; a run of an old launch has kept the last alone, and of fewer features."""
        for turn, step in enumerate(self._steps(run).tolist()):
            held = self._last if run.snapshots == 1 else self._encoded[turn]
            yield {
                "run_id": run_id,
                "step": step,
                "epoch": run.config.epochs * step / run.total_steps,
                **held,
            }

    def curves(self, run: Planned) -> Iterator[tuple[str, Any, Any]]:
        """The covariances in numbers: name, steps, values."""
        if run.snapshots > 1:
            for name in self._numbers[0]:
                values = np.array([one[name] for one in self._numbers[: run.snapshots]])
                yield name, self._steps(run), values

    def _steps(self, run: Planned) -> Any:
        return np.linspace(run.steps / run.snapshots, run.steps, run.snapshots).astype(int)


def _relations(done: float, features: int, rank: int) -> Relations:
    """The same tasks, labels and features each time, related the more the more is done."""
    random = np.random.default_rng(3)
    size = sum(len(LABELS[task]) for task in TASKS)
    task = np.array([[1.0, 0.62, 0.41], [0.62, 1.0, -0.18], [0.41, -0.18, 1.0]])
    factor = random.normal(size=(size, 6))
    label = correlation(factor @ factor.T + 2 * np.eye(size))
    grown = 1 - np.exp(-3 * done)
    return Relations(
        np.eye(3) + grown * (task - np.eye(3)),
        np.eye(size) + grown * (label - np.eye(size)),
        grown * np.cumsum(random.normal(size=(features, rank)), axis=0) / 20,
        0.6,
    )


def known(run: Planned, *, with_cooccurrence: bool) -> RunFacts:
    """What is known when the run begins; the correlations of gold labels, 30 kB, only where asked for."""
    config = run.config
    is_mrn = config.paradigm == "mrn"
    names = tuple(f"{task}:{label}" for task in config.tasks for label in LABELS[task])
    base = config.corpus.partition(":")[2].partition("?")[0] or config.corpus
    sentences = _SENTENCES[base]
    return RunFacts(
        device="cpu",
        precision="fp32",
        threads=2,
        versions={"torch": "2.13.0", "transformers": "5.23.0"},
        tasks=tuple(
            TaskFacts(
                task,
                SCHEMES[task],
                LABELS[task],
                "f1_conll" if SCHEMES[task] == "iob2" else "accuracy",
                train_sentences=sentences,
                train_tokens=14 * sentences,
            )
            for task in config.tasks
        ),
        total_steps=run.total_steps,
        steps_per_epoch=run.total_steps // config.epochs,
        features=768 if run.snapshots > 1 else 384,
        dev_from_train=False,
        alignment=config.alignment,
        alignment_reason="The tasks are annotated on the same sentences." if is_mrn else None,
        label_names=names if is_mrn else (),
        label_owners=tuple((name.partition(":")[0],) for name in names) if is_mrn else (),
        impossible=("task",) if config.alignment == "disjoint" else (),
        cooccurrence=_together(len(names)) if is_mrn and with_cooccurrence else (),
    )


def _together(size: int) -> tuple[tuple[float, ...], ...]:
    factor = np.random.default_rng(11).normal(size=(size, 7))
    return tuple(map(tuple, np.round(correlation(factor @ factor.T + 2 * np.eye(size)), 3).tolist()))
