"""Keep requests with an idempotency key."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0007"


def upgrade() -> None:
    """Add the client and the content of a request."""
    with op.batch_alter_table("signed_requests", schema=None) as batch_op:
        batch_op.add_column(sa.Column("client", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("content_hash", sa.Text(), nullable=True))
    op.create_index(
        op.f("ix_signed_requests_client_expires_at_ms"),
        "signed_requests",
        ["client", "expires_at_ms"],
    )
