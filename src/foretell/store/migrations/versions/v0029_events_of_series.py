"""Find the newest events of a series in their order: PostgreSQL walked those of all series, the newest first."""

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Give the index of the series the order of its events."""
    op.drop_index(op.f("ix_sports_events_series_id"), table_name="sports_events")
    columns = ["series_id", "event_id"]
    op.create_index(op.f("ix_sports_events_series_id_event_id"), "sports_events", columns)
