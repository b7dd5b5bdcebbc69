"""Who is given up for lost, and when; with clocks that the test moves."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from core.errors import LossCause, StoreBusy
from core.recording.owner import this_process
from core.store import ENDED, Owner, Run, RunState, Store
from jobs.worker.process import ProcessStatus, processor_wait_s
from jobs.worker.reaper import GRACE_S, HeartbeatTracker, reap
from tests.making import OTHER, OWNER, Clock, claimed, config
from tests.unit.conftest import error_of

HOUR = 3600.0


def never(_owner: Owner) -> bool:
    raise AssertionError("nobody was to be killed")


class Ending:
    """Records whose process is to be ended; is refused so many times first."""

    def __init__(self, refusals: int = 0) -> None:
        self.owners: list[Owner] = []
        self._refusals = refusals

    def __call__(self, owner: Owner) -> bool:
        self.owners.append(owner)
        return len(self.owners) > self._refusals


def look(store: Store, status: ProcessStatus, watch: HeartbeatTracker | None = None) -> list[int]:
    return reap(store, watch, status=lambda _: status, end=never)


class Observer:
    """One who stays: looks every five seconds by a clock of its own."""

    def __init__(
        self,
        store: Store,
        status: ProcessStatus,
        end: Callable[[Owner], bool] = never,
        waited: Callable[[float], float] = lambda now: 0.0,
    ) -> None:
        self.now = 17.0
        self._store, self._status, self._end = store, status, end
        self._watch = HeartbeatTracker(lambda: self.now, lambda _: waited(self.now))

    def watches(self, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> float | None:
        """After how many seconds it finds a run lost; None where it does not in that time."""
        started = self.now
        while self.now <= started + seconds:
            if reap(self._store, self._watch, status=lambda _: self._status, end=self._end):
                return self.now - started
            self.now += 5
            meanwhile()
        return None


class TestDead:
    @pytest.mark.parametrize(("retries", "after"), [(0, RunState.LOST), (1, RunState.QUEUED)])
    def test_a_process_that_is_gone_is_a_loss_at_one_look(
        self, store: Store, retries: int, after: RunState
    ) -> None:
        (run_id,) = store.add_runs([config()], retries=retries)
        assert store.claim(OWNER) is not None
        assert look(store, ProcessStatus.ALIVE) == []
        assert look(store, ProcessStatus.GONE) == [run_id]
        assert store.state(run_id) is after
        message = f"The worker of run {run_id} is gone: its process {OWNER.pid} ended without a word."
        assert message in [event.message for event in store.events(run_id)]
        assert look(store, ProcessStatus.GONE) == []

    def test_a_machine_that_was_started_anew(self, store: Store) -> None:
        """With a real look at this machine: the row names another boot of it, the process number of ours."""
        mine = this_process()
        _boot, _, places = mine.boot_id.partition("/")
        store.add_runs([config()])
        run = store.claim(dataclasses.replace(mine, boot_id=f"the boot before/{places}"))
        assert run is not None
        assert reap(store) == [run.id]
        error = error_of(store, run.id)
        assert error.type == LossCause.RESTARTED
        assert error.message.endswith(f"its machine {mine.host} was started anew.")

    def test_only_runs_with_workers_are_looked_at(self, store: Store, clock: Clock) -> None:
        ids = {state: claimed(store, state) for state in (*sorted(ENDED), RunState.QUEUED)}
        clock.now += HOUR
        assert look(store, ProcessStatus.GONE) == []
        assert all(store.state(run_id) is state for state, run_id in ids.items())

    def test_one_that_another_worker_has_taken_up_meanwhile_is_theirs(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()], retries=1)
        assert store.claim(OWNER) is not None

        def found_by_another_first(owner: Owner) -> ProcessStatus:
            if owner == OWNER:
                store.mark_lost(run_id, "It went away.")
                store.claim(OTHER)
            return ProcessStatus.GONE

        assert reap(store, status=found_by_another_first, end=never) == []
        assert (store.run(run_id).state, store.run(run_id).owner) == (RunState.RUNNING, OTHER)


class TestElsewhere:
    @pytest.mark.parametrize("jump", [24 * HOUR, -24 * HOUR])
    def test_no_clock_that_is_set_loses_a_living_run(self, store: Store, clock: Clock, jump: float) -> None:
        run_id = claimed(store)
        observer = Observer(store, ProcessStatus.ELSEWHERE)

        def beat() -> None:
            clock.now += 5
            store.heartbeat(run_id, OWNER)

        assert observer.watches(30, beat) is None
        clock.now += jump
        assert observer.watches(120, beat) is None
        assert store.state(run_id) is RunState.RUNNING

    @pytest.mark.parametrize("jump", [0, 24 * HOUR, -24 * HOUR])
    def test_silence_tells_within_a_minute_whatever_the_clock(
        self, store: Store, clock: Clock, jump: float
    ) -> None:
        run_id = claimed(store)
        observer = Observer(store, ProcessStatus.ELSEWHERE)
        assert observer.watches(5) is None
        clock.now += jump
        seconds = observer.watches(60)
        assert seconds is not None
        assert 35 <= seconds <= 60
        assert error_of(store, run_id).type == LossCause.SILENT

    def test_a_look_before_it_spoke_again_takes_nothing_from_it(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        observer = Observer(store, ProcessStatus.ELSEWHERE)

        def speaks_at_last(_owner: Owner) -> ProcessStatus:
            clock.now += 1
            store.heartbeat(run_id, OWNER)
            return ProcessStatus.ELSEWHERE

        watch = HeartbeatTracker(lambda: observer.now)
        for _ in range(12):
            observer.now += 5
            reap(store, watch, status=lambda _: ProcessStatus.ALIVE, end=never)
        observer.now += 5
        assert reap(store, watch, status=speaks_at_last, end=never) == []

    def test_an_observer_that_slept_has_not_watched(self, store: Store) -> None:
        """A laptop's lid was closed, or its page; the worker spoke before and will again."""
        claimed(store)
        observer = Observer(store, ProcessStatus.ELSEWHERE)
        assert observer.watches(10) is None
        observer.now += 10 * HOUR
        assert observer.watches(15) is None

    def test_one_look_believes_the_clocks_by_and_by(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        for passed in (HOUR, -2 * HOUR):
            clock.now += passed
            assert look(store, ProcessStatus.ELSEWHERE) == []
        clock.now += 5 * HOUR
        assert look(store, ProcessStatus.ELSEWHERE) == [run_id]


class TestHung:
    def test_a_living_worker_without_progress_is_ended(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MRNLAB_HANG_S", "120")
        run_id = claimed(store)
        end = Ending()
        observer = Observer(store, ProcessStatus.ALIVE, end)
        # It speaks, but does not move.
        seconds = observer.watches(200, lambda: store.heartbeat(run_id, OWNER))
        assert seconds is not None
        assert 120 <= seconds <= 130
        assert end.owners == [OWNER]
        error = error_of(store, run_id)
        assert error.type == LossCause.HUNG
        assert error.message == (
            f"The worker of run {run_id} made no progress for 120 s although its process lived; it was ended."
        )

    def test_time_that_it_waits_for_a_processor_does_not_count(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker at the lowest priority beside busy ones is slow, and does not hang."""
        monkeypatch.setenv("MRNLAB_HANG_S", "120")
        run_id = claimed(store)
        starved = Observer(store, ProcessStatus.ALIVE, waited=lambda now: 0.95 * now)
        assert starved.watches(1500, lambda: store.heartbeat(run_id, OWNER)) is None
        end = Ending()
        half = Observer(store, ProcessStatus.ALIVE, end, waited=lambda now: 0.5 * now)
        seconds = half.watches(400, lambda: store.heartbeat(run_id, OWNER))
        assert seconds is not None
        assert 240 <= seconds <= 250

    def test_a_process_that_waits_for_a_processor_is_told_from_one_that_sleeps(self) -> None:
        sleeping = processor_wait_s(this_process())
        time.sleep(0.2)
        assert processor_wait_s(this_process()) - sleeping < 0.2
        assert processor_wait_s(OTHER) == 0

    def test_one_that_was_stopped_with_the_store_locked_is_ended_too(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MRNLAB_HANG_S", "120")
        run_id = claimed(store)
        end = Ending()
        reading = store.transaction

        def locked(*, write: bool = True) -> AbstractContextManager[Connection]:
            if write:
                raise StoreBusy("The store is busy.")
            return reading(write=False)

        with monkeypatch.context() as busy:
            busy.setattr(store, "transaction", locked)
            assert Observer(store, ProcessStatus.ALIVE, end).watches(130) is None
        assert set(end.owners) == {OWNER}
        assert look(store, ProcessStatus.GONE) == [run_id]
        assert error_of(store, run_id).type == LossCause.HUNG

    @pytest.mark.parametrize("moves", ["steps", "beats"])
    def test_one_that_moves_is_left_alone(
        self, store: Store, clock: Clock, moves: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MRNLAB_HANG_S", "60")
        run_id = claimed(store)

        def move() -> None:
            clock.now += 5
            if moves == "beats":
                store.heartbeat(run_id, OWNER, moved=True)
            else:
                store.set_progress(run_id, int(clock.now), 1.0, None, OWNER)

        assert Observer(store, ProcessStatus.ALIVE).watches(150, move) is None

    def test_one_that_may_not_be_ended_keeps_its_run(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MRNLAB_HANG_S", "60")
        run_id = claimed(store)
        assert Observer(store, ProcessStatus.ALIVE, lambda _: False).watches(100) is None
        assert store.state(run_id) is RunState.RUNNING


class TestStopping:
    def test_force_after_the_grace(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store, RunState.CANCELLING)
        end = Ending(refusals=1)
        observer = Observer(store, ProcessStatus.ALIVE, end)
        clock.now += HOUR  # a clock that is set cuts no stop short
        assert observer.watches(GRACE_S - 5) is None
        assert end.owners == []
        assert observer.watches(5) is None
        assert end.owners == [OWNER]
        assert store.state(run_id) is RunState.CANCELLING
        assert observer.watches(5) is None
        assert store.state(run_id) is RunState.CANCELLED
        assert "40 s" in store.events(run_id)[-2].message


@cache
def a_run() -> Run:
    with contextlib.closing(Store.open("sqlite://")) as store:
        return store.run(claimed(store))


@given(st.lists(st.tuples(st.floats(0.1, 20), st.booleans(), st.integers(-1000, 1000)), min_size=1))
def test_a_silence_is_never_longer_than_what_was_watched(looks: list[tuple[float, bool, int]]) -> None:
    """Whatever the worker's clock does, and however irregular the looks are."""
    clock = Clock(0)
    watch = HeartbeatTracker(clock)
    run, silent = a_run(), 0.0
    watch.observe([run])
    for beat, (passed, beats, hours) in enumerate(looks, start=1):
        clock.now += passed
        silent += passed
        if beats:
            sign = datetime.fromtimestamp(1_700_000_000 + HOUR * hours + beat / 1000, UTC)
            run, silent = dataclasses.replace(run, heartbeat_at=sign), 0.0
        (seen,) = watch.observe([run]).values()
        assert seen.silent_s <= silent + 1e-6
        assert (seen.silent_s > 0) == (silent > 0)
