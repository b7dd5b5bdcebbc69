"""The report of a study of pairs: the matrix of gains, and their predictors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.config import shares_nothing
from core.errors import MRNLabError
from core.evaluation.comparison import EQUIVALENT, UNDECIDED
from core.results.naming import corpus_name
from core.store import Store
from core.studies import Study
from core.studies.study import SettingRuns
from core.transfer.features import FEATURES
from core.transfer.gains import GAINS, LOSES, Gain, Gains, group_key
from core.transfer.predictors import (
    CROSS_VALIDATION,
    LEFT_OUT,
    PUBLISHED,
    PUBLISHED_COEFFICIENTS,
    Coefficient,
    Judgement,
    Measure,
)
from core.wording import all_of, duration, plural, plural_range, signed_points
from jobs.reports.parts import SIGNED, Entry, Heading, Part, Sheet, difference_entry, mean_entry, spread_of
from jobs.reports.transfer import PairGroup, pair_groups
from jobs.studies.evidence import Evidence, evidence

_COEFFICIENTS = 15
_SHARES_NOTHING = (
    "Nothing can transfer here: over a frozen encoder without a BiLSTM, MTL equals STL. Add a BiLSTM, or "
    "fine-tune."
)
_VERBS = {
    GAINS: ("gains", "gain"),
    LOSES: ("loses", "lose"),
    UNDECIDED: ("is undecided", "are undecided"),
    EQUIVALENT: ("is equivalent", "are equivalent"),
}
_IS = ("is", "are")
_EFFECTS = {GAINS: "gains", LOSES: "losses"}


def pairs_of(
    store: Store, study: Study, settings: Sequence[SettingRuns]
) -> dict[str, tuple[PairGroup, Evidence]]:
    """By part of the study the store's runs of it, and the evidence on their gains.
    Raises MRNLabError where no pair has finished.
    """
    by_key = {group.key: group for group in pair_groups(store, list(study.pairs))}
    parts = {
        setting_runs.setting.part: group_key(setting_runs.candidates["stl"][0].runs_with([1])[0])
        for setting_runs in settings
    }
    groups = {part: by_key[key] for part, key in parts.items() if key in by_key}
    if not groups:
        raise MRNLabError(f"The study '{study.name}' has no finished pair of tasks in this store yet.")
    return {part: (group, evidence(store, group)) for part, group in groups.items()}


def pairs_report(
    title: str, group: PairGroup, evidence: Evidence, names: Mapping[str, str]
) -> Iterator[Part]:
    """Yields the headings, paragraphs and tables of one part; `names` are the tasks' titles."""
    gains = group.gains
    yield Heading(title)
    yield headline(group, names)
    yield Heading("Gains", 3)
    yield _matrix(gains, names)
    yield (
        "MTL of the two tasks less STL of the main one (row), beside the auxiliary task (column): points of "
        f"the main task's test score, paired by seed ({seeds_text(gains)}), with the 95% interval of each "
        "pair by itself (Student's t). Bold: it gains or loses, by p corrected for the auxiliary tasks of a "
        "main task (Holm)."
    )
    yield Heading("What predicts the gain", 3)
    yield predictors_sheet(evidence.judgements, with_published=True)
    yield (
        "Accuracy, F1 of the class “gain”, ROC AUC and Spearman's rank correlation with the gain. "
        f"{CROSS_VALIDATION.capitalize()}: mean ± SD over 100 × 5 random folds. Tasks left out: a pair is "
        "judged by a regression that has seen neither of its tasks; ± its standard error by a bootstrap over "
        "tasks. Seconds: what the numbers of all pairs take to compute. Reported: Bingel and Søgaard (2017), "
        "90 pairs of 10 tasks."
    )
    if contrast := evidence.flat_beside_steep:
        yield (
            "A main task whose loss curve is flat beside an auxiliary task whose curve is steep (Bingel and "
            f"Søgaard's hypothesis): mean gain {signed_points(contrast.kind_gain / 100)} points "
            f"({plural(contrast.count, 'pair')}), other pairs {signed_points(contrast.other_gain / 100)}; "
            f"difference {signed_points(contrast.difference / 100)} [{signed_points(contrast.low / 100)}, "
            f"{signed_points(contrast.high / 100)}], by a bootstrap over tasks. Steep: above the median "
            "of minus the gradient after 20 and 30% of the steps."
        )
    for task, features in evidence.features.items():
        if features.notes:
            yield f"{names.get(task, task)}: {' '.join(features.notes)}"
    if evidence.coefficients:
        yield Heading("Coefficients of all features", 3)
        yield coefficients_sheet(evidence.coefficients)


