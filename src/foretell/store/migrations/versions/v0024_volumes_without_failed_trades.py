"""Have the next round of totals compute markets, and so their events and series, by the rules of today.

Failed trades leave their volumes, and their liquidity is added up in integers instead of floating point.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

UNSETTLED = -1
"""The time of no quote: the totals of such a row are computed again."""


def upgrade() -> None:
    """Mark the totals of the markets with failed trades or with liquidity."""
    fill()


def fill() -> None:
    """Mark them: a round then adds what changes to events and series, too."""
    names = "seen_ms", "failed_units", "liquidity_units"
    totals = sa.table("market_totals", *(sa.column(name) for name in names))
    is_older = sa.or_(totals.c.failed_units > 0, totals.c.liquidity_units > 0)
    op.execute(totals.update().where(is_older).values(seen_ms=UNSETTLED))
