"""Compute sums beside those that are read: a generation of them, and tables for the totals of odd ones."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the tables; the sums of today are generation 0."""
    op.create_table(
        "sum_generations",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        _integer("generation"),
        _integer("block_number"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sum_generations")),
    )
    op.execute(
        "INSERT INTO sum_generations (name, generation, block_number) VALUES ('live', 0, -1)"
    )
    place = ("block_number", "log_index", "part")
    op.create_table(
        "odd_traded_markets",
        *(_integer(name, is_key=True) for name in place),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(*place, name=op.f("pk_odd_traded_markets")),
        sa.UniqueConstraint(
            "wallet", "condition_id", name=op.f("uq_odd_traded_markets_wallet_condition_id")
        ),
    )
    for table, key in (
        ("odd_trading_totals", ("wallet",)),
        ("odd_trading_total_changes", ("wallet", "block_number")),
    ):
        op.create_table(
            table,
            sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
            *(_integer(name) for name in ("trades", "markets", "volume_units")),
            _integer("block_number", is_key="block_number" in key),
            sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
        )
        op.create_index(op.f(f"ix_{table}_block_number"), table, ["block_number"])


def _integer(name: str, *, is_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        name, sa.BigInteger(), nullable=False, autoincrement=False if is_key else "auto"
    )
