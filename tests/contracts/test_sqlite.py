"""SQLite as many processes use it: its settings, its faults in words, exact counts under contention."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections import Counter
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from core.errors import StoreError
from core.store import MetricKey, Owner, RunState, Store, engine
from core.store.migrations import HEAD
from tests.assets.make_store import ASSETS
from tests.making import OWNER, claimed, config, step_metrics

# The server imports the library once; its children are then there at once.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["core.store", "tests.making"])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'many.db'}"


def test_every_connection_is_set_up(url: str) -> None:
    store = Store.open(url)
    with store.transaction(write=False) as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    safe = engine.wal_is_safe(sqlite3.sqlite_version_info)
    assert found == {
        "journal_mode": "wal" if safe else "delete",
        "synchronous": 1 if safe else 2,
        "busy_timeout": 30_000,
        "foreign_keys": 1,
    }
    store.close()


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
    ],
)
def test_wal_only_where_it_loses_nothing(version: tuple[int, int, int], safe: bool) -> None:
    assert engine.wal_is_safe(version) is safe


def test_writes_begin_immediately(url: str) -> None:
    """A transaction that reads before it writes must not fail because another wrote in between."""
    first, second = Store.open(url), Store.open(url)
    run_id = claimed(first)
    entered, done = threading.Event(), threading.Event()

    def other() -> None:
        entered.wait()
        second.set_progress(run_id, 1, 0.1, 20)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with first.transaction():
        first.run(run_id)
        entered.set()
        assert not done.wait(0.2), "another wrote inside our write transaction"
        first.set_progress(run_id, 2, 0.2, 20)
    thread.join()
    assert first.run(run_id).step == 1
    first.close()
    second.close()


def test_tables_are_those_of_the_migrations(url: str) -> None:
    store = Store.open(url)
    settings = Config()
    settings.set_main_option("script_location", "core.store:migrations")
    assert ScriptDirectory.from_config(settings).get_current_head() == HEAD
    with store.transaction() as connection:
        settings.attributes["connection"] = connection
        command.check(settings)
        checks = connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'metrics'")).scalar_one()
    assert "WITHOUT ROWID" in checks
    store.close()


def test_a_store_of_the_future_is_left_alone(url: str) -> None:
    store = Store.open(url)
    with store.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreError, match="newer MRN Lab"):
        Store.open(url)


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    text_file = tmp_path / "notes.db"
    text_file.write_text("These are my notes, and no database at all. " * 50)
    for url, words in {
        f"sqlite:///{text_file}": "is not a store of MRN Lab",
        f"sqlite:///{tmp_path / 'no' / 'folder.db'}": "cannot be opened; check that its folder exists",
        "sqlite//runs.db": "not a database URL",
        "nosuchdb://me:secret@host/name": "database driver that is not installed",
        "mysql+oursql://me:secret@host/name": "database driver that is not installed",
        "mysql+cymysql://me:secret@host/name": "database driver that is not installed",
    }.items():
        with pytest.raises(StoreError, match=words) as told:
            Store.open(url)
        assert "\n" not in str(told.value)
        assert "secret" not in str(told.value)
    assert text_file.read_text().startswith("These are my notes")


def test_a_laboratory_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "file" / "laboratory"))
    with pytest.raises(StoreError, match="set MRNLAB_HOME"):
        Store.open()


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
        store.add_tags([done.id], ["old"])
        assert "old" in store.run(done.id).tags
        assert [event.kind for event in store.events(done.id)] == ["running", "succeeded"]
        store.delete_runs([done.id])
        assert store.add_runs([config()]) == [4]
        store.close()


def test_damage_is_told(url: str, tmp_path: Path) -> None:
    store = Store.open(url)
    store.add_runs([config(seed=seed) for seed in range(50)])
    store.close()
    path = tmp_path / "many.db"
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="damaged"):
        Store.open(url).runs()


def test_a_lock_held_too_long_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0)
    holder, store = Store.open(url), Store.open(url)
    with holder.transaction(), pytest.raises(StoreError, match="is busy"):
        store.add_runs([config()])
    store.add_runs([config()])
    holder.close()
    store.close()


def test_passwords_are_not_shown() -> None:
    parsed = engine.parse_url("postgresql://lab:secret@host/runs")
    assert "secret" not in parsed.render_as_string(hide_password=True)


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("sqlite:///here.db")
    assert store.url == f"sqlite:///{tmp_path / 'here.db'}"
    store.close()


def _open(url: str) -> None:
    Store.open(url).close()


def _write(url: str, run_id: int, batches: int, rows: int) -> None:
    store = Store.open(url)
    for batch in range(batches):
        store.add_metrics(run_id, [step_metrics(batch * rows + row, loss=run_id) for row in range(rows)])
    store.close()


def _claim_all(url: str, number: int, taken: multiprocessing.Queue[tuple[int, list[int]]]) -> None:
    store = Store.open(url)
    owner = Owner("here", number, 0.0, "boot")
    mine = []
    while (run := store.claim(owner, due_in=15)) is not None:
        mine.append(run.id)
    store.close()
    taken.put((number, mine))


def _together(target: object, calls: list[tuple[object, ...]]) -> None:
    processes = [_PROCESSES.Process(target=target, args=call) for call in calls]  # type: ignore[arg-type]  # any function
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def test_processes_race_on_a_new_file(url: str) -> None:
    _together(_open, [(url,)] * 4)
    store = Store.open(url)
    assert store.runs() == []
    store.close()


def test_eight_writers_lose_no_row(url: str) -> None:
    store = Store.open(url)
    ids = [claimed(store) for _ in range(8)]
    _together(_write, [(url, run_id, 10, 20) for run_id in ids])
    with store.transaction(write=False) as connection:
        assert connection.execute(text("SELECT count(*) FROM metrics")).scalar_one() == 8 * 10 * 20 * 4
    for series in store.metrics(ids, MetricKey("", "train", "loss")):
        assert series.step.tolist() == list(range(200))
        assert set(series.value.tolist()) == {float(series.run_id)}
    store.close()


def test_every_run_is_claimed_exactly_once(url: str) -> None:
    store = Store.open(url)
    ids = store.add_runs([config(seed=seed) for seed in range(200)])
    taken = _PROCESSES.Queue()
    _together(_claim_all, [(url, number, taken) for number in range(4)])
    claims = dict(taken.get(timeout=5) for _ in range(4))
    counted = Counter(run_id for mine in claims.values() for run_id in mine)
    assert counted == Counter(ids)
    owners = {run.id: run.owner.pid for run in store.runs() if run.owner is not None}
    assert owners == {run_id: number for number, mine in claims.items() for run_id in mine}
    assert store.counts()[RunState.RUNNING] == 200
    store.close()


def test_a_worker_of_another_store_object_is_seen_at_once(url: str) -> None:
    first, second = Store.open(url), Store.open(url)
    (run_id,) = first.add_runs([config()])
    assert [run.state for run in first.runs()] == [RunState.QUEUED]
    assert second.claim(OWNER, 15) is not None
    assert [run.state for run in first.runs()] == [RunState.RUNNING]
    assert first.run(run_id) == second.run(run_id)
    first.close()
    second.close()
