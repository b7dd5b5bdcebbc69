"""mrnlab study --record: a study's finished runs in a CSV file that outlives the store."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from core.studies import STUDIES
from jobs.cli import study as verb
from jobs.exchange.run_table import COLUMNS, RunTable
from jobs.reports.studies import follow
from tests.studying import Workers, finished, setting, study
from tests.unit.cli.conftest import Laboratory

ALL = 3 + 6 + 6 + 1  # runs of the toy study, as in tests/unit/test_studies.py


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, "toy", study(setting()))
    monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(), sleep=lambda _: None))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_another_store_reports_the_same_and_trains_nothing(lab: Laboratory, tmp_path: Path) -> None:
    table, other = tmp_path / "toy.csv", ("--db", f"sqlite:///{tmp_path / 'other.db'}")
    limit = csv.field_size_limit()
    lab.answer("study", "toy", "--record", str(table))
    rows = _rows(table)
    assert csv.field_size_limit() == limit
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == ALL == len({(row["configuration"], row["seed"]) for row in rows})
    by_seed = {
        json.loads(row["run"])["config"]["seed"]: (row["dev"], row["test"])
        for row in rows
        if json.loads(row["run"])["config"].get("lambda") == 0.1
    }
    assert by_seed == {1: ("71.20", "66.10"), 2: ("72.40", "67.20"), 3: ("73.60", "68.30")}
    report = lab.answer("study", "toy", "--report", "markdown")
    restored = lab.call(*other, "study", "toy", "--record", str(table), "--report", "markdown")
    assert (restored.exit_code, restored.stdout) == (0, report)
    assert f"{ALL} runs of {table} added to the store." in restored.stderr
    before = table.read_bytes()
    again = lab.call(*other, "study", "toy", "--record", str(table))
    assert (again.exit_code, table.read_bytes()) == (0, before)
    assert "added" not in again.stderr
    assert len(lab.json(*other, "runs")) == ALL


def test_an_interrupted_study_keeps_what_has_finished(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, polls = tmp_path / "toy.csv", iter([None] * 3)

    def interrupt(_seconds: float) -> None:
        if next(polls, "over") == "over":
            raise KeyboardInterrupt

    monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(at_once=1), sleep=interrupt))
    assert lab.call("study", "toy", "--record", str(table)).exit_code == 130
    assert 0 < len(_rows(table)) < ALL


def test_a_run_that_was_trained_again_takes_the_place_of_the_older(lab: Laboratory, tmp_path: Path) -> None:
    table = tmp_path / "toy.csv"
    lab.answer("study", "toy", "--record", str(table))
    older = next(run for run in lab.store.runs() if run.config.paradigm == "mtl")
    finished(lab.store, older.config, score=lambda run, split: 0.25)
    lab.answer("study", "toy", "--record", str(table))
    by_run = {(row["configuration"], row["seed"]): row["test"] for row in _rows(table)}
    assert len(by_run) == ALL
    assert by_run[older.configuration_id, str(older.config.seed)] == "25.00"


def test_two_programs_that_add_to_one_table_keep_both_their_rows(lab: Laboratory, tmp_path: Path) -> None:
    lab.answer("study", "toy")
    runs = lab.store.runs()
    first, second = RunTable(tmp_path / "toy.csv"), RunTable(tmp_path / "toy.csv")
    first.add(lab.store, runs[:2])
    second.add(lab.store, runs[2:4])
    first.add(lab.store, runs[4:5])
    listed = {(row["configuration"], row["seed"]) for row in _rows(tmp_path / "toy.csv")}
    assert listed == {(run.configuration_id, str(run.config.seed)) for run in runs[:5]}


def test_a_table_that_cannot_be_read_is_refused_with_its_line(lab: Laboratory, tmp_path: Path) -> None:
    table = tmp_path / "toy.csv"
    lab.answer("study", "toy", "--setting", "small", "--seeds", "1", "--record", str(table))
    head, first, *_ = table.read_text().splitlines()
    unknown_paradigm = first.replace('""paradigm"":""', '""paradigm"":""x')
    for text, problem in (
        ("run,score\n", f"{table}, line 1: the columns must be {', '.join(COLUMNS)}."),
        (f"{head}\na,1\n", f"{table}, line 2: a row has {len(COLUMNS)} values."),
        (f"{head}\n{'0' * 12}{first[12:]}\n", "its configuration or seed is another one"),
        (f"{head}\n{first.replace(first[:12], '0' * 12)}\n", "its configuration or seed is another one"),
        (f"{head}\n{unknown_paradigm}\n", "paradigm must be"),
    ):
        table.write_text(text)
        assert problem in lab.refusal("study", "toy", "--record", str(table), "--dry-run")
