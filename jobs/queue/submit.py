"""From descriptions of runs to queued runs: checked first, so that what cannot work fails at once."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

from core.config import RunConfig, config_warnings
from core.corpora import Corpus, prepare
from core.corpora.loading import Files, corpus_overlaps, files_of, read, text_known
from core.corpora.preparation import check_scored
from core.errors import FIELD, ConfigError, CorpusError, DeviceError, EncoderError, MRNLabError
from core.models.sources import (
    check_available,
    check_max_length,
    check_training,
    is_left_to_right,
    left_to_right_note,
)
from core.models.trained_heads import trained_heads
from core.models.word_vectors import check_vectors
from core.mrn.alignments import choose
from core.mrn.alignments.mapping import fit, read_mapping
from core.recording.resolve import resolve_base_run, with_absolute_paths
from core.registry import parse_alignment
from core.store import Conditions, Run, RunState, Store
from core.training.trainable import check_trainable
from jobs.engines import Engine, default_engine
from jobs.worker.devices import gpu_count, lacks

_SHARE_FIELDS = ("corpus", "columns", "fraction", "fraction_draw", "dev_sentences", "label_inventory")
"""The fields that, with the tasks and the seed, say which sentences and labels a run has."""
_Share = tuple[Any, ...]
"""The values of these fields."""


def check(configs: Sequence[RunConfig]) -> tuple[str, ...]:
    """Whether these runs can be trained here: encoders are to be had and read windows as long as asked for,
    corpora can be read and have the tasks, there is something to learn, mappings can be read and fit their
    labels, and devices are there where this machine's workers train.

    Each share of each corpus is read once. Returns what a researcher should know before the runs begin, a
    sentence each. Raises MRNLabError at the first problem.
    """
    _check_devices(configs)
    for config in {config.transformer: config for config in configs}.values():
        _check_transformer(config)
    for vectors in dict.fromkeys(config.vectors for config in configs if config.vectors is not None):
        check_vectors(vectors)
    for config in {(config.encoder, config.max_length): config for config in configs}.values():
        check_max_length(config)
    for config in {(config.encoder, config.encoder_training): config for config in configs}.values():
        check_training(config)
    encoders = dict.fromkeys(config.encoder for config in configs)
    notes = dict.fromkeys(map(left_to_right_note, filter(is_left_to_right, encoders)))
    labels: dict[_Share, dict[str, tuple[str, ...]]] = {}
    by_share: dict[_Share, list[RunConfig]] = defaultdict(list)
    for config in configs:
        by_share[_share(config)].append(config)
    for share, group in by_share.items():
        corpus = _prepared(_selection(share, group), files_of(group[0].corpus))
        notes |= dict.fromkeys(corpus.notes)
        labels[share] = {task.name: task.labels for task in corpus.tasks}
        for tasks in dict.fromkeys(config.tasks for config in group):
            check_scored(corpus, tasks)
        for config in group:
            check_trainable(config, [corpus.task(name) for name in config.tasks])
    for config in configs:
        notes |= dict.fromkeys(config_warnings(config))
    for config in configs:
        if config.added_to_configuration is None:  # else the run that it names may be yet to come
            trained_heads(config)
    mappings = [
        (_share(config), file, config.tasks)
        for config in configs
        if config.alignment is not None
        and config.added_to is None  # with the trained tasks' labels, once these are read
        and (file := parse_alignment(config.alignment)[1])
    ]
    for share, file, tasks in dict.fromkeys(mappings):
        fitted = fit(read_mapping(file), tasks, [labels[share][task] for task in tasks])
        notes |= dict.fromkeys(fitted.notes)
    automatic = [config for config in configs if config.alignment == "auto" and config.added_to is None]
    data = dict.fromkeys((config.corpus, config.columns, config.tasks) for config in automatic)
    chosen = {names: choose(corpus_overlaps(*names)) for names in data}
    alignments = [
        f"The alignment of {', '.join(tasks)} is {alignment}: {evidence}."
        for (_, _, tasks), (alignment, evidence) in chosen.items()
    ]
    return (*dict.fromkeys(alignments), *notes)


def submit(
    store: Store,
    configs: Sequence[RunConfig],
    launch: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    tell: Callable[[Sequence[str]], object] = lambda notes: None,
) -> list[int]:
    """Checks the runs, queues them all, and sees to it that workers are there. Returns their ids in order.

    Higher priorities start first; `retries` is how often each is resumed by itself when its worker dies.
    `tell` is given the notes of the check, before any run is queued.
    Raises MRNLabError where one of them cannot work; none is queued then.
    """
    _expect_run(store, engine)
    runs = [with_absolute_paths(config) for config in configs]
    tell(check([resolve_base_run(store, run) for run in runs]))
    ids = store.add_runs(runs, launch, priority=priority, retries=retries)
    (engine or default_engine()).ensure_workers(store)
    return ids


def _expect_run(store: Store, engine: Engine | None) -> None:
    """What a new worker imports takes as long as the check of a large corpus."""
    with contextlib.suppress(MRNLabError):  # told once the runs are queued
        (engine or default_engine()).expect_run(store)


def _check_devices(configs: Sequence[RunConfig]) -> None:
    """Raises ConfigError for a device that is not here, where workers of this machine would train on it."""
    devices = dict.fromkeys(config.device for config in configs)
    missing = next((device for device in devices if lacks(device)), None)
    if missing is not None and default_engine().name == "local":
        raise ConfigError("device", f"{DeviceError(missing, gpu_count())} Use auto or cpu.")


def _check_transformer(config: RunConfig) -> None:
    """Raises EncoderError, or ConfigError where it is the context encoder that cannot be had."""
    if config.transformer is None:
        return
    try:
        check_available(config.transformer)
    except EncoderError as error:
        if config.context_encoder is None:
            raise
        raise ConfigError("context_encoder", f"{FIELD}: {error}") from error


def _share(config: RunConfig) -> _Share:
    return tuple(getattr(config, field) for field in _SHARE_FIELDS)


def _selection(share: _Share, group: Sequence[RunConfig]) -> RunConfig:
    """One config covering every task of the runs on this fraction; its share is that of the first seed."""
    tasks = tuple(dict.fromkeys(task for config in group for task in config.tasks))
    return RunConfig.build(
        **dict(zip(_SHARE_FIELDS, share, strict=True)),
        seed=group[0].seed,
        tasks=tasks,
        paradigm="stl" if len(tasks) == 1 else "mtl",
    )


# A form is checked after each edit, and a sweep may have hundreds of corpora.
@lru_cache(maxsize=1024)
def _prepared(selection: RunConfig, files: Files) -> Corpus:
    """Tasks and notes of what such a run trains on, without the sentences. `files` are part of the key."""
    return replace(prepare(selection), train=(), dev=(), test=(), planted=None)


REUSABLE: tuple[RunState, ...] = (RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED)
"""The states of a run that need not be trained again, the best last."""


_NEWEST = 400  # so many of the newest runs tell what the precision `auto` comes to


def same_runs(store: Store, configs: Collection[RunConfig]) -> dict[RunConfig, Run]:
    """The runs of the store with these very descriptions, seed and all, that succeeded, train or wait, on the
    same text and with the same meaning of `auto` as now (`up_to_date`).

    Of several a finished one counts before one in training, and that before one that waits; of equals the
    newest. Archived ones are left out. `configs` are as they would be queued (`with_absolute_paths`). Only
    runs of these configurations are read, however many others there are.
    """
    wanted = set(configs)
    same = [
        run
        for run in store.runs_of({config.configuration_id for config in wanted}, REUSABLE)
        if run.config_problem is None and run.config in wanted
    ]
    best: dict[RunConfig, Run] = {}
    for run in up_to_date(store, same):
        other = best.get(run.config)
        if other is None or REUSABLE.index(run.state) > REUSABLE.index(other.state):
            best[run.config] = run
    return best


def up_to_date(
    store: Store, runs: Sequence[Run], *, any_precision: bool = False, may_read: bool = True
) -> list[Run]:
    """Those of the runs that would be trained the same now; with `any_precision`, in whatever precision.

    Unless it `may_read`, no corpus is read: its text is known if it was read here since its files changed,
    and what `auto` would choose is not.
    A run that saw other text than the corpus has now is left out; one of which that is not known is not.
    So is a run in another precision than `auto` came to in the store's newest run with the same device, and
    one whose alignment `auto` would choose otherwise.
    """
    conditions = store.conditions(runs)
    # Many runs share a corpus.
    text_now, alignment_now = cache(partial(_text_now, may_read=may_read)), cache(_alignment_now)
    asks = not any_precision and any(run.config.precision == "auto" for run in runs)
    precisions = _precisions_now(store) if asks else {}

    def same(run: Run) -> bool:
        known, config = conditions.get(run.id, Conditions()), run.config
        data = (config.corpus, config.columns)
        pairs = [(known.text, text_now(*data) if known.text else None)]
        if config.precision == "auto":
            pairs.append((known.precision, precisions.get(config.device)))
        if may_read and config.alignment == "auto" and config.added_to is None and known.alignment:
            pairs.append((known.alignment, alignment_now(*data, config.tasks)))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    return [run for run in runs if same(run)]


def _text_now(corpus: str, columns: tuple[str, ...] | None, *, may_read: bool) -> str | None:
    """The hash of a corpus's text; None where it cannot be read here, which is told when a run needs it, and
    where it may not be read and its files have changed since.
    """
    with contextlib.suppress(CorpusError):
        return read(corpus, columns).text_hash if may_read else text_known(corpus, columns)
    return None


def _alignment_now(corpus: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...]) -> str | None:
    """What the alignment `auto` stands for; None where the corpus cannot be read here."""
    with contextlib.suppress(CorpusError):
        return choose(corpus_overlaps(corpus, columns, tasks))[0]
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
    launch: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    tell: Callable[[Sequence[str]], object] = lambda notes: None,
) -> tuple[list[int], list[int]]:
    """As `submit`, but only what `same_runs` does not find is checked and queued, each of equals once. Of two
    processes that queue the same runs at once, one does, and the other finds them.

    Returns the numbers of all runs in the order of `configs`, and of those among them that were there.
    """
    wanted = [with_absolute_paths(config) for config in configs]
    checked: set[RunConfig] = set()
    while True:
        # Corpora are read before the store is kept from others.
        if new := dict.fromkeys(wanted).keys() - same_runs(store, wanted).keys() - checked:
            _expect_run(store, engine)
            tell(check([resolve_base_run(store, run) for run in dict.fromkeys(wanted) if run in new]))
            checked |= new
        with store.queueing_alone():
            present = same_runs(store, wanted)
            missing = [config for config in dict.fromkeys(wanted) if config not in present]
            if checked.issuperset(missing):  # else a run has failed meanwhile that was there before
                queued = store.add_runs(missing, launch, priority=priority, retries=retries)
                break
    (engine or default_engine()).ensure_workers(store)
    numbers = {config: run.id for config, run in present.items()} | dict(zip(missing, queued, strict=True))
    return [numbers[config] for config in wanted], [numbers[config] for config in wanted if config in present]
