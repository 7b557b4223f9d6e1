"""The indexed chain; written by the indexer.

Every row has its block. A table of current values has a history table: the same columns, one row for
each block that changed a value, as it was after that block. So a reorg follows one rule for all tables
(`store/index/unwind.py`). Supplies alone have neither: they are added up again from the balances that it restores.
"""

from typing import Any, Final

import sqlalchemy as sa

from foretell.store.tables.columns import flag, integer, key, metadata, place, text

blocks: Final = sa.Table(
    "blocks",
    metadata,
    key("block_number", sa.BigInteger),
    text("block_hash"),
    text("parent_hash"),
    integer("timestamp_s"),
)

conditions: Final = sa.Table(
    "conditions",
    metadata,
    *place(),
    text("condition_id"),
    text("oracle"),
    text("question_id"),
    text("token_yes"),
    text("token_no"),
    sa.UniqueConstraint("condition_id"),
    sa.UniqueConstraint("token_yes"),
    sa.UniqueConstraint("token_no"),
)

payouts: Final = sa.Table(
    "payouts",
    metadata,
    *place(),
    text("condition_id"),
    integer("payout_yes"),
    integer("payout_no"),
    text("tx_hash"),
    integer("timestamp_s"),
    sa.UniqueConstraint("condition_id"),
)

CHARGED: Final = sa.text("fee_units > 0")
"""The condition of a fill that paid a fee: where none are charged, the index has no rows."""

exchange_fills: Final = sa.Table(
    "exchange_fills",
    metadata,
    *place(),
    text("order_id"),
    text("wallet"),
    text("counterparty"),
    text("side"),
    text("token_id"),
    integer("size_units"),
    integer("cost_units"),
    integer("fee_units"),
    flag("is_taker"),
    text("tx_hash"),
    sa.Index(None, "tx_hash"),
    sa.Index(None, "order_id"),
    sa.Index(None, "token_id", "block_number"),
    sa.Index("ix_exchange_fills_charged", "wallet", sqlite_where=CHARGED, postgresql_where=CHARGED),
)

IS_CHARGED: Final = exchange_fills.c.fee_units > sa.literal(0, literal_execute=True)
"""The same condition for a query, in the form that the index has."""

canceled_orders: Final = sa.Table(
    "canceled_orders",
    metadata,
    *place(),
    text("exchange"),
    text("order_id"),
)

raised_nonces: Final = sa.Table(
    "raised_nonces",
    metadata,
    *place(),
    text("exchange"),
    text("maker"),
    integer("nonce"),
)

answers: Final = sa.Table(
    "answers",
    metadata,
    *place(),
    text("adapter"),
    text("question_id"),
    text("step"),
    text("account"),
    text("price"),
    integer("timestamp_s"),
    text("tx_hash"),
    sa.Index(None, "question_id"),
)

IS_TAKER: Final = sa.text("is_taker = 1")
"""As SQLAlchemy writes it for SQLite, which has no boolean values."""

activities: Final = sa.Table(
    "activities",
    metadata,
    *place(),
    text("wallet"),
    text("kind"),
    text("condition_id"),
    text("token_id", nullable=True),
    text("side", nullable=True),
    integer("size_units"),
    integer("cost_units"),
    flag("is_taker"),
    integer("timestamp_s"),
    text("tx_hash"),
    integer("cost_class"),
    integer("role"),
    sa.Index(None, "wallet", "timestamp_s"),
    sa.Index(
        "ix_activities_wallet_cost",
        *("wallet", "role", "cost_units", "block_number", "log_index", "part"),
    ),
    sa.Index(
        "ix_activities_wallet_size",
        *("wallet", "role", "size_units", "block_number", "log_index", "part"),
    ),
    sa.Index(
        "ix_activities_taken_cost",
        *("cost_class", "role", "timestamp_s", "block_number", "log_index", "part"),
        sqlite_where=IS_TAKER,
        postgresql_where=sa.text("is_taker"),
    ),
    sa.Index(None, "wallet", "role", "timestamp_s"),
    sa.Index(None, "wallet", "condition_id", "role", "timestamp_s"),
    sa.Index(None, "condition_id", "role", "timestamp_s"),
    sa.Index(None, "role", "timestamp_s"),
    sa.Index(None, "cost_units"),
    sa.Index(None, "size_units"),
)


def _balance() -> tuple[sa.Column[Any], ...]:
    return key("wallet"), key("asset"), integer("units")


