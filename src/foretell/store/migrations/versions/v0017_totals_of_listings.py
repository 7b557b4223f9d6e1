"""Keep the totals by which markets and events are listed, and find both by their times."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

AMOUNTS = (
    *("volume_units", "day_units", "week_units", "month_units", "year_units"),
    "liquidity_units",
)
PRICES = ("hour_price", "day_price", "week_price", "month_price")
PARTIAL = (
    *(
        (f"open_{name}", name, "closed_at_s IS NULL")
        for name in (*AMOUNTS, "evenness", "ends_at_ms")
    ),
    ("closed", "closed_at_s", "closed_at_s IS NOT NULL"),
)
TIMES = {
    "events": ("created_at_ms", "updated_at_ms", "ends_at_ms"),
    "markets": ("created_at_ms", "updated_at_ms"),
}


def upgrade() -> None:
    """Add the tables, which the indexer fills, and the indexes."""
    op.create_table(
        "market_totals",
        sa.Column("market_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        *_amounts(),
        *(sa.Column(name, sa.Double(), nullable=True) for name in PRICES),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("failed_units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("market_id", name=op.f("pk_market_totals")),
    )
    op.create_index(op.f("ix_market_totals_event_id"), "market_totals", ["event_id"])
    op.create_table(
        "event_totals",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        *_amounts(),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_event_totals")),
    )
    for table, row_id in (("market_totals", "market_id"), ("event_totals", "event_id")):
        for name in (*AMOUNTS, "evenness"):
            op.create_index(op.f(f"ix_{table}_{name}_{row_id}"), table, [name, row_id])
        for name, column, condition in PARTIAL:
            where = sa.text(condition)
            op.create_index(
                f"ix_{table}_{name}",
                table,
                [column, row_id],
                sqlite_where=where,
                postgresql_where=where,
            )
    op.create_table(
        "listing_cursors",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_listing_cursors")),
    )
    for table, row_id in (("events", "event_id"), ("markets", "market_id")):
        for name in TIMES[table]:
            op.create_index(op.f(f"ix_{table}_{name}_{row_id}"), table, [name, row_id])


def _amounts() -> list[sa.Column[Any]]:
    amounts = [sa.Column(name, sa.BigInteger(), nullable=False) for name in AMOUNTS]
    return [
        *amounts,
        sa.Column("evenness", sa.Double(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("closed_at_s", sa.BigInteger(), nullable=True),
    ]
