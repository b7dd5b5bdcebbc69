"""Predictions with as many mistakes as a score asks for, on the demo corpus's own sentences.

Synthetic, for tests of the pages only. Hard words are hard for every run, as they are for real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from core.corpora import load
from core.corpora.types import Split
from core.records import SplitResult, TaskScore
from core.tasks.spans import spans

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
def _gold(split: Split, task: str) -> Labels:
    return [list(sentence.labels[task]) for sentence in load("demo").split(split)]


def result(
    split: Split,
    epoch: int,
    shares: dict[str, float],
    score: Callable[[str, Labels, Labels], TaskScore],
    seed: Sequence[int],
) -> SplitResult:
    """The result of a split with that share of each task's words or spans right, scored by `score`."""
    gold = {task: _gold(split, task) for task in shares}
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
