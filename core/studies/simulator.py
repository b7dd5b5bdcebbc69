"""A study of the effect of auxiliary tasks on NER: their number, size and relatedness, in a grid.

Bettgenhäuser, Hedderich and Klakow (2020) train small models on NER of CoNLL-2003 beside T simulated tasks
that keep each label with the chance α, and learn formulas of NER's F1 on the words per task n, T, and the
adjusted mutual information (AMI) of the tasks. Their dataset of 1,002 observations is not listed; two sweeps
that their figures draw, n × α at T = 2 and T × α at n = 2,000, and STL at each n, have 993. Nor are the 1,555
of unbalanced data, of which no figure is drawn: of all 4,320 cells we declare the same two sweeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from core.studies.study import Candidates, Method, Setting, Study, one_rate
from core.wording import plural

BALANCED, UNBALANCED, PLANTED, PUBLISHED = "balanced", "unbalanced", "planted", "published"
ARCHITECTURES, PUBLISHED_UNBALANCED = "architectures", "published-unbalanced"

# Sections 5.1 and 5.2.
PUBLISHED_TASKS = tuple(range(1, 16))
PUBLISHED_WORDS = tuple(range(1_000, 20_001, 500))
PUBLISHED_ALPHAS = (
    *(0.2, 0.6, 0.65, 0.75, 0.8, 0.85, 0.87, 0.9, 0.91),
    *(0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0),
)
UNBALANCED_TASKS = tuple(range(1, 31))
UNBALANCED_WORDS = (1_000, 1_500, 2_000, 2_500)
UNBALANCED_WORDS_BESIDE = (2_000, 3_000, 4_000, 5_000, 6_000)
UNBALANCED_ALPHAS = (0.6, 0.7, 0.85, 0.9, 0.92, 0.95, 0.97, 0.99)
PLANTED_ALPHAS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Point:
    """A cell of a grid: words of NER and of each simulated task, the number of these, and their relatedness.

    Also the dense layers of its model (`DENSE_LAYERS`).
    """

    part: str
    words: int
    words_beside: int
    tasks: int
    alpha: float
    dense: str = "shared"

    @property
    def name(self) -> str:
        """The name of its setting."""
        beside = "" if self.words_beside == self.words else f"-{self.words_beside}"
        dense = f"-{self.dense}" if self.part == ARCHITECTURES else ""
        return f"{self.part}-n{self.words}{beside}-t{self.tasks}-a{self.alpha:g}{dense}"


# The paper's section 4, where it says so: window, fixed vectors, Adam at its defaults. Its batches have 100
# words, and the training sentences of CoNLL-2003 14.5: seven make such a batch.
_TRAINING: dict[str, Any] = {
    "encoder": "bilstm",
    "window": 3,
    "shared_dense": 1,
    "vectors_training": "fixed",
    "capitals": False,
    "characters": "none",
    "lstm_layers": 1,
    "input_dropout": 0.0,
    "dropout": 0.0,
    "head_init": "default",
    "optimiser": "adam",
    "lr_schedule": "constant",
    "weight_decay": 0.0,
    "batching": "shuffled",
    "select_by": "last",
}
_PUBLISHED: dict[str, Any] = (
    _TRAINING | one_rate(1e-3) | {"bilstm_hidden": 100, "epochs": 100, "batch_size": 7}
)
# In a size that two cores train in 14 minutes.
_SMALL: dict[str, Any] = _TRAINING | one_rate(5e-3) | {"bilstm_hidden": 32, "epochs": 10, "batch_size": 20}

DENSE_LAYERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "shared": ("one dense layer of all tasks", {}),
    "none": ("no dense layer", {"shared_dense": None}),
    "own": ("a dense layer of each task", {"shared_dense": None, "task_dense": 1}),
}
"""Architectures of the paper's section 3, each with its title and its changes to the fields of a run."""

_BESIDE = re.compile(r"tasks=\d+&alpha=[^&,]+&samples=\d+")


def _corpus(words: int, tasks: int, alpha: str, samples: int, more: str = "") -> str:
    return (
        f"simulated:conll2003?task=ner&tokens={words}&tasks={tasks}&alpha={alpha}&samples={samples}"
        f"&scheme=io{more}"
    )


def _alone(base: Mapping[str, Any]) -> Candidates:
    """The run of NER by itself, which is the same in the whole grid.

    The tasks beside it change no word of NER's. Tasks of several α are in one corpus, which is then that of
    NER alone, too.
    """
    return ({"paradigm": "stl", "corpus": _BESIDE.sub("tasks=1&alpha=1&samples=1", base["corpus"])},)


_MRN: dict[str, Any] = {
    "paradigm": "mrn",
    "encoder": "minilm",
    "encoder_training": "frozen",
    "alignment": "exact",
    "epochs": 20,
    "batch_size": 16,
    "lr_heads": 0.03,
    "optimiser": "adamw",
    "lr_schedule": "linear",
    "head_init": "zeros",
}
_METHODS = (
    Method("stl", "STL", candidates_for=_alone),
    Method("mtl", "MTL", ({"paradigm": "mtl"},)),
    *(
        Method(
            f"beside-{number}",
            f"MTL beside α = {alpha:g}",
            ({"paradigm": "mtl", "tasks": ("ner", f"sim-{number}")},),
            words=f"MTL beside a task with {alpha:.0%} of labels kept",
            meaning=f"NER and one simulated task share an encoder; a word of that task keeps its NER label "
            f"with the chance {alpha:.0%}, else it has a random one.",
        )
        for number, alpha in enumerate(PLANTED_ALPHAS, 1)
    ),
    Method(
        "mrn",
        "MRN with all",
        (_MRN,),
        words="MRN with all nine tasks",
        meaning="NER and all nine "
        "simulated tasks, heads over frozen MiniLM with a prior that learns how the tasks relate.",
    ),
)


