"""Keep the tags of each sport, and find its series by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


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


def fill() -> None:
    """Find the tags of each sport in the events that have it."""
    op.execute(
        "INSERT INTO sport_tags (sport_id, tag_id) SELECT DISTINCT s.sport_id, t.tag_id"
        " FROM sports_events AS s JOIN event_tags AS t ON t.event_id = s.event_id"
        " WHERE s.sport_id IS NOT NULL"
    )
