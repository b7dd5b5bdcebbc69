"""Checks and queues runs, so that a run that cannot work fails before it is queued."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

from core.config import RunConfig, config_warnings
from core.corpora import Corpus, prepare
from core.corpora.loading import Files, files_of, read, text_known
from core.corpora.overlaps import corpus_overlaps
from core.corpora.preparation import SHARE_FIELDS, check_scored, on_share
from core.corpora.types import Overlap
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
from jobs.worker.cores import Sharing
from jobs.worker.devices import gpu_count, is_missing_device

_Share = tuple[Any, ...]
"""The values of `SHARE_FIELDS`."""
_Labels = dict[_Share, dict[str, tuple[str, ...]]]
"""The labels of each task of a share."""


def check(configs: Sequence[RunConfig]) -> tuple[str, ...]:
    """Checks that these runs can be trained here, and returns notes for the researcher, a sentence each.

    Checked are encoders and the length of their windows, corpora and their tasks, that there is something to
    learn, mappings and their labels, and the devices of this machine's workers. Each share of each corpus is
    read once. Raises MRNLabError at the first problem.
    """
    _check_devices(configs)
    _check_encoders(configs)
    encoders = dict.fromkeys(config.encoder for config in configs)
    notes = dict.fromkeys(map(left_to_right_note, filter(is_left_to_right, encoders)))
    labels, corpus_notes = _check_corpora(configs)
    notes |= dict.fromkeys(corpus_notes)
    for config in configs:
        notes |= dict.fromkeys(config_warnings(config))
    for config in configs:
        if config.added_to_configuration is None:  # else the run that it names may not exist yet
            trained_heads(config)
    notes |= dict.fromkeys(_mapping_notes(configs, labels))
    return (*alignment_notes(configs), *notes)


def _check_encoders(configs: Sequence[RunConfig]) -> None:
    """Checks each encoder, each file of vectors, and each length of windows once."""
    for config in {config.transformer: config for config in configs}.values():
        _check_transformer(config)
    for vectors in dict.fromkeys(config.vectors for config in configs if config.vectors is not None):
        check_vectors(vectors)
    for config in {(config.encoder, config.max_length): config for config in configs}.values():
        check_max_length(config)
    for config in {(config.encoder, config.encoder_training): config for config in configs}.values():
        check_training(config)


def _check_corpora(configs: Sequence[RunConfig]) -> tuple[_Labels, list[str]]:
    """Reads each share of each corpus once, and returns the labels of its tasks, and the corpora's notes."""
    labels: _Labels = {}
    notes: list[str] = []
    by_share: dict[_Share, list[RunConfig]] = defaultdict(list)
    for config in configs:
        by_share[_share(config)].append(config)
    for share, group in by_share.items():
        every = dict.fromkeys(task for config in group for task in config.tasks)
        corpus = _prepared(on_share(group[0], every), files_of(group[0].corpus))
        notes += corpus.notes
        labels[share] = {task.name: task.labels for task in corpus.tasks}
        for tasks in dict.fromkeys(config.tasks for config in group):
            check_scored(corpus, tasks)
        for config in group:
            check_trainable(config, [corpus.task(name) for name in config.tasks])
    return labels, notes


def _mapping_notes(configs: Sequence[RunConfig], labels: _Labels) -> Iterator[str]:
    """Fits each file of a mapping to the labels of its tasks, and yields what was left out."""
    mappings = [
        (_share(config), file, config.tasks)
        for config in configs
        if config.alignment is not None
        and config.added_to is None  # with the trained tasks' labels, once these are read
        and (file := parse_alignment(config.alignment)[1])
    ]
    for share, file, tasks in dict.fromkeys(mappings):
        yield from fit(read_mapping(file), tasks, [labels[share][task] for task in tasks]).notes


