"""What every store must keep of a run: the contract, and what its constraints refuse."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from core.metrics import StepMetrics
from core.store import MetricKey, Store
from core.testing.stores import StoreContract
from tests.making import claimed, step_metrics

LOSS = MetricKey("", "train", "loss")


class TestRecordings(StoreContract):
    @pytest.fixture
    def store(self, store: Store) -> Store:
        return store


class TestConstraints:
    def test_a_batch_is_all_or_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        bad = StepMetrics(2, 0.2, None, {("", "loss"): 1.0})  # type: ignore[arg-type]  # on purpose: breaks a constraint
        with pytest.raises(IntegrityError):
            store.add_metrics(run_id, [step_metrics(1), bad])
        assert store.metrics([run_id], LOSS) == []
        # The keys that were made in the failed batch are gone with it, and are made anew.
        store.add_metrics(run_id, [step_metrics(1)])
        assert store.last_metric_steps([run_id]) == {run_id: 1}

    def test_orphans_are_refused(self, store: Store) -> None:
        with pytest.raises(IntegrityError, match=r"(?i)foreign key"), store.transaction() as connection:
            connection.execute(text("INSERT INTO facts (run_id, facts) VALUES (777, '{}')"))
