"""The regions of a controller, as they were at its last heartbeat."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("regions", sa.Text, nullable=False, server_default=sa.text("'[]'")))