def headline(group: PairGroup, names: Mapping[str, str] | None = None, *, relative: bool = False) -> str:
    """The answer of a group of runs, as plain text: that nothing can transfer, or `answer`."""
    return _SHARES_NOTHING if shares_nothing(group.config) else answer(group.gains, names, relative=relative)


def answer(gains: Gains, names: Mapping[str, str] | None = None, *, relative: bool = False) -> str:
    """The strongest decided gain and loss, and how many pairs have another verdict, as plain text.

    Pairs whose main task learned nothing are counted by themselves, with its name. Where fewer are decided by
    p corrected over all pairs, it says how many; where none is, it names the strongest effect alone.
    """
    every = list(gains.pairs.values())
    pairs = plural(len(every), "pair")
    if all(gain.is_equal for gain in every):
        return f"Of {pairs} none differs: each seed has the same score alone and beside the other task."
    nothing = [gain for gain in every if gain.learned_nothing]
    learned = [gain for gain in every if not gain.learned_nothing]
    by_word = {word: alike for word in _VERBS if (alike := [gain for gain in learned if gain.word == word])}
    effects = [(word, by_word[word]) for word in _EFFECTS if word in by_word]
    effects.sort(key=lambda effect: -max(abs(gain.mean) for gain in effect[1]))
    counted = [(len(alike), _VERBS[word]) for word, alike in by_word.items() if word not in _EFFECTS]
    others = [
        f"{count}{f' of {pairs}' if effects and index == 0 else ''} {verbs[count > 1]}"
        for index, (count, verbs) in enumerate(counted)
    ]
    rest, learned_nothing = ", ".join(others), ""
    if nothing:
        tasks = dict.fromkeys((names or {}).get(gain.main, gain.main) for gain in nothing)
        count = f" {len(nothing)}" * (len(nothing) > 1)
        learned_nothing = f"; {all_of(list(tasks))} learned nothing"
        rest = f"{rest}{learned_nothing} in the other{count}".removeprefix("; ")
    if not effects:
        seeds = f"Of {pairs} none is decided yet ({seeds_text(gains)})"
        return f"{seeds}: {rest}." if nothing or len(others) > 1 else f"{seeds}."
    over_all = sum(difference.is_decided for difference in gains.over_all.values())
    decided = sum(len(alike) for _, alike in effects)
    if not over_all:
        best = max((gain for _, alike in effects for gain in alike), key=lambda gain: abs(gain.mean))
        main, aux = ((names or {}).get(task, task) for task in (best.main, best.aux))
        return (
            f"Corrected over all {pairs}, none is decided. Corrected for each main task alone, {decided} "
            f"{_IS[decided > 1]}: {main} beside {aux}{' most' * (decided > 1)} "
            f"({amount_text(best, relative=relative)}){learned_nothing}."
        )
    strongest = "; ".join(_strongest(word, alike, names or {}, relative) for word, alike in effects)
    sentence = f"{strongest}. {rest}." if rest else f"{strongest}."
    if over_all == decided:
        return sentence
    return f"{sentence} Over all {pairs} {over_all} {_IS[over_all > 1]} decided (Holm)."


def seeds_text(gains: Gains) -> str:
    """The number of seeds behind the gains: `2 to 3 seeds`."""
    return plural_range((gain.seeds for gain in gains.pairs.values()), "seed")


def amount_text(gain: Gain, *, relative: bool) -> str:
    """Formats a gain as `+1.20 points`, or as `+2.40%` of STL's score where that is above zero."""
    relative = relative and not math.isnan(gain.relative)
    return f"{signed_points(gain.amount(relative=relative) / 100)}{'%' if relative else ' points'}"


def _strongest(word: str, alike: Sequence[Gain], names: Mapping[str, str], relative: bool) -> str:
    """The largest of these gains or losses: `pos loses 1.65 points beside chunk, the largest of 2 losses`.

    Several that are equally large have no names.
    """
    finite = [gain for gain in alike if math.isfinite(gain.amount(relative=relative))]
    if not finite:
        return f"{plural(len(alike), 'pair')} {_VERBS[word][len(alike) > 1]}"
    sizes = [amount_text(gain, relative=relative).lstrip("+−") for gain in finite]
    most = max(finite, key=lambda gain: abs(gain.amount(relative=relative)))
    size = sizes[finite.index(most)]
    among = f", the largest of {len(alike)} {_EFFECTS[word]}" if len(alike) > sizes.count(size) else ""
    if (count := sizes.count(size)) > 1:
        return f"{count} pairs {_VERBS[word][1]} {size} each{among}"
    return f"{names.get(most.main, most.main)} {word} {size} beside {names.get(most.aux, most.aux)}{among}"


