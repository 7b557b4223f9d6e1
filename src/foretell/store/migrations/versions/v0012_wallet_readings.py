"""Keep the wallets whose holdings are asked for, and the blocks at which they were read."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add both tables, without any wallet."""
    op.create_table(
        "asked_wallets",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("asked_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", name=op.f("pk_asked_wallets")),
    )
    op.create_index(op.f("ix_asked_wallets_asked_at_ms"), "asked_wallets", ["asked_at_ms"])
    op.create_table(
        "wallet_readings",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", name=op.f("pk_wallet_readings")),
    )
    op.create_index(op.f("ix_wallet_readings_block_number"), "wallet_readings", ["block_number"])
