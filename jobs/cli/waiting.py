"""Follows runs from the terminal until they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import typer

from core.store import ENDED, Run, RunState, Store
from jobs.cli.output import say
from jobs.engines import Engine
from jobs.estimate import eta
from jobs.tending import Tender
from jobs.wording import seconds_told

__all__ = ["wait_for_runs"]

_POLL_S = 0.5


def wait_for_runs(
    store: Store,
    ids: Sequence[int],
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Tells the progress of these runs on standard error until all have ended.

    Ctrl-C ends the waiting, not the runs, and says so (exit code 130). Raises MRNLabError where one worker
    after another ends before it has claimed a run (torch cannot be imported, say).
    """
    tender = Tender(store, engine)
    told: dict[int, tuple[RunState, int]] = {}
    try:
        while True:
            tender.look()
            runs = store.runs(ids=ids, with_facts=False)
            for run in reversed(runs):
                moment = (run.state, int(run.epoch))
                if told.get(run.id) != moment and run.state is not RunState.QUEUED:
                    say(_progress(run, eta(store, [run]).get(run.id)))
                    tender.moved()
                told[run.id] = moment
            if all(run.state in ENDED for run in runs):
                return
            tender.check()
            sleep(_POLL_S)
    except KeyboardInterrupt:
        say(
            "The runs go on in the background: `mrnlab runs` shows them, "
            f"`mrnlab stop {' '.join(map(str, ids[:3]))}{' ...' if len(ids) > 3 else ''}` stops them."
        )
        raise typer.Exit(130) from None


def _progress(run: Run, left: float | None) -> str:
    if run.state in ENDED:
        why = "" if run.error is None else f": {run.error.message}"
        return f"Run {run.id} {run.state} after {seconds_told(run.seconds) or '0 s'}{why}"
    if not run.step:
        return f"Run {run.id} {run.state}."
    soon = "" if left is None else f", about {seconds_told(left)} left"
    return (
        f"Run {run.id} {run.state}: epoch {run.epoch:.1f} of {run.config.epochs}, "
        f"step {run.step:,} of {run.total_steps or 0:,}{soon}."
    )
