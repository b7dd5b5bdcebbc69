"""A store as it is after a year of work: 10,000 runs and 14 million points, kept in a folder.

A few runs are those of `tests.pages.filled_store`. The older ones are their copies, with other settings and
every second point. Three kinds are what pages are measured on: runs with a long curve that seem to train,
one with large relations, and one that was really trained, to tag with.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select, text, update

from core.config import RunConfig
from core.recording.owner import this_process
from core.records import RunFacts, Snapshot
from core.store import RunState, Store
from core.store.schema import metadata, metrics, runs
from jobs.worker.loop import Worker
from tests.benchmarks._harness import laboratory
from tests.benchmarks.curves import live_runs
from tests.making import relations, run_facts
from tests.pages.filled_store import LABELS, TASKS, fill
from tests.tiny import tiny_bert

__all__ = ["Contents", "filled", "looks_alive"]

_CONTENTS = "contents.json"
_MADE_OF = 1  # raised with every change of what is filled in
_FRACTIONS = (0.05, 0.1, 0.25, 0.5, 0.75)
_ENCODERS = ("minilm", "bert-base-cased", "roberta-base", "distilroberta-base")
_BATCHES = (4, 8, 16, 32, 48, 64, 96, 128)
_DAY_S = 86_400.0
# What is copied of a run, and which of its rows.
_COPIED = {
    "facts": "",
    "metrics": "AND step % 2 = 0",
    "scores": "",
    "events": "",
    "snapshots": "AND step = (SELECT max(step) FROM snapshots WHERE run_id = :old)",
}


@dataclass(frozen=True)
class Contents:
    """How much is there, and the runs that pages are measured on."""

    runs: int
    points: int
    finished: list[int]
    live: list[int]
    relations: int
    tagger: int
    made_of: int = _MADE_OF


def filled(folder: Path, *, quick: bool) -> Contents:
    """Fills a store in that folder, in some minutes, or finds it there as an earlier call left it."""
    mark = folder / _CONTENTS
    if mark.is_file() and (contents := json.loads(mark.read_text()))["made_of"] == _MADE_OF:
        return Contents(**contents)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seeds = (1, 2) if quick else (1, 2, 3, 4, 5)
    with laboratory(str(folder)), contextlib.closing(Store.open()) as store:
        if not quick:
            fill(seeds=seeds, active=False)
            _copy(store, 10_000)
        live = live_runs(store, *(2, 60) if quick else (20, 5000))
        for run_id in live:
            points = store.last_metric_steps([run_id])[run_id]
            store.set_facts(run_id, run_facts(2 * points))
            store.set_progress(run_id, points, points / 500, 2 * points)
        tagger = _trained(store, folder, quick=quick)
        newest = fill(seeds=seeds, active=False)
        related = _related(store, newest.mrn[0], *(5, 64) if quick else (50, 768))
        with store.transaction(write=False) as connection:
            number = connection.scalar(select(func.count()).select_from(runs)) or 0
            points = connection.scalar(select(func.count()).select_from(metrics)) or 0
    contents = Contents(number, points, newest.finished, live, related, tagger)
    mark.write_text(json.dumps(asdict(contents)))
    return contents


def looks_alive(store: Store) -> None:
    """Runs that seem to train belong to this process from here on, so that nobody calls them lost."""
    owner = this_process()
    values = {
        "owner_host": owner.host,
        "owner_pid": owner.pid,
        "owner_started": owner.process_started,
        "owner_boot": owner.boot_id,
        "heartbeat_due": store.now() + _DAY_S,
    }
    with store.transaction() as connection:
        connection.execute(update(runs).where(runs.c.state == "running").values(values))


def _copy(store: Store, wanted: int) -> None:
    """Copies all runs that are there with other settings, launch by launch, up to so many."""
    with store.transaction() as connection:
        originals = [dict(row) for row in connection.execute(select(runs)).mappings()]
        number = max(row["id"] for row in originals)
        for days, context in enumerate(_contexts(), start=1):
            for row in originals:
                if number == wanted:
                    return
                number += 1
                config = RunConfig.from_json(row["config"]).with_(**context)
                times = {
                    name: row[name] - days * _DAY_S for name in row if name.endswith("_at") and row[name]
                }
                changes = {"id": number, "config": config.to_json(), "sweep": f"sweep {days}", **times}
                changes["configuration_id"] = config.configuration_id
                connection.execute(insert(runs).values(row | changes))
                for name, which in _COPIED.items():
                    columns = [column.name for column in metadata.tables[name].columns]
                    names = ", ".join(f'"{other}"' for other in columns if other not in ("run_id", "id"))
                    connection.execute(
                        text(
                            f"INSERT INTO {name} (run_id, {names}) SELECT :new, {names} FROM {name} "
                            f"WHERE run_id = :old {which}"
                        ),
                        {"new": number, "old": row["id"]},
                    )


def _contexts() -> Iterator[dict[str, Any]]:
    every = itertools.product(_FRACTIONS, _ENCODERS, _BATCHES, ("full", "frozen"))
    for fraction, encoder, size, training in every:
        yield {"fraction": fraction, "encoder": encoder, "batch_size": size, "encoder_training": training}


def _trained(store: Store, folder: Path, *, quick: bool) -> int:
    """A run over the demo corpus that is trained here."""
    values: dict[str, Any] = {"corpus": "demo", "tasks": TASKS, "paradigm": "mtl", "epochs": 1}
    if quick:
        encoder = str(tiny_bert(folder / "encoder"))
        values |= {"encoder": encoder, "fraction": 0.03, "max_length": 64}
    (run_id,) = store.add_runs([RunConfig.build(encoder_training="frozen", **values)])
    Worker(store, this_process(), log_to=lambda _path: contextlib.nullcontext()).train_next()
    run = store.run(run_id)
    assert run.state is RunState.SUCCEEDED, run.error
    return run_id


def _related(store: Store, like: int, number: int, features: int) -> int:
    """A run with so many snapshots of relations over so many features; else like that one."""
    model = store.run(like)
    (run_id,) = store.add_runs([model.config.with_(seed=77)])
    store.claim(this_process(), due_in=_DAY_S, run_id=run_id)
    store.set_facts(run_id, RunFacts(**{**model.facts, "features": features}))
    learned = relations(7, len(TASKS), sum(map(len, LABELS.values())), features, rank=20)
    for step in range(1, number + 1):
        grown = replace(learned, feature_factor=learned.feature_factor * step / number)
        store.add_snapshot(run_id, Snapshot(step, step / number, grown))
    store.set_progress(run_id, number, 1.0, number)
    store.finish(run_id, RunState.SUCCEEDED)
    return run_id
