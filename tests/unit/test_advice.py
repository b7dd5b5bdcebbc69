"""Each way for a run to end badly has its own advice, with the run's own numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.errors import DeviceError
from core.store import ErrorInfo, RunState, Store
from jobs.advice import Advice, advice
from tests.making import claimed


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open("sqlite://")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("kind", "message", "cause", "step"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried 2 GiB.", "out of memory", "batch_size 16 (now 32)"),
        ("MemoryError", "Training stopped with an unexpected error", "out of memory", "batch_size 16"),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory", "out of memory", "max_length 128"),
        ("OutOfMemory", "The GPU's 16 GB were not enough for batches of 32 sentences: about 10 would fit. "
         "Clone it with batch_size 8.", "out of memory", "batch_size 8 (now 32)"),
        ("TrainingError", "The loss of ner is not a number at step 2.", "not a number", "lambda 0.001 (now"),
        ("CorpusError", "There is no corpus 'conll2003' here.", "corpus cannot be read", "mrnlab doctor"),
        ("EncoderError", "There is no encoder 'bort'.", "encoder cannot be loaded", "Check the name minilm"),
        ("ConfigError", "prior: 'best' is not one of map.", "does not hold", "change the field"),
    ],
)  # fmt: skip
def test_of_what_lies_in_the_run(store: Store, kind: str, message: str, cause: str, step: str) -> None:
    """It would only happen again, so what to change comes first, whether or not a state is saved."""
    for saved in (None, 120):
        told = _failed(store, kind, message, saved)
        assert cause in told.cause
        assert any(step in one for one in told.steps)
        assert "esume it: it goes on" not in told.steps[0]


def _failed(store: Store, kind: str, message: str, saved: int | None) -> Advice:
    run_id = claimed(store, batch_size=32)
    if saved:
        store.set_saved_step(run_id, saved)
    store.finish(run_id, RunState.FAILED, error=ErrorInfo(kind, message, "Traceback"))
    return _sound(advice(store.run(run_id)), message)


def _sound(told: Advice | None, message: str) -> Advice:
    assert told is not None
    assert message in told.happened
    assert all(one.endswith(".") and one[0].isupper() for one in told.steps)
    return told


@pytest.mark.parametrize(
    ("kind", "message", "cause", "step"),
    [
        ("OSError", "[Errno 28] No space left on device", "disk is full", "Make room"),
        ("StoreError", "The store runs.db cannot be written, because the disk is full; free some space.",
         "disk is full", "Make room"),
        ("StoreError", "The store runs.db is busy: another program has held it for 30 s; try again.",
         "held by another program", "mrnlab backup"),
        ("NoRoom", "The model of epoch 3, the best so far, could not be saved. Make room there.",
         "disk is full", "Make room"),
        ("StoreError", "The store x cannot be written, because the disk of its server is full; free some.",
         "disk is full", "Make room"),
        ("StoreReplaced", "The file runs.db was replaced by another while the store was open. All that it "
         "held is saved in runs.db.rescued-1; choose between the two.", "taken away", "`rescued` in it"),
        ("StoreError", "The store runs.db has lost its tables (was the file deleted or replaced?).",
         "taken away", "`rescued` in it"),
        ("StoreError", "The store x does not answer; check that its server runs and can be reached.",
         "could not be reached", "server runs"),
        ("StoreError", "The store x cannot be reached any more: the connection broke.",
         "could not be reached", "server runs"),
        ("ArtefactError", "The shared artefacts at s3://x cannot be written.",
         "shared files", "mrnlab doctor"),
        ("KeyError", "'B-PER'", "unexpected", "end of the log"),
    ],
)  # fmt: skip
def test_of_failures_from_outside(store: Store, kind: str, message: str, cause: str, step: str) -> None:
    """What is saved is gone on from, once the cause is removed; nothing is begun anew that need not be."""
    saved, fresh = (_failed(store, kind, message, at) for at in (120, None))
    assert cause in saved.cause
    assert any(step in one for one in saved.steps)
    assert any("resume it: it goes on from step 120." in one.lower() for one in saved.steps)
    assert "Its state is saved at step 120." in saved.happened
    assert any("retry it: it starts from its beginning" in one.lower() for one in fresh.steps)
    assert not any("resume" in one.lower() for one in fresh.steps)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("The worker of run 12 stopped answering 70 s ago.", "ended from outside"),
        ("The worker of run 12 is gone: its process 7 ended without a word.", "ended from outside"),
        ("The worker of run 12 was ended by SIGKILL (the system kills the largest process when memory runs "
         "out).", "ended from outside"),
        ("The worker of run 12 was ended by SIGSEGV (a fault in compiled code).", "crashed"),
        ("The worker of run 12 was ended by SIGTERM.", "told to end"),
        ("The worker of run 12 is gone: its machine box was started anew.", "was restarted"),
        ("The worker of run 12 made no progress for 600 s although its process lived; it was ended.", "hung"),
        ("The node of run 12 was lost.", "machine was lost"),
        ("The machine that trained run 12 is gone.", "machine was lost"),
        ("Run 12 was taken from its machine.", "machine was lost"),
        ("The process that trained run 12 died.", "ended from outside"),
        ("The Slurm job 4711 that trained run 12 has ended.", "cluster job was ended"),
        ("Slurm started the job anew that trained run 12.", "cluster job was ended"),
        ("Its job 4711 ended at the cluster's time limit.", "cluster job was ended"),
        ("Its job 4711 ended: OUT_OF_MEMORY.", "out of memory"),
    ],
)  # fmt: skip
def test_of_runs_that_were_lost(store: Store, message: str, cause: str) -> None:
    told = []
    for saved in (120, None):
        run_id = claimed(store, batch_size=32)
        if saved:
            store.set_saved_step(run_id, saved)
        store.mark_lost(run_id, message)
        told.append(_sound(advice(store.run(run_id)), message))
    assert cause in told[0].cause
    assert told[0].cause == told[1].cause
    if "memory" not in cause:
        assert told[0].steps[0] == "Resume it: it goes on from step 120."
        assert told[1].steps[0].startswith("Retry it: it starts from its beginning")


def test_of_data_that_changed_under_a_saved_state(store: Store) -> None:
    message = "The data or the description of this run is not what it was when it was begun. Retry it."
    told = _failed(store, "TrainingError", message, 120)
    assert told.cause == "its data have changed"
    assert told.steps[0].startswith("Retry it: it starts from its beginning")


def test_of_a_device_that_is_not_there(store: Store) -> None:
    run_id = claimed(store, device="cuda:1")
    error = DeviceError("cuda:1", 0)
    store.finish(run_id, RunState.FAILED, error=ErrorInfo("DeviceError", str(error), "Traceback"))
    told = _sound(advice(store.run(run_id)), "device: cuda:1 is not on this machine, which has no GPU")
    assert told.cause == "the machine has no such device"
    assert told.steps[0].startswith("Clone it with device auto (now cuda:1)")
    assert told.clone == {"device": "auto"}


def test_of_runs_that_were_stopped(store: Store) -> None:
    before = _sound(advice(store.run(claimed(store, RunState.CANCELLED))), "It was stopped before it began.")
    assert before.cause == "stopped"
    run_id = claimed(store)
    store.set_progress(run_id, 130, 1.3, 200)
    store.set_saved_step(run_id, 130)
    store.add_event(run_id, "note", "Its worker was told to end. It can be resumed from step 130.")
    store.request_stop(run_id)
    store.finish(run_id, RunState.CANCELLED)
    stopped = _sound(advice(store.run(run_id)), "It was stopped at step 130. Its state is saved at step 130.")
    assert stopped.steps == ("To have its scores, resume it: it goes on from step 130.",)
    ended = _sound(advice(store.run(run_id), store.events(run_id)), "Its worker was told to end.")
    assert ended.happened.count("130") == 2  # where it was stopped, and from where it can be resumed
    assert ended.cause == "its worker was told to end"
    assert ended.steps[0] == "Resume it: it goes on from step 130."
    store.requeue(run_id, resume=True)
    store.request_stop(run_id)
    again = advice(store.run(run_id), store.events(run_id))
    assert again is not None
    assert again.cause == "its worker was told to end"  # it has not run since


@pytest.mark.parametrize(
    "state", [RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING, RunState.SUCCEEDED]
)
def test_none_is_given_where_none_is_needed(store: Store, state: RunState) -> None:
    assert advice(store.run(claimed(store, state))) is None


def test_a_budget_is_halved_where_memory_was_short(store: Store) -> None:
    run_id = claimed(store, batch_tokens=512)
    store.finish(run_id, RunState.FAILED, error=ErrorInfo("MemoryError", "no memory", "Traceback"))
    told = advice(store.run(run_id))
    assert told is not None
    assert told.steps[0] == "Clone it with batch_tokens 256 (now 512)."
    assert told.clone == {"batch_tokens": "256"}
