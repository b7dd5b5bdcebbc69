"""Stops, resumes, retries, archives, labels and deletes runs; pauses the queue and drains machines.

Each request has an Answer with a message.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.checkpoints import Checkpoint
from core.checkpoints.shared_storage import forget_run
from core.errors import IllegalMove, MRNLabError, RunNotFound
from core.paths import checkpoint_dir, log_path
from core.plain_text import shortened
from core.recording.owner import hostname
from core.store import RESTARTABLE, RunState, Store, normal_keyword
from core.wording import duration, plural
from jobs.engines import Engine, default_engine
from jobs.worker.cores import slots_reason, train_at_once
from jobs.worker.devices import core_count

_log = logging.getLogger(__name__)
PRIORITIES = (-1000, 1000)
"""The lowest and the highest priority that a run may be given by hand; the default is 0."""
KEPT_S = 600.0
"""How long deleted runs and their files are kept, in seconds: until then `restore` brings them back."""
MOST_RETRIES = 100
"""How often a run may be resumed automatically; a run that dies more often needs to be looked at."""

_STOPPED = {
    RunState.CANCELLED: "was queued and is stopped",
    RunState.CANCELLING: "stops at its next step",
}


@dataclass(frozen=True)
class Answer:
    """The outcome of one request: `message` is for the researcher, `run_id` is 0 for no run."""

    run_id: int
    done: bool
    message: str


@dataclass(frozen=True)
class Remains:
    """The counts of rows that a deletion removes, and the bytes of the runs' files on disk."""

    runs: int
    scores: int
    snapshots: int
    checkpoint_bytes: int


def _each(ids: Iterable[int], act: Callable[[int], str]) -> list[Answer]:
    """Calls `act` for each run, and answers with its text or its error; all runs are tried."""
    answers = []
    for run_id in dict.fromkeys(ids):
        try:
            answers.append(Answer(run_id, True, f"Run {run_id} {act(run_id)}"))
        except MRNLabError as error:
            answers.append(Answer(run_id, False, str(error)))
    return answers


def stop(store: Store, ids: Iterable[int]) -> list[Answer]:
    """Asks runs to stop. A worker that does not within `heartbeat.GRACE_S` is ended by its supervisor."""
    wanted = list(dict.fromkeys(ids))
    requested = store.request_stops(wanted)
    # Where a run cannot be stopped, the store raises an error with the reason.
    return _each(wanted, lambda run_id: f"{_STOPPED[requested.get(run_id) or store.request_stop(run_id)]}.")


def resume(store: Store, ids: Iterable[int], engine: Engine | None = None) -> list[Answer]:
    """Queues lost, stopped or failed runs again, to go on from the training state saved last.

    A run without a saved state starts from its beginning, except a failed run, which would fail again.
    """

    def act(run_id: int) -> str:
        with store.transaction():
            run = store.run(run_id)
            # A worker that died may have written a state that it did not record.
            recorded = store.last_metric_steps([run_id]).get(run_id, 0)
            on_disk = Checkpoint(checkpoint_dir(run_id), recorded=recorded).saved_step
            step = max((step for step in (run.saved_step, on_disk) if step is not None), default=None)
            if step is not None:
                _check_restartable(run_id, run.state)
                store.set_saved_step(run_id, step)
                store.requeue(run_id, resume=True)
                return f"goes on from step {step:,}."
            if run.state is RunState.FAILED:
                raise IllegalMove(run_id, run.state, "resume")
            _restart(store, run_id)
            return "has saved no training state yet and starts from its beginning."

    return _and_workers(store, _each(ids, act), engine)


def retry(store: Store, ids: Iterable[int], engine: Engine | None = None) -> list[Answer]:
    """Queues failed, lost or stopped runs again, from their beginning."""

    def act(run_id: int) -> str:
        _restart(store, run_id)
        return "is queued again and starts from its beginning."

    return _and_workers(store, _each(ids, act), engine)


def archive(store: Store, ids: Iterable[int]) -> list[Answer]:
    """Hides runs that have ended from the lists, and deletes nothing."""

    return _moved(store, ids, store.archive, "is archived; the filter archived:yes finds it.")


def restore(store: Store, ids: Iterable[int]) -> list[Answer]:
    """Shows archived runs in the lists again, and brings back runs deleted within `KEPT_S`."""
    wanted = list(dict.fromkeys(ids))
    back = store.undelete(wanted)
    answers = [Answer(run_id, True, f"Run {run_id} is back.") for run_id in wanted if run_id in back]
    rest = [run_id for run_id in wanted if run_id not in back]
    return answers + _moved(store, rest, store.restore, "is shown in the lists again.")


def _moved(
    store: Store, ids: Iterable[int], move: Callable[[list[int]], object], answer: str
) -> list[Answer]:
    def act(run_id: int) -> str:
        store.run(run_id)  # raises where there is none
        move([run_id])
        return answer

    with store.transaction():
        return _each(ids, act)


def change_keywords(
    store: Store, ids: Iterable[int], *, add: Sequence[str], remove: Sequence[str]
) -> list[Answer]:
    """Gives keywords to runs and takes some from them. Raises MRNLabError as `normal_keyword` does."""

    def act(run_id: int) -> str:
        store.add_keywords([run_id], add)
        store.remove_keywords([run_id], remove)
        keywords = store.run(run_id).keywords
        return f"has the keywords {', '.join(keywords)}." if keywords else "has no keywords."

    for text in (*add, *remove):
        normal_keyword(text)
    with store.transaction():
        return _each(ids, act)


