"""The version that began a run, and how runs ended: what another version can show of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("version", sa.String, nullable=False, server_default=sa.text("''")))
    op.create_table(
        "summaries",
        sa.Column("run", sa.String, primary_key=True),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("ended", sa.Float, nullable=False),
        sa.Column("ending", sa.String, nullable=False),
        sa.Column("exit_code", sa.Integer, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("counter", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("owed", sa.Text, nullable=False),
        sa.Column("cordoned", sa.Text, nullable=False),
        sa.Column("reverted", sa.Text, nullable=False),
    )
