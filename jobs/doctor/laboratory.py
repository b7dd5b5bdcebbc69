"""All that the doctor looks at, in order."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.checkpoints.shared_storage import shared_artefacts
from core.errors import MRNLabError, StoreError
from core.paths import database_url, home, own_checkpoint
from core.recording.owner import hostname
from core.store import ACTIVE, Run, RunState, Store
from core.store.engine import wal_is_safe
from core.store.migrations import HEAD
from jobs.doctor import machine
from jobs.doctor import machine as installation
from jobs.doctor.machine import Finding, Fix, problem, remark, size_of
from jobs.engines import Engine, default_engine
from jobs.engines.local import clear_slots, gpu_count, slot_count, stale_slots
from jobs.worker.maintenance import tend
from jobs.worker.process import Fate, fate_of

# What lies in the laboratory's folder and belongs to no run, or was left half-written by a worker that
# died.
#
# Only remains are ever removed: half-written folders and files, and training states that no run can take up
# again, when they have not been touched for an hour. A finished model is a result, so one without a run is
# named and left; so is all that this store may know nothing about.


_HOUR_S = 3600.0
_SHOWN = 5

_RUN = re.compile(r"(\d+)(\..+)?")
_LOG = re.compile(r"run-(\d+)\.log")


def orphans(store: Store, now: Callable[[], float] = time.time) -> Iterator[Finding]:
    """Remains in `checkpoints`, `logs`, `cache` and `uploads`."""
    runs = {run.id: run for run in store.runs(archived=None)}
    # A number that this store has not given out is another store's: what bears it is not ours to judge.
    newest = max(runs, default=0)
    settled = [path for path in _entries("checkpoints") if _age(path, now()) > _HOUR_S]
    remains = [path for path in settled if _is_remains(path, runs, newest)]
    if remains:
        yield _removable(
            "checkpoints",
            "half-written folders and training states that no run can use any more",
            remains,
        )
    models = [path for path in settled if path.name.isdigit() and int(path.name) not in runs]
    if models:
        yield remark(
            "checkpoints",
            f"{len(models)} models belong to no run of this store ({_sum(models)}, {_size(models)} in all). "
            "They may be another store's; remove them by hand if they are nobody's.",
        )
    logs = [
        path
        for path in _entries("logs")
        if (named := _LOG.fullmatch(path.name))
        and int(named[1]) not in runs
        and int(named[1]) <= newest
        and _age(path, now()) > _HOUR_S
    ]
    if logs:
        yield _removable("logs", "logs of runs that were deleted", logs)
    cached = [
        path
        for path in (home() / "cache").rglob("*.tmp.np*")
        if path.is_file() and _age(path, now()) > _HOUR_S
    ]
    if cached:
        yield _removable("cache", "half-written files of the cache", cached)
    yield from _uploads(runs.values())


def _is_remains(path: Path, runs: dict[int, Run], newest: int) -> bool:
    """Whether nobody can want a folder among the checkpoints, finished models aside."""
    if path.name.startswith("import."):
        return True  # an import that was killed
    named = _RUN.fullmatch(path.name)
    if named is None or named[2] is None or int(named[1]) > newest:
        return False
    run = runs.get(int(named[1]))
    if named[2] == ".states":
        # A run that failed, was stopped or lost resumes from them.
        return run is None or run.state is RunState.SUCCEEDED
    half_written = re.fullmatch(r"\.(new|old)(-\d+)?", named[2]) is not None
    return half_written and (run is None or run.state not in ACTIVE)


def _uploads(runs: Iterable[Run]) -> Iterator[Finding]:
    described = "\n".join(f"{run.config.corpus}\n{run.config.alignment}" for run in runs)
    unused = [path for path in _entries("uploads") if str(path) not in described]
    if unused:
        yield remark(
            "uploads",
            f"{len(unused)} upload(s) are used by no run ({_sum(unused)}), {_size(unused)} in all. They may "
            "be somebody's data, so they stay; remove by hand what nobody needs.",
        )


def _entries(kind: str) -> list[Path]:
    folder = home() / kind
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _age(path: Path, now: float) -> float:
    """Seconds since anything in it was written."""
    times = []
    for one in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
        try:
            times.append(one.lstat().st_mtime)
        except FileNotFoundError:
            continue  # in use: it has just been removed
    return now - max(times, default=now)


def _removable(about: str, what: str, paths: list[Path]) -> Finding:
    def remove() -> str:
        size = _size(paths)
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return f"Removed {len(paths)} ({size})."

    return remark(
        about,
        f"{len(paths)} {what} lie in {home() / about}: {_sum(paths)}, {_size(paths)} in all.",
        Fix("Remove them.", remove),
    )


def _sum(paths: list[Path]) -> str:
    names = ", ".join(path.name for path in paths[:_SHOWN])
    return names if len(paths) <= _SHOWN else f"{names} and {len(paths) - _SHOWN:,} more"


def _size(paths: list[Path]) -> str:
    size = sum(size_of(path) if path.is_dir() else path.lstat().st_size for path in paths if path.exists())
    return f"{size / 1e6:,.1f} MB"


# Runs that wait for nobody, runs that nobody trains, and what workers left behind on this machine.


_SHOWN_QUEUE = 10
_SILENT_S = 3 * 3600.0


def _numbers(ids: list[int]) -> str:
    """`run 3`, `runs 3, 4, 7`, and of many the first ones."""
    told = ", ".join(map(str, sorted(ids)[:_SHOWN_QUEUE]))
    more = f" and {len(ids) - _SHOWN_QUEUE:,} more" if len(ids) > _SHOWN_QUEUE else ""
    return f"run{'s' if len(ids) > 1 else ''} {told}{more}"


def abandoned(store: Store, engine: Engine) -> Iterator[Finding]:
    """Runs said to be trained whose worker is gone. Raises StoreError."""
    states = {RunState.RUNNING, RunState.CANCELLING}
    gone = [run for run in store.runs(states=states, with_facts=False) if _is_gone(store, run)]
    if gone:
        ids = [run.id for run in gone]

        def mark() -> str:
            lost = tend(store, engine)
            return f"Marked as lost: {_numbers(lost)}." if lost else "No run was lost any more."

        yield problem(
            "queue",
            f"The workers of {_numbers(ids)} are gone, and the store still says that they train.",
            Fix("Mark them as lost (those with retries are queued again, to be resumed).", mark),
        )


def _is_gone(store: Store, run: Run) -> bool:
    if run.owner is None:
        return False
    fate = fate_of(run.owner)
    silent = run.heartbeat_at is not None and store.now() - run.heartbeat_at.timestamp() > _SILENT_S
    return fate in (Fate.GONE, Fate.REBOOTED) or (fate is Fate.ELSEWHERE and silent)


def held_back(store: Store) -> Iterator[Finding]:
    """A pause of the queue, and drained machines. Both are somebody's decision."""
    waits = store.counts()[RunState.QUEUED]
    since = store.paused_since()
    if since is not None:
        yield remark(
            "queue",
            f"The queue has been paused since {since:%Y-%m-%d %H:%M} UTC; {waits:,} runs wait. `mrnlab queue "
            "resume` lets them start.",
        )
    for host, from_ in store.drained().items():
        yield remark(
            "queue",
            f"The machine {host} has taken no run since {from_:%Y-%m-%d %H:%M} UTC (it is drained). `mrnlab "
            f"queue undrain --host {host}` lets it.",
        )


