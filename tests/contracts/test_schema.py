"""The schema: made by migrations, on every database the same, from every release."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from core.errors import StoreError
from core.store import MetricKey, RunState, Store
from core.store.migrations import HEAD
from tests.assets.make_store import ASSETS
from tests.making import OWNER, config

REVISIONS = ("0001", "0002", "0003")


def alembic() -> Config:
    settings = Config()
    settings.set_main_option("script_location", "core.store:migrations")
    return settings


def test_tables_are_those_of_the_migrations(url: str) -> None:
    store = Store.open(url)
    settings = alembic()
    assert ScriptDirectory.from_config(settings).get_current_head() == HEAD == REVISIONS[-1]
    with store.transaction() as connection:
        settings.attributes["connection"] = connection
        command.check(settings)
        if connection.dialect.name == "sqlite":
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


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_run_of_each_release_is_there_after_an_upgrade(url: str, revision: str) -> None:
    engine = create_engine(url)
    settings = alembic()
    old = {"config": config().to_json(), "configuration_id": config().configuration_id, "created_at": 1000.0}
    with engine.begin() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, revision)
        names = ", ".join(old)
        values = ":config, :configuration_id, :created_at, 'queued'"
        connection.execute(text(f"INSERT INTO runs ({names}, state) VALUES ({values})"), old)
    engine.dispose()
    store = Store.open(url)
    run = store.claim(OWNER, due_in=15)
    assert run is not None
    assert (run.config, run.priority, run.retries, run.saved_step, run.note) == (config(), 0, 0, None, "")
    assert store.add_runs([config(seed=2)]) == [run.id + 1]
    store.close()


def test_a_store_of_each_released_schema_is_read(tmp_path: Path) -> None:
    assets = sorted(ASSETS.glob("store-*.db"))
    assert [path.stem for path in assets][-1] == f"store-{HEAD}", "run: python -m tests.assets.make_store"
    for asset in assets:
        copied = tmp_path / asset.name
        copied.write_bytes(asset.read_bytes())
        store = Store.open(f"sqlite:///{copied}")
        runs = {run.state: run for run in store.runs(with_facts=True)}
        assert set(runs) == {RunState.SUCCEEDED, RunState.FAILED, RunState.QUEUED}
        done = runs[RunState.SUCCEEDED]
        assert done.facts["alignment"] == "cooccurrence"
        assert {run.config_problem for run in runs.values()} == {None}
        (loss,) = store.metrics([done.id], MetricKey("", "train", "loss"))
        assert loss.step.tolist() == [1, 2, 3]
        assert [score.task for score in store.scores([done.id], "test")] == ["ner", "pos"]
        assert store.predictions(done.id, "test")["ner"][0] == [["O", "B-PER"], ["O"]]
        assert store.relations(done.id)[0].step == 3
        assert store.health().problems == ()
        assert {run.archived for run in runs.values()} == {False}
        assert {(run.priority, run.retries, run.saved_step) for run in runs.values()} == {(0, 0, None)}
        store.set_priority([runs[RunState.QUEUED].id], 3)
        store.add_tags([done.id], ["old"])
        assert "old" in store.run(done.id).tags
        assert [event.kind for event in store.events(done.id)] == ["running", "succeeded"]
        store.delete_runs([done.id])
        assert store.add_runs([config()]) == [4]
        store.close()
