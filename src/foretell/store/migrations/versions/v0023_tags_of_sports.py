"""Keep the tags of each sport, find its series by an index, and order the points of quotes by market on SQLite."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

POINTS = "quote_points"
ANY_MINUTE = "ix_quote_points_any_minute"


def upgrade() -> None:
    """Add the table, filled from the events of sports, and the index."""
    op.create_table(
        "sport_tags",
        sa.Column("sport_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tag_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("sport_id", "tag_id", name=op.f("pk_sport_tags")),
    )
    fill()
    op.create_index(op.f("ix_series_sport_id_series_id"), "series", ["sport_id", "series_id"])
    if op.get_bind().dialect.name == "sqlite":
        _order_points()


def fill() -> None:
    """Find the tags of each sport in the events that have it."""
    op.execute(
        "INSERT INTO sport_tags (sport_id, tag_id) SELECT DISTINCT s.sport_id, t.tag_id"
        " FROM sports_events AS s JOIN event_tags AS t ON t.event_id = s.event_id"
        " WHERE s.sport_id IS NOT NULL"
    )


def _order_points() -> None:
    """Store the points in the order of their key: SQLite then finds one with one lookup, beside those of its market.

    PostgreSQL has no such tables.
    """
    op.drop_index(ANY_MINUTE, POINTS)
    op.rename_table(POINTS, "points_by_time")
    op.create_table(
        POINTS,
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=True)
            for name in ("best_bid_ticks", "best_ask_ticks", "last_price_ticks")
        ),
        sa.Column("volume_units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", "minute", name=op.f("pk_quote_points")),
        sqlite_with_rowid=False,
    )
    names = (
        "condition_id, minute, ticks_per_one, best_bid_ticks, best_ask_ticks, last_price_ticks,"
        " volume_units"
    )
    op.execute(
        f"INSERT INTO quote_points ({names}) SELECT {names} FROM points_by_time"  # noqa: S608 - the migration's own names
        " ORDER BY condition_id, minute"
    )
    op.drop_table("points_by_time")
    op.create_index(ANY_MINUTE, POINTS, ["minute"], sqlite_where=sa.text("minute >= 0"))