def waiting(store: Store, engine: Engine) -> Iterator[Finding]:
    """Runs that could start here, and no worker to train them. Raises MRNLabError."""
    could = store.claimable(hostname())
    if could and not engine.live_workers(store):

        def start() -> str:
            return f"Workers started: {engine.ensure_workers(store)}."

        yield problem(
            "queue",
            f"{could:,} runs are queued and no worker is alive; `mrnlab worker` starts one.",
            Fix("Start workers in the background.", start),
        )


def cards(store: Store) -> Iterator[Finding]:
    """Slots whose worker is gone."""
    stale = stale_slots(store.url)
    if stale:

        def remove() -> str:
            return f"{clear_slots(store.url, stale)} removed."

        yield remark(
            "workers",
            f"{len(stale)} worker(s) of this machine died without taking their name from their slot; that "
            "keeps nobody from it.",
            Fix("Remove the names.", remove),
        )


def checkpoints_gone(store: Store) -> Iterator[Finding]:
    """Runs that succeeded and whose model is neither here nor in the shared place.

    Raises ArtefactError where that cannot be read.
    """
    shared = shared_artefacts()
    fetched = set(shared.names("models/") if shared is not None else ())
    done = store.runs(states={RunState.SUCCEEDED}, archived=None)
    gone = [run.id for run in done if not _is_there(run) and f"models/{run.id}" not in fetched]
    if gone:
        yield remark(
            "checkpoints",
            f"The models of {_numbers(gone)} are not on this machine: these runs can be compared, but not "
            "tag or be exported.",
        )


