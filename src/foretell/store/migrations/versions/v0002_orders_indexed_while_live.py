"""Index orders only while they are live."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

LIVE = sa.text("status = 'LIVE'")


def upgrade() -> None:
    """Replace the indexes over all orders, most of which are closed."""
    with op.batch_alter_table("orders", schema=None) as batch_op:
        for name in ("condition_id_status", "maker_sequence", "signer_status"):
            batch_op.drop_index(batch_op.f(f"ix_orders_{name}"))
        for name in ("condition_id", "signer"):
            batch_op.create_index(
                f"ix_orders_live_{name}", [name], sqlite_where=LIVE, postgresql_where=LIVE
            )
