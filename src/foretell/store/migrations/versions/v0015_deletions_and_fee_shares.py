"""Keep deleted read-only keys, so that no request sent again makes one a second time, and the rates of referrers."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the time of deletion, and the table; the rows of keys that were deleted before are gone."""
    with op.batch_alter_table("readonly_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("deleted_at_ms", sa.BigInteger(), nullable=True))
    op.create_table(
        "referral_rates",
        sa.Column("from_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("share_bps", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("from_ms", name=op.f("pk_referral_rates")),
    )
