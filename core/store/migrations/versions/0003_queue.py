"""Priorities, retries and saved steps of runs; the settings of the queue.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("priority", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("retries", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("waiting_for", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("engine_job", sa.String(200), nullable=True))
    op.add_column("runs", sa.Column("saved_step", sa.Integer(), nullable=True))
    op.create_index("ix_runs_queue", "runs", ["state", sa.text("priority DESC"), "id"])
    op.create_table(
        "settings",
        sa.Column("name", sa.String(300), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
    )


def downgrade() -> None:
    op.drop_table("settings")
    op.drop_index("ix_runs_queue", "runs")
    for name in ("saved_step", "engine_job", "waiting_for", "retries", "priority"):
        op.drop_column("runs", name)
