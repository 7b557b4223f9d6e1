"""Find activities by their collateral: of a wallet, the largest first, and of all wallets, from an amount on."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the indexes."""
    places = ["block_number", "log_index", "part"]
    op.create_index("ix_activities_wallet_cost", "activities", ["wallet", "cost_units", *places])
    op.create_index(op.f("ix_activities_cost_units"), "activities", ["cost_units"])
