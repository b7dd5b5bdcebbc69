"""Splits that allow no score of a task: what a training notes, and by what it chooses its epoch."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.corpora.types import Corpus, Sentence
from core.events import Note, SplitResult
from core.library import Laboratory
from core.metrics import TOTAL, EpochMetrics
from core.store import RunState, Store
from core.tasks import score_task
from core.tasks.scores import REPORT_NUMBERS, SECONDARY_SCORES, TaskScore
from jobs.cli.output import run_document
from jobs.exchange.format import SCORES, scores_of, table_of, write_tables
from jobs.exchange.run_table import RunTable
from jobs.reports.render import REPORT_COLUMNS, csv_text, report_records
from tests.making import OWNER, claimed, run_facts
from tests.toys import config as toy_config
from tests.toys import corpus as toy_corpus
from tests.toys import text_corpus
from tests.trained import train_toy


def _without_spans(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences with an O for each word of `ner`."""
    return tuple(
        dataclasses.replace(each, labels={**each.labels, "ner": ("O",) * len(each.tokens)})
        for each in sentences
    )


def _blind(*splits: str, tasks: tuple[str, ...] = ("ner",)) -> Corpus:
    """The toy corpus with these tasks, and no span in these splits."""
    corpus = toy_corpus()
    kept = tuple(task for task in corpus.tasks if task.name in tasks)
    blind: dict[str, Any] = {split: _without_spans(getattr(corpus, split)) for split in splits}
    return dataclasses.replace(corpus, tasks=kept, **blind)


@pytest.mark.parametrize("select_by", ["score", "loss"])
def test_without_a_dev_score_the_last_epoch_is_kept(encoder: str, tmp_path: Path, select_by: str) -> None:
    """The loss of dev sentences without a span is lowest where nothing is predicted: after epoch 1."""
    config = toy_config(encoder, tasks="ner", paradigm="stl", epochs=4, select_by=select_by)
    run = train_toy(config, _blind("dev"), tmp_path / "run")
    assert run.facts.selected_by == "last"
    assert any("the dev split has no span of this task" in note for note in run.facts.notes)
    assert "No dev score is defined, so the last epoch is kept." in run.facts.notes
    epochs = run.of(EpochMetrics)
    assert [set(epoch.values) for epoch in epochs] == [{("ner", "loss"), (TOTAL, "loss")}] * 4
    assert run.outcome.best_epoch == 4
    (score,) = run.test.scores
    assert score.is_defined


def test_without_a_dev_score_patience_has_no_effect(encoder: str, tmp_path: Path) -> None:
    config = toy_config(encoder, tasks="ner", paradigm="stl", epochs=4, patience=1)
    run = train_toy(config, _blind("dev"), tmp_path / "run")
    assert "patience has no effect: no dev score is defined." in run.facts.notes
    assert run.outcome.best_epoch == 4


def test_a_task_without_a_dev_score_is_left_out_of_the_mean(encoder: str, tmp_path: Path) -> None:
    run = train_toy(
        toy_config(encoder, paradigm="mtl"), _blind("dev", tasks=("pos", "ner")), tmp_path / "run"
    )
    assert run.facts.selected_by == "score"
    assert any("the tasks other than ner" in note for note in run.facts.notes)
    for epoch in run.of(EpochMetrics):
        assert ("ner", "score") not in epoch.values
        assert epoch.values[TOTAL, "score"] == epoch.values["pos", "score"]


def test_a_test_split_without_spans_is_noted(encoder: str, tmp_path: Path) -> None:
    config = toy_config(encoder, tasks="ner", paradigm="stl", epochs=1)
    run = train_toy(config, _blind("test"), tmp_path / "run")
    assert run.facts.selected_by == "score"
    assert any("the test split has no span of this task" in note for note in run.facts.notes)
    (score,) = run.test.scores
    assert math.isnan(score.score)


