"""Keep what has failed to settle by minute and by day, and let the points of histories count all that was traded.

A trade that fails then changes two rows. It was taken off every point since its match, all in one transaction.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

MOST = 2**63 - 1
DAY_MINUTES = 1_440


def upgrade() -> None:
    """Add the table, filled from the trades, and give back to the points what was taken off."""
    op.create_table(
        "failed_volumes",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("length_minutes", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "condition_id", "length_minutes", "first_minute", name=op.f("pk_failed_volumes")
        ),
        sqlite_with_rowid=False,
    )
    fill()


def fill() -> None:
    """Add up the failed trades, whose sum may exceed 63 bits, so its halves are added up apart."""
    for length in (1, DAY_MINUTES):
        op.execute(_SUMS.format(length=length, units=_BOUNDED.format("cost_units")))
    op.execute(_POINTS)


_BOUNDED = f"""
    CASE WHEN CAST(sum({{0}} >> 32) AS BIGINT) + (CAST(sum({{0}} & 4294967295) AS BIGINT) >> 32) >= 2147483648
        THEN {MOST}
        ELSE CAST(sum({{0}} >> 32) AS BIGINT) * 4294967296 + CAST(sum({{0}} & 4294967295) AS BIGINT)
    END
"""
_SUMS = """
    INSERT INTO failed_volumes (condition_id, length_minutes, first_minute, units)
    SELECT condition_id, {length}, matched_at_ms / 60000 / {length} * {length}, {units}
    FROM trades WHERE status = 'FAILED'
    GROUP BY condition_id, matched_at_ms / 60000 / {length} * {length}
"""

_FAILED_UNTIL = f"""
    SELECT {_BOUNDED.format("units")} FROM (
        SELECT units FROM failed_volumes AS d
        WHERE d.condition_id = quote_points.condition_id AND d.length_minutes = {DAY_MINUTES}
            AND d.first_minute < quote_points.minute / {DAY_MINUTES} * {DAY_MINUTES}
        UNION ALL
        SELECT units FROM failed_volumes AS m
        WHERE m.condition_id = quote_points.condition_id AND m.length_minutes = 1
            AND m.first_minute >= quote_points.minute / {DAY_MINUTES} * {DAY_MINUTES}
            AND m.first_minute <= quote_points.minute
    ) AS failed
"""  # noqa: S608 - the migration's own text
"""What has failed of the trades until the end of a point's minute: days before its own, and minutes of that."""

_POINTS = f"""
    UPDATE quote_points SET volume_units = CASE
        WHEN volume_units > {MOST} - coalesce(({_FAILED_UNTIL}), 0) THEN {MOST}
        ELSE volume_units + coalesce(({_FAILED_UNTIL}), 0)
    END
    WHERE condition_id IN (SELECT condition_id FROM failed_volumes)
"""  # noqa: S608 - the migration's own text