def _setting(point: Point, base: Mapping[str, Any], more: str, seeds: tuple[int, ...]) -> Setting:
    beside = "" if point.words == point.words_beside else f" beside {point.words_beside:,}"
    dense, changes = DENSE_LAYERS[point.dense]
    return Setting(
        point.name,
        f"NER on {point.words:,} words{beside}, {plural(point.tasks, 'simulated task')}, α = {point.alpha:g}"
        + (f", {dense}" if point.part == ARCHITECTURES else ""),
        point.part,
        {
            **base,
            **changes,
            "corpus": _corpus(point.words, point.tasks, f"{point.alpha:g}", point.words_beside, more),
            "tasks": ("ner", *(f"sim-{number}" for number in range(1, point.tasks + 1))),
        },
        ("ner",),
        ("stl", "mtl"),
        seeds=seeds,
        words=f"NER with {point.words:,} words",
    )


def _grid(part: str, *axes: Iterable[float]) -> list[Point]:
    """The points of a grid over words, words beside (as many as NER's where None), tasks and α."""
    return [
        Point(part, int(words), int(beside or words), int(tasks), alpha)
        for words, beside, tasks, alpha in product(*axes)
    ]


_POINTS = {
    point.name: point
    for point in (
        *_grid(BALANCED, (500, 1_000, 2_000), (0,), (1, 2, 3, 6), (0.2, 0.6, 0.8, 0.93, 1.0)),
        *_grid(UNBALANCED, (500, 1_000), (1_500, 2_500), (1, 3), (0.2, 0.8, 1.0)),
        *(
            replace(point, dense=dense)
            for point in _grid(ARCHITECTURES, (1_000,), (0,), (3,), (0.2, 0.8, 1.0))
            for dense in DENSE_LAYERS
        ),
        *_grid(PUBLISHED, PUBLISHED_WORDS, (0,), (2,), PUBLISHED_ALPHAS),
        *_grid(PUBLISHED, (2_000,), (0,), PUBLISHED_TASKS, PUBLISHED_ALPHAS),
        *(
            point
            for point in _grid(
                PUBLISHED_UNBALANCED, UNBALANCED_WORDS, UNBALANCED_WORDS_BESIDE, (2,), UNBALANCED_ALPHAS
            )
            if point.words < point.words_beside
        ),
        *_grid(PUBLISHED_UNBALANCED, (2_000,), (3_000,), UNBALANCED_TASKS, UNBALANCED_ALPHAS),
    )
}
_SAMPLED = "&dev=50&test=1000"
_PLANTED = Setting(
    "planted",
    "NER on 500 words beside nine simulated tasks of 2,000, 20 to 100% of labels kept",
    PLANTED,
    _SMALL
    | {
        "corpus": _corpus(
            500, len(PLANTED_ALPHAS), ",".join(f"{alpha:g}" for alpha in PLANTED_ALPHAS), 2_000, _SAMPLED
        ),
        "tasks": ("ner", *(f"sim-{number}" for number in range(1, len(PLANTED_ALPHAS) + 1))),
    },
    ("ner",),
    ("stl", *(method.name for method in _METHODS[2:])),
    seeds=tuple(range(21, 31)),
    words="NER with 500 words",
)


def point_of(setting: Setting) -> Point | None:
    """The cell of the grid that the setting is; None for the part `planted`."""
    return _POINTS.get(setting.name)


STUDY = Study(
    "simulator",
    "Task simulator",
    "How does the gain of NER depend on the number, size and relatedness of the tasks trained with it?",
    (
        _PLANTED,
        *(
            _setting(point, _PUBLISHED, "", (1, 2, 3, 4, 5))
            if point.part in (PUBLISHED, PUBLISHED_UNBALANCED)
            else _setting(point, _SMALL, _SAMPLED, (1, 2, 3))
            for point in _POINTS.values()
        ),
    ),
    _METHODS,
    "stl",
    search_seeds=(1,),
    seeds=(1, 2, 3),
    protocol=(
        "NER of CoNLL-2003 beside simulated tasks, each on words of its own, in IO labels; development and "
        "test labels are in IOB2, and scores are conlleval's. Each word is read in a window of three (GloVe "
        "of 100 dimensions, fixed; the paper has FastText), by a BiLSTM, one dense layer of all tasks and "
        "linear heads; in the part architectures also without a dense layer, or with one of each task. Adam; "
        "the loss is the mean over the tasks of a batch, which for Adam is their sum; the last epoch counts. "
        "Published: 100 epochs, rate 0.001, batches of 7 sentences, about 100 words, hidden size 100 (the "
        "paper names none). Small parts: 10 epochs, rate 0.005, batches of 20 sentences, hidden size 32, "
        "1,000 test sentences. MRN in the part planted: heads over frozen MiniLM."
    ),
    by_relatedness=True,
    about={
        PLANTED: "NER beside one of nine simulated tasks at a time, which keep 20 to 100% of its labels.",
        BALANCED: "NER and each simulated task have the same number of words.",
        UNBALANCED: "Each simulated task has more words than NER.",
        ARCHITECTURES: "As in Balanced, with and without dense layers between encoder and heads.",
        PUBLISHED: "The paper's grid and model, all tasks with as many words.",
        PUBLISHED_UNBALANCED: "The paper's grid and model, simulated tasks with more words than NER.",
    },
    small={"setting": "balanced-n500-t1-a1"},
)
