"""The worker's handling of runs, in this process, with small trainings."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from core.config import RunConfig
from core.corpora.types import Corpus
from core.errors import CorpusError, NotOwner, StoreError, TrainingError
from core.events import Note, Saved, Sink, SplitResult
from core.metrics import StepMetrics
from core.paths import checkpoint_dir
from core.recording.heartbeat import Heartbeat, StopReason, StopSignal
from core.recording.sink import StoreSink
from core.store import MetricKey, RunState, Store
from core.wording import UTC_FORMAT
from jobs.worker.logs import tail
from tests.making import OTHER, OWNER, Clock, claimed, config, run_facts, split_result, step_metrics
from tests.patience import PATIENCE_S
from tests.small_training import CORPUS, Ended, train, worker
from tests.supervised import wait_for
from tests.unit.conftest import error_of

LOSS = MetricKey("", "train", "loss")


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open("sqlite://")
    yield opened
    opened.close()


class TestWorker:
    def test_trains_what_is_queued(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        ids = store.add_runs([config(seed=seed, epochs=2) for seed in (1, 2)])
        assert worker(store).work(linger_s=0.01) == 2
        for run_id in ids:
            run = store.run(run_id)
            assert (run.state, run.best_epoch, run.step, run.total_steps) == (RunState.SUCCEEDED, 2, 20, 20)
            assert run.checkpoint == str(checkpoint_dir(run_id))
            assert run.alignment == "cooccurrence"
            assert store.metrics([run_id], LOSS)[0].step.tolist() == list(range(1, 21))
            assert [key.step for key in store.snapshots(run_id)] == [10, 20]
            assert {(score.split, score.task) for score in store.scores([run_id])} == {
                ("dev", "pos"), ("dev", "ner"), ("test", "pos"), ("test", "ner"),
            }  # fmt: skip
            assert [event.kind for event in store.events(run_id)] == ["running", "note", "succeeded"]
        assert any("Epoch 2" in message and "pos 95.00%" in message for message in caplog.messages)
        assert any("\n  paradigm          mrn\n" in message for message in caplog.messages)

    @pytest.mark.parametrize(
        ("raised", "message"),
        [
            (TrainingError("The loss of ner is not a number."), "The loss of ner is not a number."),
            (CorpusError("There is no corpus 'demo'."), "There is no corpus 'demo'."),
            (
                ZeroDivisionError("division by zero"),
                "Training stopped with an unexpected error: ZeroDivisionError: division by zero",
            ),
        ],
    )
    def test_failures(self, store: Store, raised: Exception, message: str) -> None:
        def fail(*_args: Any, sink: Sink, **_options: Any) -> Ended:
            sink(run_facts())
            sink(step_metrics(1))
            raise raised

        (run_id,) = store.add_runs([config()])
        assert worker(store, train=fail).train_next()
        error = error_of(store, run_id)
        assert store.state(run_id) is RunState.FAILED
        assert (error.type, error.message) == (type(raised).__name__, message)
        assert "in fail" in error.traceback
        assert store.last_metric_steps([run_id]) == {run_id: 1}  # what was recorded before is kept

    def test_a_description_that_no_longer_holds(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()])
        with store.transaction() as connection:
            connection.execute(text("UPDATE runs SET config = '{}'"))
        worker(store).train_next()
        assert store.state(run_id) is RunState.FAILED
        assert error_of(store, run_id).message.startswith("Made by another version: corpus is missing")

    def test_stop_ends_at_the_next_step(self, store: Store) -> None:
        (run_id,) = store.add_runs([config(epochs=1000)])
        steps_after: list[int] = []

        def stopped_in_the_middle(*args: Any, should_stop: Callable[[], bool], **options: Any) -> Ended:
            requested = False

            def ask_at_step_30() -> bool:
                nonlocal requested
                if not requested and store.run(run_id).step >= 30:
                    store.request_stop(run_id)
                    requested = True
                    wait_for(should_stop)
                if requested:
                    steps_after.append(1)
                return should_stop()

            return train(*args, should_stop=ask_at_step_30, step_s=0.001, **options)

        worker(store, train=stopped_in_the_middle).train_next()
        assert steps_after == [1]
        assert store.run(run_id).state is RunState.CANCELLED
        assert [event.kind for event in store.events(run_id)] == ["running", "cancelling", "cancelled"]

    def test_a_stop_before_training_begins(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()])

        def stopped_meanwhile(_config: RunConfig) -> Corpus:
            store.request_stop(run_id)
            seen = store.run(run_id).heartbeat_at
            wait_for(lambda: store.run(run_id).heartbeat_at != seen)  # a beat that reads of the stop
            return CORPUS

        def never(*_args: Any, **_options: Any) -> Ended:
            raise AssertionError("it was stopped before")

        worker(store, prepare=stopped_meanwhile, train=never).train_next()
        assert store.state(run_id) is RunState.CANCELLED

    def test_a_stop_that_comes_too_late(self, store: Store) -> None:
        (run_id,) = store.add_runs([config(epochs=1)])

        def asked_at_the_end(*args: Any, **options: Any) -> Ended:
            ended = train(*args, **options)
            store.request_stop(run_id)
            return ended

        worker(store, train=asked_at_the_end).train_next()
        assert store.state(run_id) is RunState.SUCCEEDED

    def test_a_run_is_handed_back_where_its_worker_must_leave(self, store: Store) -> None:
        (run_id,) = store.add_runs([config(epochs=1000)])

        def leaves(*args: Any, sink: Sink, **options: Any) -> Ended:
            def count(event: Any) -> None:
                sink(event)
                if isinstance(event, StepMetrics) and event.step == 5:
                    leaving.terminate(hand_back=True)

            return train(*args, sink=count, **options)

        leaving = worker(store, train=leaves, engine_job="slurm 12")
        assert leaving.work() == 1
        run = store.run(run_id)
        # It begins anew, for no state was saved.
        assert (run.state, run.attempt, run.step, run.engine_job) == (RunState.QUEUED, 2, 0, None)
        assert store.last_metric_steps([run_id]) == {run_id: 5}
        assert [event.kind for event in store.events(run_id)].count("cancelled") == 1

    @pytest.mark.parametrize(
        ("saved_step", "words"),
        [
            (1200, "It can be resumed from step 1,200."),
            (None, "No step of it was saved: started again, it begins anew."),
        ],
    )
    def test_a_terminated_run_says_from_where_it_can_go_on(
        self, store: Store, saved_step: int | None, words: str
    ) -> None:
        first, second = store.add_runs([config(epochs=1000), config(seed=2)])

        def terminated(*args: Any, **options: Any) -> Ended:
            if saved_step is not None:
                store.set_saved_step(first, saved_step, OWNER)
            busy.terminate()
            return train(*args, **options)

        busy = worker(store, train=terminated)
        assert busy.work() == 1
        assert store.state(first) is RunState.CANCELLED
        assert f"Its worker was told to end. {words}" in [event.message for event in store.events(first)]
        assert store.state(second) is RunState.QUEUED  # it claims no other

    @pytest.mark.parametrize("now", [False, True])
    def test_a_drained_machine(self, store: Store, now: bool) -> None:
        """What it trains goes on, or waits again to be resumed elsewhere; nothing else is claimed there."""
        first, second = store.add_runs([config(epochs=4), config(seed=2)])

        def drained(*args: Any, **options: Any) -> Ended:
            store.set_saved_step(first, 7, OWNER)
            store.drain(OWNER.host, now=now)
            return train(*args, step_s=0.02, **options)

        assert worker(store, train=drained).work(linger_s=0.05) == 1
        run = store.run(first)
        if now:
            assert (run.state, run.attempt, run.saved_step) == (RunState.QUEUED, 2, 7)
            message = "Its machine is to be left empty. It can be resumed from step 7."
            assert message in [event.message for event in store.events(first)]
        else:
            assert run.state is RunState.SUCCEEDED
        assert store.state(second) is RunState.QUEUED
        store.undrain(OWNER.host)
        assert worker(store).train_next(second)
        assert store.state(second) is RunState.SUCCEEDED

    def test_a_run_taken_away_is_left_alone(self, store: Store) -> None:
        """Given up for lost and started again by another worker, it is theirs."""
        (run_id,) = store.add_runs([config(epochs=1000)])

        def lost_in_the_middle(*args: Any, sink: Sink, **options: Any) -> Ended:
            def lose(event: Any) -> None:
                if isinstance(event, StepMetrics) and event.step == 5:
                    store.mark_lost(run_id, "It stopped answering.")
                    store.requeue(run_id)
                    store.claim(OTHER)
                sink(event)

            return train(*args, sink=lose, step_s=0.001, **options)

        assert worker(store, train=lost_in_the_middle).train_next()
        run = store.run(run_id)
        assert (run.state, run.owner, run.attempt, run.step) == (RunState.RUNNING, OTHER, 2, 0)
        assert store.metric_keys([run_id]) == []

    @pytest.mark.parametrize(
        ("engine_job", "used"),
        [
            (None, ["cuda:1", "cpu", "cuda", "cuda:3"]),  # the slot's device, where none was chosen
            ("ray task 1", ["cuda:1", "cpu", "cuda:1", "cuda:1"]),  # a scheduler chooses the GPU
        ],
    )
    def test_devices(self, store: Store, engine_job: str | None, used: list[str]) -> None:
        store.add_runs([config(device=device) for device in ("auto", "cpu", "cuda", "cuda:3")])
        devices = []

        def note_device(config: RunConfig) -> Corpus:
            devices.append(config.device)
            return CORPUS

        worker(store, prepare=note_device, device="cuda:1", engine_job=engine_job).work(linger_s=0)
        assert devices == used

    def test_log_lines_have_the_time_in_utc_and_say_so(self) -> None:
        program = (
            "import logging; from jobs.worker.logs import set_up_logging\nset_up_logging(); logging.info(1)"
        )
        before = datetime.now(UTC).replace(microsecond=0)
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"TZ": "XXX-5"},
            capture_output=True,
            text=True,
            check=True,
        )
        written = datetime.strptime(ended.stderr.partition(" INFO")[0], UTC_FORMAT).replace(tzinfo=UTC)
        assert before <= written <= datetime.now(UTC)

    def test_log_files(self, tmp_path: Path) -> None:
        path = tmp_path / "run.log"
        # In a process of its own, for pytest has its hands on the descriptors of this one.
        program = (
            "import os, sys; from jobs.worker.logs import to_log_file\n"
            "print('before')\n"
            "with to_log_file(sys.argv[1]): print('inside'); os.write(2, b'from C\\n')\n"
            "print('after')"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
        )
        assert sorted(path.read_text().splitlines()) == ["from C", "inside"]
        assert (ended.stdout, ended.stderr) == ("before\nafter\n", "")
        path.write_text("\n".join(map(str, range(100_000))))
        assert tail(path, 2) == "99998\n99999"
        assert tail(tmp_path / "none.log") == tail(None) == ""


class FlakyStore(Store):
    """Cannot write for a while."""

    failures = 0

    def transaction(self, *, write: bool = True) -> Any:
        if self.failures > 0:
            self.failures -= 1
            raise StoreError("The store is busy.")
        return super().transaction(write=write)


class TestSink:
    def test_writes_the_first_step_at_once_and_what_is_left_when_it_ends(self, store: Store) -> None:
        run_id = claimed(store)
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60) as sink:
            sink(step_metrics(1))
            wait_for(lambda: store.last_metric_steps([run_id]) == {run_id: 1})
            sink(step_metrics(2))
            sink(split_result("test"))
            assert store.last_metric_steps([run_id]) == {run_id: 1}
        assert store.last_metric_steps([run_id]) == {run_id: 2}
        assert len(store.scores([run_id])) == 2

    def test_writes_while_the_training_is_silent(self, store: Store) -> None:
        run_id = claimed(store)
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=0.01) as sink:
            sink(step_metrics(7))
            sink(Saved(7, 0.3, 0.1, 1000))
            wait_for(lambda: store.run(run_id).saved_step == 7)

    def test_a_store_that_fails_for_a_while_costs_nothing(self) -> None:
        store = FlakyStore.open("sqlite://")
        run_id = claimed(store)
        waits: list[float] = []
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60, sleep=waits.append) as sink:
            store.failures = 3
            sink(step_metrics(1))
        assert waits == [0.5, 1.0, 2.0]
        assert store.last_metric_steps([run_id]) == {run_id: 1}
        store.close()

    def test_a_store_that_stays_away_fails_the_run_loudly(self) -> None:
        store = FlakyStore.open("sqlite://")
        run_id = claimed(store)
        stop, failed = StopSignal(), threading.Event()
        clock = Clock()

        def sleep(seconds: float) -> None:
            clock.now += seconds

        sink = StoreSink(store, run_id, OWNER, stop, flush_s=0.01, sleep=sleep, clock=clock)
        store.failures = 10**9

        def train_on() -> None:
            with sink:
                for step in range(10_000):
                    sink(step_metrics(step))
                    failed.wait(0.001)

        with pytest.raises(StoreError, match="busy"):
            train_on()
        assert stop.reason is StopReason.UNRECORDED
        store.failures = 0
        store.close()

    def test_a_batch_is_written_whole_or_not_at_all(self, store: Store) -> None:
        run_id = claimed(store)
        result = split_result("test")
        broken = SplitResult("nowhere", 1, result.scores, result.predictions, result.gold)

        def tell() -> None:
            with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60) as sink:
                sink(broken)
                sink(step_metrics(1))

        with pytest.raises(Exception, match="ck_scores_split"):
            tell()
        assert store.last_metric_steps([run_id]) == {}

    def test_settles_what_was_told(self, store: Store) -> None:
        run_id = claimed(store)
        sink = StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60)
        sink(step_metrics(3))
        sink.settle()
        assert store.last_metric_steps([run_id]) == {run_id: 3}
        sink(Saved(3, 0.3, 0.1, 1000))
        store.mark_lost(run_id, "It went away.")
        with pytest.raises(NotOwner):
            sink.settle()
        assert store.run(run_id).saved_step is None

    def test_a_note_of_the_trainings_course_is_told_once(self, store: Store) -> None:
        """A resumed training makes the steps after its state again, and says again what they were worth."""
        run_id = claimed(store)
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60) as sink:
            for _ in range(2):
                sink(Note("The penalty has vanished.", 7))
                sink(Note("Resumed from step 5."))
                sink.settle()
        notes = [event.message for event in store.events(run_id) if event.kind == "note"]
        assert sorted(notes) == ["Resumed from step 5."] * 2 + ["The penalty has vanished."]

    def test_reads_that_the_run_shall_stop(self, store: Store) -> None:
        run_id = claimed(store)
        store.request_stop(run_id)
        stop = StopSignal()
        with StoreSink(store, run_id, OWNER, stop, flush_s=60):
            pass
        assert stop.reason is StopReason.ASKED


class TestHeartbeat:
    def test_beats_until_the_block_ends(self, store: Store) -> None:
        run_id = claimed(store)
        first = store.run(run_id).heartbeat_at
        with Heartbeat(store, run_id, OWNER, StopSignal(), beat_s=0.005):
            wait_for(lambda: store.run(run_id).heartbeat_at != first)
        assert not any(thread.name == f"heartbeat-{run_id}" for thread in threading.enumerate())
        with Heartbeat(store, run_id, OWNER, StopSignal(), beat_s=10 * PATIENCE_S):
            pass  # ends at once

    def test_tells_whether_the_training_moves(self, store: Store) -> None:
        run_id = claimed(store)
        stop = StopSignal()

        def beat() -> None:
            before = store.run(run_id).heartbeat_at
            wait_for(lambda: store.run(run_id).heartbeat_at != before)

        with Heartbeat(store, run_id, OWNER, stop, beat_s=0.005):
            beat()
            assert store.run(run_id).progress_at is None
            stop()  # a training asks at every step
            wait_for(lambda: store.run(run_id).progress_at is not None)
            last = store.run(run_id).progress_at
            beat()
            beat()
            assert store.run(run_id).progress_at == last

    @pytest.mark.parametrize(
        ("state", "reason"), [(RunState.CANCELLING, StopReason.ASKED), (RunState.LOST, StopReason.DISOWNED)]
    )
    def test_learns_of_a_stop_and_of_a_stranger(
        self, store: Store, state: RunState, reason: StopReason
    ) -> None:
        stop = StopSignal()
        with Heartbeat(store, claimed(store, state), OWNER, stop, beat_s=0.005):
            wait_for(stop)
        assert stop.reason is reason
