"""The records of two studies of relations: verdicts on simulated tasks, and relations beside gains.

`python -m tests.claims.relation_runs verdicts --seeds 1-20` (or `gains`) trains what the record lacks.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.config.typed import parse_values
from core.corpora import prepare
from core.evaluation.relation_verdicts import RelationVerdicts, relation_verdicts
from core.events import Event, RunFacts, Snapshot, SplitResult
from core.results.relation_gains import RankOverSeeds, rank_over_seeds, strongest_relations

_DATA = Path(__file__).parent / "data"
VERDICTS_FILE, GAINS_FILE = _DATA / "relation-verdicts.csv", _DATA / "relation-gains.csv"
VERDICT_COLUMNS = ("prior", "permuted", "seed", "first", "second", "correlation")
GAIN_COLUMNS = ("setting", "paradigm", "seed", "task", "label", "other", "correlation", "f1", "support")

REAL = "pos"
ALPHAS = (0.95, 0.7, 0.4, 0.2, 1 / 36, 1 / 36)
"""By simulated task, the chance that it keeps a word's real label; of 36 labels 1/36 is unrelated."""
SIMULATED = tuple(f"sim-{number}" for number in range(1, len(ALPHAS) + 1))
PRIORS = ("relational", "paper")
DRAWS = 200

_FROZEN = {"encoder": "minilm", "encoder_training": "frozen", "snapshots": 1}
SETTINGS = {
    "demo": {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "fraction": 0.05, "epochs": 20},
    "conll2003": {
        "corpus": "conll2003?dev=200&test=800",
        "tasks": ("pos", "chunk", "ner"),
        "fraction": 0.02,
        "epochs": 20,
    },
}
"""The settings of relations beside gains: real tasks on the same words, which cooccurrence relates."""


def verdict_config(prior: str, seed: int, permuted: str | None) -> RunConfig:
    """A run of POS on 600 words beside six simulated tasks of 1,500."""
    alphas = ",".join(f"{alpha:.4g}" for alpha in ALPHAS)
    return RunConfig.build(
        corpus=f"simulated:demo?task={REAL}&tasks={len(ALPHAS)}&alpha={alphas}&samples=1500&tokens=600",
        tasks=(REAL, *SIMULATED),
        paradigm="mrn",
        prior=prior,
        alignment="exact",
        seed=seed,
        permuted=permuted,
        **_FROZEN,
    )


def gain_config(setting: str, paradigm: str, seed: int) -> RunConfig:
    """A run of POS, chunks and NER; MRN learns the covariances of tasks and labels."""
    mrn = {"learn": ("task", "label"), "alignment": "cooccurrence"} if paradigm == "mrn" else {}
    return RunConfig.build(
        **_FROZEN | {"snapshots": None} | SETTINGS[setting] | mrn, paradigm=paradigm, seed=seed
    )


def trained(config: RunConfig) -> tuple[RunFacts, Snapshot | None, dict[str, SplitResult]]:
    """The facts of a run that is trained here, its last snapshot, and its results by split."""
    from core.training.trainer import train

    events: list[Event] = []
    with tempfile.TemporaryDirectory() as folder:
        train(
            config, prepare(config), sink=events.append, checkpoint=Checkpoint(Path(folder) / "1"), threads=1
        )
    (facts,) = (event for event in events if isinstance(event, RunFacts))
    snapshots = [event for event in events if isinstance(event, Snapshot)]
    results = {event.split: event for event in events if isinstance(event, SplitResult)}
    return facts, snapshots[-1] if snapshots else None, results


def _verdict_rows(prior: str, permuted: str, seed: int) -> Iterator[tuple[object, ...]]:
    config = verdict_config(prior, seed, permuted or None)
    _, snapshot, _ = trained(config)
    assert snapshot is not None
    matrix = snapshot.relations.correlation("task")
    for (i, first), (j, second) in itertools.combinations(enumerate(config.tasks), 2):
        yield prior, permuted, seed, first, second, f"{matrix[i, j]:.5f}"


@cache
def verdict_matrices(prior: str, permuted: str) -> dict[int, NDArray[np.float64]]:
    """The recorded correlations of tasks by seed, (7, 7)."""
    places = {task: place for place, task in enumerate((REAL, *SIMULATED))}
    matrices: dict[int, NDArray[np.float64]] = {}
    with VERDICTS_FILE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["prior"], row["permuted"]) == (prior, permuted):
                matrix = matrices.setdefault(int(row["seed"]), np.eye(len(places)))
                i, j = places[row["first"]], places[row["second"]]
                matrix[i, j] = matrix[j, i] = float(row["correlation"])
    return matrices


