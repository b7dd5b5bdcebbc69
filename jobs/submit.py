"""From descriptions of runs to queued runs: checked first, so that what cannot work fails at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig, remarks
from core.corpora import prepare
from core.corpora.loading import placed_name
from core.corpora.overlap import corpus_overlaps
from core.corpora.preparation import check_scored
from core.errors import ConfigError, DeviceError, MRNLabError
from core.models.registry import BILSTM_SUFFIX, ENCODERS, base_name, has_bilstm
from core.models.sources import check_available, check_max_length
from core.mrn.alignments import choose
from core.mrn.alignments.kept_mappings import keep_mapping
from core.mrn.alignments.mapping import fit
from core.mrn.alignments.mapping_file import read_mapping
from core.mrn.registry import parse_alignment
from core.store import Store
from jobs.engines import Engine, default_engine
from jobs.engines.slots import gpu_count, lacks

__all__ = ["Preflight", "check", "placed", "submit"]

_SHARE_FIELDS = ("corpus", "columns", "fraction", "fraction_draw", "dev_sentences", "label_inventory")
"""The fields that, with the tasks and the seed, say which sentences and labels a run has."""
_Share = tuple[Any, ...]
"""The values of these fields."""


@dataclass(frozen=True)
class Preflight:
    """What a researcher should know before these runs begin, a sentence each."""

    notes: tuple[str, ...]


def check(configs: Sequence[RunConfig]) -> Preflight:
    """Whether these runs can be trained here: encoders are to be had and read windows as long as asked for,
    corpora can be read and have the tasks, mappings can be read and fit their labels, and devices are there
    where this machine's workers train.

    Each share of each corpus is read once. Raises MRNLabError at the first problem.
    """
    _check_devices(configs)
    for encoder in dict.fromkeys(config.encoder for config in configs):
        check_available(encoder)
    for config in {(config.encoder, config.max_length): config for config in configs}.values():
        check_max_length(config)
    notes: dict[str, None] = {}
    labels: dict[_Share, dict[str, tuple[str, ...]]] = {}
    for share, selection in _selections(configs).items():
        corpus = prepare(selection)
        notes |= dict.fromkeys(corpus.notes)
        labels[share] = {task.name: task.labels for task in corpus.tasks}
        for tasks in dict.fromkeys(config.tasks for config in configs if _share(config) == share):
            check_scored(corpus, tasks)
    for config in configs:
        notes |= dict.fromkeys(remarks(config))
    for share, file, tasks in dict.fromkeys(_mappings(configs)):
        fitted = fit(read_mapping(file), tasks, [labels[share][task] for task in tasks])
        notes |= dict.fromkeys(fitted.notes)
    return Preflight((*dict.fromkeys(_automatic_alignments(configs)), *notes))


def submit(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> list[int]:
    """Checks the runs, queues them all, and sees to it that workers are there. Returns their ids in order.

    Higher priorities start first; `retries` is how often each is resumed by itself when its worker dies.
    `tell` is given each note of the check.
    Raises MRNLabError where one of them cannot work; none is queued then.
    """
    with contextlib.suppress(MRNLabError):  # told below, once the runs are queued
        # What a new worker imports takes as long as the check of a large corpus.
        (engine or default_engine()).expect_run(store)
    runs = [placed(config) for config in configs]
    for note in check(runs).notes:
        tell(note)
    ids = store.add_runs(runs, sweep, priority=priority, retries=retries)
    (engine or default_engine()).ensure_workers(store)
    return ids


def _automatic_alignments(configs: Sequence[RunConfig]) -> Iterator[str]:
    """What `auto` stands for in these runs, and its evidence."""
    automatic = [one for one in configs if one.alignment == "auto"]
    for name, columns, tasks in dict.fromkeys((one.corpus, one.columns, one.tasks) for one in automatic):
        alignment, evidence = choose(corpus_overlaps(name, columns, tasks))
        yield f"The alignment of {', '.join(tasks)} is {alignment}: {evidence}."


def _check_devices(configs: Sequence[RunConfig]) -> None:
    """Raises ConfigError for a device that is not here, where workers of this machine would train on it."""
    asked = dict.fromkeys(config.device for config in configs)
    missing = next((device for device in asked if lacks(device)), None)
    if missing is not None and default_engine().name == "local":
        raise ConfigError("device", f"{DeviceError(missing, gpu_count())} Use auto or cpu.")


def _share(config: RunConfig) -> _Share:
    return tuple(getattr(config, field) for field in _SHARE_FIELDS)


def _selections(configs: Sequence[RunConfig]) -> dict[_Share, RunConfig]:
    """One description for each share of each corpus, with all tasks that any of the runs has on it.

    The share of one seed stands for those of all.
    """
    tasks: dict[_Share, dict[str, None]] = {}
    first: dict[_Share, RunConfig] = {}
    for config in configs:
        tasks.setdefault(_share(config), {}).update(dict.fromkeys(config.tasks))
        first.setdefault(_share(config), config)
    return {
        share: RunConfig.build(
            **dict(zip(_SHARE_FIELDS, share, strict=True)),
            seed=config.seed,
            tasks=tuple(tasks[share]),
            paradigm="stl" if len(tasks[share]) == 1 else "mtl",
        )
        for share, config in first.items()
    }


def _mappings(configs: Sequence[RunConfig]) -> Iterator[tuple[_Share, str, tuple[str, ...]]]:
    """The mapping files of these runs, each with the share and the tasks that it must fit."""
    for config in configs:
        if config.alignment is not None and (file := parse_alignment(config.alignment)[1]):
            yield _share(config), file, config.tasks


def placed(config: RunConfig) -> RunConfig:
    """The same run as it is queued: folders by their whole path, since a worker starts elsewhere, and a
    mapping by the copy that the laboratory keeps, since the file may change later.
    """
    changes = {"corpus": placed_name(config.corpus)}
    encoder = os.path.expanduser(base_name(config.encoder))
    # Known names win, as when located. `isdir` raises nothing, whatever a name holds.
    if base_name(config.encoder) not in ENCODERS and os.path.isdir(encoder):
        changes["encoder"] = os.path.realpath(encoder) + (BILSTM_SUFFIX if has_bilstm(config.encoder) else "")
    if config.alignment is not None and (file := parse_alignment(config.alignment)[1]):
        changes["alignment"] = f"mapping:{keep_mapping(read_mapping(file))}"
    if all(getattr(config, field) == value for field, value in changes.items()):
        return config  # thousands are queued at once, and each check of a description takes its time
    return config.with_(**changes)
