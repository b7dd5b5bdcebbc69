"""All that the doctor looks at, in order."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from core.errors import MRNLabError, StoreError
from core.paths import database_url, home
from core.store import Store
from core.store.migrations import HEAD
from jobs.doctor import installation, machine, queue
from jobs.doctor.finding import Finding, problem
from jobs.doctor.orphans import orphans
from jobs.doctor.store import rescued, soundness
from jobs.engines import default_engine
from jobs.engines.slots import gpu_count, slot_count

__all__ = ["Examination", "examine", "of_store"]


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
        lambda: rescued(store),
        lambda: queue.abandoned(store, default_engine()),
        lambda: queue.held_back(store),
        lambda: queue.waiting(store, default_engine()),
        lambda: queue.cards(store),
        lambda: queue.checkpoints_gone(store),
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
