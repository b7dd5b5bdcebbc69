"""Each way for a run to end badly has its own advice, with the run's own numbers."""

from __future__ import annotations

import errno
import signal
from typing import Any

import pytest

from core.errors import LossCause
from core.store import ErrorInfo, RunState, Store
from jobs.queue.remedies import Advice, advice
from tests.making import claimed, run_facts


def _failed(store: Store, type_: str, data: dict[str, Any], saved: int | None, **fields: Any) -> Advice:
    run_id = claimed(store, **(fields or {"batch_size": 32}))
    store.set_facts(run_id, run_facts())
    if saved:
        store.set_saved_step(run_id, saved)
    store.finish(run_id, RunState.FAILED, error=ErrorInfo(type_, "It broke.", "Traceback", data=data))
    return _sound(store, run_id)


def _sound(store: Store, run_id: int) -> Advice:
    run = store.run(run_id)
    given = advice(run)
    assert given is not None
    assert run.error is None or run.error.message in given.happened
    assert all(step.endswith(".") and step[0].isupper() for step in given.steps)
    return given


@pytest.mark.parametrize(
    ("type_", "data", "cause", "step"),
    [
        ("OutOfMemoryError", {}, "out of memory", "batch_size 16 (now 32)"),
        ("MemoryError", {}, "out of memory", "max_length 128"),
        ("OutOfMemory", {"field": "batch_size", "fits": 8}, "out of memory", "batch_size 8 (now 32)"),
        ("NotFinite", {}, "not a number", "lambda 0.0001 (now"),
        ("CorpusError", {}, "corpus cannot be read", "mrnlab doctor"),
        ("EncoderError", {}, "encoder cannot be loaded", "Check the name minilm"),
        ("ConfigError", {"field": "prior"}, "does not hold", "change the field"),
        ("NothingToLearn", {"tasks": "alike"}, "leave nothing to learn", "Clone it into the form"),
        ("DataChanged", {}, "its data have changed", "Retry it: it starts from its beginning, on the data"),
    ],
)  # fmt: skip
def test_of_what_lies_in_the_run(
    store: Store, type_: str, data: dict[str, Any], cause: str, step: str
) -> None:
    """It would only happen again, so what to change comes first, whether or not a state is saved."""
    for saved in (None, 120):
        given = _failed(store, type_, data, saved)
        assert cause in given.cause
        assert any(step in text for text in given.steps)
        assert "esume it: it goes on" not in given.steps[0]


@pytest.mark.parametrize(
    ("type_", "data", "cause", "step"),
    [
        ("OSError", {"errno": errno.ENOSPC}, "disk is full", "Make room"),
        ("NoRoom", {}, "disk is full", "Make room"),
        ("StoreFull", {}, "disk is full", "Make room"),
        ("StoreBusy", {}, "held by another program", "mrnlab backup"),
        ("StoreReplaced", {}, "taken away", "or a backup of it"),
        ("StoreUnreachable", {}, "could not be reached", "server runs"),
        ("ArtefactError", {}, "shared files", "mrnlab doctor"),
        ("KeyError", {}, "unexpected", "end of the log"),
        ("OSError", {}, "unexpected", "end of the log"),
    ],
)
def test_of_failures_from_outside(
    store: Store, type_: str, data: dict[str, Any], cause: str, step: str
) -> None:
    """What is saved is gone on from, once the cause is removed; nothing is begun anew that need not be."""
    saved, fresh = (_failed(store, type_, data, at) for at in (120, None))
    assert cause in saved.cause
    assert any(step in text for text in saved.steps)
    assert any("resume it: it goes on from step 120." in text.lower() for text in saved.steps)
    assert "Its state is saved at step 120." in saved.happened
    assert any("retry it: it starts from its beginning" in text.lower() for text in fresh.steps)
    assert not any("resume" in text.lower() for text in fresh.steps)


