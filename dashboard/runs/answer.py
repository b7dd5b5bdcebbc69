"""The answer of a run's page: its test scores among its seeds', and what dev says of how long it trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.evaluation.statistics import summary
from core.store.types import Run
from core.wording import all_of, percent, plural, without_shared
from dashboard.runs.curves import DevCurve

_FEWEST = 2
"""So many other seeds at least have a spread, by which a score can be judged."""
_FALL = 1.0
"""A dev score that ends so many points below the kept epoch's, and is below it in between, has fallen."""


def run_answer(
    run: Run, scores: Mapping[str, float], others: Mapping[str, Sequence[float]], curves: Sequence[DevCurve]
) -> str:
    """Sentences on a run that has succeeded, as plain text.

    `scores` are its test scores by task, in [0, 1], `others` those of the other seeds.
    """
    return " ".join(filter(None, (_among_seeds(scores, others), _on_dev(run, curves))))


ABOUT = (
    "Ordinary: where 95% of further seeds are expected, by the other seeds (Student's t). "
    f"A dev score falls if it is below the kept epoch's ever after, at the end by {_FALL:g} point or more."
)


def is_unusual(score: float, others: Sequence[float]) -> bool:
    """Whether the score is outside the interval that holds 95% of next scores, by the others.

    By Student's t; others that are all the same predict nothing.
    """
    of_others = summary(others)
    if not of_others.sd or of_others.high is None:
        return False
    return abs(score - of_others.mean) > (of_others.high - of_others.mean) * math.sqrt(of_others.n + 1)


def _among_seeds(scores: Mapping[str, float], others: Mapping[str, Sequence[float]]) -> str:
    known = {task: others[task] for task in scores if others.get(task)}
    if not known:
        return "The only seed of its configuration, so nothing says how its scores vary."
    seeds = 1 + min(map(len, known.values()))
    if seeds <= _FEWEST:
        return f"{plural(seeds, 'seed')}: too few to say whether its scores are ordinary."
    short = without_shared(list(scores))
    apart = [
        f"{short[task]} ({percent(scores[task])}) is unusually "
        f"{'high' if scores[task] > summary(of_others).mean else 'low'}"
        for task, of_others in known.items()
        if is_unusual(scores[task], of_others)
    ]
    if apart:
        return f"On test {all_of(apart)} among its {seeds} seeds."
    scores_are = "scores are" if len(known) > 1 else "score is"
    return f"Its test {scores_are} ordinary for its {seeds} seeds."


def _on_dev(run: Run, curves: Sequence[DevCurve]) -> str:
    """Which tasks fall after the kept epoch, or that the last epoch is the best."""
    kept, short = run.best_epoch, without_shared([curve.task for curve in curves])
    if kept is None or not curves:
        return ""
    if all(curve.run.index.max() <= kept for curve in curves):
        last = f"the last epoch, {kept}, is the best" if run.config.select_by != "last" else ""
        return f"On dev {last}: longer training may help." if last else ""
    falls = []
    for curve in curves:
        later = curve.run[curve.run.index > kept]
        if kept not in curve.run.index or later.empty:
            continue
        start, end = float(curve.run[kept]), float(later.iloc[-1])
        if later.max() < start and start - end >= _FALL:
            falls.append(f"{short[curve.task]} falls from {start:.2f} to {end:.2f}")
    return f"On dev {all_of(falls)} after epoch {kept}, whose weights were kept." if falls else ""