def _is_there(run: Run) -> bool:
    folder: Path | None = None if run.checkpoint is None else own_checkpoint(run.checkpoint)
    return folder is not None and folder.is_dir()


# The store: whether it is sound.


def soundness(
    store: Store, sqlite: tuple[int, int, int] = sqlite3.sqlite_version_info[:3]
) -> Iterator[Finding]:
    """Damage, and a SQLite that cannot do all that the store would use. Raises StoreError."""
    health = store.health()
    for damage in health.problems:
        yield problem("store", f"The store is damaged: {damage.rstrip('.')}. Put back a backup.")
    if store.file is not None and not wal_is_safe(sqlite):
        yield remark(
            "store",
            f"SQLite {'.'.join(map(str, sqlite))} may lose commits in its fast mode (mended in 3.51.3), "
            "so the store uses the slow one. A newer Python brings a newer SQLite.",
        )


@dataclass(frozen=True)
class Examination:
    """`facts`: what there is, by name; `findings`: what there is to say about it, in the order of looking."""

    facts: dict[str, Any]
    findings: tuple[Finding, ...]


@contextlib.contextmanager
def examine(url: str | None = None) -> Iterator[Examination]:
    """Looks at the laboratory and its store, which stays open for fixes while the block lasts.

    A store that cannot be opened, or a part of it that cannot be read, is a finding too. Changes nothing but
    for the tables of an older store, which are brought up to date.
    """
    free = shutil.disk_usage(_existing()).free
    facts: dict[str, Any] = {
        "versions": installation.versions(),
        "home": str(home()),
        "disk_free_gib": round(free / 1024**3, 1),
        "disk_mib": {kind: round(size / 1024**2, 1) for kind, size in machine.kept().items()},
        "cores": os.cpu_count(),
        "gpus": gpu_count(),
        "gpu_list": machine.gpus(),
        "slots": _slots(),
    }
    findings = [
        *installation.version_findings(),
        *installation.encoder(),
        *installation.settings(),
        *machine.gpu_findings(),
        *machine.disk_findings(free),
        *machine.exposure(),
    ]
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(contextlib.closing(Store.open(url or database_url())))
        except StoreError as error:
            findings.append(problem("store", str(error)))
        else:
            findings += _told(lambda: facts.update(_store_facts(store)))
            findings += of_store(store)
        # A wrong setting is met wherever it is read: told once, where it belongs.
        once = {finding.message: finding for finding in reversed(findings)}
        yield Examination(facts, tuple(reversed(once.values())))


def of_store(store: Store) -> list[Finding]:
    """What there is to say about a store, and what lies about of its runs."""
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: soundness(store),
        lambda: abandoned(store, default_engine()),
        lambda: held_back(store),
        lambda: waiting(store, default_engine()),
        lambda: cards(store),
        lambda: checkpoints_gone(store),
        lambda: orphans(store),
    )
    return [finding for look in looks for finding in _told(look)]


def _told(look: Callable[[], Iterator[Finding] | None]) -> list[Finding]:
    """What a look finds; that it was not possible is a finding of its own."""
    try:
        return list(look() or ())
    except MRNLabError as error:
        return [problem("store", str(error))]


def _store_facts(store: Store) -> dict[str, Any]:
    health = store.health()
    return {
        "store": store.name,
        "database": health.database,
        "journal_mode": health.journal_mode,
        "revision": HEAD,  # opening has brought it there
        "store_mib": None if health.size is None else round(health.size / 1024**2, 1),
        "rows": {table: count for table, count in store.rows().items() if count},
        "runs": {state.value: count for state, count in store.counts().items() if count},
        "workers": default_engine().live_workers(store),
    }


def _slots() -> int | None:
    try:
        return slot_count()
    except MRNLabError:
        return None  # `installation.settings` says why


def _existing() -> str:
    """The laboratory's folder, or where it would be made."""
    return str(next(path for path in (home(), *home().parents) if path.exists()))
