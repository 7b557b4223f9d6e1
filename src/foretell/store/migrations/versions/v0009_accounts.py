"""Keep requests with an idempotency key, read-only keys, profiles, and what was acknowledged."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the client and the content of a request, tables, and an index of orders."""
    op.create_table(
        "profiles",
        sa.Column("address", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("safe", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=True),
        sa.Column("bio", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_profiles")),
        sa.UniqueConstraint("name_key", name=op.f("uq_profiles_name_key")),
    )
    op.create_index(op.f("ix_profiles_safe"), "profiles", ["safe"])
    op.create_table(
        "acknowledgements",
        sa.Column("address", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("notification_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("type", sa.BigInteger(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", "notification_id", name=op.f("pk_acknowledgements")),
    )
    op.create_table(
        "acknowledged_times",
        sa.Column("address", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("type", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", "type", name=op.f("pk_acknowledged_times")),
    )
    unasked = sa.text(
        "close_reason IN ('expired', 'self_trade', 'market_resolved', 'underfunded',"
        " 'canceled_on_chain', 'nonce_raised', 'reverts_on_chain')"
    )
    op.create_index(
        "ix_orders_closed_unasked",
        "orders",
        ["signer", "updated_at_ms"],
        sqlite_where=unasked,
        postgresql_where=unasked,
    )
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
