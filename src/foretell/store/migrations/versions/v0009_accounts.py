"""Keep requests with an idempotency key, and read-only keys."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0007"


def upgrade() -> None:
    """Add the client and the content of a request, and a table."""
    op.create_table(
        "readonly_keys",
        sa.Column("key_hash", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", name=op.f("pk_readonly_keys")),
    )
    op.create_index(op.f("ix_readonly_keys_address"), "readonly_keys", ["address"])
    with op.batch_alter_table("signed_requests", schema=None) as batch_op:
        batch_op.add_column(sa.Column("client", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("content_hash", sa.Text(), nullable=True))
    op.create_index(
        op.f("ix_signed_requests_client_expires_at_ms"),
        "signed_requests",
        ["client", "expires_at_ms"],
    )