def _matrix(gains: Gains, names: Mapping[str, str]) -> Sheet:
    def cell(main: str, aux: str) -> Entry | str | None:
        gain = gains.pairs.get((main, aux))
        if gain is None:
            return "" if main == aux else None
        entry = difference_entry(gain)
        return entry and replace(entry, bold=gain.is_decided)

    def alone(task: str) -> Entry | None:
        score = gains.alone.get(task)
        return None if score is None else mean_entry(score, 1, scale=100, unit="%")

    rows = [
        (names.get(main, main), alone(main), *(cell(main, aux) for aux in gains.tasks))
        for main in gains.tasks
    ]
    return Sheet.of(["main task", "STL", *(names.get(aux, aux) for aux in gains.tasks)], rows)


def predictors_sheet(judgements: Sequence[Judgement], *, with_published: bool) -> Sheet:
    """A table with a row per predictor, the schemes side by side, published figures below."""
    by_name: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_name.setdefault(judgement.predictor, []).append(judgement)
    rows: list[tuple[Any, ...]] = []
    for name, schemes_of in by_name.items():
        measures = [m for each in schemes_of for m in (each.accuracy, each.f1, each.auc, each.rank)]
        first = schemes_of[0]
        pairs, cost = (
            Entry(first.pairs, form="d"),
            Entry(math.nan if first.seconds is None else first.seconds, form=_cost_text),
        )
        rows.append((name, *map(_measure, measures), _number(first.direct_rank), pairs, cost))
    schemes = list(dict.fromkeys(judgement.scheme for judgement in judgements))
    for name, figures in PUBLISHED.items() if with_published else ():
        quoted = [Entry(figure, form=".3f", is_quoted=True) for figure in figures]
        missing = [None] * (4 * len(schemes) - 1)
        rows.append((f"{name} (reported)", *quoted, *missing, Entry(90, form="d", is_quoted=True), None))
    suffixes = [", tasks left out" * (scheme == LEFT_OUT and len(schemes) > 1) for scheme in schemes]
    measured = [f"{name}{suffix}" for suffix in suffixes for name in ("accuracy", "F1", "AUC", "rank")]
    return Sheet.of(["predictor", *measured, "rank of the number", "pairs", "time"], rows)


def _measure(measure: Measure) -> Entry | None:
    """An entry of a predictor's measure with its spread; None where it is not finite."""
    if not math.isfinite(measure.value):
        return None
    return Entry(measure.value, spread_of(measure.sd), form="z.3f")


def _cost_text(seconds: float) -> str:
    return "0 s" if seconds == 0 else duration(seconds)


def _number(value: float) -> Entry | None:
    return Entry(value, form=SIGNED) if math.isfinite(value) else None


def coefficients_sheet(weights: Sequence[Coefficient]) -> Sheet:
    """A table of the largest weights of the regression on all features, and the published weights."""
    rows = [
        (
            f"{FEATURES[feature]}, {role}",
            Entry(weight.value, (weight.low, weight.high), form=SIGNED),
            _number(PUBLISHED_COEFFICIENTS.get(weight.feature, math.nan)),
        )
        for weight in sorted(weights, key=lambda weight: -abs(weight.value))[:_COEFFICIENTS]
        for role, _, feature in [weight.feature.partition(" ")]
    ]
    return Sheet.of(("feature", "weight", "reported"), rows)


def pairs_document(group: PairGroup, evidence: Evidence) -> dict[str, Any]:
    """The report as one document: gains in points, features of tasks and numbers of pairs."""
    return {
        "corpus": corpus_name(group.config.corpus),
        "tasks": list(group.gains.tasks),
        "alone": {task: vars(score) for task, score in group.gains.alone.items()},
        "features": {task: dict(features.values) for task, features in evidence.features.items()},
        "pairs": [
            {
                "main": main,
                "aux": aux,
                **gain.as_numbers(),
                **{name: numbers.by_pair.get((main, aux)) for name, numbers in evidence.numbers.items()},
            }
            for (main, aux), gain in group.gains.pairs.items()
        ],
        "seconds": {predictor.name: predictor.seconds for predictor in evidence.predictors},
        "judgements": [dataclasses.asdict(judgement) for judgement in evidence.judgements],
    }