def automatic_alignments(configs: Sequence[RunConfig]) -> list[tuple[tuple[str, ...], Sequence[Overlap]]]:
    """The tasks of each corpus for which `auto` chooses the alignment, and the overlaps by which it does."""
    automatic = [config for config in configs if config.alignment == "auto" and config.added_to is None]
    groups = dict.fromkeys((config.corpus, config.columns, config.tasks) for config in automatic)
    return [(tasks, corpus_overlaps(corpus, columns, tasks)) for corpus, columns, tasks in groups]


def alignment_notes(configs: Sequence[RunConfig]) -> list[str]:
    """The alignment that `auto` chooses for the tasks of each corpus, with its evidence, each once."""
    chosen = [(tasks, *choose(overlaps)) for tasks, overlaps in automatic_alignments(configs)]
    return list(
        dict.fromkeys(
            f"The alignment of {', '.join(tasks)} is {alignment}: {evidence}."
            for tasks, alignment, evidence in chosen
        )
    )


def submit(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    reuse: bool = False,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    show_notes: Callable[[Sequence[str]], object] = lambda notes: None,
) -> tuple[list[int], list[int]]:
    """Checks and queues the runs, starts workers, and returns all ids in order, and the reused ids.

    With `reuse` only runs that `same_runs` does not find are queued, each once; of two processes that queue
    the same runs at once, one queues them, and the other finds them. Higher priorities start first; `retries`
    is how often each is resumed automatically when its worker dies. `show_notes` is called with the notes of
    the check, before any run is queued.
    Raises MRNLabError where a run cannot work; none is queued then.
    """
    wanted = [with_absolute_paths(config) for config in configs]
    each = list(dict.fromkeys(wanted)) if reuse else wanted
    checked: set[RunConfig] = set()

    def same() -> dict[RunConfig, Run]:
        return same_runs(store, each) if reuse else {}

    while True:
        # Corpora are read before the store is locked.
        present = same()
        if new := [run for run in each if run not in present and run not in checked]:
            _expect_run(store, engine)
            show_notes(_checked(store, new, engine))
            checked.update(new)
        with store.queueing_alone():
            present = same()
            missing = [run for run in each if run not in present]
            if checked.issuperset(missing):  # else a run has failed meanwhile that was there before
                ids = queue_runs(store, missing, sweep, priority=priority, retries=retries, engine=engine)
                break
    (engine or default_engine()).ensure_workers(store)
    if not reuse:
        return ids, []
    numbers = {run: stored.id for run, stored in present.items()} | dict(zip(missing, ids, strict=True))
    return [numbers[run] for run in wanted], [present[run].id for run in wanted if run in present]


def queue_runs(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
) -> list[int]:
    """Queues runs that are checked, each with its number of threads, and returns the ids in order."""
    with store.queueing_alone():
        threads = Sharing.of(store, configs).threads(configs) if _is_local(engine) else None
        return store.add_runs(configs, sweep, priority=priority, retries=retries, threads=threads)


def _is_local(engine: Engine | None) -> bool:
    return (engine or default_engine()).name == "local"


def _checked(store: Store, runs: Sequence[RunConfig], engine: Engine | None) -> tuple[str, ...]:
    """The notes of `check`, and why fewer of these runs train at once than could."""
    notes = check([resolve_base_run(store, run) for run in runs])
    if not _is_local(engine):
        return notes
    sharing = Sharing.of(store, runs)
    return (*notes, *filter(None, [sharing.held_back(sharing.threads(runs))]))


def _expect_run(store: Store, engine: Engine | None) -> None:
    """Starts a worker ahead of the check: its imports take as long as the check of a large corpus."""
    with contextlib.suppress(MRNLabError):  # reported once the runs are queued
        (engine or default_engine()).expect_run(store)


def _check_devices(configs: Sequence[RunConfig]) -> None:
    """Raises ConfigError for a device that this machine lacks, where its own workers would train on it."""
    devices = dict.fromkeys(config.device for config in configs)
    missing = next((device for device in devices if is_missing_device(device)), None)
    if missing is not None and default_engine().name == "local":
        raise ConfigError("device", f"{DeviceError(missing, gpu_count())} Use auto or cpu.")


