"""Keep what reads added up: the supply of each token."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

COLLATERAL = "0"
HALF_BITS = 32
ROWS_PER_FETCH = 10_000

SUPPLIES = sa.table("supplies", sa.column("token_id"), sa.column("units"))


def upgrade() -> None:
    """Add the table, filled from the balances."""
    op.create_table(
        "supplies",
        sa.Column("token_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_supplies")),
    )
    fill()


def fill() -> None:
    """Add up the balances of each token; a sum may exceed 63 bits, so its halves are added up apart."""
    rows = op.get_bind().execute(
        sa.text(
            "SELECT asset, sum(units >> 32) AS high, sum(units & 4294967295) AS low"
            " FROM balances WHERE asset <> :collateral GROUP BY asset"
        ),
        {"collateral": COLLATERAL},
    )
    while found := rows.fetchmany(ROWS_PER_FETCH):
        op.bulk_insert(
            SUPPLIES,
            [
                {"token_id": asset, "units": str((int(high) << HALF_BITS) + int(low))}
                for asset, high, low in found
            ],
        )
