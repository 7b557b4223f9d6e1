"""Find the newest trades of an order in their order: each read of an order that trades often read them all."""

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Give the indexes of the orders of trades and fills the order of a walk from the newest."""
    for table, key, columns in (
        ("trades", "taker_order_id", ["trade_id"]),
        ("fills", "maker_order_id", ["matched_at_ms", "sequence"]),
    ):
        op.drop_index(op.f(f"ix_{table}_{key}"), table_name=table)
        names = [key, *columns]
        op.create_index(op.f(f"ix_{table}_{'_'.join(names)}"), table, names)
