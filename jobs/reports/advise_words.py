"""The advice on tasks in words: the same on the command line and on Launch. Plain text."""

from __future__ import annotations

import math

from core.transfer.gains import GAINS, LOSES
from core.transfer.prediction import ERRORS, HELPS, HURTS, NEAR_HALF
from core.transfer.predictors import Judgement
from core.wording import all_of, duration, first_of, plural, which_runs
from jobs.reports.advise import Inquiry, Measured, PairAdvice, TaskAdvice

HEADERS = (
    "main task",
    "beside",
    "advice",
    "chance of a gain",
    "by",
    "label AMI",
    "MRN's correlation",
    "outside the study",
)

_MOST_NAMED = 2


def row(pair: PairAdvice) -> tuple[str, ...]:
    """What is said of a pair, under HEADERS."""
    expected = pair.expected
    return (
        pair.main,
        pair.aux,
        expected.verdict if pair.measured is None else _measured(pair.measured),
        "" if math.isnan(expected.probability) else f"{expected.probability:.2f}",
        expected.predictor,
        "" if pair.ami is None else f"{pair.ami:z.2f}",
        "no common label" if pair.correlation is None else f"{pair.correlation:z.2f}",
        first_of([name.replace("_", " ") for name in expected.outside], _MOST_NAMED),
    )


def _measured(measured: Measured) -> str:
    """`helps: +1.20 points [+0.40, +2.00], 5 seeds`."""
    gain = measured.gain
    verdict = {GAINS: "helps", LOSES: "hurts"}.get(gain.word, gain.word)
    difference, space, interval = gain.in_points.partition(" ")
    return f"measured, {verdict}: {difference} points{space}{interval}, {plural(gain.seeds, 'seed')}"


def answer(advice: TaskAdvice) -> str:
    """Which pairs are likely to gain and to lose, in a sentence."""
    parts = []
    for verdict, verb in ((HELPS, "helps"), (HURTS, "hurts")):
        pairs = [
            f"{pair.aux} {verb} {pair.main}" for pair in advice.guessed if pair.expected.verdict == verdict
        ]
        if pairs:
            parts.append(f"Likely: {first_of(pairs)}.")
    if measured := [pair for pair in advice.pairs if pair.measured]:
        parts.append(f"Measured already: {len(measured)} of {plural(len(advice.pairs), 'pair')}.")
    silent = len(advice.guessed) - sum(pair.expected.verdict in (HELPS, HURTS) for pair in advice.guessed)
    if silent:
        parts.append(f"No evidence for {silent} of {plural(len(advice.pairs), 'pair')}.")
    return " ".join(parts)


def reasons(advice: TaskAdvice) -> list[str]:
    """How sure the advice is and what it rests on, a sentence or two each."""
    known = advice.lessons
    names = all_of([model.predictor.name for model in known.models])
    speaking = dict.fromkeys(pair.expected.predictor for pair in advice.pairs if pair.expected.predictor)
    judged = {model.predictor.name: model.judgement for model in known.models}
    study = f"the study's {plural(known.pairs, 'pair')} of {plural(known.tasks, 'task')}"
    sure = [_hit_rate(judged[name]) for name in speaking]
    if sure:
        sure[0] = f"The chances rest on {study}. {sure[0]}"
        sure.append(
            f"Of {names}, those speak whose AUC on these same pairs is more than {ERRORS} standard errors "
            "above chance, 0.5; so their figures are a little too good. A chance of a gain from "
            f"{0.5 - NEAR_HALF:.2f} to {0.5 + NEAR_HALF:.2f} is no evidence."
        )
    else:
        silent = [model for model in known.models if model not in known.speaking]
        best = (silent or known.models)[0].judgement
        sure = [
            f"Of {names}, none that has a value for these pairs tells gains from losses for tasks it has not "
            f"seen. On {study} {best.predictor} has {_auc(best)}; chance is 0.5. So there is no evidence for "
            "any pair."
        ]
    if any(pair.expected.outside for pair in advice.guessed):
        sure.append(
            "Outside the study are numbers of a pair beyond all that the study's pairs have; there the "
            "nearest of these counts."
        )
    alone, together = which_runs(advice.alone), which_runs(advice.together)
    rests = f"Rests on {alone} (each task alone) and {together} (MRN of all)."
    return [*sure, *short_budgets(advice.inquiry), rests]


def _hit_rate(judgement: Judgement) -> str:
    """How often a predictor is right for new tasks, beside always saying what is more frequent."""
    share = judgement.gaining / judgement.pairs
    majority = "gain" if share > 0.5 else "no gain"
    return (
        f"By {judgement.predictor}, judged on {judgement.pairs} of them, the advice is right for "
        f"{judgement.accuracy.value:.0%} where it has seen neither task ({_auc(judgement)}); always saying "
        f"“{majority}” is right for {max(share, 1 - share):.0%}."
    )


def _auc(judgement: Judgement) -> str:
    return f"ROC AUC {judgement.auc.value:.2f} ± {judgement.auc.sd:.2f}"


def short_budgets(asked: Inquiry) -> list[str]:
    """That tasks have fewer training words than in the study, where some have."""
    words = [f"{task} {count:,}" for task, count in asked.short.items()]
    return [f"Fewer training words than in the study: {all_of(words)}."] if words else []


def settling(advice: TaskAdvice) -> str:
    """What the sweep takes that measures every pair."""
    total, new = len(advice.inquiry.pairs), advice.new
    if not new:
        return f"All {plural(total, 'run')} that settle it are in the store."
    about = f"about {duration(cost.seconds)}, " if (cost := advice.settling).seconds is not None else ""
    return f"What would settle it: {plural(total, 'run')}, {new:,} of them new; {about}{cost.basis}."
