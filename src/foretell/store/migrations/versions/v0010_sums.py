"""Keep sums by wallet, so that leaderboards and totals are read and not added up.

What older rows add to the totals is added up here. The standings are built by the indexer, which begins with
the first block.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

TRADED_MARKETS = """
    INSERT INTO traded_markets (block_number, log_index, part, wallet, condition_id)
    SELECT block_number, log_index, part, wallet, condition_id FROM (
        SELECT block_number, log_index, part, wallet, condition_id, row_number() OVER (
            PARTITION BY wallet, condition_id ORDER BY block_number, log_index, part
        ) AS place FROM activities WHERE kind = 'TRADE'
    ) AS placed WHERE place = 1
"""

TRADING_TOTAL_CHANGES = """
    INSERT INTO trading_total_changes (wallet, trades, markets, volume_units, block_number)
    SELECT wallet,
        CAST(sum(trades) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT),
        CAST(sum(markets) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT),
        CAST(sum(volume_units) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT),
        block_number
    FROM (
        SELECT a.wallet, a.block_number, count(*) AS trades,
            count(first.wallet) AS markets, sum(a.cost_units) AS volume_units
        FROM activities AS a LEFT JOIN traded_markets AS first
            ON first.block_number = a.block_number AND first.log_index = a.log_index
            AND first.part = a.part
        WHERE a.kind = 'TRADE' GROUP BY a.wallet, a.block_number
    ) AS by_block
"""

TRADING_TOTALS = """
    INSERT INTO trading_totals (wallet, trades, markets, volume_units, block_number)
    SELECT wallet, trades, markets, volume_units, block_number FROM (
        SELECT wallet, trades, markets, volume_units, block_number, row_number() OVER (
            PARTITION BY wallet ORDER BY block_number DESC
        ) AS place FROM trading_total_changes
    ) AS placed WHERE place = 1
"""

VOLUME_BY_MINUTE = """
    INSERT INTO volume_by_minute (condition_id, minute, total_units)
    SELECT condition_id, minute,
        CAST(sum(units) OVER (PARTITION BY condition_id ORDER BY minute) AS BIGINT)
    FROM (
        SELECT condition_id, matched_at_ms / 60000 AS minute, sum(cost_units) AS units
        FROM trades WHERE status <> 'FAILED' GROUP BY condition_id, matched_at_ms / 60000
    ) AS by_minute
"""

POINTS = """
    UPDATE quote_points SET volume_units = coalesce((
        SELECT total_units FROM volume_by_minute AS v
        WHERE v.condition_id = quote_points.condition_id AND v.minute <= quote_points.minute
        ORDER BY v.minute DESC LIMIT 1
    ), 0)
"""

FAILED = """
    UPDATE quotes SET failed_units = coalesce((
        SELECT CAST(sum(cost_units) AS BIGINT) FROM trades
        WHERE trades.condition_id = quotes.condition_id AND trades.status = 'FAILED'
    ), 0)
"""


def upgrade() -> None:
    """Add the tables and columns, and fill those that rows of other tables explain."""
    _add_rankings()
    _add_totals()
    op.drop_index(op.f("ix_balances_asset"), table_name="balances")
    op.create_index(
        op.f("ix_balances_asset_units_wallet"), "balances", ["asset", "units", "wallet"]
    )
    op.drop_index(op.f("ix_positions_condition_id"), table_name="positions")
    op.create_index(
        op.f("ix_positions_condition_id_wallet"), "positions", ["condition_id", "wallet"]
    )
    for table, column in (("quote_points", "volume_units"), ("quotes", "failed_units")):
        op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index(op.f("ix_quote_points_minute"), "quote_points", ["minute"])
    op.create_index(
        op.f("ix_locked_collateral_units_condition_id"),
        "locked_collateral",
        ["units", "condition_id"],
    )
    fill()


def fill() -> None:
    """Add up what older rows add to the sums."""
    for statement in (TRADED_MARKETS, TRADING_TOTAL_CHANGES, TRADING_TOTALS):
        op.execute(statement)
    op.create_table(
        "volume_by_minute",
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("total_units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", "minute"),
    )
    for statement in (VOLUME_BY_MINUTE, POINTS, FAILED):
        op.execute(statement)
    op.drop_table("volume_by_minute")


def _add_rankings() -> None:
    op.create_table(
        "ranking_cursors",
        sa.Column("period", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.Column("at_s", sa.BigInteger(), nullable=False),
        sa.Column("market_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("period", name=op.f("pk_ranking_cursors")),
    )
    op.create_table(
        "ranking_marks",
        sa.Column("period", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_price", sa.Text(), nullable=True),
        sa.Column("next_category", sa.Text(), nullable=True),
        sa.Column("next_seen_ms", sa.BigInteger(), nullable=True),
        sa.Column("done_wallet", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("period", "condition_id", name=op.f("pk_ranking_marks")),
    )
    op.create_index(
        "ix_ranking_marks_pending",
        "ranking_marks",
        ["period"],
        sqlite_where=sa.text("next_price IS NOT NULL"),
        postgresql_where=sa.text("next_price IS NOT NULL"),
    )
    op.create_index("ix_ranking_marks_seen", "ranking_marks", ["period", "seen_ms"])

    op.create_table(
        "standings",
        sa.Column("period", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("category", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("volume_units", sa.BigInteger(), nullable=False),
        sa.Column("gain_units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("period", "category", "wallet", name=op.f("pk_standings")),
    )
    op.create_index(
        "ix_standings_gain", "standings", ["period", "category", "gain_units", "wallet"]
    )
    op.create_index(
        "ix_standings_nothing",
        "standings",
        ["period"],
        sqlite_where=sa.text("volume_units = 0 AND gain_units = 0"),
        postgresql_where=sa.text("volume_units = 0 AND gain_units = 0"),
    )
    op.create_index(
        "ix_standings_volume", "standings", ["period", "category", "volume_units", "wallet"]
    )

    op.create_table(
        "wins",
        sa.Column("period", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("token_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("realized_units", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("period", "wallet", "token_id", name=op.f("pk_wins")),
    )
    op.create_index(
        "ix_wins_category", "wins", ["period", "category", "realized_units", "wallet", "token_id"]
    )
    op.create_index("ix_wins_gain", "wins", ["period", "realized_units", "wallet", "token_id"])


def _add_totals() -> None:
    op.create_table(
        "traded_markets",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "block_number", "log_index", "part", name=op.f("pk_traded_markets")
        ),
        sa.UniqueConstraint(
            "wallet", "condition_id", name=op.f("uq_traded_markets_wallet_condition_id")
        ),
    )
    op.create_table(
        "trading_total_changes",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("trades", sa.BigInteger(), nullable=False),
        sa.Column("markets", sa.BigInteger(), nullable=False),
        sa.Column("volume_units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("wallet", "block_number", name=op.f("pk_trading_total_changes")),
    )
    op.create_index(
        op.f("ix_trading_total_changes_block_number"), "trading_total_changes", ["block_number"]
    )

    op.create_table(
        "trading_totals",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("trades", sa.BigInteger(), nullable=False),
        sa.Column("markets", sa.BigInteger(), nullable=False),
        sa.Column("volume_units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", name=op.f("pk_trading_totals")),
    )
    op.create_index(op.f("ix_trading_totals_block_number"), "trading_totals", ["block_number"])
