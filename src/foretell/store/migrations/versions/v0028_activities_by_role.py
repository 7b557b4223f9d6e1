"""Find activities by their role: the kind and, of a trade, its side and whether the wallet was the taker."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

PLACES = ("block_number", "log_index", "part")
REPLACED = (
    "ix_activities_timestamp_s",
    "ix_activities_condition_id_timestamp_s",
    "ix_activities_wallet_condition_id_timestamp_s",
    *("ix_activities_taken", "ix_activities_other", "ix_activities_taken_cost"),
    *("ix_activities_wallet_cost", "ix_activities_wallet_size"),
)


def upgrade() -> None:
    """Add the column, filled from the others, and give each index in the order of a page the role before that order."""
    op.add_column(
        "activities", sa.Column("role", sa.BigInteger(), nullable=False, server_default="0")
    )
    for name in REPLACED:
        op.drop_index(op.f(name), table_name="activities")
    fill()
    for keys in (("wallet",), ("wallet", "condition_id"), ("condition_id",), ()):
        columns = [*keys, "role", "timestamp_s"]
        op.create_index(op.f(f"ix_activities_{'_'.join(columns)}"), "activities", columns)
    for amount in ("cost", "size"):
        columns = ["wallet", "role", f"{amount}_units", *PLACES]
        op.create_index(f"ix_activities_wallet_{amount}", "activities", columns)
    op.create_index(
        "ix_activities_taken_cost",
        "activities",
        ["cost_class", "role", "timestamp_s", *PLACES],
        sqlite_where=sa.text("is_taker = 1"),
        postgresql_where=sa.text("is_taker"),
    )


def fill() -> None:
    """Set the role of each activity; that of a maker who bought is the default."""
    op.execute(
        "UPDATE activities SET role = CASE kind WHEN 'SPLIT' THEN 4 WHEN 'MERGE' THEN 5"
        " WHEN 'REDEEM' THEN 6 WHEN 'CONVERSION' THEN 7 ELSE"
        " CASE WHEN is_taker THEN 2 ELSE 0 END + CASE WHEN side = 'SELL' THEN 1 ELSE 0 END END"
        " WHERE kind <> 'TRADE' OR side <> 'BUY' OR is_taker"
    )
