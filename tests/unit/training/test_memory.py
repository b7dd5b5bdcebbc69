"""A step that finds no memory says which batch size would have fitted, and a click asks for that one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import OutOfMemory
from core.store import RunState, Store
from core.training import trainer
from core.training.memory import Gauge, Memory, StepMemory, fitting, is_out_of_memory
from jobs.queue.remedies import advice
from jobs.worker.loop import Worker
from tests.making import OWNER, facts_of
from tests.trained import toy_config
from tests.unit.conftest import error_of

GB = 2**30


@dataclass
class Given(Gauge):
    """A GPU of given figures: so much is held when each step begins, so much at its peak."""

    total: int
    before: int
    peak: int
    others: int = 0

    def start(self) -> int:
        return self.before

    def read(self) -> Memory:
        return Memory(self.total, self.total - self.others, held=self.before, peak=self.peak)

    def most(self) -> int:
        return self.peak


def _message(
    gauge: Given | None, batch_size: int, *, trained_mb: int = 0, stepped: bool = True, budget: bool = False
) -> str:
    """What is said of a step that finds no memory, 1 GB being asked for at the end."""
    weight = torch.nn.Parameter(torch.zeros(trained_mb * 2**18, device="meta"))
    optimiser = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    if stepped:
        optimiser.state[weight]["step"] = 1
    with (
        pytest.raises(OutOfMemory) as raised,
        StepMemory(batch_size, batch_size if budget else None, optimiser, gauge).step(),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has ...")
    return str(raised.value)


_SIXTEEN = Given(16 * GB, 2 * GB, 16 * GB)
_LARGER = Given(16 * GB, 2 * GB, 41 * GB)


@pytest.mark.parametrize(
    ("gauge", "batch_size", "more", "message"),
    [
        # 15 GB for 64 sentences, and 14.4 - 2 = 12.4 GB to have: 52.9 of them.
        (_SIXTEEN, 64, {}, "The GPU's 16 GB were not enough for batches of 64 sentences: about 52 would fit. "
         "Clone it with batch_size 48."),
        # 40 GB would be needed beside 2: (14.4 - 2) / 40 of 64 are 19.8.
        (_LARGER, 64, {}, "about 19 would fit. Clone it with batch_size 16."),
        (Given(16 * GB, 2 * GB, 7 * GB, others=8 * GB), 32, {},
         "The GPU's 16 GB, of which other programs hold 8 GB, were not enough for batches of 32 sentences: "
         "about 27 would fit. Clone it with batch_size 24."),
        (Given(16 * GB, 15 * GB, 15 * GB), 8, {}, "for batches of 8 sentences, nor for single ones."),
        (_SIXTEEN, 1, {}, "for single sentences. Clone it with a smaller max_length."),
        (None, 32, {}, "The memory was not enough for batches of 32 sentences. Clone it with batch_size 16."),
        (None, 512, {"budget": True}, "of 512 subwords. Clone it with batch_tokens 256"),
        # 1 GB of weights: its gradients at each step, Adam's two moments from the first on.
        (_LARGER, 64, {"trained_mb": 1024}, "about 18 would fit"),
        (_LARGER, 64, {"trained_mb": 1024, "stepped": False}, "about 15 would fit"),
        # A first step that was cut short has not shown all that it needs.
        (_SIXTEEN, 64, {"stepped": False}, "about 32 would fit"),
    ],
)  # fmt: skip
def test_the_message_has_the_figures(
    gauge: Given | None, batch_size: int, more: dict[str, Any], message: str
) -> None:
    assert message in _message(gauge, batch_size, **more)


@given(
    size=st.integers(2, 4096),
    total=st.integers(1, 200),
    before=st.floats(0, 1),
    peak=st.floats(0, 1.5),
    asked=st.integers(0, 20),
)
def test_what_fits_is_less_than_what_did_not_and_leaves_a_tenth(
    size: int, total: int, before: float, peak: float, asked: int
) -> None:
    held = int(before * total * GB)
    now = Memory(total * GB, total * GB, held, max(held, int(peak * total * GB)))
    fits = fitting(size, now, held, held, asked * GB)
    assert 0 <= fits < size
    needed = now.peak + asked * GB - held
    if fits and needed:
        assert held + fits / size * needed <= 0.9 * total * GB + 1


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
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    with pytest.raises(RuntimeError, match="shapes"), StepMemory(8, None, optimiser, None).step():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_training_that_finds_no_memory_leads_to_the_batch_size_that_fits(
    laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real training by a real worker; the device's figures and the failing step are given."""
    step, taken = trainer.train_step, []

    def fail(run: object, batch: object) -> object:
        taken.append(batch)
        if len(taken) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        return step(run, batch)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(trainer, "train_step", fail)
    monkeypatch.setattr(trainer, "gauge_of", lambda _device: Given(16 * GB, 2 * GB, 41 * GB))
    store = Store.open()
    (run_id,) = store.add_runs([toy_config(laboratory, batch_size=16)])
    Worker(store, OWNER, log_to=lambda _path: contextlib.nullcontext()).train_next()
    run, error = store.run(run_id), error_of(store, run_id)
    assert (run.state, error.type) == (RunState.FAILED, "OutOfMemory")
    assert facts_of(run).error == {"field": "batch_size", "fits": 4}
    assert "batches of 16 sentences: about 4 would fit. Clone it with batch_size 4." in error.message
    advised = advice(run)
    assert advised is not None
    assert (advised.cause, advised.clone) == ("out of memory", {"batch_size": "4"})
    store.close()
