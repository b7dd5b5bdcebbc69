"""What lies in the laboratory's folder and belongs to no run, or was left half-written by a worker that died.

Only remains are ever removed: half-written folders and files, and training states that no run can take up
again, when they have not been touched for an hour. A finished model is a result, so one without a run is
named and left; so is all that this store may know nothing about.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.paths import home
from core.store import ACTIVE, Run, RunState, Store
from jobs.doctor.finding import Finding, Fix, remark
from jobs.doctor.machine import size_of

__all__ = ["orphans"]

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
            f"{len(models)} models belong to no run of this store ({_told(models)}, {_size(models)} in all). "
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
            f"{len(unused)} upload(s) are used by no run ({_told(unused)}), {_size(unused)} in all. They may "
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
        f"{len(paths)} {what} lie in {home() / about}: {_told(paths)}, {_size(paths)} in all.",
        Fix("Remove them.", remove),
    )


def _told(paths: list[Path]) -> str:
    names = ", ".join(path.name for path in paths[:_SHOWN])
    return names if len(paths) <= _SHOWN else f"{names} and {len(paths) - _SHOWN:,} more"


def _size(paths: list[Path]) -> str:
    size = sum(size_of(path) if path.is_dir() else path.lstat().st_size for path in paths if path.exists())
    return f"{size / 1e6:,.1f} MB"