balances: Final = sa.Table(
    "balances",
    metadata,
    *_balance(),
    integer("block_number"),
    sa.Index(None, "asset", "units", "wallet"),
    sa.Index(None, "block_number"),
)

balance_changes: Final = sa.Table(
    "balance_changes",
    metadata,
    *_balance(),
    key("block_number", sa.BigInteger),
    sa.Index(None, "block_number"),
)


def _allowance() -> tuple[sa.Column[Any], ...]:
    return key("wallet"), key("spender"), key("is_collateral", sa.Boolean), integer("units")


allowances: Final = sa.Table(
    "allowances",
    metadata,
    *_allowance(),
    integer("block_number"),
    sa.Index(None, "block_number"),
)

allowance_changes: Final = sa.Table(
    "allowance_changes",
    metadata,
    *_allowance(),
    key("block_number", sa.BigInteger),
    sa.Index(None, "block_number"),
)


def _position() -> tuple[sa.Column[Any], ...]:
    return (
        key("wallet"),
        key("token_id"),
        text("condition_id"),
        integer("size_units"),
        integer("cost_units"),
        integer("bought_units"),
        integer("spent_units"),
        integer("realized_units"),
        integer("changed_at_s"),
    )


positions: Final = sa.Table(
    "positions",
    metadata,
    *_position(),
    integer("block_number"),
    sa.Index(None, "condition_id", "wallet"),
    sa.Index(None, "block_number"),
)

position_changes: Final = sa.Table(
    "position_changes",
    metadata,
    *_position(),
    key("block_number", sa.BigInteger),
    sa.Index(None, "block_number"),
)

supplies: Final = sa.Table("supplies", metadata, key("token_id"), text("units"))
"""The sum of the balances of each token, as text: it may exceed 63 bits."""

locked_collateral: Final = sa.Table(
    "locked_collateral",
    metadata,
    key("condition_id"),
    integer("units"),
    integer("block_number"),
    sa.Index(None, "block_number"),
    sa.Index(None, "units", "condition_id"),
)

locked_collateral_changes: Final = sa.Table(
    "locked_collateral_changes",
    metadata,
    key("condition_id"),
    integer("units"),
    key("block_number", sa.BigInteger),
    sa.Index(None, "block_number"),
)

released_collateral: Final = sa.Table(
    "released_collateral",
    metadata,
    key("condition_id"),
    integer("units"),
    integer("block_number"),
    sa.Index(None, "block_number"),
)
"""What conversions have released of a condition, which is locked again if the condition resolves to Yes."""

released_collateral_changes: Final = sa.Table(
    "released_collateral_changes",
    metadata,
    key("condition_id"),
    integer("units"),
    key("block_number", sa.BigInteger),
    sa.Index(None, "block_number"),
)


def _totals() -> tuple[sa.Column[Any], ...]:
    return key("wallet"), integer("trades"), integer("markets"), integer("volume_units")


def _trading_tables(prefix: str) -> tuple[sa.Table, sa.Table, sa.Table, sa.Table]:
    """Return the tables of wallets' first trades, of their totals and the history of those, and of their volumes.

    A volume is `volume_high` times 2^32, plus `volume_low`: it may exceed 63 bits.
    """
    return (
        sa.Table(
            f"{prefix}traded_markets",
            metadata,
            *place(),
            text("wallet"),
            text("condition_id"),
            sa.UniqueConstraint("wallet", "condition_id"),
        ),
        sa.Table(
            f"{prefix}trading_totals",
            metadata,
            *_totals(),
            integer("block_number"),
            sa.Index(None, "block_number"),
        ),
        sa.Table(
            f"{prefix}trading_total_changes",
            metadata,
            *_totals(),
            key("block_number", sa.BigInteger),
            sa.Index(None, "block_number"),
        ),
        sa.Table(
            f"{prefix}traded_volumes",
            metadata,
            key("wallet"),
            key("exchange"),
            key("block_number", sa.BigInteger),
            integer("traded_at_s"),
            integer("volume_high"),
            integer("volume_low"),
            sa.Index(None, "block_number"),
            sqlite_with_rowid=False,
        ),
    )


traded_markets, trading_totals, trading_total_changes, traded_volumes = _trading_tables("")

ODD: Final = "odd_"
"""Totals of an odd generation of sums have tables of their own (`sum_generations`)."""

(
    odd_traded_markets,
    odd_trading_totals,
    odd_trading_total_changes,
    odd_traded_volumes,
) = _trading_tables(ODD)
