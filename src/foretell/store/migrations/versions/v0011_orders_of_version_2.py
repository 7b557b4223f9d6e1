"""Keep the fields that only version 2 of the order struct has."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the columns; orders of version 1 have none of them."""
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.add_column(sa.Column("timestamp_ms", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("metadata_word", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("builder_code", sa.Text(), nullable=True))
