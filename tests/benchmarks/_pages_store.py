"""A store as it is after a year of work: 10,000 runs and 14 million points, kept in a folder.

A few runs come from `tests.pages.filled_store`; the older ones are copies with other settings and every
second point. Pages are measured on runs with long curves that seem to train, on one with large relations, and
on one that was really trained, to tag with.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from sqlalchemy import func, insert, select, text, update

from core.config import RunConfig
from core.events import Snapshot
from core.metrics import TOTAL, StepMetrics
from core.recording.owner import this_process
from core.store import RunState, Store
from core.store.schema import metadata, metrics, runs
from tests.benchmarks._harness import laboratory
from tests.making import facts_of, relations, run_facts
from tests.pages.filled_store import LABELS, TASKS, fill
from tests.trained import train_runs

_CONTENTS = "contents.json"
_VERSION = 3  # raise it with every change of what the store holds
_RUNS = 10_000
_DAY_S = 86_400.0
_FRACTIONS = (0.05, 0.1, 0.25, 0.5, 0.75)
_ENCODERS = ("minilm", "bert-base-cased", "roberta-base", "distilroberta-base")
_BATCH_SIZES = (4, 8, 16, 32, 48, 64, 96, 128)
_COPIED = {
    "facts": "",
    "metrics": "AND step % 2 = 0",
    "scores": "",
    "figures": "",
    "events": "",
    "snapshots": "AND step = (SELECT max(step) FROM snapshots WHERE run_id = :old)",
}
"""What is copied of a run: tables, and which of their rows."""


@dataclass(frozen=True)
class Contents:
    """The size of the store, and the runs that pages are measured on. A quick store has no `tagger`."""

    runs: int
    points: int
    finished: list[int]
    live: list[int]
    relations: int
    tagger: int | None
    version: int = _VERSION


def fill_store(folder: Path, *, quick: bool) -> Contents:
    """Fill a store in that folder, which takes minutes, unless an earlier call did."""
    path = folder / _CONTENTS
    if path.is_file() and (contents := json.loads(path.read_text()))["version"] == _VERSION:
        return Contents(**contents)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seeds = (1,) if quick else (1, 2, 3, 4, 5)
    with laboratory(folder), contextlib.closing(Store.open()) as store:
        if not quick:
            fill(seeds=seeds, active=False)
            _copy(store)
        live = [_live(store, number, 60 if quick else 5000) for number in range(2 if quick else 20)]
        newest = fill(seeds=seeds, active=False, broken=False)
        large = _relations(store, newest.mrn[0], *(3, 64) if quick else (50, 768))
        tagger = None
        if not quick:
            mtl = {"corpus": "demo", "tasks": TASKS, "paradigm": "mtl", "encoder_training": "frozen"}
            (tagger,) = train_runs(store, [RunConfig.build(**mtl, epochs=1)])
        with store.transaction(write=False) as connection:
            rows, points = (connection.scalar(select(func.count()).select_from(t)) for t in (runs, metrics))
    contents = Contents(rows or 0, points or 0, newest.finished, live, large, tagger)
    path.write_text(json.dumps(asdict(contents)))
    return contents


def adopt_running(store: Store) -> None:
    """Make this process the owner of all running runs, so that nothing marks them lost."""
    owner = this_process()
    values = {
        "owner_host": owner.host,
        "owner_pid": owner.pid,
        "owner_started": owner.process_started,
        "owner_boot": owner.boot_id,
    }
    with store.transaction() as connection:
        connection.execute(update(runs).where(runs.c.state == "running").values(values))


def _copy(store: Store) -> None:
    """Copy all runs with other settings, launch by launch, until there are 10,000."""
    settings = itertools.product(_FRACTIONS, _ENCODERS, _BATCH_SIZES, ("full", "frozen"))
    with store.transaction() as connection:
        originals = [dict(row) for row in connection.execute(select(runs)).mappings()]
        first = max(row["id"] for row in originals) + 1
        copies = itertools.product(enumerate(settings, start=1), originals)
        for number, ((days, (fraction, encoder, batch_size, training)), row) in zip(
            range(first, _RUNS + 1), copies, strict=False
        ):
            config = RunConfig.from_json(row["config"]).with_(
                fraction=fraction, encoder=encoder, batch_size=batch_size, encoder_training=training
            )
            changes = {name: row[name] - days * _DAY_S for name in row if name.endswith("_at") and row[name]}
            changes |= {"id": number, "config": config.to_json(), "sweep": f"sweep {days}"}
            changes["configuration_id"] = config.configuration_id
            connection.execute(insert(runs).values(row | changes))
            for table, which in _COPIED.items():
                columns = [column.name for column in metadata.tables[table].columns]
                names = ", ".join(f'"{name}"' for name in columns if name not in ("run_id", "id"))
                select_old = f"SELECT :new, {names} FROM {table} WHERE run_id = :old {which}"
                connection.execute(
                    text(f"INSERT INTO {table} (run_id, {names}) {select_old}"),
                    {"new": number, "old": row["id"]},
                )


def _live(store: Store, number: int, points: int) -> int:
    """A run that seems to train, with so many points of each task's loss."""
    prior = {"alignment": "cooccurrence", "lambda": 0.01 * 10 ** (number % 4)} if number % 4 else {}
    paradigm = "mrn" if prior else "mtl"
    config = RunConfig.build(corpus="demo", tasks=TASKS, seed=number // 4 + 1, paradigm=paradigm, **prior)
    (run_id,) = store.add_runs([config], sweep="live")
    store.claim(this_process(), run_id=run_id)
    noise = np.random.default_rng(number).random((points, len(TASKS)))
    rows = []
    for step, losses in enumerate(np.exp(-np.arange(1, points + 1) / 800)[:, None] + 0.1 * noise, start=1):
        values = {(task, "loss"): float(loss) for task, loss in zip(TASKS, losses, strict=True)}
        values[TOTAL, "loss"] = float(losses.sum())
        rows.append(StepMetrics(step, step / 500, 0.03 * step, values))
    store.add_metrics(run_id, rows)
    store.set_facts(run_id, run_facts(2 * points))
    store.set_progress(run_id, points, points / 500, 2 * points)
    return run_id


def _relations(store: Store, like: int, number: int, features: int) -> int:
    """A run like that one, with so many snapshots of relations over so many features."""
    model = store.run(like)
    (run_id,) = store.add_runs([model.config.with_(seed=77)])
    store.claim(this_process(), run_id=run_id)
    store.set_facts(run_id, replace(facts_of(model), features=features))
    learned = relations(7, len(TASKS), sum(map(len, LABELS.values())), features, rank=20)
    for step in range(1, number + 1):
        grown = replace(learned, feature_factor=learned.feature_factor * step / number)
        store.add_snapshot(run_id, Snapshot(step, step / number, grown))
    store.set_progress(run_id, number, 1.0, number)
    store.finish(run_id, RunState.SUCCEEDED)
    return run_id
