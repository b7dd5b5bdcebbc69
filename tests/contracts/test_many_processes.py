"""Exact counts under contention, whatever database the store stands on."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable

from core.store import MetricKey, Owner, RunState, Store
from tests.making import claimed, config, step_metrics
from tests.patience import PATIENCE_S
from tests.several import PROCESSES, started, together


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
    while (run := store.claim(owner)) is not None:
        mine.append(run.id)
    store.close()
    taken.put((number, mine))


def test_processes_race_on_a_new_store_and_lose_no_row(url: str, open_store: Callable[..., Store]) -> None:
    together(_open, [(url,)] * 3)
    store = open_store(url)
    assert store.runs() == []
    ids = [claimed(store) for _ in range(3)]
    together(_write, [(url, run_id, 5, 20) for run_id in ids])
    assert store.rows()["metrics"] == 3 * 5 * 20 * 4
    for series in store.metrics(ids, MetricKey("", "train", "loss")):
        assert series.step.tolist() == list(range(100))
        assert set(series.value.tolist()) == {float(series.run_id)}


def test_four_processes_claim_every_run_exactly_once(url: str, open_store: Callable[..., Store]) -> None:
    store = open_store(url)
    ids = store.add_runs([config(seed=seed) for seed in range(80)])
    urgent = ids[40:55]
    store.set_priority(urgent, 5)
    taken = PROCESSES.Queue()
    claims: dict[int, list[int]] = {}
    with started(_claim_all, [(url, number, taken) for number in range(4)]):
        for _ in range(4):  # before they are waited for: a full queue holds its process back
            number, mine = taken.get(timeout=PATIENCE_S)
            claims[number] = mine
    counted = Counter(run_id for mine in claims.values() for run_id in mine)
    assert counted == Counter(ids)
    for mine in claims.values():
        assert mine == sorted(mine, key=lambda run_id: (run_id not in urgent, run_id)), "not in order"
    runs = store.runs()
    assert {run.id: run.owner.pid for run in runs if run.owner is not None} == {
        run_id: number for number, mine in claims.items() for run_id in mine
    }
    last_urgent = max(run.started_at for run in runs if run.id in urgent and run.started_at is not None)
    before = [run for run in runs if run.started_at is not None and run.started_at < last_urgent]
    assert len(before) <= len(urgent) + 4, "runs of lower priority were claimed first"
    assert store.counts()[RunState.RUNNING] == 80


def test_a_change_of_another_waits_for_the_whole_of_ours(url: str, open_store: Callable[..., Store]) -> None:
    """A transaction that reads before it writes must not fail because another wrote in between."""
    first, second = open_store(url), open_store(url)
    run_id = claimed(first)
    entered, done = threading.Event(), threading.Event()

    def other() -> None:
        entered.wait()
        second.set_progress(run_id, 1, 0.1, 20)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with first.transaction():
        first.state(run_id)
        entered.set()
        assert not done.wait(0.2), "another wrote inside our write transaction"
        first.set_progress(run_id, 2, 0.2, 20)
    thread.join()
    assert first.run(run_id).step == 1


def test_what_one_finds_missing_and_adds_another_finds(url: str, open_store: Callable[..., Store]) -> None:
    """Looking and adding are one step: the second launch of the same run waits, and then finds it."""
    first, second = open_store(url), open_store(url)
    entered, looked = threading.Event(), threading.Event()
    found: list[int] = []

    def other() -> None:
        entered.wait()
        with second.queueing_alone():
            found.append(len(second.runs()))
            looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with first.queueing_alone():
        assert first.runs() == []
        entered.set()
        assert not looked.wait(0.2), "another looked before ours was added"
        first.add_runs([config()])
    thread.join()
    assert found == [1]


def test_tasks_that_two_ask_for_at_once_have_one_place_each(
    url: str, open_store: Callable[..., Store]
) -> None:
    first, second = open_store(url), open_store(url)
    entered, answered = threading.Event(), threading.Event()
    places: list[dict[str, int]] = []

    def other() -> None:
        entered.wait()
        places.append(second.task_places([["ner", "chunk"]]))
        answered.set()

    thread = threading.Thread(target=other)
    thread.start()
    with first.queueing_alone():
        entered.set()
        assert not answered.wait(0.2), "another gave places while ours were given"
        assert first.task_places([["pos", "ner"]]) == {"pos": 0, "ner": 1}
    thread.join()
    assert places == [{"pos": 0, "ner": 1, "chunk": 0}]
    assert first.task_places([["pos", "ner", "chunk"]]) == places[0]


def test_a_read_sees_one_moment(url: str, open_store: Callable[..., Store]) -> None:
    first, second = open_store(url), open_store(url)
    run_id, gone = claimed(first), first.add_runs([config(seed=2)])[0]

    def change() -> None:
        second.delete_runs([gone])

    thread = threading.Thread(target=change)
    with first.transaction(write=False):
        assert len(first.runs()) == 2
        thread.start()
        thread.join(timeout=0.3)  # SQLite makes it wait, PostgreSQL keeps both states
        assert len(first.runs_with_facts()) == 2
        assert first.counts()[RunState.QUEUED] == 1
    thread.join()
    assert [run.id for run in first.runs()] == [run_id]