def remains(store: Store, ids: Collection[int]) -> Remains:
    """Counts the rows and bytes that deleting these runs would remove."""
    scores = len(store.scores(ids, with_reports=False))
    snapshots = sum(len(store.snapshots(run_id)) for run_id in ids)
    files = (file for run_id in ids for folder in _checkpoints(run_id) for file in folder.rglob("*"))
    size = sum(file.stat().st_size for file in files if file.is_file())
    return Remains(len(ids), scores, snapshots, size)


def delete(store: Store, ids: Iterable[int], *, now: bool = False) -> list[Answer]:
    """Deletes ended or queued runs with all their records, checkpoints and logs.

    They are kept for `KEPT_S`, unless `now`; until then nothing finds them but `restore`.
    """

    def act(run_id: int) -> str:
        store.run(run_id)
        store.mark_deleted([run_id])
        if not now:
            return f"is deleted; `mrnlab restore {run_id}` brings it back for {duration(KEPT_S)}."
        store.delete_runs([run_id])
        if stays := _remove_files(run_id):
            return f"is deleted, with its scores, but files stay that cannot be removed: {', '.join(stays)}."
        return "is deleted, with its scores, its checkpoint and its log."

    return _each(ids, act)


def remove_deleted(store: Store) -> None:
    """Removes the rows and files of runs that were deleted more than `KEPT_S` ago."""
    for run_id in store.remove_marked(store.now() - KEPT_S):
        if stays := _remove_files(run_id):
            _log.warning("Files of the deleted run %d cannot be removed: %s", run_id, ", ".join(stays))


def _remove_files(run_id: int) -> list[str]:
    """Removes the files of a run, and returns a text for each that stays."""
    forget_run(run_id)
    return _removed((*_checkpoints(run_id), log_path(run_id)))


def _restart(store: Store, run_id: int) -> None:
    with store.transaction():  # until it ends no worker can claim the run and write a new checkpoint
        _check_restartable(run_id, store.state(run_id))
        store.requeue(run_id)
        if stays := _removed(_checkpoints(run_id)):
            raise MRNLabError(
                f"Run {run_id} cannot start from its beginning: its checkpoint cannot be removed: "
                f"{', '.join(stays)}."
            )


def _check_restartable(run_id: int, state: RunState) -> None:
    if state not in RESTARTABLE:
        raise IllegalMove(run_id, state, "restart")


def _removed(paths: Iterable[Path]) -> list[str]:
    """Removes files and folders as far as possible, and returns the remaining ones as texts."""
    stays = []
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)  # removes as much as possible
            if path.exists():
                stays.append(f"{path} ({error.strerror})")
    return stays


def _checkpoints(run_id: int) -> list[Path]:
    """The folders of a run's checkpoint and training states.

    They follow from the run's number, never from a path in the store, so that no other folder is deleted.
    """
    folder = checkpoint_dir(run_id)
    return [folder, *folder.parent.glob(f"{run_id}.*")]


def _and_workers(store: Store, answers: list[Answer], engine: Engine | None) -> list[Answer]:
    if any(answer.done for answer in answers):
        (engine or default_engine()).ensure_workers(store)
    return answers


def pause(store: Store) -> list[Answer]:
    """Pauses the queue: no queued run starts."""
    store.pause_queue()
    message = "The queue is paused. Runs in progress go on; queued runs start when you resume the queue."
    return [Answer(0, True, message)]


def unpause(store: Store, engine: Engine | None = None) -> list[Answer]:
    """Ends a pause of the queue: queued runs start again."""
    store.unpause_queue()
    return _and_workers(store, [Answer(0, True, "The queue goes on.")], engine)


def choose_slots(store: Store, slots: int | None, engine: Engine | None = None) -> list[Answer]:
    """Sets how many runs train at once on this machine; None: as many as its cores and memory bear.

    Raises MRNLabError where it has fewer cores.
    """
    cores = core_count()
    if slots is not None and slots > cores:
        raise MRNLabError(f"Each run needs a core: this machine has {cores} for runs, not {slots}.")
    store.choose_slots(hostname(), slots)
    number = train_at_once(store)
    message = f"Up to {plural(number, 'run')} at once on this machine{slots_reason()}."
    return _and_workers(store, [Answer(0, True, message)], engine)


def drain(store: Store, host: str, *, now: bool = False) -> list[Answer]:
    """Drains a machine: it takes no more runs, and with `now` its runs are saved and queued again."""
    _check_host(host)
    store.drain(host, now=now)
    rest = "are saved and queued again" if now else "go on to their end"
    return [Answer(0, True, f"{host} takes no more runs; its current runs {rest}.")]


def undrain(store: Store, host: str, engine: Engine | None = None) -> list[Answer]:
    """Lets a drained machine take runs again."""
    _check_host(host)
    store.undrain(host)
    return _and_workers(store, [Answer(0, True, f"{host} takes runs again.")], engine)


def _check_host(name: str) -> None:
    """Raises MRNLabError where no machine can have that name (RFC 1123, and also `_`)."""
    if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,253}", name):
        raise MRNLabError(
            f"'{shortened(name)}' is not the name of a machine; `mrnlab queue` lists the machines that train."
        )


def stop_all(store: Store, ids: Collection[int]) -> list[Answer]:
    """Stops many runs at once, and leaves runs that have ended meanwhile as they are."""
    requested = sorted(store.request_stops(ids).items())
    return [Answer(run_id, True, f"Run {run_id} {_STOPPED[state]}.") for run_id, state in requested]


def prioritise(store: Store, ids: Collection[int], priority: int) -> list[Answer]:
    """Gives these runs a priority: higher ones start first."""

    def act(run_id: int) -> str:
        if run_id not in present:
            raise RunNotFound(run_id)
        return f"has priority {priority}."

    with store.transaction():
        store.set_priority(ids, priority)
        present = {run.id for run in store.runs(ids)}
    return _each(ids, act)
