"""The tables as journals had them before they knew their revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("run", sa.String, unique=True, nullable=False),
        sa.Column("cluster", sa.String, nullable=False),
        sa.Column("goal", sa.String, nullable=False),
        sa.Column("order", sa.Text, nullable=False),
        sa.Column("counter", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("plan", sa.LargeBinary, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("run", sa.String, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("cluster", sa.String, primary_key=True),
        sa.Column("run", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("heartbeat", sa.Float, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("run", sa.String, nullable=False, index=True),
        sa.Column("word", sa.String, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("revert", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "notes",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("cluster", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("text", sa.String, nullable=False),
    )
