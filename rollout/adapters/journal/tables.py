"""The journal's tables."""

from __future__ import annotations

import sqlalchemy as sa

META = sa.MetaData()
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""Nodes report counters of any size: SQLite's integers have 64 bits anyway."""

RUNS = sa.Table(
    "runs",
    META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String, unique=True, nullable=False),
    sa.Column("cluster", sa.String, nullable=False),
    sa.Column("goal", sa.String, nullable=False),
    sa.Column("order", sa.Text, nullable=False),
    sa.Column("counter", COUNTER, nullable=False),
    sa.Column("plan", sa.LargeBinary, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("version", sa.String, nullable=False, server_default=sa.text("''")),
)
EVENTS = sa.Table(
    "events",
    META,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)
SUMMARIES = sa.Table(
    "summaries",
    META,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("events", sa.Integer, nullable=False),  # number of events when the run ended
    sa.Column("ended", sa.Float, nullable=False),
    sa.Column("ending", sa.String, nullable=False),
    sa.Column("exit_code", sa.Integer, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("counter", COUNTER, nullable=False),
    sa.Column("nodes", sa.Text, nullable=False),  # JSON: {state: {"count": …, "nodes": nodeset}}
    sa.Column("owed", sa.Text, nullable=False),
    sa.Column("cordoned", sa.Text, nullable=False),
    sa.Column("reverted", sa.Text, nullable=False),  # JSON: {run: nodeset}
)
"""How runs ended, readable by versions that cannot read their events."""
LEASES = sa.Table(
    "leases",
    META,
    sa.Column("cluster", sa.String, primary_key=True),
    sa.Column("run", sa.String, nullable=False),
    sa.Column("owner", sa.String, nullable=False),
    sa.Column("heartbeat", sa.Float, nullable=False),
    sa.Column("regions", sa.Text, nullable=False, server_default=sa.text("'[]'")),  # JSON, at the last heartbeat
)
REQUESTS = sa.Table(
    "requests",
    META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String, nullable=False, index=True),
    sa.Column("word", sa.String, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("revert", sa.String, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
NOTES = sa.Table(
    "notes",
    META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("cluster", sa.String, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("text", sa.String, nullable=False),
)
