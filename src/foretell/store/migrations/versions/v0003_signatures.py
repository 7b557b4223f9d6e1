"""Keep times of signing that are ahead of the clock."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the latest such time of each set of credentials."""
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("signed_at_s", sa.BigInteger(), nullable=True))
