"""Keep the digest of the last projected command: tables and a journal that went on apart are told by it."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Add the table, empty: the next projected command of each reader fills its row."""
    op.create_table(
        "projection_ends",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_projection_ends")),
    )
