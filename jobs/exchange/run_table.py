"""A CSV file with a row a run: scores, seconds and description of the finished runs of a study.

It outlives a store: its runs come back into any store as finished runs, without weights, curves, predictions
and covariances.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from core.errors import MRNLabError, first_problem
from core.evaluation.costs import run_cost
from core.paths import cache_dir, written_whole
from core.store import Run, Store, StoredScore
from core.store.exchange import RunRecord
from jobs.exchange.format import RunFile

COLUMNS = ("configuration", "seed", "dev", "test", "seconds", "scores", "run")
"""`dev` and `test` are means over the tasks with words there, in percent; `scores` and `run` are JSON."""

_FACTS_OF_LABELS = ("label_names", "label_owners", "meet", "impossible", "cooccurrence")
"""Large facts that only pages on covariances read."""
_DIGITS = 6
_LONGEST = 2**27  # characters of a cell
_SCORES = TypeAdapter(tuple[StoredScore, ...])


class RunTable:
    """The table in a file, which need not exist yet.

    What reads the file raises MRNLabError where it is not such a table, naming the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._finished: dict[tuple[str, str], datetime | None] = {}

    def restore(self, store: Store) -> int:
        """Adds the runs that the store lacks, as finished runs; returns how many.

        Raises MRNLabError for a row that describes no run; then the store is unchanged.
        """
        added, rows = 0, _read(self.path)
        with store.transaction():
            for key, row in rows.items():
                try:
                    record = _record_of(row)
                except ValueError as error:
                    reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
                    problem = f"{self.path}: the row of configuration {key[0]}, seed {key[1]}, is no run"
                    raise MRNLabError(f"{problem} ({reason}). Nothing was added.") from error
                self._finished[key] = record.run.finished_at
                if store.same_run(record.run) is None:
                    store.take_in(record, f"Restored from {self.path.name}, without its checkpoint.")
                    added += 1
        return added

    def add(self, store: Store, runs: Iterable[Run]) -> None:
        """Adds finished runs and writes the file, if there is a new one.

        A run that was trained again, as on text that has changed, takes the place of the older one. Rows that
        another process has added since stay.
        """
        by_key = {(run.configuration_id, str(run.config.seed)): run for run in runs}
        new = {key: run for key, run in by_key.items() if run.finished_at != self._finished.get(key)}
        if not new:
            return
        rows = {key: _row_of(store, run.id) for key, run in new.items()}
        name = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:12]
        with FileLock(cache_dir("studies") / f"{name}.lock"):
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows((_read(self.path) | rows).values())
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = text.getvalue()
            with written_whole(self.path, len(content), "the table of runs") as beside:
                beside.write_text(content, encoding="utf-8")
        self._finished |= {key: run.finished_at for key, run in new.items()}


def _read(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The rows by configuration and seed."""
    rows = {}
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ",".join(COLUMNS)
    except (OSError, UnicodeDecodeError) as error:
        raise MRNLabError(f"{path} cannot be read: {error}.") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise MRNLabError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}.")
    # The limit is the whole process's, and other readers rely on it.
    limit = csv.field_size_limit(_LONGEST)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise MRNLabError(f"{path}, line {reader.line_num}: a row has {len(COLUMNS)} values.")
            rows[row["configuration"], row["seed"]] = row
    finally:
        csv.field_size_limit(limit)
    return rows


def _row_of(store: Store, run_id: int) -> dict[str, str]:
    run = store.run(run_id)
    scores = [dataclasses.replace(score, run_id=0) for score in store.scores([run_id])]
    facts = {name: value for name, value in run.facts.items() if name not in _FACTS_OF_LABELS}
    record = RunRecord(dataclasses.replace(run, facts=facts), (), (), scores, {}, ())
    file = RunFile.of(record, datetime.now(UTC), {}, "the table of a study has no weights")
    cost = run_cost(run.facts)
    return {
        "configuration": run.configuration_id,
        "seed": str(run.config.seed),
        "dev": _mean_percent(scores, "dev"),
        "test": _mean_percent(scores, "test"),
        "seconds": f"{(run.seconds or 0) if cost is None else cost.seconds:.1f}",
        "scores": json.dumps([_plain(score) for score in scores], ensure_ascii=False, separators=(",", ":")),
        "run": file.model_dump_json(),
    }


def _record_of(row: dict[str, str]) -> RunRecord:
    """Raises ValueError where the row describes no run that finished."""
    scores = [_with_every_figure(score) for score in _SCORES.validate_json(row["scores"])]
    record = RunFile.read(row["run"].encode()).record(
        {"curves": (), "scores": scores, "predictions": {}, "snapshots": ()}
    )
    run = record.run
    own = {run.configuration_id, run.config.configuration_id}
    if own != {row["configuration"]} or row["seed"] != str(run.config.seed):
        raise ValueError("its configuration or seed is another one than its description's")
    if run.finished_at is None:
        raise ValueError("it did not finish")
    return record


_OF_LABELS = ("f1", "support")
"""What a row keeps of the report by label: a study asks for no more, and reports are most of a row."""


def _plain(score: StoredScore) -> dict[str, Any]:
    """Its fields; the report by label of the test sentences alone."""
    of_test = score.report if score.split == "test" else {}
    report = {
        label: {name: round(figures[name], _DIGITS) for name in _OF_LABELS}
        for label, figures in of_test.items()
    }
    return dataclasses.asdict(score) | {"report": report}


def _with_every_figure(score: StoredScore) -> StoredScore:
    unknown = {"precision": math.nan, "recall": math.nan}
    return dataclasses.replace(
        score, report={label: unknown | {**figures} for label, figures in score.report.items()}
    )


def _mean_percent(scores: Iterable[StoredScore], split: str) -> str:
    of_split = [score.score for score in scores if score.split == split and score.tokens]
    return f"{100 * math.fsum(of_split) / len(of_split):.2f}" if of_split else ""
