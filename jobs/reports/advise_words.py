"""The advice on tasks as a report: the same on the command line and on Launch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from core.transfer.gains import GAINS, LOSES, Gain
from core.transfer.prediction import ERRORS, EVEN, HELPS, HURTS, NEAR_HALF, NO_EVIDENCE, Lessons
from core.wording import all_of, duration, first_of, plural, spread_text, which_runs
from jobs.reports.advise import Inquiry, TaskAdvice
from jobs.reports.render import Code, Part, Sheet


def report(advice: TaskAdvice) -> Iterator[Part]:
    """What is expected of each pair, how sure that is and what it rests on, and the sweep that settles it."""
    rows = [
        (
            pair.main,
            pair.aux,
            pair.verdict if pair.measured is None else _measured(pair.measured),
            None if math.isnan(pair.probability) else f"{pair.probability:.2f}",
            None if math.isnan(pair.cosine) else f"{pair.cosine:z.2f}".replace("-", "−"),
        )
        for pair in advice.pairs
    ]
    yield Sheet.of(("main task", "beside", "advice", "chance of a gain", "gradient cosine"), rows)
    yield _answer(advice)
    yield hit_rate(advice.lessons)
    yield " ".join(
        [*short_budgets(advice.inquiry), f"Rests on {which_runs(advice.runs)} (MTL of all tasks)."]
    )
    yield _settling(advice)
    yield Code((advice.settling_command,))


def _measured(gain: Gain) -> str:
    """`measured, helps: +1.20 points [+0.40, +2.00], 5 seeds`."""
    verdict = {GAINS: "helps", LOSES: "hurts"}.get(gain.word, gain.word)
    difference, space, interval = gain.in_points.partition(" ")
    return f"measured, {verdict}: {difference} points{space}{interval}, {plural(gain.seeds, 'seed')}"


def _answer(advice: TaskAdvice) -> str:
    """Which pairs are likely to gain and to lose, in a sentence or two."""
    every, parts = plural(len(advice.pairs), "pair"), []
    guessed = [pair for pair in advice.pairs if pair.measured is None]
    for verdict, verb in ((HELPS, "helps"), (HURTS, "hurts")):
        if pairs := [f"{pair.aux} {verb} {pair.main}" for pair in guessed if pair.verdict == verdict]:
            parts.append(f"Likely: {first_of(pairs)}.")
    if len(guessed) < len(advice.pairs):
        parts.append(f"Measured already: {len(advice.pairs) - len(guessed)} of {every}.")
    for verdict, words in ((EVEN, "About even"), (NO_EVIDENCE, "No evidence")):
        if count := sum(pair.verdict == verdict for pair in guessed):
            parts.append(f"{words} for {count} of {every}.")
    return " ".join(parts)


def hit_rate(lessons: Lessons) -> str:
    """How often the cosine is right for new tasks, beside always saying what is more frequent."""
    judgement = lessons.judgement
    share = judgement.gaining / judgement.pairs
    auc = f"ROC AUC {judgement.auc.value:.2f} {spread_text(judgement.auc.sd)}"
    study = f"the study's {plural(judgement.pairs, 'pair')} of {plural(lessons.tasks, 'task')}"
    if not lessons.speaks:
        return (
            f"On {study} the cosine of tasks' gradients does not tell gains from losses for tasks that it "
            f"has not seen ({auc}; chance is 0.5). So there is no evidence for any pair."
        )
    right, error = judgement.accuracy.value, ERRORS * judgement.accuracy.sd
    low, high = lessons.range
    return (
        f"The chances rest on the cosine of the tasks' gradients, judged on {study}: right for {right:.0%} "
        f"[{max(right - error, 0):.0%}, {min(right + error, 1):.0%}] where it has seen neither task ({auc}, "
        f"more than {ERRORS} standard errors above chance); always saying “{'' if share > 0.5 else 'no '}"
        f"gain” is right for {max(share, 1 - share):.0%}. A chance from {0.5 - NEAR_HALF:.2f} to "
        f"{0.5 + NEAR_HALF:.2f} is about even. The study's cosines lie from {low:.2f} to {high:.2f}; beyond, "
        "the nearest counts."
    )


def short_budgets(asked: Inquiry) -> list[str]:
    """That tasks have fewer training words than in the study, where some have."""
    words = [f"{task} {count:,}" for task, count in asked.short.items()]
    return [f"Fewer training words than in the study: {all_of(words)}."] if words else []


def _settling(advice: TaskAdvice) -> str:
    """What the sweep takes that measures every pair."""
    total, cost = plural(len(advice.inquiry.pairs), "run"), advice.settling
    if not advice.new:
        return f"All {total} that settle it are in the store."
    about = "" if cost.seconds is None else f"about {duration(cost.seconds)}, "
    return f"What would settle it: {total}, {advice.new:,} of them new; {about}{cost.basis}."
