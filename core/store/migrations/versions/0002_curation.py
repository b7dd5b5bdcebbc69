"""What researchers add to runs: archived or not, a note, tags.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Added, not rebuilt: on SQLite a rebuilt table would first drop the runs, and all that hangs on them.
    op.add_column("runs", sa.Column("archived_at", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("note", sa.Text(), server_default="", nullable=False))
    op.add_column("runs", sa.Column("tags", sa.Text(), server_default="[]", nullable=False))


def downgrade() -> None:
    for name in ("tags", "note", "archived_at"):
        op.drop_column("runs", name)
