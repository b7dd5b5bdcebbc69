"""Runs that are in the store already are used, and only the others are queued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import CorpusError
from core.store import RunState, Store
from jobs.reuse import same_runs, submit_missing
from tests.making import NoWorkers, claimed, config

_CONLL = "EU B-ORG X\nrejects O Y\n\nIt O X\nwas O Y\n\n"


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open("sqlite://")
    yield opened
    opened.close()


def found(store: Store, *configs: RunConfig) -> list[int | None]:
    runs = same_runs(store, configs)
    return [runs[one].id if one in runs else None for one in configs]


@pytest.mark.parametrize("state", list(RunState))
def test_only_runs_that_need_not_be_trained_again(store: Store, state: RunState) -> None:
    run_id = claimed(store, state)
    reusable = state in (RunState.SUCCEEDED, RunState.RUNNING, RunState.QUEUED)
    assert found(store, config(), config(seed=2), config(epochs=6)) == [
        run_id if reusable else None,
        None,
        None,
    ]


def test_a_finished_run_counts_before_one_in_training_and_that_before_one_that_waits(store: Store) -> None:
    done = claimed(store, RunState.SUCCEEDED)
    newer = claimed(store, RunState.SUCCEEDED)
    training = claimed(store)
    claimed(store, RunState.QUEUED)
    assert done < newer < training
    assert found(store, config()) == [newer]
    store.delete_runs([done, newer])
    assert found(store, config()) == [training]


def test_archived_runs_are_left_out(store: Store) -> None:
    run_id = claimed(store, RunState.SUCCEEDED)
    store.archive([run_id])
    assert found(store, config()) == [None]


def test_only_what_is_missing_is_queued_in_the_order_asked_for(store: Store) -> None:
    second = claimed(store, RunState.SUCCEEDED, seed=2)
    waiting = claimed(store, RunState.QUEUED, seed=4)
    wanted = [config(seed=seed) for seed in (1, 2, 3, 4)]
    ids, used = submit_missing(store, wanted, "again", engine=NoWorkers())
    assert set(used) == {second, waiting}
    assert [store.run(run_id).config.seed for run_id in ids] == [1, 2, 3, 4]
    assert (ids[1], ids[3]) == (second, waiting)
    assert len(store.runs()) == 4
    assert submit_missing(store, wanted, engine=NoWorkers()) == (ids, ids)
    assert len(store.runs()) == 4


def test_folders_are_the_same_by_whatever_path(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.conll").write_text(_CONLL * 10)
    monkeypatch.chdir(tmp_path)
    told: dict[str, Any] = {"columns": "tokens,ner,toy", "tasks": "ner,toy"}
    first, _ = submit_missing(store, [config(corpus="corpus", **told)], engine=NoWorkers())
    again = submit_missing(store, [config(corpus=str(folder), **told)], engine=NoWorkers())
    assert again == (first, first)


def test_where_one_cannot_be_trained_none_is_queued(store: Store) -> None:
    claimed(store, RunState.SUCCEEDED)
    with pytest.raises(CorpusError):
        submit_missing(store, [config(), config(tasks=("pos", "height"))], engine=NoWorkers())
    assert len(store.runs()) == 1