def verdicts(prior: str, seeds: Sequence[int], *, with_controls: bool) -> RelationVerdicts:
    """The verdicts on POS and each simulated task over these recorded seeds."""
    runs, controls = (verdict_matrices(prior, permuted) for permuted in ("", REAL))
    size = 1 + len(SIMULATED)
    tested = np.zeros((size, size), dtype=bool)
    tested[0, 1:] = tested[1:, 0] = True
    control = np.stack([controls[seed] for seed in seeds]) if with_controls else None
    return relation_verdicts(np.stack([runs[seed] for seed in seeds]), tested, control)


def recorded_seeds() -> list[int]:
    """The seeds of which both priors have a run and a control."""
    seeds = [set(verdict_matrices(prior, permuted)) for prior in PRIORS for permuted in ("", REAL)]
    return sorted(set.intersection(*seeds))


@cache
def drawn_verdicts(prior: str, *, with_controls: bool) -> NDArray[np.str_]:
    """(DRAWS, tasks) the verdicts of as many draws of ten of the recorded seeds."""
    numbers, seeds = np.random.default_rng(1), recorded_seeds()
    draws = [sorted(numbers.choice(seeds, 10, replace=False).tolist()) for _ in range(DRAWS)]
    return np.array([verdicts(prior, draw, with_controls=with_controls).verdict[0, 1:] for draw in draws])


def share(prior: str, basis: str, verdict: str, kind: str) -> float:
    """The percentage of drawn cells with that verdict, of tasks of chance or with α of 0.7 or more."""
    alphas = np.array(ALPHAS)
    cells = alphas < 0.1 if kind == "chance" else alphas >= 0.7
    drawn = drawn_verdicts(prior, with_controls=basis == "controls")[:, cells]
    return 100 * float(np.mean(drawn == verdict))


def gains(setting: str) -> tuple[RankOverSeeds, list[float]]:
    """Spearman's ρ of relation and gain over the recorded seeds, and the mean gain over labels of each."""
    f1: dict[tuple[str, int], dict[tuple[str, str], tuple[str, float]]] = {}
    with GAINS_FILE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["setting"] == setting and int(row["support"]):
                labels = f1.setdefault((row["paradigm"], int(row["seed"])), {})
                labels[row["task"], row["label"]] = row["correlation"], float(row["f1"])
    pairs, means = [], []
    for (paradigm, seed), labels in f1.items():
        base = f1.get(("mtl", seed), {})
        if paradigm == "mrn" and base:
            paired = [key for key, (correlation, _) in labels.items() if correlation and key in base]
            gained = [labels[key][1] - base[key][1] for key in paired]
            pairs.append(([abs(float(labels[key][0])) for key in paired], gained))
            means.append(float(np.mean(gained)))
    rank = rank_over_seeds(pairs)
    assert rank is not None
    return rank, means


def _gain_rows(setting: str, paradigm: str, seed: int) -> Iterator[tuple[object, ...]]:
    """For each label its F1 on test, and of MRN its strongest correlation with a label of another task."""
    config = gain_config(setting, paradigm, seed)
    facts, snapshot, results = trained(config)
    strongest = {} if snapshot is None else strongest_relations(facts, config.tasks, snapshot.relations)
    for score in results["test"].scores:
        for label, line in score.report.items():
            other, correlation = strongest.get((score.task, label), ("", None))
            shown = "" if correlation is None else f"{correlation:.5f}"
            f1, support = line["f1"], int(line["support"])
            yield setting, paradigm, seed, score.task, label, other, shown, f"{f1:.5f}", support


Run = tuple[str, str, int]


def _add(
    path: Path, columns: Sequence[str], runs: Sequence[Run], rows: Callable[..., Iterator[tuple[object, ...]]]
) -> None:
    """Trains the runs that the record lacks; a run is named by its first three columns."""
    done = set()
    if path.exists():
        with path.open(encoding="utf-8") as file:
            done = {tuple(row[:3]) for row in csv.reader(file)}
    else:
        path.write_text(",".join(columns) + "\n", encoding="utf-8")
    for run in runs:
        if tuple(map(str, run)) not in done:
            made = list(rows(*run))
            with path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(made)
            print(*run, flush=True)


def main() -> None:
    """Trains the runs that the record lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=("verdicts", "gains"))
    parser.add_argument("--seeds", default="1-10")
    asked = parser.parse_args()
    seeds = parse_values("seed", asked.seeds)
    if asked.study == "verdicts":
        runs = [(prior, permuted, seed) for seed in seeds for prior in PRIORS for permuted in ("", REAL)]
        _add(VERDICTS_FILE, VERDICT_COLUMNS, runs, _verdict_rows)
    else:
        runs = [
            (setting, paradigm, seed) for setting in SETTINGS for seed in seeds for paradigm in ("mtl", "mrn")
        ]
        _add(GAINS_FILE, GAIN_COLUMNS, runs, _gain_rows)


if __name__ == "__main__":
    main()
