"""Leases of rate limits, which several processes share."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of leases."""
    op.create_table(
        "rate_leases",
        sa.Column("quota", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("process", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("leased", sa.BigInteger(), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("quota", "process", name=op.f("pk_rate_leases")),
    )
    op.create_index(op.f("ix_rate_leases_expires_at_ms"), "rate_leases", ["expires_at_ms"])
