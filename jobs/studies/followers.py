"""The processes that follow a study or a plan: one each, found by its card, whoever started it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from core.paths import cache_dir
from core.recording.owner import process
from core.store import ACTIVE, Store
from core.store.types import Owner
from jobs.queue import control
from jobs.studies.progress import sweep_prefix
from jobs.worker.process import is_alive, kill
from jobs.worker.start import start

_followers: list[Any] = []  # polled, so that each is reaped once it has ended


def _card(store: Store, name: str) -> Path:
    return cache_dir("studies") / f"{hashlib.sha256(store.url.encode()).hexdigest()[:12]}-{name}.json"


def follower(store: Store, name: str) -> Owner | None:
    """The process that `start_follower` has started for what has this name, while it lives."""
    try:
        owner = Owner(**json.loads(_card(store, name).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return owner if is_alive(owner) else None


def start_follower(store: Store, name: str, arguments: Sequence[str]) -> None:
    """Starts `mrnlab` with these arguments to follow what has this name, unless a process does."""
    card = _card(store, name)
    with FileLock(card.with_suffix(".lock")):  # two pages may start it at once
        if follower(store, name) is None:
            command = [sys.executable, "-c", "from jobs.cli import main; main()", *arguments]
            child = start(command, store.url)
            _followers[:] = [other for other in _followers if other.poll() is None] + [child]
            card.write_text(json.dumps(dataclasses.asdict(process(child.pid))))


def stop_follower(store: Store, name: str) -> list[control.Answer]:
    """Ends the process that follows what has this name, and stops its queued and running runs."""
    if (owner := follower(store, name)) is not None:
        kill(owner)
    active = store.runs(states=ACTIVE)
    return control.stop(store, [run.id for run in active if (run.sweep or "").startswith(sweep_prefix(name))])
