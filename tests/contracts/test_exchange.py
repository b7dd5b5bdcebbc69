"""A run read out of one store and taken into another is the same run."""

from __future__ import annotations

import dataclasses
import math
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from core.errors import RunNotFound
from core.store import RunState, Store
from core.store.snapshot_codec import check, encode
from tests.making import assert_same, claimed, fully_recorded, snapshot


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """A second store."""
    made = Store.open(f"sqlite:///{tmp_path / 'other.db'}")
    yield made
    made.close()


@pytest.mark.parametrize("outwards", [True, False])
def test_a_run_taken_in_is_the_same_run(outwards: bool, store: Store, other: Store) -> None:
    source, target = (store, other) if outwards else (other, store)
    left = source.record(fully_recorded(source))
    target.add_runs([left.run.config])  # so that numbers differ
    taken = target.import_record(left, "Imported.")
    right = target.record(taken)
    assert taken != left.run.id
    assert len(left.curves) == 6
    assert len(left.snapshots) == 2
    assert_same(left, right)
    assert target.run(taken).state is RunState.SUCCEEDED
    assert [(event.kind, event.message) for event in right.history] == [
        *((event.kind, event.message) for event in left.history),
        ("note", "Imported."),
    ]
    with pytest.raises(RunNotFound):
        target.record(taken + 1)


def test_a_run_is_known_again_by_what_it_is(store: Store, other: Store) -> None:
    first, second = (store.run(fully_recorded(store, seed=seed)) for seed in (1, 2))
    assert other.same_run(first) is None
    ids = [other.import_record(store.record(first.id), "Imported.") for _ in range(2)]
    known = other.same_run(first)
    assert known is not None
    assert known.id == ids[-1]
    assert other.same_run(second) is None  # the same configuration, another seed
    later = dataclasses.replace(first, finished_at=first.created_at + timedelta(seconds=1))
    assert other.same_run(later) is None
    assert other.same_run(store.run(claimed(store))) is None  # it has not ended


def test_who_asks_while_another_takes_the_run_in_waits_for_it(
    store: Store, other: Store, open_store: Callable[..., Store]
) -> None:
    """Both ask in the transaction in which they would write: the second finds the run of the first.

    A plain transaction of PostgreSQL would not show it.
    """
    record = other.record(fully_recorded(other))
    second = open_store(store.url)
    has_written = threading.Event()

    def ask() -> int | None:
        has_written.wait()
        with second.queueing_alone():
            known = second.same_run(record.run)
        return None if known is None else known.id

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        try:
            with store.queueing_alone():
                assert store.same_run(record.run) is None
                run_id = store.import_record(record, "Imported.")
                has_written.set()
                with pytest.raises(TimeoutError):
                    answer.result(timeout=0.3)
        finally:
            has_written.set()
        assert answer.result() == run_id


def test_nothing_is_half_taken_in(store: Store, other: Store) -> None:
    record = store.record(fully_recorded(store))
    twice = dataclasses.replace(record, snapshots=[*record.snapshots, record.snapshots[0]])
    with pytest.raises(IntegrityError):
        other.import_record(twice, "Imported.")
    assert other.runs() == []
    assert other.metric_keys([1]) == []
    other.import_record(record, "Imported.")  # and the store's memory of keys was not spoilt
    assert_same(record, other.record(other.runs()[0].id))


@pytest.mark.parametrize(
    "change",
    [
        {"task": b"short"},
        {"labels": 5},
        {"rank": -1},
        {"features": 2**31},
        {"features": 17},
        {"factor": b"no zlib at all, and of an odd length"},
        {"factor": zlib.compress(bytes(50_000_000))},  # unpacks to more than the row says
        {"feature_diagonal": math.nan},
    ],
)
def test_a_snapshot_of_anothers_making_is_checked(change: dict[str, Any]) -> None:
    stored = encode(snapshot(3).relations)
    check(stored)
    with pytest.raises(ValueError, match=r"covariances|factor|scale"):
        check(stored | change)
