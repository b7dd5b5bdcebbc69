"""A CSV file with a row per run: scores, seconds and description of the finished runs of a study.

It outlives a store: its runs can be added to any store as finished runs, without weights, curves, predictions
and covariances. A file whose name ends in `.gz` is compressed; pandas reads it as it is.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import math
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import ValidationError

from core.corpora.readers.lines import MOST_CHARACTERS, GivenFile, Source, read_bytes, read_lines
from core.errors import MRNLabError, first_problem
from core.evaluation.costs import run_cost
from core.paths import given_path, written_whole
from core.store import Run, Store, StoredScore
from core.store.exchange import RunRecord
from jobs.exchange.format import INVALID, SCORES, RunFile, checked, score_columns, scores_of, table_of

COLUMNS = ("configuration", "seed", "dev", "test", "seconds", "description", "scores", "run")
"""`dev` and `test` are means over the tasks with a defined score, in percent. `description`, `scores` and
`run` are JSON. The first row of a configuration has its description, without the seed.
"""
_EARLIER_COLUMNS = tuple(name for name in COLUMNS if name != "description")
"""The columns of earlier versions, whose rows have the description in `run`."""

_FACTS_OF_LABELS = ("label_names", "label_owners", "meet", "impossible", "cooccurrence", "aligned")
"""The large facts that only pages on covariances read."""
_DIGITS = 6
_MOST_BYTES = 500_000_000
"""The most that a compressed file may hold: a hundred times the records of the largest studies."""


class RunTable:
    """The table in a file, which need not exist yet; where it is a link, the target is written.

    Reading raises MRNLabError with the line where the file is not a table of runs. While a process writes, it
    holds a lock on `.NAME.lock` beside the file, which is not removed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Path(os.path.realpath(given_path(path)))
        self._finished: dict[tuple[str, str], datetime | None] = {}

    def check_writable(self) -> None:
        """Raises MRNLabError where the table cannot be written, and makes its folder if needed."""
        with self._locked():
            if not self._exists():
                return
            # The mode is checked too: a superuser can write any file, and renaming would replace a read-only
            # one.
            if not self._file.stat().st_mode & 0o222 or not os.access(self._file, os.W_OK):
                raise MRNLabError(f"{self.path} is read-only; `chmod u+w` lets it be written.")

    def check_exists(self) -> None:
        """Raises MRNLabError where there is no such file, or it is no file."""
        if not self._exists():
            raise MRNLabError(f"There is no file {self.path}.")

    def restore(self, store: Store) -> int:
        """Adds the runs that the store lacks as finished runs, and returns how many.

        Raises MRNLabError for a row that describes no run; then the store is unchanged.
        """
        added, rows = 0, self._rows()
        with store.queueing_alone():
            for key, row in rows.items():
                try:
                    record = _record_of(row)
                except INVALID as error:
                    reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
                    problem = f"{self.path}: the row of configuration {key[0]}, seed {key[1]}, is no run"
                    raise MRNLabError(f"{problem} ({reason}). Nothing was added.") from error
                self._finished[key] = record.run.finished_at
                if store.same_run(record.run) is None:
                    store.import_record(record, f"Restored from {self.path.name}, without its checkpoint.")
                    added += 1
        return added

    def add(self, store: Store, runs: Iterable[Run]) -> None:
        """Adds finished runs and writes the file, if there is a new one.

        A run that was trained again, as on text that has changed, replaces the older one. Rows that another
        process has added since are kept. Raises MRNLabError where the file cannot be written.
        """
        by_key = {(run.configuration_id, str(run.config.seed)): run for run in runs}
        new = {key: run for key, run in by_key.items() if run.finished_at != self._finished.get(key)}
        if not new:
            return
        rows = {key: _row_of(store, run.id) for key, run in new.items()}
        with self._locked():
            content = _text_of((self._rows() | rows).values())
            if (longest := max(map(len, content.split("\n")))) > MOST_CHARACTERS:
                raise MRNLabError(
                    f"{self.path}: a run's row would have {longest:,} characters and the most is "
                    f"{MOST_CHARACTERS:,}. Nothing was written; the run is in the store."
                )
            data = content.encode()
            if self._is_compressed:
                data = gzip.compress(data, mtime=0)  # the same rows are the same bytes
            with written_whole(self._file, len(data), "the table of runs") as beside:
                beside.write_bytes(data)
                if self._exists():
                    beside.chmod(stat.S_IMODE(self._file.stat().st_mode))
        self._finished |= {key: run.finished_at for key, run in new.items()}

    @property
    def _is_compressed(self) -> bool:
        return self._file.suffix == ".gz"

    def _source(self) -> Source:
        """The file, unpacked where it is compressed. Raises MRNLabError."""
        if not self._is_compressed:
            return self._file
        with gzip.GzipFile(fileobj=io.BytesIO(read_bytes(self._file))) as packed:
            try:
                content = packed.read(_MOST_BYTES + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise MRNLabError(f"{self.path} cannot be unpacked: {error}.") from error
        if len(content) > _MOST_BYTES:
            raise MRNLabError(f"{self.path} holds more than {_MOST_BYTES / 1e6:,.0f} MB; it is no record.")
        return GivenFile(str(self.path), content)

    def _exists(self) -> bool:
        """Whether the file exists. Raises MRNLabError where it is a device, a pipe or a folder."""
        if self._file.exists() and not self._file.is_file():
            raise MRNLabError(f"{self.path} is not a file; a record is a CSV file.")
        return self._file.exists()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the file against other writers; writers of its folder can lock it too."""
        folder = self._file.parent
        try:
            self._exists()
            folder.mkdir(parents=True, exist_ok=True)
            lock = folder / f".{self._file.name}.lock"
            lock.touch()  # FileLock would wait for ever for a file that cannot be made
            mode = stat.S_IMODE(folder.stat().st_mode) & 0o666 | 0o600
            with FileLock(lock, mode=mode):
                yield
        except OSError as error:
            raise MRNLabError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _rows(self) -> dict[tuple[str, str], dict[str, str]]:
        """The rows by configuration and seed, each with the description of its configuration."""
        lines = read_lines(self._source()) if self._exists() else [",".join(COLUMNS)]
        reader, rows = csv.reader(lines, strict=True), {}
        described: dict[str, str] = {}
        try:
            if (columns := tuple(next(reader))) not in (COLUMNS, _EARLIER_COLUMNS):
                raise MRNLabError(f"{self.path}, line 1: the columns must be {', '.join(COLUMNS)}.")
            for values in filter(None, reader):
                if len(values) != len(columns):
                    raise MRNLabError(
                        f"{self.path}, line {reader.line_num}: a row has {len(columns)} values."
                    )
                row = dict(zip(columns, values, strict=True))
                configuration = row["configuration"]
                row["description"] = row.get("description") or described.get(configuration, "")
                described[configuration] = row["description"]
                rows[configuration, row["seed"]] = row
        except csv.Error as error:
            raise MRNLabError(f"{self.path}, line {reader.line_num}: is not CSV ({error}).") from error
        return rows


def _text_of(rows: Iterable[dict[str, str]]) -> str:
    text, described = io.StringIO(newline=""), dict[str, str]()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        is_known = described.get(row["configuration"]) == row["description"]
        described[row["configuration"]] = row["description"]
        writer.writerow(row | {"description": ""} if is_known else row)
    return text.getvalue()


def _row_of(store: Store, run_id: int) -> dict[str, str]:
    run = store.run(run_id)
    scores = [dataclasses.replace(score, run_id=0) for score in store.scores([run_id])]
    record = RunRecord(run, (), (), scores, {}, ())
    file = RunFile.of(record, datetime.now(UTC), {}, "the table of a study has no weights")
    facts = {name: value for name, value in file.facts.items() if name not in _FACTS_OF_LABELS}
    description = {name: value for name, value in file.config.items() if name != "seed"}
    cost = run_cost(run.facts)
    return {
        "configuration": run.configuration_id,
        "seed": str(run.config.seed),
        "dev": _mean_percent(scores, "dev"),
        "test": _mean_percent(scores, "test"),
        "seconds": f"{(run.seconds or 0) if cost is None else cost.seconds:.1f}",
        "scores": json.dumps([_plain(score) for score in scores], ensure_ascii=False, separators=(",", ":")),
        "description": json.dumps(description, ensure_ascii=False, separators=(",", ":")),
        "run": file.model_copy(update={"facts": facts}).model_dump_json(exclude={"config"}),
    }


def _record_of(row: dict[str, str]) -> RunRecord:
    """The record of a row. Raises one of INVALID where the row describes no finished run."""
    rows = [each | {"report": json.dumps(each["report"])} for each in json.loads(row["scores"])]
    scores = scores_of(checked(SCORES, table_of(SCORES, rows)))
    values = json.loads(row["run"])
    if "config" not in values:  # a row of an earlier version has it
        if not row["description"]:
            raise ValueError("neither its row nor one above describes its configuration")
        values["config"] = json.loads(row["description"]) | {"seed": int(row["seed"])}
    record = RunFile.read(json.dumps(values).encode()).record(
        {"curves": (), "scores": scores, "predictions": {}, "snapshots": ()}
    )
    run = record.run
    if {run.configuration_id, run.config.configuration_id} != {row["configuration"]} or row["seed"] != str(
        run.config.seed
    ):
        raise ValueError("its configuration or seed is another one than its description's")
    if run.finished_at is None:
        raise ValueError("it did not finish")
    if not scores:
        raise ValueError("it has no scores")
    for split in ("dev", "test"):
        mean = _mean_percent(scores, split)
        # Earlier versions rounded some means the other way.
        if bool(mean) != bool(row[split]) or (mean and not abs(float(mean) - float(row[split])) < 0.015):
            raise ValueError(f"its {split} is {row[split] or 'empty'} and its scores say {mean or 'nothing'}")
    return record


_LABEL_FIGURES = ("f1", "support")
"""The figures of the report by label that a row keeps for studies; reports are most of a row."""


def _plain(score: StoredScore) -> dict[str, Any]:
    """The columns of a score, with the report by label only of the test sentences."""
    report = {
        label: {name: round(figures[name], _DIGITS) for name in _LABEL_FIGURES}
        for label, figures in score.report.items()
        if score.split == "test"
    }
    return score_columns(score) | {"report": report}


def _mean_percent(scores: Iterable[StoredScore], split: str) -> str:
    defined = [score.score for score in scores if score.split == split and score.is_defined]
    return f"{100 * math.fsum(defined) / len(defined):.2f}" if defined else ""
