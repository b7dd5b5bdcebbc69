"""From descriptions of runs to queued runs: checked first, so that what cannot work fails at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.config import RunConfig, remarks
from core.corpora import CATALOGUE, prepare
from core.corpora.loading import locate
from core.models.registry import BILSTM_SUFFIX, base_name, has_bilstm
from core.models.sources import check_available, check_max_length
from core.store import Store
from jobs.engines import Engine, default_engine

__all__ = ["Preflight", "check", "placed", "submit"]


@dataclass(frozen=True)
class Preflight:
    """What a researcher should know before these runs begin, a sentence each."""

    notes: tuple[str, ...]


def check(configs: Sequence[RunConfig]) -> Preflight:
    """Whether these runs can be trained here: encoders are to be had and read windows as long as asked for,
    corpora can be read and have the tasks.

    Each share of each corpus is read once. Raises MRNLabError at the first problem.
    """
    for encoder in dict.fromkeys(config.encoder for config in configs):
        check_available(encoder)
    for config in configs:
        check_max_length(config)
    notes: dict[str, None] = {}
    for selection in _selections(configs):
        notes |= dict.fromkeys(prepare(selection).notes)
    for config in configs:
        notes |= dict.fromkeys(remarks(config))
    return Preflight(tuple(notes))


def submit(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    engine: Engine | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> list[int]:
    """Checks the runs, queues them all, and sees to it that workers are there. Returns their ids in order.

    `tell` is given each note of the check.
    Raises MRNLabError where one of them cannot work; none is queued then.
    """
    runs = [placed(config) for config in configs]
    for note in check(runs).notes:
        tell(note)
    ids = store.add_runs(runs, sweep)
    (engine or default_engine()).ensure_workers(store)
    return ids


def _selections(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """One description for each share of each corpus, with all tasks that any of the runs has on it.

    The share of one seed stands for those of all.
    """
    tasks: dict[tuple[object, ...], dict[str, None]] = {}
    first: dict[tuple[object, ...], RunConfig] = {}
    for config in configs:
        share = (config.corpus, config.columns, config.fraction)
        tasks.setdefault(share, {}).update(dict.fromkeys(config.tasks))
        first.setdefault(share, config)
    return [
        RunConfig.build(
            corpus=config.corpus,
            columns=config.columns,
            fraction=config.fraction,
            seed=config.seed,
            tasks=tuple(tasks[share]),
            paradigm="stl" if len(tasks[share]) == 1 else "mtl",
        )
        for share, config in first.items()
    ]


def placed(config: RunConfig) -> RunConfig:
    """The same run with folders by their whole path, as it is queued: a worker starts elsewhere."""
    changes = {}
    if config.corpus not in CATALOGUE:
        changes["corpus"] = str(locate(config.corpus).resolve())
    encoder = Path(base_name(config.encoder)).expanduser()
    if encoder.is_dir():
        changes["encoder"] = str(encoder.resolve()) + (BILSTM_SUFFIX if has_bilstm(config.encoder) else "")
    return config.with_(**changes) if changes else config
