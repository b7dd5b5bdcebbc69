"""Plans of comparisons: declared before their first look, and kept as they were declared."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select, update

from core.store.database import Database, in_chunks
from core.store.runs import datetime_of
from core.store.schema import plans
from core.store.types import StoredPlan


class Plans(Database):
    """Plans by their key. `core.results.plan` writes and reads their text."""

    def declare_plan(self, key: str, plan: str) -> StoredPlan:
        """Stores a plan; returns the stored one, which is an earlier one of that key where there is one."""
        with self.transaction() as connection:
            self.insert(connection, plans, [{"key": key, "plan": plan, "declared_at": self.now()}])
            (stored,) = self.plans([key])
        return stored

    def plans(self, keys: Collection[str] | None = None) -> list[StoredPlan]:
        """The plans with these keys, or all, in the order in which they were declared."""
        statements = [select(plans)]
        if keys is not None:
            statements = [select(plans).where(plans.c.key.in_(chunk)) for chunk in in_chunks(keys)]
        with self.transaction(write=False) as connection:
            rows = [row for statement in statements for row in connection.execute(statement)]
        return [
            StoredPlan(
                row.key,
                row.plan,
                datetime_of(row.declared_at),
                None if row.ends_at is None else datetime_of(row.ends_at),
            )
            for row in sorted(rows, key=lambda row: (row.declared_at, row.key))
        ]

    def end_plan_at(self, key: str, ends_at: float | None) -> None:
        """Sets the time (seconds since 1970) after which a plan begins no run; None: no such time."""
        with self.transaction() as connection:
            connection.execute(update(plans).where(plans.c.key == key).values(ends_at=ends_at))
