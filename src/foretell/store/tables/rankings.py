"""Sums by wallet that leaderboards are read from; written by the indexer.

A standing is what a wallet has gained and traded in a period, in one category of markets or in all of
them. It is the difference of two running sums: the one up to now, and the one up to the period's
beginning. `ranking_cursors` says how far each of the running sums has come, and `ranking_marks` at which
price it values the tokens of a condition. `rank_counts` has the number of standings in each bucket of gains and of
volumes (`domain/portfolio/rank_buckets.py`), so that the rank of a wallet is not counted wallet by wallet. Of a bucket
with many wallets, `rank_parts` has the number in each of its parts, and `rank_ties` those of one amount whose addresses
begin with the same byte.

A rebuild computes all of it again beside the sums that are read, as another generation: `sum_generations` has the `live`
one, and the `next` one while a rebuild runs. Every `period` here is the days of the period and 1,000 times the generation.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata, text

IS_PENDING: Final = sa.text("next_price IS NOT NULL")

standings: Final = sa.Table(
    "standings",
    metadata,
    key("period", sa.BigInteger),
    key("category"),
    key("wallet"),
    integer("volume_units"),
    integer("gain_units"),
    sa.Index("ix_standings_gain", "period", "category", "gain_units", "wallet"),
    sa.Index("ix_standings_volume", "period", "category", "volume_units", "wallet"),
)

rank_counts: Final = sa.Table(
    "rank_counts",
    metadata,
    key("period", sa.BigInteger),
    key("category"),
    key("counted"),
    key("bucket", sa.BigInteger),
    integer("wallets"),
    sqlite_with_rowid=False,
)

rank_parts: Final = sa.Table(
    "rank_parts",
    metadata,
    key("period", sa.BigInteger),
    key("category"),
    key("counted"),
    key("first_units", sa.BigInteger),
    integer("wallets"),
    sqlite_with_rowid=False,
)

rank_ties: Final = sa.Table(
    "rank_ties",
    metadata,
    key("period", sa.BigInteger),
    key("category"),
    key("counted"),
    key("units", sa.BigInteger),
    key("prefix", sa.BigInteger),
    integer("wallets"),
    sqlite_with_rowid=False,
)

wins: Final = sa.Table(
    "wins",
    metadata,
    key("period", sa.BigInteger),
    key("wallet"),
    key("token_id"),
    text("category"),
    integer("realized_units"),
    sa.Index("ix_wins_gain", "period", "realized_units", "wallet", "token_id"),
    sa.Index("ix_wins_category", "period", "category", "realized_units", "wallet", "token_id"),
)

ranking_cursors: Final = sa.Table(
    "ranking_cursors",
    metadata,
    key("period", sa.BigInteger),
    integer("block_number"),
    integer("at_s"),
    integer("market_id"),
)

ranking_marks: Final = sa.Table(
    "ranking_marks",
    metadata,
    key("period", sa.BigInteger),
    key("condition_id"),
    text("price"),
    text("category"),
    integer("seen_ms"),
    text("next_price", nullable=True),
    text("next_category", nullable=True),
    integer("next_seen_ms", nullable=True),
    text("done_wallet", nullable=True),
    sa.Index("ix_ranking_marks_seen", "period", "seen_ms"),
    sa.Index(
        "ix_ranking_marks_pending",
        "period",
        sqlite_where=IS_PENDING,
        postgresql_where=IS_PENDING,
    ),
)

sum_generations: Final = sa.Table(
    "sum_generations",
    metadata,
    key("name"),
    integer("generation"),
    integer("block_number"),
)
"""The generations of sums; `block_number` is the last block of the next one's totals of wallets."""
