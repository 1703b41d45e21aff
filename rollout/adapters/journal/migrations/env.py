"""What alembic runs to migrate: over a connection that is in a transaction already (see ``schema``)."""

from __future__ import annotations

from alembic import context

from rollout.adapters.journal.tables import META

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=META,
    transactional_ddl=True,
    render_as_batch=True,  # SQLite cannot change a column in place
)
context.run_migrations()
