"""The advice on tasks in words: the same on the command line and on Launch. Plain text."""

from __future__ import annotations

import math

from core.transfer.gains import GAINS, LOSES, Gain
from core.transfer.prediction import ERRORS, HELPS, HURTS, NEAR_HALF, Lessons
from core.wording import all_of, duration, first_of, plural, which_runs
from jobs.reports.advise import Inquiry, PairAdvice, TaskAdvice

HEADERS = ("main task", "beside", "advice", "chance of a gain", "gradient cosine")


def row(pair: PairAdvice) -> tuple[str, ...]:
    """What is said of a pair, under HEADERS."""
    expected = pair.expected
    return (
        pair.main,
        pair.aux,
        expected.verdict if pair.measured is None else _measured(pair.measured),
        "" if math.isnan(expected.probability) else f"{expected.probability:.2f}",
        "" if math.isnan(pair.cosine) else f"{pair.cosine:z.2f}{' (outside)' * expected.is_outside}",
    )


def _measured(gain: Gain) -> str:
    """`measured, helps: +1.20 points [+0.40, +2.00], 5 seeds`."""
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
    sentences = [hit_rate(advice.lessons)]
    if any(pair.expected.is_outside for pair in advice.guessed):
        sentences.append("Outside: beyond the cosines of all the study's pairs; there the nearest counts.")
    rests = f"Rests on {which_runs(advice.runs)} (MTL of all tasks)."
    return [*sentences, *short_budgets(advice.inquiry), rests]


def hit_rate(lessons: Lessons) -> str:
    """How often the cosine is right for new tasks, beside always saying what is more frequent."""
    judgement = lessons.model.judgement
    share = judgement.gaining / judgement.pairs
    majority = "gain" if share > 0.5 else "no gain"
    auc = f"ROC AUC {judgement.auc.value:.2f} ± {judgement.auc.sd:.2f}"
    study = f"the study's {plural(lessons.pairs, 'pair')} of {plural(lessons.tasks, 'task')}"
    if not lessons.speaks:
        return (
            f"On {study} the cosine of tasks' gradients does not tell gains from losses for tasks that it "
            f"has not seen ({auc}; chance is 0.5). So there is no evidence for any pair."
        )
    return (
        f"The chances rest on the cosine of the tasks' gradients, judged on {study}: right for "
        f"{judgement.accuracy.value:.0%} where it has seen neither task ({auc}, more than {ERRORS} standard "
        f"errors above chance); always saying “{majority}” is right for {max(share, 1 - share):.0%}. A "
        f"chance of a gain from {0.5 - NEAR_HALF:.2f} to {0.5 + NEAR_HALF:.2f} is no evidence."
    )


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