@pytest.mark.parametrize(
    ("cause", "exit_code", "name"),
    [
        (LossCause.SILENT, None, "was killed"),
        (LossCause.PROCESS_ENDED, None, "was killed"),
        (LossCause.PROCESS_ENDED, 1, "was killed"),
        (LossCause.PROCESS_ENDED, -signal.SIGKILL, "was killed"),
        (LossCause.PROCESS_ENDED, -signal.SIGSEGV, "crashed"),
        (LossCause.PROCESS_ENDED, -signal.SIGTERM, "told to end"),
        (LossCause.RESTARTED, None, "was restarted"),
        (LossCause.FORCED, None, "told to end"),
        (LossCause.HUNG, None, "hung"),
        (LossCause.MACHINE_LOST, None, "machine was lost"),
        (LossCause.JOB_ENDED, None, "cluster job was ended"),
    ],
)
def test_of_runs_that_were_lost(store: Store, cause: LossCause, exit_code: int | None, name: str) -> None:
    for saved, first in ((120, "Resume it: it goes on from step 120."), (None, "Retry it: it starts from")):
        run_id = claimed(store)
        if saved:
            store.set_saved_step(run_id, saved)
        store.mark_lost(run_id, f"Run {run_id} was lost.", cause=cause, exit_code=exit_code)
        given = _sound(store, run_id)
        assert name in given.cause
        assert given.steps[0].startswith(first)


def test_what_a_clone_should_have_otherwise(store: Store) -> None:
    assert _failed(store, "DeviceError", {"gpus": 0}, None, device="cuda:1").clone == {"device": "auto"}
    assert _failed(store, "OutOfMemory", {"field": "batch_size", "fits": 8}, None).clone == {
        "batch_size": "8"
    }
    budget = _failed(store, "MemoryError", {}, None, batch_tokens=512)
    assert budget.steps[0] == "Clone it with batch_tokens 256 (now 512)."
    assert budget.clone == {"batch_tokens": "256"}


def test_of_runs_that_were_stopped(store: Store) -> None:
    before = _sound(store, claimed(store, RunState.CANCELLED))
    assert (before.cause, before.happened) == ("stopped", "It was stopped before it began.")
    message = "Its worker was told to end. It can be resumed from step 130."
    told_to_end = ErrorInfo("WorkerTerminated", message, "")
    busy = ErrorInfo("StoreBusy", "The store was busy at step 130.", "")  # says nothing of a saved state
    for error, cause, more, step in (
        (None, "stopped", "Its state is saved at step 130.", "To have its scores, resume it"),
        (told_to_end, "its worker was told to end", message, "Resume it"),
        (
            busy,
            "the store was held by another program",
            f"{busy.message} Its state is saved at step 130.",
            "Once nothing else holds the store, resume it",
        ),
    ):
        run_id = claimed(store)
        store.set_progress(run_id, 130, 1.3, 200)
        store.set_saved_step(run_id, 130)
        store.request_stop(run_id)
        store.finish(run_id, RunState.CANCELLED, error=error)
        stopped = _sound(store, run_id)
        assert (stopped.cause, stopped.happened) == (cause, f"It was stopped at step 130. {more}")
        assert stopped.steps[0] == f"{step}: it goes on from step 130."


def test_a_warning_about_the_last_attempt_is_given(store: Store) -> None:
    run_id = claimed(store)
    store.add_event(run_id, "warning", "It had not stopped; its worker was killed.")
    store.request_stop(run_id)
    store.finish(run_id, RunState.CANCELLED)
    given = advice(store.run(run_id), store.events(run_id))
    assert given is not None
    assert given.happened == "It was stopped before it began. It had not stopped; its worker was killed."


@pytest.mark.parametrize(
    "state", [RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING, RunState.SUCCEEDED]
)
def test_none_is_given_where_none_is_needed(store: Store, state: RunState) -> None:
    assert advice(store.run(claimed(store, state))) is None
