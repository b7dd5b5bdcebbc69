"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "metric_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=200), nullable=False),
        sa.Column("split", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric_keys")),
        sa.UniqueConstraint("task", "split", "name", name="uq_metric_keys_task"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("configuration_id", sa.String(length=12), nullable=False),
        sa.Column("sweep", sa.String(length=200), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("owner_host", sa.String(length=255), nullable=True),
        sa.Column("owner_pid", sa.Integer(), nullable=True),
        sa.Column("owner_started", sa.Double(), nullable=True),
        sa.Column("owner_boot", sa.String(length=64), nullable=True),
        sa.Column("heartbeat_at", sa.Double(), nullable=True),
        sa.Column("heartbeat_due", sa.Double(), nullable=True),
        sa.Column("stop_requested_at", sa.Double(), nullable=True),
        sa.Column("step", sa.Integer(), server_default="0", nullable=False),
        sa.Column("total_steps", sa.Integer(), nullable=True),
        sa.Column("epoch", sa.Double(), server_default="0", nullable=False),
        sa.Column("progress_at", sa.Double(), nullable=True),
        sa.Column("best_epoch", sa.Integer(), nullable=True),
        sa.Column("checkpoint", sa.Text(), nullable=True),
        sa.Column("log", sa.Text(), nullable=True),
        sa.Column("error_type", sa.String(length=200), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_traceback", sa.Text(), nullable=True),
        sa.Column("error_exit_code", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled', 'lost')",
            name=op.f("ck_runs_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('running', 'cancelling') OR owner_pid IS NOT NULL", name=op.f("ck_runs_owned")
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_runs_attempt")),
        sa.CheckConstraint("step >= 0", name=op.f("ck_runs_step")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index("ix_runs_configuration_id", ["configuration_id"], unique=False)
        batch_op.create_index("ix_runs_state", ["state", "id"], unique=False)
        batch_op.create_index("ix_runs_sweep", ["sweep"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled', 'lost', "
            "'note', 'warning')",
            name=op.f("ck_events_kind"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_events_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("ix_events_run_id", ["run_id", "id"], unique=False)

    op.create_table(
        "facts",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_facts_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_facts")),
    )
    op.create_table(
        "metrics",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.CheckConstraint("(kind = 0) = (value IS NOT NULL)", name=op.f("ck_metrics_value")),
        sa.CheckConstraint("kind IN (0, 1, 2, 3)", name=op.f("ck_metrics_kind")),
        sa.ForeignKeyConstraint(["key_id"], ["metric_keys.id"], name=op.f("fk_metrics_key_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_metrics_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "key_id", "step", name=op.f("pk_metrics")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "predictions",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("split", sa.String(length=10), nullable=False),
        sa.Column("task", sa.String(length=200), nullable=False),
        sa.Column("gold", sa.LargeBinary(), nullable=False),
        sa.Column("predicted", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("split IN ('train', 'dev', 'test')", name=op.f("ck_predictions_split")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_predictions_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "split", "task", name=op.f("pk_predictions")),
    )
    op.create_table(
        "scores",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("split", sa.String(length=10), nullable=False),
        sa.Column("task", sa.String(length=200), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("score_name", sa.String(length=40), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("accuracy", sa.Double(), nullable=False),
        sa.Column("precision", sa.Double(), nullable=True),
        sa.Column("recall", sa.Double(), nullable=True),
        sa.Column("f1_conll", sa.Double(), nullable=True),
        sa.Column("f1_strict", sa.Double(), nullable=True),
        sa.Column("seqeval_f1", sa.Double(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.CheckConstraint("split IN ('train', 'dev', 'test')", name=op.f("ck_scores_split")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_scores_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "split", "task", name=op.f("pk_scores")),
    )
    op.create_table(
        "snapshots",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Double(), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.LargeBinary(), nullable=False),
        sa.Column("factor", sa.LargeBinary(), nullable=False),
        sa.Column("factor_type", sa.String(length=3), nullable=False),
        sa.Column("factor_scale", sa.Double(), nullable=False),
        sa.Column("feature_diagonal", sa.Double(), nullable=False),
        sa.CheckConstraint("factor_type IN ('<f2', '<f4')", name=op.f("ck_snapshots_factor_type")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_snapshots_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_snapshots")),
    )


def downgrade() -> None:
    op.drop_table("snapshots")
    op.drop_table("scores")
    op.drop_table("predictions")
    op.drop_table("metrics")
    op.drop_table("facts")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index("ix_events_run_id")

    op.drop_table("events")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("ix_runs_sweep")
        batch_op.drop_index("ix_runs_state")
        batch_op.drop_index("ix_runs_configuration_id")

    op.drop_table("runs")
    op.drop_table("metric_keys")
