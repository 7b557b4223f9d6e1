"""Find activities by their size: of a wallet, the largest first, and of all wallets, from a size on."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the indexes."""
    places = ["block_number", "log_index", "part"]
    op.create_index("ix_activities_wallet_size", "activities", ["wallet", "size_units", *places])
    op.create_index(op.f("ix_activities_size_units"), "activities", ["size_units"])