def _check_transformer(config: RunConfig) -> None:
    """Raises EncoderError, or ConfigError where the context encoder is not available."""
    if config.transformer is None:
        return
    try:
        check_available(config.transformer)
    except EncoderError as error:
        if config.context_encoder is None:
            raise
        raise ConfigError("context_encoder", f"{FIELD}: {error}") from error


def _share(config: RunConfig) -> _Share:
    return tuple(getattr(config, field) for field in SHARE_FIELDS)


# A form is checked after each edit, and a sweep may have hundreds of corpora.
@lru_cache(maxsize=1024)
def _prepared(selection: RunConfig, files: Files) -> Corpus:
    """The corpus of a run without its sentences; `files` are part of the cache key."""
    return replace(prepare(selection), train=(), dev=(), test=(), planted=None)


REUSABLE: tuple[RunState, ...] = (RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED)
"""The states of a run that need not be trained again, the best last."""


_NEWEST = 400  # the newest runs, in which the precision chosen for `auto` is looked up


def same_runs(store: Store, configs: Collection[RunConfig]) -> dict[RunConfig, Run]:
    """The runs of the store with exactly these descriptions that succeeded, train or wait.

    They have the same text and the same meaning of `auto` as now (`up_to_date`). Of several runs of one
    description a finished one is taken before one in training, and that before a queued one; of equals the
    newest. Archived runs are left out. `configs` are as they would be queued (`with_absolute_paths`). Only
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
    """The runs that would be trained in the same way now, with `any_precision` in any precision.

    Left out are runs whose text is known to differ from the corpus now, runs in another precision than `auto`
    chose in the store's newest run with the same device, and runs whose alignment `auto` would choose
    otherwise. Without `may_read` no corpus is read: then a text is known only if it was read here since its
    files changed, and alignments are not compared.
    """
    conditions = store.conditions(runs)
    # Many runs share a corpus.
    text_now, alignment_now = cache(partial(_text_now, may_read=may_read)), cache(_alignment_now)
    needs_precision = not any_precision and any(run.config.precision == "auto" for run in runs)
    precisions = _precisions_now(store) if needs_precision else {}

    def is_same(run: Run) -> bool:
        recorded, config = conditions.get(run.id, Conditions()), run.config
        data = (config.corpus, config.columns)
        pairs = [(recorded.text, text_now(*data) if recorded.text else None)]
        if config.precision == "auto":
            pairs.append((recorded.precision, precisions.get(config.device)))
        if may_read and config.alignment == "auto" and config.added_to is None and recorded.alignment:
            pairs.append((recorded.alignment, alignment_now(*data, config.tasks)))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    return [run for run in runs if is_same(run)]


def _text_now(corpus: str, columns: tuple[str, ...] | None, *, may_read: bool) -> str | None:
    """The hash of a corpus's text; None where it is not known.

    That is where it cannot be read here, or may not be read and its files have changed since the last time.
    """
    with contextlib.suppress(CorpusError):
        return read(corpus, columns).text_hash if may_read else text_known(corpus, columns)
    return None


def _alignment_now(corpus: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...]) -> str | None:
    """The alignment that `auto` chooses; None where the corpus cannot be read here."""
    with contextlib.suppress(CorpusError):
        return choose(corpus_overlaps(corpus, columns, tasks))[0]
    return None


def _precisions_now(store: Store) -> dict[str, str]:
    """The precision that `auto` chose in the newest run on each device, as descriptions name it.

    Workers choose it: they import torch and may be on other machines.
    """
    newest: dict[str, Run] = {}
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST):
        if run.config.precision == "auto" and run.owner is not None:  # an imported run has no owner
            newest.setdefault(run.config.device, run)
    recorded = store.conditions(newest.values())
    return {
        device: precision
        for device, run in newest.items()
        if run.id in recorded and (precision := recorded[run.id].precision) is not None
    }
