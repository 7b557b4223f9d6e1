"""Count how often the index was taken back, so that an engine notices though the same block comes again."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add the table of one row."""
    op.create_table(
        "index_unwinds",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_index_unwinds")),
    )
