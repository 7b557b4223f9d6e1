"""Keep builders' keys, the rates of their fees, who brought an order, and who referred a wallet."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

ZERO = "0x" + "0" * 64


def upgrade() -> None:
    """Add the tables and the column; orders that named a builder before are attributed to it."""
    op.create_table(
        "builder_keys",
        sa.Column("key_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_builder_keys")),
    )
    op.create_index(op.f("ix_builder_keys_address"), "builder_keys", ["address"])
    op.create_table(
        "builder_rates",
        sa.Column("builder_code", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("from_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("taker_share_bps", sa.BigInteger(), nullable=False),
        sa.Column("maker_flat_bps", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("builder_code", "from_ms", name=op.f("pk_builder_rates")),
    )
    op.create_table(
        "referred_wallets",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("referrer", sa.Text(), nullable=False),
        sa.Column("from_s", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", name=op.f("pk_referred_wallets")),
    )
    op.create_index(op.f("ix_referred_wallets_referrer"), "referred_wallets", ["referrer"])
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.add_column(sa.Column("attributed_code", sa.Text(), nullable=True))
    orders = sa.table("orders", sa.column("builder_code"), sa.column("attributed_code"))
    op.execute(
        orders.update()
        .where(orders.c.builder_code.is_not(None), orders.c.builder_code != ZERO)
        .values(attributed_code=orders.c.builder_code)
    )
    attributed = sa.text("attributed_code IS NOT NULL")
    op.create_index(
        "ix_orders_attributed",
        "orders",
        ["attributed_code"],
        sqlite_where=attributed,
        postgresql_where=attributed,
    )
