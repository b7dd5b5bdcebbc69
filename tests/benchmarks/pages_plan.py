"""Which runs the benchmark of the pages has: 10,000, five seeds of each of 2,000 configurations.

The last three launches are what the pages are measured on: `told` has predictions and 50 snapshots a run,
`long` 5,000 points a curve, and `live` trains while one looks. No run is trained: the numbers are drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from core.config import RunConfig
from core.store import RunState

__all__ = ["CORPORA", "LABELS", "LONG_STEPS", "SCHEMES", "SEEDS", "TASKS", "Planned", "plan", "short_steps"]

SEEDS = (1, 2, 3, 4, 5)
LONG_STEPS = 5000
EPOCHS = 5
_CONFIGURATIONS = 2000
_POINTS_A_RUN = 1065

TASKS = ("pos", "chunk", "ner")
SCHEMES = {"pos": "plain", "chunk": "iob2", "ner": "iob2"}
_POS = (
    "NN NNP IN DT JJ NNS , . VBD CD RB VB CC TO VBN VBZ PRP VBG VBP MD POS PRP$ $ `` '' : ( ) WDT JJR RP "
    "NNPS WP WRB JJS RBR EX RBS PDT FW WP$ UH SYM NN|SYM LS #"
)
_CHUNK = ("NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT", "CONJP", "INTJ", "LST", "UCP")
_NER = ("LOC", "MISC", "ORG", "PER")
LABELS = {
    "pos": tuple(_POS.split()),
    "chunk": ("O", *(f"{prefix}-{kind}" for kind in _CHUNK for prefix in "BI")),
    "ner": ("O", *(f"{prefix}-{kind}" for kind in _NER for prefix in "BI")),
}

CORPORA = ("demo", "conll2003", "apart:demo?tokens=300")
_ENCODERS = ("minilm", "bert-base-cased", "roberta-base", "minilm+bilstm")
_FRACTIONS = (0.05, 0.1, 0.25, 0.5, 1.0)
_LAMBDAS = (0.001, 0.003, 0.01, 0.03, 0.1)
_ENDINGS = {11: RunState.FAILED, 47: RunState.LOST, 83: RunState.CANCELLED}


@dataclass(frozen=True)
class Planned:
    """A run to be: its description, its launch, how it stands, and how much it has told so far."""

    config: RunConfig
    launch: str
    state: RunState
    steps: int
    total_steps: int
    snapshots: int
    told: bool = False


def plan() -> list[Planned]:
    """The runs, oldest first."""
    special = [*_told(), *_long(), *_live()]
    before = list(itertools.islice(_sweeps(), _CONFIGURATIONS * len(SEEDS) - len(special)))
    return before + special


def short_steps(config: RunConfig) -> int:
    """So many steps that a run has its share of the points: runs of several tasks have more curves."""
    steps = _POINTS_A_RUN // (len(config.tasks) + 3)
    return steps - steps % EPOCHS


def _sweeps() -> Iterator[Planned]:
    """Launches of 85 runs: all paradigms on one corpus and encoder."""
    contexts = itertools.product(_FRACTIONS, ("full", "frozen"), _ENCODERS, CORPORA)
    number = itertools.count()
    for launch, (fraction, training, encoder, corpus) in enumerate(contexts, start=1):
        context = {
            "corpus": corpus,
            "encoder": encoder,
            "encoder_training": training,
            "fraction": fraction,
            "epochs": EPOCHS,
        }
        mrn = [
            {"paradigm": "mrn", "alignment": alignment, "lambda": strength, "prior": prior}
            for prior, alignment in (("relational", "cooccurrence"), ("map", "disjoint"))
            for strength in _LAMBDAS
        ]
        mrn += [
            {"paradigm": "mrn", "alignment": "exact", "lambda": 0.05, "prior": "paper", "batch_size": size}
            for size in (16, 32, 64)
        ]
        kinds = [{"paradigm": "stl", "tasks": (task,)} for task in TASKS] + [{"paradigm": "mtl"}, *mrn]
        for kind in kinds:
            for seed in SEEDS:
                config = RunConfig.build(**{"tasks": TASKS, "seed": seed, **context, **kind})
                state = _ENDINGS.get(next(number) % 100, RunState.SUCCEEDED)
                total = short_steps(config)
                done = total if state is RunState.SUCCEEDED else total // 2
                covariances = int(config.paradigm == "mrn")
                yield Planned(config, f"sweep {launch}", state, done, total, covariances)


def _kinds(*, singles: bool) -> Iterator[dict[str, object]]:
    if singles:
        yield from ({"paradigm": "stl", "tasks": (task,)} for task in TASKS)
    yield {"paradigm": "mtl"}
    for strength in (0.01, 0.03) if singles else (0.01, 0.03, 0.1):
        yield {"paradigm": "mrn", "alignment": "cooccurrence", "lambda": strength}


def _newest(singles: bool, **values: object) -> Iterator[RunConfig]:
    for kind in _kinds(singles=singles):
        for seed in SEEDS:
            yield RunConfig.build(**{"tasks": TASKS, "seed": seed, **values, **kind})


def _told() -> Iterator[Planned]:
    for config in _newest(True, corpus="demo", encoder="minilm", encoder_training="frozen", epochs=8):
        steps = 8 * (short_steps(config) // 8)
        covariances = 50 if config.paradigm == "mrn" else 0
        yield Planned(config, "told", RunState.SUCCEEDED, steps, steps, covariances, told=True)


def _long() -> Iterator[Planned]:
    for config in _newest(True, corpus="conll2003", encoder="bert-base-cased", epochs=10):
        covariances = 10 if config.paradigm == "mrn" else 0
        yield Planned(config, "long", RunState.SUCCEEDED, LONG_STEPS, LONG_STEPS, covariances)


def _live() -> Iterator[Planned]:
    for config in _newest(False, corpus="conll2003", encoder="roberta-base", epochs=20):
        covariances = 25 if config.paradigm == "mrn" else 0
        yield Planned(config, "live", RunState.RUNNING, LONG_STEPS, 2 * LONG_STEPS, covariances)
