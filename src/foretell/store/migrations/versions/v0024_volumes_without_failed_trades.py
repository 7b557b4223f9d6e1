"""Have the next round of totals take failed trades off the volumes of markets, and so of their events and series."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

UNSETTLED = -1
"""The time of no quote: the totals of such a row are computed again."""


def upgrade() -> None:
    """Mark the totals of the markets with failed trades."""
    fill()


def fill() -> None:
    """Mark them: a round then adds what changes to events and series, too."""
    totals = sa.table("market_totals", sa.column("seen_ms"), sa.column("failed_units"))
    op.execute(totals.update().where(totals.c.failed_units > 0).values(seen_ms=UNSETTLED))
