"""Keep what tells a repeated request from another one."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the latest time of signing of credentials, the hash of images, and what a request waits for."""
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("signed_at_s", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.add_column(sa.Column("images_hash", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("wait", sa.JSON(none_as_null=True), nullable=True))
