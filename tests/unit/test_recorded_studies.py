"""The results that the package carries are those of its records, and pages read them without the records.

`python -m tests.unit.test_recorded_studies` writes them anew, or only those named: `dissertation-mpnet`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from core.store import Store
from core.studies.recorded import RECORDS, Record, results_document
from jobs.exchange.run_table import RunTable
from jobs.studies.progress import StudyOptions, StudyRuns

_LARGE = ("priors", "regimes", "new-task", "dissertation", "simulator", "transfer")


def document_of(record: Record, folder: Path) -> dict[str, Any]:
    """The results of the record's runs, computed from these in a store of their own."""
    store = Store.open(f"sqlite:///{folder / record.results_path.stem}.db")
    RunTable(record.path).restore(store)
    options = StudyOptions(record.study, encoder=record.encoder, encoder_training=record.encoder_training)
    runs = StudyRuns(store, options.settings(), may_read=False)
    document = results_document(runs.look().counts.done, runs.results())
    store.close()
    return document


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, marks=[pytest.mark.slow] * (record.study in _LARGE), id=record.results_path.stem)
        for record in RECORDS
    ],
)
def test_the_results_are_those_of_the_record(record: Record, tmp_path: Path) -> None:
    assert document_of(record, tmp_path) == json.loads(record.results_path.read_text("utf-8"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.results_path.stem)
def test_what_is_read_is_what_was_written(record: Record) -> None:
    results = [record.result(setting) for setting in record.settings]
    assert results_document(record.runs, results) == json.loads(record.results_path.read_text("utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for record in RECORDS:
            if record.results_path.stem not in (sys.argv[1:] or [record.results_path.stem]):
                continue
            text = json.dumps(document_of(record, Path(folder)), ensure_ascii=False, separators=(",", ":"))
            record.results_path.write_text(text.replace('},"', '},\n"') + "\n", "utf-8")
