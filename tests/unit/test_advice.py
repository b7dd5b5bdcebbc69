"""Each way for a run to end badly has its own advice, with the run's own numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import ErrorInfo, RunState, Store
from jobs.advice import advice
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
        ("TrainingError", "The loss of ner is not a number at step 2.", "not a number", "lambda 0.001 (now"),
        ("CorpusError", "There is no corpus 'conll2003' here.", "corpus cannot be read", "mrnlab doctor"),
        ("EncoderError", "There is no encoder 'bort'.", "encoder cannot be loaded", "Check the name minilm"),
        ("OSError", "[Errno 28] No space left on device", "disk is full", "Make room"),
        ("ConfigError", "prior: 'best' is not one of map.", "does not hold", "change the field"),
        ("KeyError", "'B-PER'", "unexpected", "end of the log"),
    ],
)  # fmt: skip
def test_of_failures(store: Store, kind: str, message: str, cause: str, step: str) -> None:
    run_id = claimed(store, batch_size=32)
    store.finish(run_id, RunState.FAILED, error=ErrorInfo(kind, message, "Traceback"))
    told = advice(store.run(run_id))
    assert told is not None
    assert told.happened == message
    assert cause in told.cause
    assert any(step in one for one in told.steps)
    assert all(one.endswith(".") for one in told.steps)


def test_of_a_worker_that_died_and_a_run_that_was_stopped(store: Store) -> None:
    lost = advice(store.run(claimed(store, RunState.LOST)))
    assert lost is not None
    assert lost.happened == "It went away."
    assert "Resume or retry" in lost.steps[0]
    stopped = advice(store.run(claimed(store, RunState.CANCELLED, seed=2)))
    assert stopped is not None
    assert "before it began" in stopped.happened


@pytest.mark.parametrize(
    "state", [RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING, RunState.SUCCEEDED]
)
def test_none_is_given_where_none_is_needed(store: Store, state: RunState) -> None:
    assert advice(store.run(claimed(store, state))) is None
