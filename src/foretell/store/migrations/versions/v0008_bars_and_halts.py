"""Keep barred wallets and what they cost, and halted markets; find orders that are to blame."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the tables and the index."""
    op.create_table(
        "barred_wallets",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("is_barred", sa.Boolean(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("offences", sa.BigInteger(), nullable=False),
        sa.Column("barred_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("probe_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("probes", sa.BigInteger(), nullable=False),
        sa.Column("probe_tx_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("wallet", name=op.f("pk_barred_wallets")),
    )
    op.create_table(
        "wallet_gas",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("day", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", "day", name=op.f("pk_wallet_gas")),
    )
    op.create_index(op.f("ix_refused_orders_order_id"), "refused_orders", ["order_id"])
    op.create_table(
        "halted_markets",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", name=op.f("pk_halted_markets")),
    )
