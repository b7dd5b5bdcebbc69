"""The values of a study: whether it has scores, its forests, its failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.figures import Forest, Mark
from core.studies import Sample, Study
from core.studies.analysis import MEAN, RARE, Result
from core.wording import signed_points


def has_scores(result: Result) -> bool:
    """Whether anything is known of this setting yet."""
    return any(outcome.scores for outcome in result.outcomes)


def sample_forest(study: Study) -> Forest:
    """The packaged result of the study, as a forest."""
    sample = study.sample or Sample("", "", {})
    marks = tuple(
        Mark(row, task, mean, low, high, f"{name}, {task}: {signed_points(mean / 100)} points", verdict)
        for row, (name, by_task) in enumerate(sample.rows.items())
        for task, (mean, low, high, verdict) in by_task.items()
    )
    tasks = dict.fromkeys(mark.target for mark in marks)
    return Forest(tuple(sample.rows), tuple(tasks), sample.reference, marks)


def study_forest(result: Result, shown: tuple[str, ...] = ()) -> Forest:
    """The paired differences of every method from the reference, on each target and in the mean."""
    shown = shown or targets(result)
    others = [outcome for outcome in result.outcomes if outcome.method.name != result.reference]
    marks = []
    for row, outcome in enumerate(others):
        for target in shown:
            if (delta := outcome.differences.get(target)) is not None:
                words = f"{outcome.method.title}, {target}: {delta.sentence}"
                marks.append(Mark.from_comparison(delta, row, target, words))
    titles = tuple(outcome.method.title for outcome in others)
    return Forest(titles, shown, result.outcome(result.reference).method.title, tuple(marks))


def targets(result: Result) -> tuple[str, ...]:
    """The setting's targets, their mean where there are several, the rarer labels where known."""
    mean = (MEAN,) if len(result.setting.targets) > 1 else ()
    rare = (RARE,) if any(RARE in outcome.scores for outcome in result.outcomes) else ()
    return (*result.setting.targets, *mean, *rare)


def failures(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """The settings in which runs failed, and how many."""
    for result in results:
        if count := sum(outcome.failed for outcome in result.outcomes):
            yield result.setting.title, count
