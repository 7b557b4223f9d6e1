"""Read long histories along indexes, and keep the totals of tags and series."""

from collections import Counter
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

SERIES = sa.table(
    "series_totals", *(sa.column(name) for name in ("series_id", "volume_units", "open_events"))
)


def upgrade() -> None:
    """Add the columns, the table and the indexes, and fill those that other tables explain."""
    for name in ("matched_at_ms", "sequence"):
        op.add_column("fills", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column(
        "tags", sa.Column("event_count", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.create_table(
        "series_totals",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("volume_units", sa.Text(), nullable=False),
        sa.Column("open_events", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", name=op.f("pk_series_totals")),
    )
    for table, places in (("rank_parts", ("first_units",)), ("rank_ties", ("units", "prefix"))):
        keys = ("period", "category", "counted", *places)
        op.create_table(
            table,
            *(_key(name) for name in keys),
            sa.Column("wallets", sa.BigInteger(), nullable=False),
            sa.PrimaryKeyConstraint(*keys, name=op.f(f"pk_{table}")),
            sqlite_with_rowid=False,
        )
    fill()
    op.create_index(op.f("ix_tags_event_count_tag_id"), "tags", ["event_count", "tag_id"])
    op.drop_index(op.f("ix_fills_maker"), table_name="fills")
    op.create_index("ix_fills_made", "fills", ["maker", "matched_at_ms", "sequence", "trade_id"])
    op.drop_index(op.f("ix_quote_points_minute"), table_name="quote_points")
    _create_partial("ix_quote_points_any_minute", "quote_points", ["minute"], "minute >= 0")
    _create_partial("ix_exchange_fills_charged", "exchange_fills", ["wallet"], "fee_units > 0")
    op.create_index(
        op.f("ix_activities_wallet_condition_id_timestamp_s"),
        "activities",
        ["wallet", "condition_id", "timestamp_s"],
    )
    _create_partial(
        "ix_activities_other", "activities", ["wallet", "kind", "timestamp_s"], "kind <> 'TRADE'"
    )


def fill() -> None:
    """Repeat the time of each trade in its fills, and add up the totals."""
    op.execute(
        "UPDATE fills SET matched_at_ms = t.matched_at_ms, sequence = t.sequence"
        " FROM trades AS t WHERE t.trade_id = fills.trade_id"
    )
    op.execute(
        "UPDATE tags SET event_count = ("
        "SELECT count(*) FROM event_tags AS e WHERE e.tag_id = tags.tag_id)"
    )
    rows = op.get_bind().execute(
        sa.text(
            "SELECT s.series_id, t.volume_units, t.closed_at_s FROM sports_events AS s"
            " JOIN event_totals AS t ON t.event_id = s.event_id WHERE s.series_id IS NOT NULL"
        )
    )
    volumes: Counter[int] = Counter()
    open_events: Counter[int] = Counter()
    for series_id, volume_units, closed_at_s in rows:
        volumes[series_id] += volume_units
        open_events[series_id] += closed_at_s is None
    op.bulk_insert(
        SERIES,
        [
            {"series_id": each, "volume_units": str(units), "open_events": open_events[each]}
            for each, units in volumes.items()
        ],
    )


def _key(name: str) -> sa.Column[Any]:
    kind = sa.Text() if name in {"category", "counted"} else sa.BigInteger()
    return sa.Column(name, kind, autoincrement=False, nullable=False)


def _create_partial(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
