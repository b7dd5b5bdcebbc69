"""A training's events as lines of its log, for people."""

from __future__ import annotations

import logging

from core.records import TOTAL, EpochMetrics, Event, Note, RunFacts, Saved, Sink, SplitResult
from core.wording import percent

_log = logging.getLogger("mrnlab.run")


def narrated(sink: Sink) -> Sink:
    """A sink that logs the events worth a line, and passes every event on."""

    def log_and_pass_on(event: Event) -> None:
        for line in _lines(event):
            _log.info("%s", line)
        sink(event)

    return log_and_pass_on


def _lines(event: Event) -> list[str]:
    match event:
        case RunFacts():
            tasks = ", ".join(f"{task.name} ({len(task.labels)} labels)" for task in event.tasks)
            lines = [
                f"Training {tasks} on {event.device} in {event.precision}: {event.total_steps:,} steps, "
                f"{event.steps_per_epoch:,} an epoch."
            ]
            if event.alignment is not None:
                lines.append(f"Alignment {event.alignment}: {event.alignment_reason}")
            return [*lines, *event.notes]
        case EpochMetrics():
            scores = {task: value for (task, name), value in event.values.items() if name == "score"}
            mean = scores.pop(TOTAL, None)
            listed = ", ".join(f"{task} {percent(value)}%" for task, value in scores.items())
            return [
                f"Epoch {event.epoch} after {event.seconds:.1f} s (step {event.step:,}): dev scores {listed}"
                + ("." if mean is None else f", mean {percent(mean)}%.")
            ]
        case SplitResult():
            listed = ", ".join(
                f"{score.task} {score.score_name} {percent(score.score)}%" for score in event.scores
            )
            return [f"Best epoch {event.epoch} on {event.split}: {listed}."]
        case Saved():
            cost = f"{event.size / 1e6:,.1f} MB in {event.seconds:.1f} s"
            return [f"Saved the training state of step {event.step:,} ({cost})."]
        case Note():
            return [event.message]
        case _:
            return []
