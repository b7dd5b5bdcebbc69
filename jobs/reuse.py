"""Runs of the store that are the same as planned ones: used instead of being trained once more.

The same are runs of the same description and seed on the same text, for which `auto` stands for the same now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache

from core.config import RunConfig
from core.corpora.loading import read
from core.corpora.overlap import corpus_overlaps
from core.errors import CorpusError
from core.mrn.alignments import choose
from core.store import Run, RunState, Store
from jobs.engines import Engine
from jobs.samples import UNKNOWN
from jobs.submit import placed, submit

__all__ = ["REUSABLE", "same_runs", "submit_missing", "up_to_date"]

REUSABLE: tuple[RunState, ...] = (RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED)
"""The states of a run that need not be trained again, the best last."""


_NEWEST = 400
"""So many of the newest runs tell what the precision `auto` comes to."""


def same_runs(store: Store, configs: Collection[RunConfig]) -> dict[RunConfig, Run]:
    """The runs of the store with these very descriptions, seed and all, that succeeded, train or wait.

    Of several a finished one counts before one in training, and that before one that waits; of equals the
    newest. Archived ones are left out. `configs` are as they would be queued (`jobs.submit.placed`). Only
    runs of these configurations are read, however many others there are.

    Runs that would be trained otherwise now (`up_to_date`) are left out too.
    """
    wanted = set(configs)
    same = [
        run
        for run in store.runs_of({config.configuration_id for config in wanted}, REUSABLE)
        if run.config_problem is None and run.config in wanted
    ]
    found: dict[RunConfig, Run] = {}
    for run in up_to_date(store, same):
        other = found.get(run.config)
        if other is None or REUSABLE.index(run.state) > REUSABLE.index(other.state):
            found[run.config] = run
    return found


def up_to_date(store: Store, runs: Sequence[Run], *, any_precision: bool = False) -> list[Run]:
    """Those of the runs that would be trained the same now; with `any_precision`, in whatever precision.

    A run that saw other text than the corpus has now is left out; one of which that is not known is not.
    So is a run in another precision than `auto` came to in the store's newest run with the same device, and
    one whose alignment `auto` would choose otherwise.
    """
    conditions = store.conditions(runs)
    text_now, alignment_now = cache(_text_now), cache(_alignment_now)  # many runs share a corpus
    asks = not any_precision and any(run.config.precision == "auto" for run in runs)
    precisions = _precisions_now(store) if asks else {}
    kept = []
    for run in runs:
        known, data = conditions.get(run.id, UNKNOWN), (run.config.corpus, run.config.columns)
        if known.text and _differ(known.text, text_now(*data)):
            continue
        if run.config.precision == "auto" and _differ(known.precision, precisions.get(run.config.device)):
            continue
        if run.config.alignment == "auto" and _differ(
            known.alignment, alignment_now(*data, run.config.tasks)
        ):
            continue
        kept.append(run)
    return kept


def _differ(stored: str | None, now: str | None) -> bool:
    return None not in (stored, now) and stored != now


def _text_now(corpus: str, columns: tuple[str, ...] | None) -> str | None:
    """The hash of a corpus's text; None where it cannot be read here, which is told when a run needs it."""
    try:
        return read(corpus, columns).text_hash
    except CorpusError:
        return None


def _alignment_now(corpus: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...]) -> str | None:
    """What the alignment `auto` stands for; None where the corpus cannot be read here."""
    try:
        return choose(corpus_overlaps(corpus, columns, tasks))[0]
    except CorpusError:
        return None


def _precisions_now(store: Store) -> dict[str, str]:
    """What the precision `auto` came to in the newest run on each device (as descriptions name it).

    Workers find that out, which import torch and may be on other machines.
    """
    newest: dict[str, Run] = {}
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, with_facts=False):
        if run.config.precision == "auto" and run.owner is not None:  # an imported run has no owner
            newest.setdefault(run.config.device, run)
    known = store.conditions(newest.values())
    return {
        device: precision
        for device, run in newest.items()
        if run.id in known and (precision := known[run.id].precision) is not None
    }


def submit_missing(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> tuple[list[int], list[int]]:
    """As `submit`, but only what `same_runs` does not find is checked and queued.

    Returns the numbers of all runs in the order of `configs`, and of those among them that were there.
    """
    wanted = [placed(config) for config in configs]
    there = same_runs(store, wanted)
    missing = [config for config in wanted if config not in there]
    queued = submit(store, missing, sweep, priority=priority, retries=retries, engine=engine, tell=tell)
    numbers = {config: run.id for config, run in there.items()} | dict(zip(missing, queued, strict=True))
    return [numbers[config] for config in wanted], [numbers[config] for config in wanted if config in there]
