"""The 14 features of a task, and the 42 of a pair of tasks, from which gains of MTL are predicted.

After J. Bingel and A. Søgaard, *Identifying beneficial task relations for multi-task learning in deep neural
networks* (EACL 2017), Table 2. Seven features are of the data, seven of the training loss of the task alone.
What cannot be known is NaN, and a note says why.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from core.corpora.readers.lines import read_lines
from core.corpora.types import Corpus, Sentence
from core.errors import CorpusError
from core.plain_text import shortened
from core.wording import plural

Floats = NDArray[np.float64]

GRADIENTS = {f"gradient_{percent}": percent / 100 for percent in (10, 20, 30, 50, 70)}
"""The gradients of the loss curve, and after which share of the steps each is taken."""

DATA_FEATURES = {
    "size": "Size",
    "labels": "# Labels",
    "tokens_per_type": "Tokens/types",
    "oov_rate": "OOV rate",
    "label_entropy": "Label entropy",
    "frobenius_norm": "Frobenius norm",
    "jsd": "JSD",
}
CURVE_FEATURES = {name: f"Curve grad. ({share:.0%})" for name, share in GRADIENTS.items()} | {
    "curve_a": "Curve param. a",
    "curve_c": "Curve param. c",
}
FEATURES = DATA_FEATURES | CURVE_FEATURES
"""The 14 features of a task, each with its title."""


@dataclass(frozen=True)
class LossCurve:
    """Training losses (N,) and the steps (N,) after which they were measured.

    `superseded` losses were left out for a later one of the same step.
    """

    steps: Floats
    losses: Floats
    superseded: int = 0


@dataclass(frozen=True)
class Features:
    """Features of a task by name. `notes` are sentences that say why some are NaN."""

    values: Mapping[str, float]
    notes: tuple[str, ...] = ()


def pair_values(
    pairs: Sequence[tuple[str, str]], features: Mapping[str, Features], chosen: Iterable[str] = FEATURES
) -> pd.DataFrame:
    """A row for each pair: `main size`, `aux size` and `main/aux size` for the feature `size`, and so on.

    A ratio is NaN where one of the two is NaN, or the auxiliary task's is 0.
    """
    table = pd.DataFrame({task: of_task.values for task, of_task in features.items()}, list(chosen)).T
    main, aux = (table.loc[[pair[role] for pair in pairs]].to_numpy(dtype=np.float64) for role in (0, 1))
    ratio = np.divide(main, aux, out=np.full_like(main, np.nan), where=aux != 0)
    names = [f"{role} {feature}" for role in ("main", "aux", "main/aux") for feature in table.columns]
    return pd.DataFrame(np.hstack([main, aux, ratio]), columns=names)


def data_features(corpus: Corpus, task: str, is_known: Callable[[str], bool]) -> dict[str, float]:
    """The seven features of the task's data, over the training sentences annotated for it, words as written.

    size              sentences
    labels            different labels
    tokens_per_type   words, over different words
    oov_rate          share of the words (tokens) that are not `is_known`
    label_entropy     −Σ p ln p of the labels of the words, in nats
    frobenius_norm    ‖X‖_F, X[s, w] how often word w stands in sentence s
    jsd               Jensen-Shannon divergence in nats, in [0, ln 2], between the word distributions of the
                      training and the test sentences; NaN where no test sentence is annotated for the task

    Raises CorpusError where no training sentence is annotated for the task.
    """
    train, test = _annotated(corpus.train, task), _annotated(corpus.test, task)
    if not train:
        raise CorpusError(f"{corpus.name}: no training sentence is annotated for the task {task}.")
    words = Counter(chain.from_iterable(sentence.tokens for sentence in train))
    labels = Counter(chain.from_iterable(sentence.labels[task] for sentence in train))
    tokens = words.total()
    shares = np.array(list(labels.values())) / labels.total()
    squares = sum(count**2 for sentence in train for count in Counter(sentence.tokens).values())
    return {
        "size": float(len(train)),
        "labels": float(len(labels)),
        "tokens_per_type": tokens / len(words),
        "oov_rate": sum(count for word, count in words.items() if not is_known(word)) / tokens,
        "label_entropy": float(-(shares * np.log(shares)).sum()),
        "frobenius_norm": float(np.sqrt(squares)),
        "jsd": _divergence(words, Counter(chain.from_iterable(sentence.tokens for sentence in test))),
    }


def label_ami(corpus: Corpus, main: str, aux: str) -> float:
    """Adjusted mutual information of the labels of two tasks, on the training words that both label.

    Normalised by the maximum, as `relatedness` is. NaN where they label no word in common.
    """
    # Imported here: derived corpora import much that features do not need.
    from core.corpora.derived.simulated import relatedness

    both = _annotated(_annotated(corpus.train, main), aux)
    if not both:
        return float("nan")
    labellings = [
        np.unique([label for sentence in both for label in sentence.labels[task]], return_inverse=True)[1]
        for task in (main, aux)
    ]
    return float(relatedness(labellings)[0, 1])


def _annotated(sentences: Sequence[Sentence], task: str) -> list[Sentence]:
    return [sentence for sentence in sentences if task in sentence.labels]


def _divergence(first: Counter[str], second: Counter[str]) -> float:
    from scipy.spatial.distance import jensenshannon

    if not second:
        return float("nan")
    vocabulary = list(first | second)
    counts = np.array([[counter[word] for word in vocabulary] for counter in (first, second)], np.float64)
    return float(jensenshannon(*counts) ** 2)  # scipy gives the distance, which is its root


FEWEST_POINTS = 10
"""A curve of fewer finite losses has no features."""


def curve_features(steps: ArrayLike, losses: ArrayLike) -> Features:
    """Gradients of the loss curve, and a and c of a logarithmic curve through it.

    gradient_p         change of the loss per step after p% of the steps (of the last one in `steps`): central
                       differences of the curve smoothed by a moving average over 1% of its points, 3 at least
    curve_a, curve_c   of L(i) = a ln(c i + 1) + b, the least-squares fit over steps i. The paper has d for
                       1, but a ln(c i + d) + b = a ln(c/d i + 1) + b + a ln d: only c/d is determined

    Losses that are not finite are left out. NaN with a note: all seven for fewer points than FEWEST_POINTS; a
    and c for a curve that is constant, or straight, or has bent before its first point, for then c can be
    anything, or has an a beyond the largest float. Raises ValueError for arrays of different lengths, and for
    steps that do not increase from above 0.
    """
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"{x.shape} steps do not fit {y.shape} losses")
    if (np.diff(x, prepend=0) <= 0).any():
        raise ValueError("steps must increase, and the first be above 0")
    finite = np.isfinite(y)
    notes = [f"{plural(int((~finite).sum()), 'loss', 'losses')} not finite, left out."] * (not finite.all())
    x, y = x[finite], y[finite]
    if len(x) < FEWEST_POINTS:
        notes.append(f"The loss curve has {plural(len(x), 'point')}; {FEWEST_POINTS} are needed.")
        return Features(dict.fromkeys(CURVE_FEATURES, math.nan), tuple(notes))
    # Losses of a run that diverged would overflow. Division by a power of two loses no digit.
    scale = math.ldexp(1, math.frexp(np.abs(y).max())[1] - 1)
    y = y / scale
    width = max(3, round(len(x) / 100)) // 2 * 2 + 1  # odd, so that the window has a centre
    ones = np.ones(width)
    smooth = np.convolve(y, ones, "same") / np.convolve(np.ones(len(y)), ones, "same")
    slope = np.gradient(smooth, x)
    values = {name: scale * float(np.interp(share * x[-1], x, slope)) for name, share in GRADIENTS.items()}
    a, c, problem = _log_fit(x, y)
    if math.isinf(scale * a):
        a, c, problem = math.nan, math.nan, "The losses are too large for an a below the largest float."
    values |= {"curve_a": scale * a, "curve_c": c}
    return Features(values, (*notes, problem) if problem else tuple(notes))


def _log_fit(steps: Floats, losses: Floats) -> tuple[float, float, str]:
    """The a and c of L(i) = a ln(c i + 1) + b; or NaN twice and the problem of the curve."""
    from scipy.optimize import OptimizeWarning, curve_fit

    nan = float("nan")
    if np.ptp(losses) <= 1e-12 * np.abs(losses).max():
        return nan, nan, "The loss curve is constant, which determines no c."
    # c from a curve that is all but straight to one whose bend lies before its first point.
    slowest, fastest = 0.01 / steps[-1], 100 / steps[0]
    grid = np.geomspace(slowest, fastest, 50)
    # Given c, a and b are a linear fit: the best c is the start.
    fits = [np.polyfit(np.log1p(c * steps), losses, 1, full=True) for c in grid]
    best = int(np.argmin([residual[1].sum() for residual in fits]))
    a, b = fits[best][0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)
            (a, log_c, b), _ = curve_fit(
                lambda i, a, log_c, b: a * np.log1p(np.exp(log_c) * i) + b,
                steps,
                losses,
                (a, np.log(grid[best]), b),
                bounds=((-np.inf, np.log(slowest), -np.inf), (np.inf, np.log(fastest), np.inf)),
            )
    except (RuntimeError, OptimizeWarning) as error:
        return nan, nan, f"No logarithmic curve fits the losses: {error}"
    if log_c < np.log(2 * slowest):
        return nan, nan, "The loss curve is straight, which determines no c."
    if log_c > np.log(fastest / 2):
        return nan, nan, "The loss curve has bent before its first point, which determines no c."
    return float(a), float(np.exp(log_c)), ""


_LOG_LINE = re.compile(r"Iter (\d+), task (\S.*), loss (\S+)\s*")

MOST_STEP = 2**53 - 1
"""Floats above it are not all whole numbers."""


def read_loss_log(path: Path) -> dict[str, LossCurve]:
    """The loss curve of each task in a file of lines `Iter N, task T, loss L`; empty lines are skipped.

    Of a step that comes again, as where a run was restarted, the last loss counts. Raises CorpusError as
    `read_lines` does, and with file and line for any other line, a step that is not from 1 to MOST_STEP, and
    a loss that is not a number.
    """
    points: dict[str, dict[float, float]] = {}
    lines = Counter[str]()
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            task, step, loss = _log_line(line, f"{path}, line {number:,}")
            points.setdefault(task, {})[step] = loss
            lines[task] += 1
    curves = {}
    for task, curve in points.items():
        steps, losses = np.array(sorted(curve.items())).T
        curves[task] = LossCurve(steps, losses, lines[task] - len(curve))
    return curves


def _log_line(line: str, location: str) -> tuple[str, float, float]:
    match = _LOG_LINE.fullmatch(line)
    if not match:
        raise CorpusError(f"{location}: expected `Iter N, task T, loss L`, not '{shortened(line.strip())}'.")
    step, task, loss = match.groups()
    if not 1 <= float(step) <= MOST_STEP:
        raise CorpusError(
            f"{location}: the step '{shortened(step)}' is not from 1 to {MOST_STEP:,}; count the steps "
            "from 1."
        )
    try:
        return task, float(step), float(loss)
    except ValueError:
        raise CorpusError(f"{location}: the loss '{shortened(loss)}' is not a number.") from None
