"""The store: whether it is sound, and copies of it that were left behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from core.store import Store
from core.store.engine import wal_is_safe
from jobs.doctor.finding import Finding, problem, remark

__all__ = ["rescued", "soundness"]


def soundness(
    store: Store, sqlite: tuple[int, int, int] = sqlite3.sqlite_version_info[:3]
) -> Iterator[Finding]:
    """Damage, and a SQLite that cannot do all that the store would use. Raises StoreError."""
    health = store.health()
    for damage in health.problems:
        yield problem("store", f"The store is damaged: {damage.rstrip('.')}. Put back a backup.")
    if store.file is not None and not wal_is_safe(sqlite):
        yield remark(
            "store",
            f"SQLite {'.'.join(map(str, sqlite))} may lose commits in its fast mode (mended in 3.51.3), "
            "so the store uses the slow one. A newer Python brings a newer SQLite.",
        )


def rescued(store: Store) -> Iterator[Finding]:
    """Copies that were saved when another file had taken the store's place."""
    for copy in store.rescued():
        yield problem(
            "store",
            f"{copy} holds a store whose place {store.file} was taken by another file while it was open: "
            f"`mrnlab --db sqlite:///{copy} runs` shows what is in it. Put it in its place, or remove it.",
        )
