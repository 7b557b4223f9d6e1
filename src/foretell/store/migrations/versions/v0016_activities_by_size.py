"""Find activities by their size, of a wallet and of all wallets, and the matches in which a wallet was the taker."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the indexes."""
    places = ["block_number", "log_index", "part"]
    op.create_index("ix_activities_wallet_size", "activities", ["wallet", "size_units", *places])
    op.create_index(op.f("ix_activities_size_units"), "activities", ["size_units"])
    op.create_index(
        "ix_activities_taken",
        "activities",
        ["wallet", "timestamp_s", *places],
        sqlite_where=sa.text("is_taker = 1"),
        postgresql_where=sa.text("is_taker"),
    )
