"""Which runs count in a mean over seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from core.results.samples import one_per_seed
from core.store import RunState, Store
from tests.making import claimed, config, finished, run_facts, split_result


@pytest.fixture
def store(laboratory: object) -> Iterator[Store]:
    with contextlib.closing(Store.open()) as opened:
        yield opened


def counted(store: Store) -> list[tuple[int, int]]:
    """The seed and the number of each run that counts, the newest first."""
    runs = store.runs()
    return [(run.config.seed, run.id) for run in one_per_seed(runs, store.conditions(runs))]


def add(store: Store, seed: int, text: str, precision: str = "fp32") -> None:
    facts = run_facts(text_hash=text, precision=precision)
    finished(store, config(seed=seed), facts, split_result("test", 0.5))


def test_the_newest_run_that_succeeded_decides_text_and_precision(store: Store) -> None:
    add(store, 1, "old")
    add(store, 2, "new", "bf16")
    add(store, 3, "new")
    add(store, 4, "new")
    claimed(store, RunState.FAILED)
    assert [seed for seed, _ in counted(store)] == [4, 3]


def test_of_a_repeated_seed_the_newest_counts(store: Store) -> None:
    add(store, 1, "same")
    add(store, 2, "same")
    add(store, 1, "same")
    assert counted(store) == [(1, 3), (2, 2)]
