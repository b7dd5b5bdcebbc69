"""Parameters, memory and time of runs: recorded by training, summed and averaged for configurations."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
from pathlib import Path

import pytest
from safetensors.torch import load_file

from core.evaluation.costs import Cost, cost_of, run_cost
from core.events import Usage
from core.store import Store
from core.training.memory import process_peak, restart_process_peak
from jobs.reports.parts import cost_entries
from tests.making import run_facts
from tests.tiny import tiny_bert
from tests.trained import toy_config, train_runs


def test_training_records_parameters_memory_and_time(laboratory: Path, tmp_path: Path) -> None:
    weights = load_file(tiny_bert(tmp_path / "counted") / "model.safetensors")
    encoder = sum(value.numel() for name, value in weights.items() if "pooler" not in name)
    configs = [
        toy_config(laboratory, epochs=1),
        toy_config(laboratory, epochs=1, encoder_training="frozen", lr_encoder=None),
        toy_config(laboratory, epochs=1, paradigm="stl", tasks="pos"),
    ]
    with contextlib.closing(Store.open()) as store:
        ids = train_runs(store, configs)
        costs = [run_cost(store.run(run_id).facts) for run_id in ids]
        labels = [len(task.labels) for task in store.run(ids[0]).task_facts]
    mtl, frozen, stl = (cost for cost in costs if cost is not None)
    heads = sum(labels) * (16 + 1)
    # All rows of the vocabulary count, however few the training text has.
    assert (mtl.parameters, mtl.trained) == (encoder + heads, encoder + heads)
    assert (frozen.parameters, frozen.trained) == (encoder + heads, heads)
    assert stl.parameters == encoder + labels[0] * (16 + 1)
    for cost in (mtl, frozen, stl):
        assert cost.seconds > 0
        assert cost.devices == ("cpu",)
        assert cost.memory is None or cost.memory > 2**20


def test_the_peak_is_that_of_this_run_alone() -> None:
    restart_process_peak()
    before = process_peak()
    if before is None:
        pytest.skip("this system does not tell a process's peak memory")
    # Mapped, because the allocator may keep the memory of a freed tensor.
    with mmap.mmap(-1, 64 * 2**20) as mapped:
        mapped.write(b"1" * len(mapped))
        with_it = process_peak()
    assert with_it is not None
    assert with_it >= before + 48 * 2**20
    restart_process_peak()
    after = process_peak()
    assert after is not None
    assert after <= with_it - 48 * 2**20


def test_a_run_of_before_is_unknown() -> None:
    assert run_cost(None) is None
    assert run_cost(run_facts()) is None
    facts = run_facts(parameters=10, trained_parameters=4, usage=Usage(2.0, None, "gpu"), device="cuda:1")
    assert run_cost(facts) == Cost(10, 4, None, 2.0, ("cuda",))


def test_stl_is_summed_over_its_tasks_and_the_mean_over_seeds() -> None:
    pos, ner = Cost(100, 90, 5, 2.0, ("cpu",)), Cost(102, 92, 7, 4.0, ("cpu",))
    slower = dataclasses.replace(ner, seconds=8.0, memory=9)
    assert cost_of([[pos, ner], [pos, slower]]) == Cost(202, 182, 9, 8.0, ("cpu",), models=2)


def test_what_is_not_known_is_left_out() -> None:
    pos = Cost(100, 90, 5, 2.0, ("cpu",))
    assert cost_of([[pos, None], [pos, pos], [pos]]) == Cost(200, 180, 5, 4.0, ("cpu",), models=2)
    assert cost_of([[pos, None]]) is cost_of([]) is None
    unknown = dataclasses.replace(pos, memory=None, devices=("cuda",))
    assert cost_of([[pos, unknown]]) == Cost(200, 180, None, 4.0, ("cpu", "cuda"), models=2)


def test_in_words() -> None:
    assert [entry.text for entry in cost_entries(None)] == ["–"] * 4
    cost = Cost(325_400_000, 7_800, 3 * 2**29, 130.0, ("cuda",), models=3)
    assert [entry.text for entry in cost_entries(cost)] == ["325.4M", "7,800", "1.50 GB (cuda)", "2 min"]
