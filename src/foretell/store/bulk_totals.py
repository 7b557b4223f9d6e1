"""The totals and volumes of wallets in a generated history, added up by the database: the same rows that the indexer writes, sooner."""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Database

_FIRST_TRADES: Final = sa.text("""
    INSERT INTO traded_markets (block_number, log_index, part, wallet, condition_id)
    SELECT block_number, log_index, part, wallet, condition_id FROM (
        SELECT block_number, log_index, part, wallet, condition_id, row_number() OVER (
            PARTITION BY wallet, condition_id ORDER BY block_number, log_index, part
        ) AS place FROM activities WHERE kind = 'TRADE'
    ) AS placed WHERE place = 1
""")
_HISTORY: Final = sa.text("""
    INSERT INTO trading_total_changes (wallet, trades, markets, volume_units, block_number)
    SELECT wallet, trades, markets,
        CASE WHEN high + (low >> 32) >= 2147483648 THEN 9223372036854775807
        ELSE (high + (low >> 32)) * 4294967296 + (low & 4294967295) END,
        block_number
    FROM (
        SELECT wallet, block_number,
            CAST(sum(trades) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS trades,
            CAST(sum(markets) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS markets,
            CAST(sum(high) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS high,
            CAST(sum(low) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS low
        FROM (
            SELECT a.wallet, a.block_number, count(*) AS trades, count(first.wallet) AS markets,
                sum(a.cost_units >> 32) AS high, sum(a.cost_units & 4294967295) AS low
            FROM activities AS a LEFT JOIN traded_markets AS first
                ON first.block_number = a.block_number AND first.log_index = a.log_index
                AND first.part = a.part
            WHERE a.kind = 'TRADE' GROUP BY a.wallet, a.block_number
        ) AS by_block
    ) AS summed
""")
"""A volume is at most what a column holds, as the indexer's; SQLite has no wider sums, so halves are added up."""
_TOTALS: Final = sa.text("""
    INSERT INTO trading_totals (wallet, trades, markets, volume_units, block_number)
    SELECT wallet, trades, markets, volume_units, block_number FROM (
        SELECT wallet, trades, markets, volume_units, block_number, row_number() OVER (
            PARTITION BY wallet ORDER BY block_number DESC
        ) AS place FROM trading_total_changes
    ) AS placed WHERE place = 1
""")
_VOLUMES: Final = sa.text("""
    INSERT INTO traded_volumes (wallet, exchange, block_number, traded_at_s, volume_high, volume_low)
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
""")


async def fill_trading_totals(database: Database) -> None:
    """Write first trades, totals and their history, and volumes, of which there are none yet, from all trades."""
    async with database.writing() as tx:
        for statement in (_FIRST_TRADES, _HISTORY, _TOTALS, _VOLUMES):
            await tx.execute(statement)
