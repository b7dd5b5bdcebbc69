"""mrnlab worker, doctor: the machinery."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from typing import Annotated, Any

import typer

from core.errors import MRNLabError
from core.models.sources import check_available
from core.paths import home
from jobs.cli.app import JSON_OPTION, Chosen, app, opened_store
from jobs.cli.output import print_json, tell
from jobs.engines import default_engine
from jobs.engines.slots import gpu_count, slot_count
from jobs.tending import tend

__all__ = ["doctor", "worker"]

_PACKAGES = ("mrnlab", "torch", "transformers", "datasets", "streamlit", "plotly", "sqlalchemy", "pydantic")
_LITTLE_DISK = 2 * 1024**3


@app.command()
def worker(ctx: typer.Context) -> None:
    """Train queued runs in this terminal until none is left.

    Ctrl-C stops the run being trained at its next step, saved; a second one ends it at once.
    """
    from jobs.supervisor import main as work

    chosen: Chosen = ctx.obj
    raise typer.Exit(work([], chosen.url))


@app.command()
def doctor(ctx: typer.Context, json_: Annotated[bool, JSON_OPTION] = False) -> None:
    """Check the installation, the store, the disk and the workers. Exit code 1 where something is wrong."""
    problems: list[str] = []
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "missing"
            problems.append(f"The package {package} is not installed.")
    with opened_store(ctx) as store:
        lost = tend(store)
        health = store.health()
        problems += health.problems
        counts = {state.value: count for state, count in store.counts().items() if count}
        workers = default_engine().live_workers(store)
        name = store.name
    free = shutil.disk_usage(home()).free
    if free < _LITTLE_DISK:
        problems.append(f"Only {free / 1024**3:.1f} GiB are free under {home()}.")
    try:
        check_available("minilm")
    except MRNLabError as error:
        problems.append(str(error))
    if counts.get("queued") and not workers:
        problems.append("Runs are queued and no worker is alive; `mrnlab worker` starts one.")
    found: dict[str, Any] = {
        "versions": versions,
        "home": str(home()),
        "store": name,
        "database": health.database,
        "journal_mode": health.journal_mode,
        "store_mib": None if health.size is None else round(health.size / 1024**2, 1),
        "runs": counts,
        "lost_now": lost,
        "gpus": gpu_count(),
        "cores": os.cpu_count(),
        "slots": slot_count(),
        "workers": workers,
        "disk_free_gib": round(free / 1024**3, 1),
        "problems": problems,
    }
    if json_:
        print_json(found)
    else:
        for what, value in found.items():
            told = value
            if isinstance(value, dict):
                told = ", ".join(f"{key} {one}" for key, one in value.items()) or "none"
            elif isinstance(value, list):
                told = " ".join(map(str, value)) or "none"
            tell(f"{what.replace('_', ' '):>14}  {told}")
    if problems:
        raise typer.Exit(1)
