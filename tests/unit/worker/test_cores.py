"""How runs share the cores of a machine: how many at once, with how many threads each."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.errors import MRNLabError
from core.events import Usage
from core.recording.owner import this_process
from core.store import RunState, Store
from core.store.queue import fitting
from jobs.engines.local import LocalEngine
from jobs.queue import control
from jobs.queue.estimates import cost
from jobs.queue.submit import queue_runs
from jobs.worker import cores, devices
from jobs.worker.cores import LEAST_BYTES, Sharing, slots_by_memory, train_at_once
from jobs.worker.devices import core_count
from tests.making import OWNER, NoWorkers, config, run_facts


@pytest.mark.parametrize(
    ("cores", "slots", "training", "waiting", "started"),
    [
        (2, 2, [], [1, 1, 1], 2),
        (2, 2, [1], [1, 1], 1),
        (2, 2, [2], [1], 0),
        (2, 2, [], [2, 1], 1),
        (2, 2, [1], [2, 1], 0),  # no run overtakes the first that does not fit
        (2, 2, [], [16], 1),  # queued on a larger machine
        (2, 2, [None], [1, 1], 2),
        (8, 8, [1, 1], [2, 2, 2, 1], 3),
        (8, 3, [1], [1, 1, 1], 2),
        (16, 16, [8], [1] * 20, 8),
        (16, 4, [], [4] * 20, 4),
    ],
)
def test_what_fits(
    cores: int, slots: int, training: list[int | None], waiting: list[int], started: int
) -> None:
    assert fitting(waiting, training, cores, slots) == started


@pytest.mark.parametrize(
    ("cores", "usable", "of_a_run", "slots"),
    [
        (2, 64, 0, 2),
        (8, 64, 0, 8),
        (16, 12, 0, 12),
        (16, 12, 0.2, 12),
        (16, 12, 4, 3),
        (16, 3, 4, 1),
        (2, -1, 0, 1),
    ],
)
def test_memory_limits_the_runs_at_once(cores: int, usable: float, of_a_run: float, slots: int) -> None:
    assert slots_by_memory(cores, int(usable * LEAST_BYTES), int(of_a_run * LEAST_BYTES)) == slots


_NEW, _OLD = config(), config(lambda_=0.5)


@pytest.mark.parametrize(
    ("slots", "cores", "is_idle", "configs", "threads", "at_once"),
    [
        (2, 2, True, [_NEW], [2], 1),
        (2, 2, False, [_NEW], [1], 2),
        (2, 2, True, [_NEW, _NEW], [1, 1], 2),
        (1, 2, True, [_NEW, _NEW], [2, 2], 1),
        (8, 8, True, [_NEW] * 3, [1, 1, 1], 8),
        (16, 16, True, [_NEW], [16], 1),
        (3, 16, True, [_NEW] * 2, [5, 5], 3),
        (16, 16, True, [_NEW, _OLD], [1, 4], 4),  # as the earlier runs of its configuration
        (16, 16, False, [_OLD], [4], 4),
        (16, 16, True, [_OLD] * 20, [4] * 20, 4),
        (6, None, True, [_NEW], [None], 6),  # MRNLAB_SLOTS, or a GPU
    ],
)
def test_threads_are_decided_when_runs_are_queued(
    slots: int,
    cores: int | None,
    is_idle: bool,
    configs: list[RunConfig],
    threads: list[int | None],
    at_once: int,
) -> None:
    sharing = Sharing(slots, cores, is_idle, {_OLD.configuration_id: 4})
    assert (sharing.threads(configs), sharing.at_once(threads)) == (threads, at_once)
    assert bool(sharing.held_back(threads)) is (at_once < min(slots, len(configs)))


@pytest.mark.parametrize(
    ("slots", "configs", "threads"),
    [
        (2, [_NEW], [8]),  # also alone
        (2, [_NEW, _OLD], [8, 4]),
        (8, [_OLD, _OLD], [2, 2]),
        (1, [_OLD], [4]),
        (16, [_OLD] * 20, [1] * 20),
    ],
)
def test_no_run_takes_more_than_its_share_of_chosen_slots(
    slots: int, configs: list[RunConfig], threads: list[int]
) -> None:
    sharing = Sharing(slots, 16, True, {_OLD.configuration_id: 4}, is_chosen=True)
    assert (sharing.threads(configs), sharing.held_back(threads)) == (threads, "")


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    for module in (devices, cores, control):
        monkeypatch.setattr(module, "core_count", lambda: 8)
    monkeypatch.setattr(cores, "_usable_bytes", lambda _: 64 * LEAST_BYTES)


@pytest.mark.usefixtures("eight_cores")
class TestQueued:
    def test_seeds_of_a_configuration_have_the_same_threads(self, store: Store) -> None:
        engine, owner = LocalEngine(), this_process()

        def queued(*configs: RunConfig) -> list[int | None]:
            ids = queue_runs(store, configs, engine=engine)
            return [store.run(run_id).threads for run_id in ids]

        assert queued(config(seed=1)) == [8]
        assert queued(config(seed=2), _OLD) == [8, 1]
        assert queue_runs(store, [_NEW], engine=NoWorkers()) == [4]
        assert store.run(4).threads is None
        while (run := store.claim(owner, cores=8)) is not None:
            # Resumed, it keeps them.
            store.finish(run.id, RunState.FAILED)
            store.requeue(run.id, resume=True)
            assert store.run(run.id).threads == run.threads
            store.request_stop(run.id)
        assert queued(_OLD.with_(seed=7)) == [1]
        # A run of an older version has recorded what it took; one of a larger machine counts for nothing.
        for lambda_, recorded in ((0.03, 2), (0.04, 64)):
            (earlier,) = store.add_runs([config(lambda_=lambda_)], priority=1)
            assert store.claim(owner) is not None
            store.set_facts(earlier, run_facts(threads=recorded))
            store.finish(earlier, RunState.SUCCEEDED)
            expected = recorded if recorded <= 8 else 1
            assert queued(config(lambda_=lambda_, seed=9)) == [expected]

    def test_later_seeds_of_a_run_trained_alone(self, store: Store) -> None:
        """They take its number of threads, one after another, until a number of slots is chosen."""
        seeds = [config(seed=seed) for seed in range(5)]
        owner = this_process()
        (first,), later = (queue_runs(store, some, engine=LocalEngine()) for some in (seeds[:1], seeds[1:]))
        assert [run.threads for run in store.runs([first, *later])] == [8] * 5
        plan = cost(store, seeds[1:])
        assert (plan.at_once, plan.held_back) == (
            1,
            "All seeds of a configuration compute with the same number of threads, and its earlier runs took "
            "8: only 1 run at once. `mrnlab queue --slots 8` trains 8 at once, with 1 thread each.",
        )
        assert store.claim(owner, cores=8) is not None
        assert store.claim(owner, cores=8) is None
        store.finish(first, RunState.SUCCEEDED)
        control.choose_slots(store, 4, NoWorkers())
        assert (cost(store, seeds[1:]).at_once, cost(store, seeds[1:]).held_back) == (4, "")
        assert store.claimable(owner.host, 8) == 4
        claims = [store.claim(owner, cores=8) for _ in range(4)]
        assert [run and run.threads for run in claims] == [2] * 4

    def test_the_number_at_once_is_that_of_memory_of_the_choice_or_of_the_environment(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert train_at_once(store) == 8
        assert (cost(store, [_NEW]).slots, cost(store, [_NEW, _OLD]).slots) == (1, 8)
        monkeypatch.setattr(cores, "_run_bytes", lambda _: 16 * LEAST_BYTES)
        assert train_at_once(store) == 4
        (answer,) = control.choose_slots(store, 3, NoWorkers())
        assert train_at_once(store) == 3
        assert answer.message == "Up to 3 runs at once on this machine."
        with pytest.raises(MRNLabError, match="this machine has 8 for runs, not 9"):
            control.choose_slots(store, 9, NoWorkers())
        monkeypatch.setenv("MRNLAB_SLOTS", "2")
        (answer,) = control.choose_slots(store, 5, NoWorkers())
        assert "MRNLAB_SLOTS" in answer.message
        assert train_at_once(store) == 2
        monkeypatch.delenv("MRNLAB_SLOTS")
        control.choose_slots(store, None, NoWorkers())
        assert train_at_once(store) == 4

    def test_a_run_whose_worker_died_holds_no_core(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody else is alive who could record its death."""
        engine = LocalEngine()
        started: list[object] = []
        monkeypatch.setattr("jobs.worker.pool.start", lambda *of: started.append(of))
        monkeypatch.setattr(engine, "_live", lambda _: set())
        dead, _ = store.add_runs([config(seed=1), config(seed=2)], threads=[8, 8])
        gone = this_process()
        claimed_run = store.claim(
            type(gone)(gone.host, gone.pid, gone.process_started - 100, gone.boot_id), cores=8
        )
        assert claimed_run is not None
        assert store.claimable(gone.host, 8) == 0
        assert engine.ensure_workers(store) == 1
        assert store.state(dead) is RunState.LOST

    def test_memory_is_what_the_newest_runs_of_this_machine_took(self, store: Store) -> None:
        for owner, peak in ((OWNER, 9), (this_process(), 3), (this_process(), 2), (this_process(), None)):
            (run_id,) = store.add_runs([config()])
            assert store.claim(owner) is not None
            usage = Usage(1.0, peak and peak * LEAST_BYTES, "process")
            store.set_facts(run_id, run_facts(usage=usage))
            store.finish(run_id, RunState.SUCCEEDED)
        assert cores._run_bytes(store) == 3 * LEAST_BYTES


def test_threads_that_the_environment_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_physical_cores", lambda: None)
    monkeypatch.setattr(devices, "_granted_cores", lambda: 1)
    for wanted in ("", "0", "many", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert core_count() == 1
