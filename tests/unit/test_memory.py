"""A step that finds no memory proposes half its batch size, and a click asks for that one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from core.errors import OutOfMemory
from core.store import RunState, Store
from core.training import trainer
from core.training.memory import is_out_of_memory, memory_errors
from jobs.advice import advice
from jobs.worker.loop import Worker
from tests.making import OWNER
from tests.trained import toy_config

GB = 2**30
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many of a GPU's 16 GB other programs hold."""

    def hold(gigabytes: int) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: ((14 - gigabytes) * GB, 16 * GB))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 2 * GB)

    hold(0)
    return hold


@pytest.mark.parametrize(
    ("device", "held", "batch_size", "field", "message"),
    [
        (GPU, 0, 64, "batch_size",
         "The GPU's 16 GB were not enough for batches of 64 sentences. Clone it with batch_size 32."),
        (GPU, 8, 33, "batch_size", "The GPU's 16 GB, of which other programs hold 8 GB, were not enough for "
         "batches of 33 sentences. Clone it with batch_size 16."),
        (GPU, 0, 1, "batch_size", "for single sentences. Clone it with a smaller max_length."),
        (CPU, 0, 32, "batch_size",
         "The memory was not enough for batches of 32 sentences. Clone it with batch_size 16."),
        (CPU, 0, 512, "batch_tokens", "of 512 subwords. Clone it with batch_tokens 256."),
    ],
)  # fmt: skip
def test_the_message_has_the_figures(
    others: Callable[[int], None], device: torch.device, held: int, batch_size: int, field: str, message: str
) -> None:
    others(held)
    with pytest.raises(OutOfMemory) as raised, memory_errors(device, batch_size, field):
        raise torch.OutOfMemoryError("CUDA out of memory.")
    assert message in str(raised.value)
    assert (raised.value.field, raised.value.fits) == (field, batch_size // 2 or None)


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)  # fmt: skip
def test_torch_says_it_in_several_ways(error: Exception, is_it: bool) -> None:
    assert is_out_of_memory(error) is is_it


def test_other_errors_of_a_step_stay_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), memory_errors(CPU, 8, "batch_size"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_training_that_finds_no_memory_leads_to_half_the_batch_size(
    laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real training by a real worker; the failing step is given."""
    step, taken = trainer.train_step, []

    def fail(run: object, batch: object) -> object:
        taken.append(batch)
        if len(taken) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        return step(run, batch)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(trainer, "train_step", fail)
    store = Store.open()
    (run_id,) = store.add_runs([toy_config(laboratory, batch_size=16)])
    Worker(store, OWNER, log_to=lambda _path: contextlib.nullcontext()).train_next()
    run = store.run(run_id)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.type == "OutOfMemory"
    assert run.facts["error"] == {"field": "batch_size", "fits": 8}
    assert "batches of 16 sentences. Clone it with batch_size 8." in run.error.message
    told = advice(run)
    assert told is not None
    assert told.cause == "out of memory"
    assert told.clone == {"batch_size": "8"}
    store.close()
