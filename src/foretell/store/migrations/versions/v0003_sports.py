"""Add the games of events, their markets, and what they name."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables of sports."""
    op.create_table(
        "series",
        sa.Column("series_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("sport_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("series_id", name=op.f("pk_series")),
        sa.UniqueConstraint("slug", name=op.f("uq_series_slug")),
    )
    op.create_table(
        "sports",
        sa.Column("sport_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("resolution_source", sa.Text(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sport_id", name=op.f("pk_sports")),
        sa.UniqueConstraint("slug", name=op.f("uq_sports_slug")),
    )
    op.create_table(
        "sports_events",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sport_id", sa.BigInteger(), nullable=True),
        sa.Column("series_id", sa.BigInteger(), nullable=True),
        sa.Column("game_id", sa.Text(), nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_sports_events")),
    )
    with op.batch_alter_table("sports_events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sports_events_game_id"), ["game_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_sports_events_series_id"), ["series_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_sports_events_sport_id"), ["sport_id"], unique=False)

    op.create_table(
        "sports_markets",
        sa.Column("market_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("market_type", sa.Text(), nullable=True),
        sa.Column("line", sa.Text(), nullable=True),
        sa.Column("group_item_title", sa.Text(), nullable=True),
        sa.Column("group_item_threshold", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("market_id", name=op.f("pk_sports_markets")),
    )
    with op.batch_alter_table("sports_markets", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_sports_markets_market_type"), ["market_type"], unique=False
        )

    op.create_table(
        "teams",
        sa.Column("team_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("league_slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("abbreviation", sa.Text(), nullable=False),
        sa.Column("logo", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", name=op.f("pk_teams")),
        sa.UniqueConstraint("league_slug", "name", name=op.f("uq_teams_league_slug_name")),
    )
