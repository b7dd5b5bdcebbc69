"""The store's tables. Times are seconds since 1970 (UTC) as floats, the same on every database.

Metrics are long and narrow, one row per (run, key, step), with the key's three names kept once in
`metric_keys` (docs/adr/0003-metrics-schema.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    cast,
    func,
    select,
)

from core.store.types import RunState

# A NaN that SQLite is given reads back as NULL, so what is no finite number is told by its kind.
FINITE, NOT_A_NUMBER, PLUS_INFINITY, MINUS_INFINITY = range(4)
FACTOR_TYPES = ("<f2", "<f4")
EVENT_KINDS = (*(state.value for state in RunState), "note", "warning")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _one_of(column: str, values: Iterable[object], name: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in values)})", name=name)


def _columns(type_: Any, *names: str, nullable: bool = True) -> list[Column[Any]]:
    return [Column(name, type_, nullable=nullable) for name in names]


def _run_id(*, primary_key: bool) -> Column[int]:
    return Column(
        "run_id",
        Integer,
        ForeignKey("runs.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
        autoincrement=False,
    )


runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("config", Text, nullable=False),
    Column("configuration_id", String(12), nullable=False),
    Column("sweep", String(200)),
    Column("state", String(10), nullable=False),
    Column("attempt", Integer, nullable=False, server_default="1"),
    # Counts the changes of this row, so that readers fetch only rows they have not seen.
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("created_at", Double, nullable=False),
    # No version writes `heartbeat_due` any more.
    *_columns(Double, "started_at", "finished_at", "heartbeat_at", "heartbeat_due", "stop_requested_at"),
    Column("owner_host", String(255)),
    Column("owner_pid", Integer),
    Column("owner_started", Double),
    Column("owner_boot", String(64)),
    Column("step", Integer, nullable=False, server_default="0"),
    Column("total_steps", Integer),
    Column("epoch", Double, nullable=False, server_default="0"),
    Column("progress_at", Double),
    Column("best_epoch", Integer),
    Column("error_type", String(200)),
    *_columns(Text, "checkpoint", "log", "error_message", "error_traceback"),
    Column("error_exit_code", Integer),
    # What researchers add: archived or not, a note, and keywords (`tags`: a JSON list, sorted).
    Column("archived_at", Double),
    Column("note", Text, nullable=False, server_default=""),
    Column("tags", Text, nullable=False, server_default="[]"),
    # How it waits and comes back: higher priorities first; how often it is still resumed by itself when its
    # worker dies; why it waits and what it is called where another scheduler places runs; the step of its
    # newest training state on disk.
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("retries", Integer, nullable=False, server_default="0"),
    Column("waiting_for", Text),
    Column("engine_job", String(200)),
    Column("saved_step", Integer),
    # CPU threads that it computes with, decided when it is queued; NULL: all of the machine that trains it.
    Column("threads", Integer),
    _one_of("state", (state.value for state in RunState), "state"),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint("step >= 0", name="step"),
    CheckConstraint("state NOT IN ('running', 'cancelling') OR owner_pid IS NOT NULL", name="owned"),
    Index("ix_runs_state", "state", "id"),
    Index("ix_runs_configuration_id", "configuration_id"),
    Index("ix_runs_sweep", "sweep"),
    # Without AUTOINCREMENT a deleted run's number is given out again, and an old link shows another run.
    sqlite_autoincrement=True,
)
OWNER = (runs.c.owner_host, runs.c.owner_pid, runs.c.owner_started, runs.c.owner_boot)
"""The columns of a run's owner, in the order of the fields of `Owner`."""
# In the order in which queued runs are claimed: the next is found without sorting those that wait.
Index("ix_runs_queue", runs.c.state, runs.c.priority.desc(), runs.c.id)

facts = Table("facts", metadata, _run_id(primary_key=True), Column("facts", Text, nullable=False))

metric_keys = Table(
    "metric_keys",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("task", String(200), nullable=False),
    Column("split", String(20), nullable=False),
    Column("name", String(100), nullable=False),
    UniqueConstraint("task", "split", "name", name="uq_metric_keys_task"),
)

metrics = Table(
    "metrics",
    metadata,
    _run_id(primary_key=True),
    Column("key_id", Integer, ForeignKey("metric_keys.id"), primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    *_columns(Double, "epoch", "seconds", nullable=False),
    Column("value", Double),
    Column("kind", SmallInteger, nullable=False),
    _one_of("kind", range(4), "kind"),
    CheckConstraint("(kind = 0) = (value IS NOT NULL)", name="value"),
    sqlite_with_rowid=False,
)

scores = Table(
    "scores",
    metadata,
    _run_id(primary_key=True),
    Column("split", String(10), primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("score_name", String(40), nullable=False),
    # NULL where it is undefined.
    Column("score", Double),
    Column("tokens", Integer, nullable=False),
    Column("report", Text, nullable=False),
    _one_of("split", ("train", "dev", "test"), "split"),
)

# The scores beside the headline (SECONDARY_SCORES of `core.tasks.scores`), a row each; none if undefined.
figures = Table(
    "figures",
    metadata,
    _run_id(primary_key=True),
    Column("split", String(10), primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("name", String(40), primary_key=True),
    Column("value", Double, nullable=False),
    _one_of("split", ("train", "dev", "test"), "split"),
)

predictions = Table(
    "predictions",
    metadata,
    _run_id(primary_key=True),
    Column("split", String(10), primary_key=True),
    Column("task", String(200), primary_key=True),
    *_columns(LargeBinary, "gold", "predicted", nullable=False),
    _one_of("split", ("train", "dev", "test"), "split"),
)

snapshots = Table(
    "snapshots",
    metadata,
    _run_id(primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    *_columns(Integer, "tasks", "labels", "features", "rank", nullable=False),
    *_columns(LargeBinary, "task", "label", "factor", nullable=False),
    Column("factor_type", String(3), nullable=False),
    *_columns(Double, "epoch", "factor_scale", "feature_diagonal", nullable=False),
    _one_of("factor_type", FACTOR_TYPES, "factor_type"),
)

# The revision of the tables (`core.store.migrations`), under the name that Alembic gave it.
versions = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

# What holds for the whole laboratory: whether the queue is paused, which machines are drained, and which runs
# were deleted but are kept for a while.
settings = Table(
    "settings",
    metadata,
    Column("name", String(300), primary_key=True),
    Column("value", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
)

DELETED = "deleted run "
"""The setting of a deleted run begins so; the run's id follows."""
IS_KEPT = runs.c.id.not_in(
    select(cast(func.substr(settings.c.name, len(DELETED) + 1), Integer)).where(
        settings.c.name.startswith(DELETED)
    )
)
"""Whether a run was not deleted: no query finds deleted ones, though their rows are kept for a while."""

# Plans of comparisons (`core.results.plan`), by their key, as they were declared. Only `ends_at` changes.
plans = Table(
    "plans",
    metadata,
    Column("key", String(40), primary_key=True),
    Column("plan", Text, nullable=False),
    Column("declared_at", Double, nullable=False),
    Column("ends_at", Double),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    _run_id(primary_key=False),
    Column("time", Double, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("message", Text, nullable=False),
    _one_of("kind", EVENT_KINDS, "kind"),
    Index("ix_events_run_id", "run_id", "id"),
    sqlite_autoincrement=True,
)
