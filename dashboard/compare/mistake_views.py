"""Two configurations on one task, by label and by mistake, and the input of tests over sentences."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.evaluation.comparison import compare_paired
from core.evaluation.mistakes import Errors, Labels, mistake_text
from core.evaluation.statistics import randomisation_test
from core.results.comparisons import Tested
from core.results.table import ResultCell
from core.store.types import StoredScore
from core.tasks.confusion import NOTHING
from core.tasks.scores import Counts, report_rows, sentence_counts
from core.wording import points
from jobs.reports.parts import SIGNED, number_text

Report = Mapping[str, Mapping[str, float]]
Floats = NDArray[np.float64]

_NUMBERS = {"P": "precision", "R": "recall", "F1": "f1"}
DETAIL = tuple(f"{number} {letter}" for number in ("P", "R", "±") for letter in "AB")
"""The columns of `classes` that are shown on demand."""


def reports(cell: ResultCell, task: str, scores: Iterable[StoredScore]) -> dict[int, Report]:
    """Each seed's report on that task."""
    by_run = {score.run_id: report_rows(score.report) for score in scores if score.task == task}
    return {seed: by_run[run_id] for seed, run_id in cell.run_ids.items() if by_run.get(run_id)}


def classes(a: Mapping[int, Report], b: Mapping[int, Report]) -> pd.DataFrame:
    """A row per label that either configuration has, the most annotated first, in percent.
    It has F1 of both, means over seeds; the difference, A − B, paired by seed, with half of its 95% interval;
    `DETAIL` (precision, recall, SD of F1); p over seeds, corrected for all labels (Holm), in [0, 1]. Seeds in
    which a label was not annotated do not count for it; one that is never annotated has no figures.
    """
    lines = pd.DataFrame(
        {"Label": label, "side": letter, "seed": seed, **numbers}
        for letter, side in (("A", a), ("B", b))
        for seed, report in side.items()
        for label, numbers in report.items()
    )
    if lines.empty:
        return lines
    lines = lines.rename(columns={name: title for title, name in _NUMBERS.items()})
    by_side = lines.groupby(["Label", "side"])
    spread = by_side["F1"].std().rename("±")
    table = pd.DataFrame((100 * by_side[list(_NUMBERS)].mean().join(spread)).unstack())
    table.columns = table.columns.map(" ".join)
    table["Annotated"] = lines.groupby("Label")["support"].max().astype(int)
    family = {label: (_f1(of, "A"), _f1(of, "B")) for label, of in lines.groupby("Label")}
    compared = {
        label: (points(delta.mean), *([100 * end for end in delta.interval or (math.nan, math.nan)]), delta.p)
        for label, delta in compare_paired(family).items()
    }
    columns = ["Difference", "Low", "High", "p"]
    table = table.join(pd.DataFrame.from_dict(compared, orient="index", columns=columns, dtype=float))
    table = table.reindex(columns=["Annotated", "F1 A", "F1 B", *columns[:3], *DETAIL, "p"])
    return table.reset_index(names="Label").sort_values(["Annotated", "Label"], ascending=[False, True])


def _f1(lines: pd.DataFrame, side: str) -> dict[int, float]:
    return dict(lines[lines["side"] == side].set_index("seed")["F1"].dropna())


# Mistakes


@dataclass(frozen=True)
class Matrix:
    """Percentages of the gold labels (rows) by predicted label (columns); NaN on the diagonal.
    Predictions where nothing is annotated are shares of the annotated spans of the predicted type.

    `right` is the share of correct predictions, row by row (NaN where nothing is annotated). `words` describe
    each cell.
    """

    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    shares: Floats
    right: tuple[float, ...]
    words: tuple[tuple[str, ...], ...]


def matrix(errors: Errors) -> Matrix:
    """One configuration's mistakes."""
    rows, columns = errors.table.gold, errors.table.predicted
    shares = np.zeros((len(rows), len(columns)))
    right = [math.nan] * len(rows)
    described = []
    for y, gold in enumerate(rows):
        words = []
        for x, predicted in enumerate(columns):
            count, of = errors.count(gold, predicted), predicted if gold == NOTHING else gold
            annotated = errors.annotated(of)
            share = 100 * count / annotated if annotated else 0.0
            words.append(
                f"{mistake_text(gold, predicted)}: {count:.1f} per seed, {share:.2f}% of the annotated {of}"
            )
            if gold == predicted:
                share, right[y] = math.nan, math.nan if gold == NOTHING else share
            shares[y, x] = share
        described.append(tuple(words))
    return Matrix(rows, columns, shares, tuple(right), tuple(described))


# Numbers


@dataclass(frozen=True)
class Guesses:
    """The predictions of one configuration on a task of numbers.
    It has the gold number of each text and the `mean` (N,) of the predictions over seeds. `elsewhere` counts
    the seeds tested on other text, which are left out.
    """

    gold: tuple[float, ...]
    mean: Floats
    seeds: int
    elsewhere: int


def guesses(stored: Sequence[tuple[Labels, Labels]]) -> Guesses:
    """From the stored gold and predicted numbers of each seed (one at least), on the text of the first."""
    gold = _numbers(stored[0][0])
    predicted = [_numbers(guess) for of_seed, guess in stored if _numbers(of_seed) == gold]
    return Guesses(gold, np.mean(predicted, axis=0), len(predicted), len(stored) - len(predicted))


def _numbers(column: Labels) -> tuple[float, ...]:
    return tuple(float(text) for (text,) in column)


def furthest(sides: Mapping[str, Guesses]) -> pd.DataFrame:
    """A row per text, the largest error of either side first: `place`, gold number, each prediction."""
    gold = next(iter(sides.values())).gold
    frame = pd.DataFrame({"place": range(len(gold)), "Annotated": gold})
    for name, side in sides.items():
        frame[name] = side.mean
    worst = np.max([np.abs(side.mean - np.array(gold)) for side in sides.values()], axis=0)
    return frame.iloc[np.argsort(-worst, kind="stable")]


def misses(side: Guesses) -> str:
    """Returns a sentence on the size of the errors and their mean."""
    apart = side.mean - np.array(side.gold)
    error, bias = float(np.mean(np.abs(apart))), float(np.mean(apart))
    return f"mean absolute error {error:.2f}, bias {number_text(bias, SIGNED)}."


# Tests over sentences


@dataclass(frozen=True)
class Counted:
    """A run's counts by sentence on one task, and a hash of the sentences they were counted on."""

    counts: Counts
    sentences: str


def counted(score_name: str, gold: Labels, predicted: Labels) -> Counted:
    """The counts of `sentence_counts`. Sentences are identified by their annotations."""
    digest = hashlib.blake2b(json.dumps(gold).encode(), digest_size=16).hexdigest()
    return Counted(sentence_counts(score_name, gold, predicted), digest)


def tested(pairs: Sequence[tuple[Counted | None, Counted | None]]) -> Tested:
    """The test over the seeds (pairs) of which both predictions are known; else why there is none."""
    if not pairs:
        return "no common seed"
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "no predictions stored"
    if len({side.sentences for pair in known for side in pair}) > 1:
        return "different sentences"
    return randomisation_test([a.counts for a, _ in known], [b.counts for _, b in known])
