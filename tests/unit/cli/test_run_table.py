"""mrnlab study --record: a study's finished runs in a CSV file that outlives the store."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from core.store import Store
from core.studies import STUDIES
from jobs.cli import study as verb
from jobs.exchange import run_table
from jobs.exchange.run_table import COLUMNS, RunTable
from jobs.studies.follow import follow
from jobs.studies.progress import StudyOptions
from tests.making import config
from tests.several import together
from tests.studying import Workers, finished, setting, study
from tests.unit.cli.conftest import Laboratory

ALL = 3 + 6 + 6 + 1  # runs of the toy study, as in tests/unit/studies/test_studies.py


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, "toy", study(setting()))
    monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(), sleep=lambda _: None))


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_text(path), newline="")))


def _write_as_earlier(path: Path, rows: Sequence[dict[str, str]]) -> None:
    """The rows as earlier versions wrote them: each has its description in `run`."""
    described = {row["configuration"]: json.loads(row["description"]) for row in rows if row["description"]}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [name for name in COLUMNS if name != "description"])
        writer.writeheader()
        for row in rows:
            config = described[row["configuration"]] | {"seed": int(row["seed"])}
            run = json.dumps(json.loads(row["run"]) | {"config": config})
            writer.writerow({name: row[name] for name in writer.fieldnames} | {"run": run})


@pytest.mark.parametrize("name", ["toy.csv", "toy.csv.gz"])
def test_another_store_reports_the_same_and_trains_nothing(
    name: str, lab: Laboratory, tmp_path: Path
) -> None:
    table, other = tmp_path / name, ("--db", f"sqlite:///{tmp_path / 'other.db'}")
    limit = csv.field_size_limit()
    lab.answer("study", "toy", "--record", str(table))
    rows = _rows(table)
    assert csv.field_size_limit() == limit
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == ALL == len({(row["configuration"], row["seed"]) for row in rows})
    by_seed = {
        int(row["seed"]): (row["dev"], row["test"])
        for row in rows
        if row["configuration"]
        in {described["configuration"] for described in rows if '"lambda":0.1,' in described["description"]}
    }
    assert by_seed == {1: ("71.20", "66.10"), 2: ("72.40", "67.20"), 3: ("73.60", "68.30")}
    report = lab.answer("study", "toy", "--report", "markdown")
    restored = lab.call(*other, "study", "toy", "--record", str(table), "--report", "markdown")
    assert (restored.exit_code, restored.stdout) == (0, report), restored.stderr
    assert f"{ALL} runs of {table} added to the store." in restored.stderr
    before = table.read_bytes()
    again = lab.call(*other, "study", "toy", "--record", str(table))
    assert (again.exit_code, table.read_bytes()) == (0, before)
    assert "added" not in again.stderr
    assert len(lab.json(*other, "runs")) == ALL


def test_only_the_runs_that_a_table_lacks_are_trained(lab: Laboratory, tmp_path: Path) -> None:
    table, call = tmp_path / "toy.csv.gz", ("study", "toy", "--record", str(tmp_path / "toy.csv.gz"))
    (setting_runs,) = StudyOptions("toy").settings()
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'other.db'}")) as other:
        for run in setting_runs.runs()[:9]:
            finished(other, run)
        recorded = other.runs()
        RunTable(table).add(other, recorded)
    report = lab.answer(*call, "--report", "table")
    assert "9 of 16 runs recorded." in " ".join(report.split())
    (plan,) = lab.json(*call, "--dry-run")["settings"]
    assert (plan["done"], plan["search"] + plan["final"]) == (9, ALL - 9)
    (whole,) = lab.json(*call)["settings"]
    assert (whole["done"], whole["runs"]) == (ALL, ALL) == (len(lab.store.runs()), len(_rows(table)))
    assert sum(run.owner is not None for run in lab.store.runs()) == ALL - 9
    assert "recorded" not in lab.answer(*call, "--report", "table")


def test_a_table_says_each_description_once_and_the_same_rows_are_the_same_bytes(
    lab: Laboratory, tmp_path: Path
) -> None:
    table = tmp_path / "toy.csv.gz"
    lab.answer("study", "toy", "--record", str(table))
    rows = _rows(table)
    described = [row["configuration"] for row in rows if row["description"]]
    assert described == list(dict.fromkeys(row["configuration"] for row in rows))
    assert 1 < len(described) < ALL
    assert not any("config" in json.loads(row["run"]) for row in rows)
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    assert frame.to_dict("records") == rows
    assert table.read_bytes() == gzip.compress(_text(table).encode(), mtime=0)


def test_a_table_of_an_earlier_version_is_read_and_added_to(lab: Laboratory, tmp_path: Path) -> None:
    new, earlier = tmp_path / "new.csv", tmp_path / "earlier.csv"
    lab.answer("study", "toy", "--record", str(new))
    report = lab.answer("study", "toy", "--report", "markdown")
    rows = _rows(new)
    _write_as_earlier(earlier, rows[:5])
    RunTable(earlier).add(lab.store, lab.store.runs())
    assert {(row["configuration"], row["seed"]) for row in _rows(earlier)} == {
        (row["configuration"], row["seed"]) for row in rows
    }
    _write_as_earlier(earlier, rows)
    other = ("--db", f"sqlite:///{tmp_path / 'other.db'}")
    assert lab.call(*other, "study", "toy", "--record", str(earlier), "--report", "markdown").stdout == report


def test_a_compressed_table_that_cannot_be_unpacked_is_refused(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "toy.csv.gz"
    lab.answer("study", "toy", "--setting", "small", "--seeds", "1", "--record", str(table))
    whole = table.read_bytes()
    for data, problem in (
        (whole[: len(whole) // 2], "cannot be unpacked: Compressed file ended before"),
        (whole[:-8] + bytes(8), "cannot be unpacked: CRC check failed"),
        (b"configuration,seed", "cannot be unpacked: Not a gzipped file"),
        (b"", "is empty"),
    ):
        table.write_bytes(data)
        for more in ((), ("--dry-run",)):
            assert f"{table} {problem}" in lab.refusal("study", "toy", "--record", str(table), *more)
        assert table.read_bytes() == data
    monkeypatch.setattr(run_table, "_MOST_BYTES", 1_000_000)
    table.write_bytes(gzip.compress(bytes(2_000_000)))
    assert f"{table} holds more than 1 MB" in lab.refusal("study", "toy", "--record", str(table), "--dry-run")


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


_MANY = 12


def _add_runs(home: Path, table: Path, first_seed: int) -> None:
    """Adds that many runs one by one, as a process with its own laboratory."""
    home.mkdir()
    os.environ["MRNLAB_HOME"] = str(home)
    os.environ.pop("MRNLAB_DB", None)
    with contextlib.closing(Store.open()) as store:
        for seed in range(first_seed, first_seed + _MANY):
            finished(store, config(seed=seed))
        added = RunTable(table)
        for run in store.runs():
            added.add(store, [run])


def test_two_laboratories_that_add_to_one_table_keep_both_their_rows(tmp_path: Path) -> None:
    table, link = tmp_path / "toy.csv", tmp_path / "elsewhere" / "link.csv"
    link.parent.mkdir()
    link.symlink_to(table)
    together(_add_runs, [(tmp_path / "one", table, 1), (tmp_path / "two", link, 101)])
    assert sorted(int(row["seed"]) for row in _rows(table)) == [
        *range(1, 1 + _MANY),
        *range(101, 101 + _MANY),
    ]
    assert link.is_symlink()


def test_a_table_keeps_its_link_and_its_mode(lab: Laboratory, tmp_path: Path) -> None:
    table, link = tmp_path / "toy.csv", tmp_path / "link.csv"
    link.symlink_to("toy.csv")
    lab.answer("study", "toy", "--seeds", "1", "--record", str(link))
    table.chmod(0o640)
    before = len(_rows(table))
    lab.answer("study", "toy", "--record", str(link))
    assert link.is_symlink()
    assert len(_rows(table)) == ALL > before
    assert table.stat().st_mode & 0o777 == 0o640


def test_a_place_that_cannot_be_written_is_found_before_a_run_is_queued(
    lab: Laboratory, tmp_path: Path
) -> None:
    table, file, loop = tmp_path / "toy.csv", tmp_path / "file", tmp_path / "loop.csv"
    file.write_text("")
    loop.symlink_to(loop)
    for place in ("/proc/toy.csv", str(file / "toy.csv")):
        assert f"{place} cannot be written" in lab.refusal("study", "toy", "--record", place)
        assert f"'{file}' cannot be" in lab.refusal("study", "toy", "--tables", str(file))
    assert "a link that leads to itself" in lab.refusal("study", "toy", "--record", str(loop))
    lab.answer("study", "toy", "--seeds", "1", "--record", str(table))
    table.chmod(0o444)
    assert f"{table} is read-only" in lab.refusal("study", "toy", "--record", str(table))
    lab.answer("study", "toy", "--record", str(table), "--report", "table")


def test_a_row_that_could_not_be_read_again_is_not_written(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_table, "MOST_CHARACTERS", 1000)
    refused = lab.call("study", "toy", "--record", str(tmp_path / "toy.csv"))
    assert (refused.exit_code, (tmp_path / "toy.csv").exists()) == (2, False)
    assert "characters and the most is 1,000" in refused.stderr


def test_a_table_that_is_only_read_must_exist(lab: Laboratory, tmp_path: Path) -> None:
    table = tmp_path / "toy.csv"
    for more in (("--report", "table"), ("--tables", str(tmp_path / "tables")), ("--dry-run",)):
        assert f"There is no file {table}." in lab.refusal("study", "toy", "--record", str(table), *more)
    assert [path.name for path in tmp_path.iterdir()] == ["laboratory"]


def test_a_table_that_never_ends_is_refused(lab: Laboratory, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for place in (pipe, Path("/dev/zero"), tmp_path):
        for more in ((), ("--dry-run",)):
            assert f"{place} is not a file" in lab.refusal("study", "toy", "--record", str(place), *more)


def test_a_table_that_cannot_be_read_is_refused_with_its_line(lab: Laboratory, tmp_path: Path) -> None:
    table = tmp_path / "toy.csv"
    lab.answer("study", "toy", "--setting", "small", "--seeds", "1", "--record", str(table))
    head, first, *_ = table.read_text().splitlines()
    undescribed = re.sub(r'"{""corpus.*?}",', ",", first, count=1)
    (values,) = csv.reader([first])

    def changed(column: str, value: str) -> str:
        text = io.StringIO(newline="")
        csv.writer(text).writerow([*(dict(zip(COLUMNS, values, strict=True)) | {column: value}).values()])
        return text.getvalue().strip()

    unknown_paradigm = first.replace('""paradigm"":""', '""paradigm"":""x')
    for text, problem in (
        ("run,score\n", f"{table}, line 1: the columns must be {', '.join(COLUMNS)}."),
        (f"{head}\na,1\n", f"{table}, line 2: a row has {len(COLUMNS)} values."),
        (f"{head}\n{'0' * 12}{first[12:]}\n", "its configuration or seed is another one"),
        (f"{head}\n{first.replace(first[:12], '0' * 12)}\n", "its configuration or seed is another one"),
        (f"{head}\n{unknown_paradigm}\n", "paradigm must be"),
        (f"{head}\n{changed('scores', '[]')}\n", "is no run (it has no scores)"),
        (f"{head}\n{changed('test', '99.99')}\n", "its test is 99.99 and its scores say "),
        (f"{head}\n{changed('dev', '')}\n", "its dev is empty and its scores say "),
        (f"{'a' * 140_000},{head}\n", "line 1: has 140,"),
        (f"{head}\n{'a' * 140_000},{first}\n", "line 2: has "),
        (f'{head}\n"{"a" * 80_000}\n{"a" * 80_000}",1\n', "is not CSV (field larger than field limit"),
        (f"{head}\na\rb,1,2,3,4,5,6,7\n", f"{table}, line 2: has a carriage return inside"),
        (f"{head}\n{'a' * 12},1,2,3,4,{{}},[],{'[' * 50_000}\n", "is no run"),
        (f"{head}\n{undescribed}\n", "neither its row nor one above describes its configuration"),
        ("", f"{table} is empty"),
    ):
        table.write_text(text)
        assert problem in lab.refusal("study", "toy", "--record", str(table), "--dry-run")