def test_constant_predictions_leave_the_choice_to_dev_loss(encoder: str, tmp_path: Path) -> None:
    """Dev numbers differ, so that their score is defined; but a model predicts one number for all pairs."""
    config = toy_config(encoder, tasks="alike", paradigm="stl", epochs=2, lr_encoder=1e-30, lr_heads=1e-30)
    corpus = text_corpus(tasks=("alike",))
    one_pair = tuple(
        dataclasses.replace(corpus.dev[0], labels={"alike": (number,)}) for number in ("1", "2", "4")
    )
    run = train_toy(config, dataclasses.replace(corpus, dev=one_pair), tmp_path / "run")
    assert run.facts.selected_by == "score"
    assert not any((TOTAL, "score") in epoch.values for epoch in run.of(EpochMetrics))
    assert any("lowest dev loss" in note.message for note in run.of(Note))


def _stored(store: Store) -> int:
    """A finished run whose score on test is undefined."""
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    gold = {"ner": [["O", "O"]]}
    blind = score_task("ner", "iob2", gold["ner"], [["O", "B-PER"]])
    store.add_result(run_id, SplitResult("test", 1, (blind,), {"ner": [["O", "B-PER"]]}, gold))
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
    return run_id


def test_an_undefined_score_leaves_the_laboratory_as_such(store: Store, tmp_path: Path) -> None:
    """In the tables of an export, which another laboratory reads, and in a study's table of runs."""
    run_id = _stored(store)
    record = store.record(run_id)
    write_tables(record, tmp_path)
    (row,) = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert (row["score"], row["recall"], row["accuracy"]) == (None, None, 0.5)
    (exported,) = scores_of(table_of(SCORES, [row]))
    assert not exported.is_defined
    table = RunTable(tmp_path / "runs.csv")
    table.add(store, [record.run])
    assert "NaN" not in table.path.read_text(encoding="utf-8")
    other = Store.open("sqlite://")
    assert RunTable(table.path).restore(other) == 1
    (score,) = other.scores()
    assert not score.is_defined
    other.close()


def test_every_figure_goes_wherever_a_score_goes(store: Store, tmp_path: Path) -> None:
    """Through the store, an export, a record of a study and JSON; without a list of figures anywhere else."""
    figures = {name: index / 10 for index, name in enumerate(SECONDARY_SCORES)}
    run_id = claimed(store)
    given = TaskScore("ner", "f1_conll", 0.5, 7, figures, {"PER": dict.fromkeys(REPORT_NUMBERS, 0.5)})
    store.set_facts(run_id, run_facts())
    store.add_result(run_id, SplitResult("test", 1, (given,), {}, {}))
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
    record = store.record(run_id)
    write_tables(record, tmp_path)
    table = RunTable(tmp_path / "runs.csv")
    table.add(store, [record.run])
    other = Store.open("sqlite://")
    assert table.restore(other) == 1
    exported = scores_of(pq.read_table(tmp_path / "scores.parquet"))
    for (score,) in (record.scores, exported, other.scores()):
        assert score.figures == figures
    document = run_document(record.run, record.scores, record.run.alignment)["test"]["ner"]
    assert {name: document[name] for name in SECONDARY_SCORES} == figures
    laboratory = Laboratory(f"sqlite:///{tmp_path / 'runs.db'}")
    laboratory.store.import_record(record, "Imported.")
    (row,) = laboratory.scores().to_dict("records")
    assert {name: row[name] for name in SECONDARY_SCORES} == figures
    other.close()


def test_json_has_null_and_a_csv_file_nothing(store: Store) -> None:
    run = store.run(_stored(store))
    (score,) = store.scores([run.id])
    document = json.loads(json.dumps(run_document(run, [score], None)["test"]["ner"]).replace("NaN", "null"))
    assert (document["score"], document["f1_conll"], document["macro_f1"]) == (None, None, None)
    records = report_records(run, score)
    assert {record["f1"] for record in records} == {None}
    assert "nan" not in csv_text(REPORT_COLUMNS, records)
