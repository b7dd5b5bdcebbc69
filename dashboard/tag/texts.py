"""Answers on whole texts and pairs as the Tag page draws them: labels with bars, numbers on their scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import stdev

from core.corpora.types import Sentence
from core.tagging import Answered, text_of, written
from core.tasks import KINDS
from core.tasks.answers import TextAnswer
from core.wording import all_of, plural
from dashboard.components.text_answers import Said, TaskAnswers
from dashboard.tag.seeds import Answer
from dashboard.tag.views import compared, ordered, schemes_of

_MOST_LABELS = 8
"""The labels of a task that are drawn; of more, the likeliest of any run."""


def task_answers(
    text: Sentence,
    answered: Callable[[Answer], Answered],
    answers: Sequence[Answer],
    known: Mapping[str, str],
) -> list[TaskAnswers]:
    """Returns the answers of each system on a text or a pair, task by task.

    Against a gold label what is wrong is outlined; without one, what differs from the first.
    """
    given = [answered(answer) for answer in answers]
    tasks, colour = ordered([task for task in schemes_of(answers) if any(task in of for of in given)], known)
    paired = text.second is not None
    return [_task(task, text, answered, answers, colour[task], paired=paired) for task in tasks]


def _task(
    task: str,
    text: Sentence,
    answered: Callable[[Answer], Answered],
    answers: Sequence[Answer],
    colour: str,
    *,
    paired: bool,
) -> TaskAnswers:
    kind = KINDS[schemes_of(answers)[task]]
    of = "of the first text" if paired and kind.reads != "pair" else f"of the {kind.item}"
    gold = text.labels[task][0] if task in text.labels else ""
    given = [answered(answer).get(task) for answer in answers]
    of_seeds = [
        [answered(seed)[task].value for seed in answer.seeds if task in answered(seed)] for answer in answers
    ]
    if kind.is_number:
        low, high = next(answer.scales[task] for answer in answers if task in answer.scales)

        def place(value: float) -> float:
            return (value - low) / (high - low) if high > low else 0.5

        return TaskAnswers(
            task,
            colour,
            of,
            [
                None if answer is None else _number(answer, place, gold, seeds)
                for answer, seeds in zip(given, of_seeds, strict=True)
            ],
            ends=(f"{low:g}", f"{high:g}"),
            gold=gold and f"{float(gold):g}",
            gold_place=place(float(gold)) if gold else None,
        )
    first = next((answer for answer in given if answer is not None), None)
    assert first is not None  # tasks are those that some system answers
    drawn, more = _labels(task, [answer for answer in given if answer is not None], answers)
    return TaskAnswers(
        task,
        colour,
        of,
        [
            None if answer is None else _label(answer, gold, first, seeds)
            for answer, seeds in zip(given, of_seeds, strict=True)
        ],
        labels=drawn,
        more=more,
        gold=gold,
    )


def _number(
    answer: TextAnswer, place: Callable[[float], float], gold: str, seeds: Sequence[str | float]
) -> Said:
    value = float(answer.value)
    why = ""
    if gold:
        off = value - float(gold)
        why = f"{abs(off):.2f} too {'high' if off > 0 else 'low'}" if abs(off) >= 0.005 else "as gold"
    spread = f" ± {stdev(map(float, seeds)):.2f}" if len(seeds) > 1 else ""
    return Said(
        f"{value:.2f}{spread}", {}, place(value), why=why, seeds=plural(len(seeds), "seed") if seeds else ""
    )


def _label(answer: TextAnswer, gold: str, first: TextAnswer, seeds: Sequence[str | float]) -> Said:
    label = written(answer.value)
    right = gold or written(first.value)
    differs = label != right
    why = "wrong" if gold else "differs from the first"
    agreed = f"{seeds.count(answer.value)} of {plural(len(seeds), 'seed')}" if seeds else ""
    return Said(label, dict(answer.probabilities), differs=differs, why=why if differs else "", seeds=agreed)


def _labels(task: str, given: Sequence[TextAnswer], answers: Sequence[Answer]) -> tuple[list[str], int]:
    """Returns the labels to draw, and how many are left out; all labels keep the model's order."""
    known = list(dict.fromkeys(label for answer in answers for label in answer.labels.get(task, ())))
    if len(known) <= _MOST_LABELS:
        return known, 0
    best: dict[str, float] = {}
    for answer in given:
        for label, share in answer.probabilities:
            best[label] = max(share, best.get(label, 0.0))
    drawn = sorted(best, key=lambda label: -best[label])[:_MOST_LABELS]
    return drawn, len(known) - len(drawn)


def text_disagreement(
    answered: Callable[[Answer], Answered], chosen: Sequence[Answer], schemes: Mapping[str, str]
) -> str:
    """On which tasks the configurations or the seeds of one disagree, and how far their numbers lie apart.
    Empty for one.
    """
    who, answers = compared(chosen)
    labels, numbers, shared = [], [], False
    given = [answered(answer) for answer in answers]
    for task, scheme in schemes.items():
        values = [of[task].value for of in given if task in of]
        if len(values) < 2:
            continue
        shared = True
        if not KINDS[scheme].is_number:
            labels += [task] if len(set(values)) > 1 else []
        elif (apart := max(map(float, values)) - min(map(float, values))) >= 0.005:
            numbers.append(f"{apart:.2f} on {task}")
    if not shared:
        return ""
    parts = [f"disagree on {all_of(labels)}"] * bool(labels)
    parts += [f"differ by {all_of(numbers)}"] * bool(numbers)
    return f"The {who} {' and '.join(parts) or 'agree'}."


def shown_texts(text: Sentence) -> list[str]:
    """The text, or both of a pair."""
    return [part for part in text_of(text) if part is not None]
