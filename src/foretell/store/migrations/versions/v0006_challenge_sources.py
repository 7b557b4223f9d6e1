"""Keep which client asked for a challenge."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the source of a challenge; those that wait already have none."""
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.add_column(sa.Column("source", sa.Text(), nullable=False, server_default=""))
        batch_op.drop_index(batch_op.f("ix_requests_status"))
        batch_op.create_index(batch_op.f("ix_requests_status_source"), ["status", "source"])
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.alter_column("source", server_default=None)
