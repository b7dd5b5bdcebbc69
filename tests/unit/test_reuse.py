"""Runs that are in the store already are used, and only the others are queued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora.loading import read
from core.errors import CorpusError
from core.store import RunState, Store
from jobs.queue.submit import same_runs, submit_missing
from tests.making import OWNER, NoWorkers, claimed, config, conll_config, conll_folder, run_facts


def reused(store: Store, *configs: RunConfig) -> list[int | None]:
    runs = same_runs(store, configs)
    return [runs[wanted].id if wanted in runs else None for wanted in configs]


@pytest.mark.parametrize("state", list(RunState))
def test_only_runs_that_need_not_be_trained_again(store: Store, state: RunState) -> None:
    run_id = claimed(store, state)
    reusable = state in (RunState.SUCCEEDED, RunState.RUNNING, RunState.QUEUED)
    expected = [run_id if reusable else None, None, None]
    assert reused(store, config(), config(seed=2), config(epochs=6)) == expected
    if state is RunState.SUCCEEDED:
        store.archive([run_id])
        assert reused(store, config()) == [None]


def test_a_finished_run_counts_before_one_in_training_and_that_before_one_that_waits(store: Store) -> None:
    done = claimed(store, RunState.SUCCEEDED)
    newer = claimed(store, RunState.SUCCEEDED)
    training = claimed(store)
    claimed(store, RunState.QUEUED)
    assert done < newer < training
    assert reused(store, config()) == [newer]
    store.delete_runs([done, newer])
    assert reused(store, config()) == [training]


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


def finished_on(store: Store, wanted: RunConfig, **facts: Any) -> int:
    """A run of that description, trained here with these facts."""
    (run_id,) = store.add_runs([wanted])
    while (run := store.claim(OWNER, due_in=15)) is not None and run.id != run_id:
        pass
    store.set_facts(run_id, run_facts(**facts))
    store.finish(run_id, RunState.SUCCEEDED)
    return run_id


def test_a_run_on_other_text_is_not_used(store: Store, tmp_path: Path) -> None:
    folder = conll_folder(tmp_path / "corpus")
    wanted = conll_config(folder)
    run_id = finished_on(store, wanted, text_hash=read(wanted.corpus, wanted.columns).text_hash)
    assert reused(store, wanted) == [run_id]
    train = folder / "train.conll"
    train.write_text(train.read_text().replace("B-ORG", "B-LOC", 1))
    assert reused(store, wanted) == [None]
    ids, used = submit_missing(store, [wanted], engine=NoWorkers())
    assert (used, len(store.runs())) == ([], 2)
    assert ids != [run_id]


def test_a_run_whose_text_is_not_known_is_used(store: Store, tmp_path: Path) -> None:
    """Runs of older versions tell no text; nor does a corpus that can no longer be read."""
    folder = conll_folder(tmp_path / "corpus")
    wanted = conll_config(folder)
    old = finished_on(store, wanted)
    assert reused(store, wanted) == [old]
    newer = finished_on(store, wanted, text_hash="abc")
    assert reused(store, wanted) == [old]
    (folder / "train.conll").unlink()
    assert reused(store, wanted) == [newer]


def test_a_run_in_another_precision_than_auto_gives_now_is_not_used(store: Store) -> None:
    """The newest run shows what `auto` comes to; where the precision is named there is nothing to ask."""
    half = finished_on(store, config(), precision="bf16")
    named = finished_on(store, config(precision="bf16"), precision="bf16")
    assert reused(store, config(), config(precision="bf16")) == [half, named]
    single = finished_on(store, config(seed=2), precision="fp32")
    configs = (config(), config(seed=2), config(precision="bf16"))
    assert reused(store, *configs) == [None, single, named]


def test_a_run_whose_alignment_auto_would_choose_otherwise_now_is_not_used(store: Store) -> None:
    """Its tasks are annotated on the same words and share no label names."""
    finished_on(store, config(), alignment="exact")
    named = finished_on(store, config(alignment="exact"), alignment="exact")
    assert reused(store, config(), config(alignment="exact")) == [None, named]
    same = finished_on(store, config(), alignment="cooccurrence")
    assert reused(store, config()) == [same]


def test_where_one_cannot_be_trained_none_is_queued(store: Store) -> None:
    claimed(store, RunState.SUCCEEDED)
    with pytest.raises(CorpusError):
        submit_missing(store, [config(), config(tasks=("pos", "height"))], engine=NoWorkers())
    assert len(store.runs()) == 1
