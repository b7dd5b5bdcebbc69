"""Starts supervised workers as processes in their own sessions, without importing the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import MRNLabError
from core.paths import home
from jobs.worker.devices import fixed_slots, gpu_count

SUPERVISOR = (sys.executable, "-m", "jobs.worker.supervisor")
"""The command that supervises one worker after another."""

SUPERVISOR_ID = "MRNLAB_SUPERVISOR"
"""The environment variable with the process id of a worker's supervisor."""

DETACHED: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}
"""Options of Popen: a session of its own, so that neither a terminal's Ctrl-C nor its end reaches it."""

if sys.platform == "win32":  # start_new_session means nothing there
    DETACHED["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

# The folder that holds our packages: `python -m` looks there first.
_ROOT = Path(__file__).resolve().parents[2]


def start(command: Sequence[str], store_url: str) -> subprocess.Popen[bytes]:
    """Starts a detached process for this store, with its output in `logs/workers.log`. Raises MRNLabError."""
    environment = {
        # Not in the arguments, which every user of the machine can read.
        "MRNLAB_DB": store_url,
        "MRNLAB_HOME": str(home()),
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Turns that a thread of libgomp spins before it sleeps; 300,000 by default. Beside one busy process a
        # step of an LSTM over words took 30 to 120 times as long. At 30,000 it takes no longer than alone.
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "30000"),
    }
    if (slots := fixed_slots() or 1) > 1 and gpu_count() == 0 and "OMP_NUM_THREADS" not in os.environ:
        # Workers that share the cores would slow one another down with a thread per core each.
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // slots))
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        with (logs / "workers.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | environment, cwd=_ROOT, **DETACHED
            )
    except OSError as error:
        raise MRNLabError(
            f"The runs are queued, but no worker could be started: {error.strerror}."
        ) from error
