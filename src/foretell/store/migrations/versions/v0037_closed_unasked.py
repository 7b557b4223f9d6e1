"""Notify of orders that left the book because their wallet was barred, or because settlement was behind."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Give the index of orders that left the book without a request the newer reasons."""
    unasked = sa.text(
        "close_reason IN ('expired', 'self_trade', 'market_resolved', 'underfunded',"
        " 'canceled_on_chain', 'nonce_raised', 'reverts_on_chain', 'wallet_barred',"
        " 'settlement_behind')"
    )
    op.drop_index("ix_orders_closed_unasked", table_name="orders")
    op.create_index(
        "ix_orders_closed_unasked",
        "orders",
        ["signer", "updated_at_ms"],
        sqlite_where=unasked,
        postgresql_where=unasked,
    )
