"""The schema: on every database the same, however old the store."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from core.errors import StoreError
from core.events import SplitResult
from core.store import MetricKey, RunState, Store
from core.store.migrations import HEAD
from core.tasks import score_task
from tests.assets.make_store import ASSETS
from tests.making import OWNER, claimed, config

# What takes a store of the present schema back to an earlier revision.
_FIGURES = ("accuracy", "precision", "recall", "f1_conll", "f1_strict", "seqeval_f1", "spearman")
_BACK = {
    "0008": (),
    "0007": ("DROP TABLE plans",),
    "0006": ("ALTER TABLE runs DROP COLUMN threads",),
    "0005": (
        "DROP TABLE figures",
        *(f"ALTER TABLE scores ADD COLUMN {name} DOUBLE PRECISION" for name in _FIGURES),
    ),
    "0004": tuple(
        f"ALTER TABLE scores {change}"
        for name in ("score", "accuracy")
        for change in (f"DROP COLUMN {name}", f"ADD COLUMN {name} DOUBLE PRECISION DEFAULT 0 NOT NULL")
    ),
    "0003": ("ALTER TABLE scores DROP COLUMN spearman",),
    "0002": (
        "DROP TABLE settings",
        "DROP INDEX ix_runs_queue",
        *(
            f"ALTER TABLE runs DROP COLUMN {name}"
            for name in ("saved_step", "engine_job", "waiting_for", "retries", "priority")
        ),
    ),
    "0001": tuple(f"ALTER TABLE runs DROP COLUMN {name}" for name in ("tags", "note", "archived_at")),
}
REVISIONS = sorted(_BACK)


def tables(store: Store) -> dict[str, Any]:
    """Columns, keys and indexes of each table, in any order."""

    def described(column: Any) -> tuple[Any, ...]:
        # SQLite has several names for the one type of such numbers.
        type_ = str(column["type"]).replace("DOUBLE PRECISION", "DOUBLE").replace("REAL", "DOUBLE")
        return column["name"], type_, column["nullable"], column["default"]

    with store.transaction() as connection:
        schema = inspect(connection)
        return {
            name: [
                sorted(map(described, schema.get_columns(name))),
                schema.get_pk_constraint(name),
                sorted(index["name"] or "" for index in schema.get_indexes(name)),
            ]
            for name in schema.get_table_names()
        }


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_older_store_becomes_a_new_one(url: str, revision: str) -> None:
    store = Store.open(url)
    new = tables(store)
    (run_id,) = store.add_runs([config()])
    _back_to(store, revision)
    store.close()
    store = Store.open(url)
    assert tables(store) == new
    run = store.claim(OWNER)
    assert run is not None
    assert (run.id, run.config, run.priority, run.retries, run.saved_step, run.note, run.keywords) == (
        *(run_id, config(), 0, 0, None, "", ()),
    )
    assert store.add_runs([config(seed=2)]) == [run.id + 1]
    store.close()


def _back_to(store: Store, revision: str) -> None:
    """Give the store the tables of that revision."""
    with store.transaction() as connection:
        for older in sorted((r for r in REVISIONS if r >= revision), reverse=True):
            for statement in _BACK[older]:
                connection.execute(text(statement))
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


@pytest.mark.parametrize(
    ("score_name", "stored", "figures"),
    [
        ("f1_conll", {"accuracy": 0.9, "f1_conll": 0.8, "f1_strict": 0.0}, _FIGURES[:0]),
        ("pearson", {"accuracy": 0.0, "spearman": -0.5}, ("accuracy",)),
    ],
)
def test_figures_beside_a_score_become_rows(
    url: str, score_name: str, stored: dict[str, float], figures: tuple[str, ...]
) -> None:
    """All but `figures`, which are left out: earlier versions wrote an accuracy of 0 for correlations."""
    store = Store.open(url)
    (run_id,) = store.add_runs([config()])
    _back_to(store, "0005")
    row = {"run_id": run_id, "split": "test", "task": "ner", "epoch": 1, "score": 0.5} | stored
    row |= {"score_name": score_name, "tokens": 3, "report": "{}"}
    with store.transaction() as connection:
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO scores ({columns}) VALUES ({values})"), row)
    store.close()
    store = Store.open(url)
    (score,) = store.scores()
    assert (score.score, score.score_name, score.tokens) == (0.5, score_name, 3)
    assert score.figures == {name: value for name, value in stored.items() if name not in figures}
    store.delete_runs([run_id])
    with store.transaction(write=False) as connection:
        assert connection.scalar(text("SELECT count(*) FROM figures")) == 0
    store.close()


_REPORT = '{"PER": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": %d}}'


@pytest.mark.parametrize(
    ("tokens", "report", "is_defined"),
    [(0, "{}", False), (3, "{}", False), (3, _REPORT % 0, False), (3, _REPORT % 20, True)],
)
def test_a_score_that_was_0_of_0_becomes_undefined(
    tmp_path: Path, tokens: int, report: str, is_defined: bool
) -> None:
    old = tmp_path / "runs.db"
    old.write_bytes((ASSETS / "store-0004.db").read_bytes())
    connected = sqlite3.connect(old)
    with connected:
        connected.execute("UPDATE scores SET score = 0, f1_conll = 0, score_name = 'f1_conll'")
        connected.execute("UPDATE scores SET tokens = ?, report = ?", (tokens, report))
        connected.execute("DELETE FROM predictions WHERE split = 'dev'")  # as of a run of a study's record
    connected.close()
    store = Store.open(f"sqlite:///{old}")
    assert {score.is_defined for score in store.scores(split="test")} == {is_defined}
    assert {score.is_defined for score in store.scores(split="dev")} == {tokens > 0}
    assert store.mean_scores("test") == ({1: 0.0} if is_defined else {})
    store.close()


def test_an_undefined_score_is_stored_as_such(url: str) -> None:
    store = Store.open(url)
    run_id = claimed(store)
    blind = score_task("ner", "iob2", [["O", "O"]], [["O", "B-PER"]])
    store.add_result(run_id, SplitResult("test", 1, (blind,), {"ner": [["O", "O"]]}, {"ner": [["O", "O"]]}))
    (stored,) = store.scores([run_id])
    assert (
        stored.is_defined,
        stored.secondary("f1_conll"),
        stored.secondary("recall"),
        stored.secondary("accuracy"),
    ) == (False, None, None, 0.5)
    assert stored.undefined_because("the test split") == "the test split has no span of this task"
    assert not store.mean_scores("test")
    store.close()


def test_metrics_lie_in_the_order_of_their_key(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    with store.transaction() as connection:
        made = connection.scalar(text("SELECT sql FROM sqlite_master WHERE name = 'metrics'"))
    assert "WITHOUT ROWID" in str(made)
    store.close()


def test_a_store_of_the_future_is_left_alone(url: str) -> None:
    store = Store.open(url)
    with store.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreError, match="newer MRN Lab"):
        Store.open(url)


def test_a_store_of_each_released_schema_is_read(tmp_path: Path) -> None:
    assets = sorted(ASSETS.glob("store-*.db"))
    assert assets[-1].stem == f"store-{HEAD}", "run: python -m tests.assets.make_store"
    fresh = Store.open(f"sqlite:///{tmp_path / 'fresh.db'}")
    for asset in assets:
        copied = tmp_path / asset.name
        copied.write_bytes(asset.read_bytes())
        store = Store.open(f"sqlite:///{copied}")
        assert tables(store) == tables(fresh)
        runs = {run.state: run for run in store.runs_with_facts()}
        assert set(runs) == {RunState.SUCCEEDED, RunState.FAILED, RunState.QUEUED}
        done = runs[RunState.SUCCEEDED]
        assert done.alignment == "cooccurrence"
        assert {run.config_problem for run in runs.values()} == {None}
        (loss,) = store.metrics([done.id], MetricKey("", "train", "loss"))
        assert loss.step.tolist() == [1, 2, 3]
        scores = {score.task: score for score in store.scores([done.id], "test")}
        assert {task: score.score for task, score in scores.items()} == {"ner": 0.375, "pos": 0.75}
        assert {**scores["pos"].figures} == {"accuracy": 0.75, "seqeval_f1": 0.5}
        assert store.predictions(done.id, "test")["ner"][0] == [["O", "B-PER"], ["O"]]
        assert store.relations(done.id)[0].step == 3
        assert store.health().problems == ()
        assert fresh.record(fresh.import_record(store.record(done.id), "Imported.")).snapshots
        assert {run.archived for run in runs.values()} == {False}
        store.set_priority([runs[RunState.QUEUED].id], 3)
        store.add_keywords([done.id], ["old"])
        assert "old" in store.run(done.id).keywords
        assert [event.kind for event in store.events(done.id)] == ["running", "succeeded"]
        store.delete_runs([done.id])
        assert store.add_runs([config()]) == [4]
        store.close()
    fresh.close()
