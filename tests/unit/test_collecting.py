"""A worker looks for garbage seldom, but always after a run."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from core.store import Store
from jobs.worker.idle import Lingering, Program, collect_after_run, collect_seldom, keep_what_is_there
from tests.making import config
from tests.unit.test_worker import worker


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The other tests' collection is as Python has it."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.fixture
def store() -> Iterator[Store]:
    with contextlib.closing(Store.open("sqlite://")) as opened:
        yield opened


class _Model:
    def __init__(self) -> None:
        self.itself = self


def test_what_a_run_leaves_in_cycles_is_gone_when_the_next_begins(store: Store) -> None:
    collect_seldom()
    left: list[weakref.ref[_Model]] = []
    seen: list[bool] = []

    def train(*_: Any, **__: Any) -> SimpleNamespace:
        seen.extend(one() is None for one in left)
        left.append(weakref.ref(_Model()))
        assert left[-1]() is not None  # only a collection frees it
        return SimpleNamespace(stopped=False, best_epoch=0, steps=1)

    store.add_runs([config(seed=1), config(seed=2), config(seed=3)])
    one = worker(store, train=train, lingering=Lingering(store, Program(()), ahead=False))
    while one.train_next():
        pass
    assert seen == [True, True, True]


def test_modules_are_kept_once_and_not_what_comes_later() -> None:
    keep_what_is_there()
    kept = gc.get_freeze_count()
    assert kept > 10_000
    model = weakref.ref(_Model())
    collect_after_run()
    assert model() is None
    assert gc.get_freeze_count() <= kept
