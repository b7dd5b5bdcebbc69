"""The report of a study of pairs: the matrix of gains, what predicts them, the best groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.errors import MRNLabError
from core.store import Store
from core.studies import Study
from core.studies.study import Layout
from core.transfer.gains import Gain, Gains, group_key
from core.transfer.grouping import MOST_TASKS, best_grouping
from core.transfer.predictors import (
    CROSS_VALIDATION,
    LEFT_OUT,
    PUBLISHED,
    PUBLISHED_COEFFICIENTS,
    Judgement,
    Measure,
    coefficients,
)
from core.wording import all_of, duration, plural, signed_points
from jobs.reports.evidence import Evidence, evidence
from jobs.reports.naming import corpus_name
from jobs.reports.render import QUOTED, Entry, Part, Sheet, difference_entry, mean_entry, spread_text
from jobs.reports.transfer import PairGroup, pair_groups

_COEFFICIENTS = 15
_MOST_MODELS = 4


def pairs_of(store: Store, study: Study, layouts: Sequence[Layout]) -> dict[str, tuple[PairGroup, Evidence]]:
    """By part of the study the store's runs of it, and what predicts their gains.

    Raises MRNLabError where no pair has finished.
    """
    by_key = {group.key: group for group in pair_groups(store, list(study.pairs))}
    parts = {layout.setting.part: group_key(layout.arms["stl"][0].of([1])[0]) for layout in layouts}
    groups = {part: by_key[key] for part, key in parts.items() if key in by_key}
    if not groups:
        raise MRNLabError(f"The study '{study.name}' has no finished pair of tasks in this store yet.")
    return {part: (group, evidence(store, group)) for part, group in groups.items()}


def pairs_report(title: str, group: PairGroup, known: Evidence, names: Mapping[str, str]) -> Iterator[Part]:
    """The headings (Markdown's), paragraphs and tables of one part. `names` are the tasks' titles."""
    gains = group.gains
    yield f"## {title}"
    yield answer(gains, names)
    yield "### Gains"
    yield _matrix(gains, names)
    yield (
        "MTL of the two tasks less STL of the main one (row), beside the auxiliary task (column): points of "
        "the main task's test score, paired by seed, with the 95% interval (Student's t). of each "
        "pair by itself. Bold: decided, p corrected for the auxiliary tasks of a main task."
    )
    yield "### What predicts the gain"
    yield predictors_sheet(known.judgements, with_published=True)
    yield (
        "Accuracy, F1 of the class “gain”, ROC AUC and Spearman's rank correlation with the gain. "
        f"{CROSS_VALIDATION.capitalize()}: mean ± SD over 100 × 5 random folds. Tasks left out: a pair is "
        "judged by a regression that has seen neither of its tasks; ± its standard error by a bootstrap over "
        "tasks. Seconds: what the numbers of all pairs take to compute. Reported: Bingel and Søgaard (2017), "
        "90 pairs of 10 tasks."
    )
    for task, features in known.features.items():
        if features.notes:
            yield f"{names.get(task, task)}: {' '.join(features.notes)}"
    if (regression := next((p for p in known.predictors if p.name == "all features"), None)) is not None:
        yield "### Coefficients of all features"
        yield _coefficients(known, regression)
    is_complete = len(gains.pairs) == len(gains.tasks) * (len(gains.tasks) - 1)
    if is_complete and len(gains.tasks) <= MOST_TASKS:
        yield "### Groups"
        yield _groups(gains, names)


def answer(gains: Gains, names: Mapping[str, str]) -> str:
    """How many pairs gain and lose, and which task helps and gains most."""
    decided = [gain for gain in gains.pairs.values() if gain.is_decided]
    higher = sum(gain.mean > 0 for gain in decided)
    counts = sorted({gain.seeds for gain in gains.pairs.values()})
    seeds = f"{counts[0]} to {plural(counts[-1], 'seed')}" if len(counts) > 1 else plural(counts[0], "seed")
    positive = sum(gain.mean > 0 for gain in gains.pairs.values())
    sentences = [
        f"Of {plural(len(gains.pairs), 'ordered pair')} ({seeds}), {positive} have a mean gain above zero; "
        f"decided are {higher} that gain and {len(decided) - higher} that lose (p corrected for the "
        "auxiliary tasks of a main task)."
    ]
    for verb, by_main in (("gains most", True), ("helps most", False)) if decided else ():
        means = {task: _mean([g for g in gains.pairs.values() if (g.main if by_main else g.aux) == task])
                 for task in gains.tasks}  # fmt: skip
        known = {task: mean for task, mean in means.items() if math.isfinite(mean)}
        if known:
            best = max(known, key=known.__getitem__)
            sentences.append(
                f"{names.get(best, best)} {verb}: {signed_points(known[best])} points in the mean over its "
                "pairs."
            )
    return " ".join(sentences)


def _mean(gains: Sequence[Gain]) -> float:
    return math.fsum(gain.mean for gain in gains) / len(gains) if gains else math.nan


def _matrix(gains: Gains, names: Mapping[str, str]) -> Sheet:
    def cell(main: str, aux: str) -> Entry | str | None:
        gain = gains.pairs.get((main, aux))
        if gain is None:
            return "" if main == aux else None
        entry = difference_entry(gain)
        return entry and replace(entry, bold=gain.is_decided)

    def alone(task: str) -> Entry | None:
        score = gains.alone.get(task)
        return None if score is None else mean_entry(score, 1, scale=100)

    rows = [
        (names.get(main, main), alone(main), *(cell(main, aux) for aux in gains.tasks))
        for main in gains.tasks
    ]
    return Sheet.of(["main task", "STL", *(names.get(aux, aux) for aux in gains.tasks)], rows)


def predictors_sheet(judgements: Sequence[Judgement], *, with_published: bool) -> Sheet:
    """A row per predictor, the schemes of judging side by side, the published figures below."""
    by_name: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_name.setdefault(judgement.predictor, []).append(judgement)
    rows: list[tuple[Any, ...]] = []
    for name, of_name in by_name.items():
        measures = [m for each in of_name for m in (each.accuracy, each.f1, each.auc, each.rank)]
        first = of_name[0]
        cost = "0 s" if first.seconds == 0 else duration(first.seconds)
        rows.append((name, *map(measure_entry, measures), _number(first.direct_rank), str(first.pairs), cost))
    schemes = list(dict.fromkeys(judgement.scheme for judgement in judgements))
    for name, figures in PUBLISHED.items() if with_published else ():
        quoted = [Entry(f"{figure:.3f}", tone=QUOTED) for figure in figures]
        missing = [None] * (4 * len(schemes) - 1)
        rows.append((f"{name} (reported)", *quoted, *missing, Entry("90", tone=QUOTED), None))
    suffixes = [", tasks left out" * (scheme == LEFT_OUT and len(schemes) > 1) for scheme in schemes]
    measured = [f"{name}{suffix}" for suffix in suffixes for name in ("accuracy", "F1", "AUC", "rank")]
    return Sheet.of(["predictor", *measured, "rank of the number", "pairs", "time"], rows)


def measure_entry(measure: Measure) -> Entry | None:
    """A measure of a predictor with its spread; None where it cannot be computed."""
    if not math.isfinite(measure.value):
        return None
    return Entry(f"{measure.value:z.3f}", spread_text(measure.sd, 3) if math.isfinite(measure.sd) else "")


def _number(value: float) -> str | None:
    return f"{value:+.2f}" if math.isfinite(value) else None


def _coefficients(known: Evidence, regression: Any) -> Sheet:
    ordered = sorted(coefficients(known.pairs, regression), key=lambda each: -abs(each.value))
    rows = [
        (
            each.feature,
            f"{each.value:+.2f}",
            f"[{each.low:+.2f}, {each.high:+.2f}]",
            _number(PUBLISHED_COEFFICIENTS.get(each.feature, math.nan)),
        )
        for each in ordered[:_COEFFICIENTS]
    ]
    return Sheet.of(("feature", "weight", "95% interval", "reported"), rows)


def _groups(gains: Gains, names: Mapping[str, str]) -> Sheet:
    by_pair = {pair: 100 * gain.mean for pair, gain in gains.pairs.items()}
    rows = []
    for models in range(1, min(_MOST_MODELS, len(gains.tasks)) + 1):
        best = best_grouping(gains.tasks, by_pair, models)
        groups = "; ".join(all_of([names.get(task, task) for task in group]) for group in best.groups)
        rows.append((str(models), f"{best.total:+.1f}", groups))
    return Sheet.of(("models", "sum of gains", "groups"), rows)


def pairs_document(group: PairGroup, known: Evidence) -> dict[str, Any]:
    """The same as one document, gains in points."""
    return {
        "corpus": corpus_name(group.config),
        "tasks": list(group.gains.tasks),
        "alone": {task: vars(score) for task, score in group.gains.alone.items()},
        **known.document(group.gains),
    }
