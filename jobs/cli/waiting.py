"""Follows runs from the terminal until they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import typer

from core.errors import MRNLabError
from core.paths import home
from core.store import ENDED, Run, RunState, Store
from jobs.cli.output import say
from jobs.engines import Engine, default_engine
from jobs.estimate import eta
from jobs.reaper import reap
from jobs.wording import seconds_told

__all__ = ["wait_for_runs"]

_POLL_S = 0.5
# Waits look after lost runs and missing workers, but need not do so at every look.
_TEND_EVERY = 4
# So many workers may be started in vain, no run moving meanwhile, before the waiting gives up.
_MOST_VAIN_STARTS = 5


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
    engine = engine or default_engine()
    told: dict[int, tuple[RunState, int]] = {}
    looks = vain_starts = 0
    try:
        while True:
            if looks % _TEND_EVERY == 0:
                reap(store)
                vain_starts += engine.ensure_workers(store) > 0
            looks += 1
            runs = store.runs(ids=ids, with_facts=False)
            for run in reversed(runs):
                moment = (run.state, int(run.epoch))
                if told.get(run.id) != moment and run.state is not RunState.QUEUED:
                    say(_progress(run))
                    vain_starts = 0
                told[run.id] = moment
            if all(run.state in ENDED for run in runs):
                return
            if vain_starts >= _MOST_VAIN_STARTS:
                raise MRNLabError(
                    f"The runs are queued, but {vain_starts} workers ended as soon as they had started; the "
                    f"end of {home() / 'logs' / 'workers.log'} says why."
                )
            sleep(_POLL_S)
    except KeyboardInterrupt:
        say(
            "The runs go on in the background: `mrnlab runs` shows them, "
            f"`mrnlab stop {' '.join(map(str, ids[:3]))}{' ...' if len(ids) > 3 else ''}` stops them."
        )
        raise typer.Exit(130) from None


def _progress(run: Run) -> str:
    if run.state in ENDED:
        why = "" if run.error is None else f": {run.error.message}"
        return f"Run {run.id} {run.state} after {seconds_told(run.seconds) or '0 s'}{why}"
    if not run.step:
        return f"Run {run.id} {run.state}."
    left = eta(run)
    soon = "" if left is None else f", about {seconds_told(left)} left"
    return (
        f"Run {run.id} {run.state}: epoch {run.epoch:.1f} of {run.config.epochs}, "
        f"step {run.step:,} of {run.total_steps or 0:,}{soon}."
    )
