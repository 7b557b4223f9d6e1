"""Keep what reads added up or sorted: the supplies of tokens, the volumes of wallets by exchange, and classes of costs."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

COLLATERAL = "0"
HALF_BITS = 32
CLASS_BITS = 3
ROWS_PER_FETCH = 10_000

VOLUMES = ("traded_volumes", "odd_traded_volumes")
"""The tables of even and of odd generations of sums."""
SUPPLIES = sa.table("supplies", sa.column("token_id"), sa.column("units"))


def upgrade() -> None:
    """Add the tables, filled from balances and activities.

    A rebuild of sums that was not finished has no volumes of what it has added up, so it begins again.
    """
    op.create_table(
        "supplies",
        sa.Column("token_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_supplies")),
    )
    for table in VOLUMES:
        key = ("wallet", "exchange", "block_number")
        op.create_table(
            table,
            sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
            sa.Column("exchange", sa.Text(), autoincrement=False, nullable=False),
            sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
            *(
                sa.Column(name, sa.BigInteger(), nullable=False)
                for name in ("traded_at_s", "volume_high", "volume_low")
            ),
            sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
            sqlite_with_rowid=False,
        )
    op.execute("DELETE FROM sum_generations WHERE name = 'next'")
    op.add_column(
        "activities",
        sa.Column("cost_class", sa.BigInteger(), nullable=False, server_default="0"),
    )
    fill()
    for table in VOLUMES:
        op.create_index(op.f(f"ix_{table}_block_number"), table, ["block_number"])
    op.create_index(
        "ix_activities_taken_cost",
        "activities",
        ["cost_class", "timestamp_s", "block_number", "log_index", "part"],
        sqlite_where=sa.text("is_taker = 1"),
        postgresql_where=sa.text("is_taker"),
    )


def fill() -> None:
    """Add up the balances of each token, and the trades of each wallet on each exchange.

    A sum may exceed 63 bits, so its halves are added up apart.
    """
    _fill_supplies()
    live = op.get_bind().scalar(
        sa.text("SELECT generation FROM sum_generations WHERE name = 'live'")
    )
    op.execute(_VOLUMES.format(table=VOLUMES[int(live or 0) % 2]))
    _fill_classes()


_VOLUMES = """
    INSERT INTO {table} (wallet, exchange, block_number, traded_at_s, volume_high, volume_low)
    SELECT wallet, exchange, block_number, traded_at_s, high + (low >> 32), low & 4294967295 FROM (
        SELECT wallet, exchange, block_number, traded_at_s,
            CAST(sum(high) OVER (PARTITION BY wallet, exchange ORDER BY block_number) AS BIGINT) AS high,
            CAST(sum(low) OVER (PARTITION BY wallet, exchange ORDER BY block_number) AS BIGINT) AS low
        FROM (
            SELECT a.wallet, coalesce(m.exchange, '') AS exchange, a.block_number,
                max(a.timestamp_s) AS traded_at_s,
                sum(a.cost_units >> 32) AS high, sum(a.cost_units & 4294967295) AS low
            FROM activities AS a LEFT JOIN markets AS m ON m.condition_id = a.condition_id
            WHERE a.kind = 'TRADE'
            GROUP BY a.wallet, coalesce(m.exchange, ''), a.block_number
        ) AS by_block
    ) AS summed
    ORDER BY wallet, exchange, block_number
"""


def _fill_classes() -> None:
    """Set the class of each activity, class by class along the index of costs; that of costs of 0 is the default."""
    connection = op.get_bind()
    greatest = connection.scalar(sa.text("SELECT max(cost_units) FROM activities")) or 0
    first, number = 1, 1
    while first <= greatest:
        width = 1 << max(0, first.bit_length() - CLASS_BITS)
        connection.execute(
            sa.text(
                "UPDATE activities SET cost_class = :number"
                " WHERE cost_units >= :first AND cost_units <= :last"
            ),
            {"number": number, "first": first, "last": first + width - 1},
        )
        first, number = first + width, number + 1


def _fill_supplies() -> None:
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
