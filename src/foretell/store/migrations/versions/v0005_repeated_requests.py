"""Keep what tells a repeated request from another one."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add signed requests, times of signing, the hash of images, and what a request waits for."""
    op.create_table(
        "signed_requests",
        sa.Column("signature", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("signature", name=op.f("pk_signed_requests")),
    )
    op.create_index(op.f("ix_signed_requests_expires_at_ms"), "signed_requests", ["expires_at_ms"])
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("signed_at_s", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.add_column(sa.Column("images_hash", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("wait", sa.JSON(none_as_null=True), nullable=True))
