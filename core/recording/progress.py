"""The progress of a run that is trained in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.events import Event, Note, RunFacts, Sink
from core.metrics import DEV_SCORE, TOTAL, EpochMetrics, StepMetrics
from core.tasks.scores import score_text


@contextmanager
def progress_bar(shown: bool) -> Iterator[Sink]:
    """A bar on standard error over the steps, if it is shown; gives what watches the events of a run."""
    from tqdm.auto import tqdm

    score_names: list[str] = []
    with tqdm(unit="step", disable=not shown) as bar:

        def watch(event: Event) -> None:
            if isinstance(event, RunFacts):
                bar.reset(total=event.total_steps)
                score_names.extend(task.score_name for task in event.tasks if not task.auxiliary)
            elif isinstance(event, StepMetrics):
                bar.update(event.step - bar.n)
            elif isinstance(event, EpochMetrics):
                score = score_text(event.values.get((TOTAL, DEV_SCORE.name)), *score_names)
                bar.set_description(f"epoch {event.epoch}, dev score {score}")
            elif isinstance(event, Note) and shown:
                bar.write(event.message)

        yield watch
