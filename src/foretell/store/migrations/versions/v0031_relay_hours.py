"""Sums of relay requests by the hour: what an account submits for many owners is bounded without reading it all."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

EVERYBODY = "0x" + "0" * 40


def upgrade() -> None:
    """Add the table, filled from the requests."""
    op.create_table(
        "relay_hours",
        sa.Column("account", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("relays", sa.BigInteger(), nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "hour", name=op.f("pk_relay_hours")),
    )
    fill()


def fill() -> None:
    """Add up the requests that were not refused before they were sent."""
    op.execute(_SUMS.format(account=f"'{EVERYBODY}'", condition="1 = 1"))
    op.execute(_SUMS.format(account="submitter", condition="submitter <> owner"))


_SUMS = """
    INSERT INTO relay_hours (account, hour, relays, gas)
    SELECT {account}, created_at_ms / 3600000, count(*), CAST(sum(gas) AS BIGINT)
    FROM relay_requests WHERE state <> 'STATE_INVALID' AND {condition}
    GROUP BY 1, 2
"""
