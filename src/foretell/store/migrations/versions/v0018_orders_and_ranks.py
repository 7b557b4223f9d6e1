"""List markets and events by texts and prices along indexes, and count standings in buckets."""

from collections import Counter

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"

TEXTS = ("slug", "title")
PRICES = {"best_bid": "best_bid_ticks", "last_price": "last_price_ticks"}
TOTALS = {
    "market_totals": ("market_id", "markets", {"slug": "slug", "title": "question"}),
    "event_totals": ("event_id", "events", {"slug": "slug", "title": "title"}),
}
BUCKET_BITS = 7
ROWS_PER_FETCH = 10_000


COUNTS = sa.table(
    "rank_counts",
    *(sa.column(name) for name in ("period", "category", "counted", "bucket", "wallets")),
)


def upgrade() -> None:
    """Add the columns and the counts, with what older rows have in them, and the indexes."""
    sorted_text = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    for table in TOTALS:
        for name in TEXTS:
            column = sa.Column(name, sorted_text, nullable=False, server_default="")
            op.add_column(table, column)
    for name in PRICES:
        op.add_column("market_totals", sa.Column(name, sa.Double(), nullable=True))
    op.create_table(
        "rank_counts",
        sa.Column("period", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("category", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("counted", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("wallets", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "period", "category", "counted", "bucket", name=op.f("pk_rank_counts")
        ),
        sqlite_with_rowid=False,
    )
    fill()
    for table, (row_id, _, _) in TOTALS.items():
        _create_indexes(table, row_id, TEXTS)
    _create_indexes("market_totals", "market_id", tuple(PRICES))
    op.drop_index("ix_standings_nothing", table_name="standings")


def fill() -> None:
    """Fill the columns from the tables that they repeat, and count the standings."""
    for table, (row_id, source, columns) in TOTALS.items():
        values = ", ".join(
            f"{name} = (SELECT {column} FROM {source}"  # noqa: S608 - names are constants
            f" WHERE {source}.{row_id} = {table}.{row_id})"
            for name, column in columns.items()
        )
        op.execute(f"UPDATE {table} SET {values}")  # noqa: S608 - names are constants
    for name, ticks in PRICES.items():
        op.execute(
            f"UPDATE market_totals SET {name} = ("  # noqa: S608 - names are constants
            f"SELECT CAST(q.{ticks} AS DOUBLE PRECISION) / CAST(q.ticks_per_one AS DOUBLE PRECISION)"
            " FROM markets AS m JOIN quotes AS q ON q.condition_id = m.condition_id"
            " WHERE m.market_id = market_totals.market_id)"
        )
    rows = op.get_bind().execute(
        sa.text("SELECT period, category, volume_units, gain_units FROM standings"),
        execution_options={"yield_per": ROWS_PER_FETCH},
    )
    wallets: Counter[tuple[int, str, str, int]] = Counter()
    for period, category, volume_units, gain_units in rows:
        wallets[period, category, "gain", _bucket_of(gain_units)] += 1
        if volume_units > 0:
            wallets[period, category, "volume", _bucket_of(volume_units)] += 1
    names = [column.name for column in COUNTS.c]
    op.bulk_insert(
        COUNTS, [dict(zip(names, (*key, count), strict=True)) for key, count in wallets.items()]
    )


def _create_indexes(table: str, row_id: str, names: tuple[str, ...]) -> None:
    is_open = sa.text("closed_at_s IS NULL")
    for name in names:
        op.create_index(op.f(f"ix_{table}_{name}_{row_id}"), table, [name, row_id])
        op.create_index(
            f"ix_{table}_open_{name}",
            table,
            [name, row_id],
            sqlite_where=is_open,
            postgresql_where=is_open,
        )


def _bucket_of(units: int) -> int:
    size = abs(units)
    dropped = max(0, size.bit_length() - BUCKET_BITS)
    bucket = (dropped << (BUCKET_BITS - 1)) + (size >> dropped)
    return bucket if units >= 0 else -bucket
