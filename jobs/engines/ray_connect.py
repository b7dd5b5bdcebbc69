"""`python -m jobs.engines.ray_connect WORKER` joins the Ray cluster and makes the dispatcher of a store.

The store is in MRNLAB_DB. If it fails the exit code is 1, with a message on standard output.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import socket
import sys

import ray
from ray.exceptions import RayError

from core.errors import MRNLabError
from core.store import Store
from jobs.engines import sqlite_problem
from jobs.engines.ray_dispatcher import Dispatcher, TaskSettings, hosts_of

_NAMESPACE = "mrnlab"
_ANSWER_S = 60.0
_LISTENS_S = 5.0


def main(worker: str) -> int:
    """Makes the dispatcher, and returns 0 once it has answered, else 1."""
    address = os.environ.get("MRNLAB_RAY_ADDRESS") or os.environ.get("RAY_ADDRESS") or "auto"
    try:
        with contextlib.closing(Store.open()) as store:
            url = store.url
        settings = TaskSettings.read(worker)
        _check_answers(address)
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        ray.init(address=address, namespace=_NAMESPACE, **quiet)
        problem = sqlite_problem(url, len(set(hosts_of(ray.nodes()).values())), "Ray")
        if problem is not None:
            raise MRNLabError(problem)
        actor = ray.remote(Dispatcher).options(
            name=f"dispatcher-{hashlib.sha256(url.encode()).hexdigest()[:12]}",
            namespace=_NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            # On the head: where that dies the cluster is gone anyway.
            resources={"node:__internal_head__": 0.001},
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=-1,
        )
        ray.get(actor.remote(url, settings).poke.remote(settings), timeout=_ANSWER_S)
    except MRNLabError as error:
        print(error)
        return 1
    except (OSError, RuntimeError, ValueError, RayError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(
            f"The cluster ({address}) could not be used: {reason} Start one with `ray start --head`, or set "
            "MRNLAB_RAY_ADDRESS."
        )
        return 1
    return 0


def _check_answers(address: str) -> None:
    """Raises OSError at once where no server answers at HOST:PORT; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "://" not in address:
        socket.create_connection((host, int(port)), timeout=_LISTENS_S).close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
