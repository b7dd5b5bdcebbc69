"""Plans in the store: declared once, kept as they were, whoever declares them again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from core.store import Store
from tests.making import Clock


def test_a_plan_stays_as_it_was_declared(store: Store, clock: Clock) -> None:
    first = store.declare_plan("a" * 40, '{"looks": [5, 8]}')
    declared = first.declared_at
    clock.now += 60
    again = store.declare_plan("a" * 40, '{"looks": [2, 3]}')
    assert again == first
    assert (again.plan, again.declared_at, again.ends_at) == ('{"looks": [5, 8]}', declared, None)
    other = store.declare_plan("b" * 40, "{}")
    assert store.plans() == [first, other]
    assert store.plans(["b" * 40, "c" * 40]) == [other]
    assert store.plans([]) == []


def test_only_its_end_changes(store: Store) -> None:
    store.declare_plan("a" * 40, "{}")
    store.end_plan_at("a" * 40, 1_000.5)
    (stored,) = store.plans()
    assert stored.ends_at is not None
    assert (stored.plan, stored.ends_at.timestamp()) == ("{}", 1_000.5)
    store.end_plan_at("a" * 40, None)
    assert store.plans()[0].ends_at is None


def test_of_processes_that_declare_at_once_one_does(url: str, open_store: Callable[..., Store]) -> None:
    stores = [open_store(url) for _ in range(4)]
    together = threading.Barrier(len(stores))

    def declare(number: int) -> str:
        together.wait(timeout=30)
        return stores[number].declare_plan("a" * 40, f"{number}").plan

    with ThreadPoolExecutor(len(stores)) as threads:
        assert len(set(threads.map(declare, range(len(stores))))) == 1
