"""Keys, and the projection of the journal.

`api_keys`, `readonly_keys`, `profiles` and what is acknowledged are written by trading, `signed_requests` by the edge of several APIs, and all other tables by the
engine.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import flag, integer, key, metadata, sorted_text, text

LIVE: Final = sa.text("status = 'LIVE'")
CLOSED_UNASKED: Final = sa.text(
    "close_reason IN ('expired', 'self_trade', 'market_resolved', 'underfunded',"
    " 'canceled_on_chain', 'nonce_raised', 'reverts_on_chain', 'wallet_barred',"
    " 'settlement_behind')"
)
"""The condition of an order that left the book without a request; the index of those has it too."""

ATTRIBUTED: Final = sa.text("attributed_code IS NOT NULL")
"""The condition of an order that a builder brought: few are, and the index costs others nothing."""


def while_live(column: str) -> sa.Index:
    """Return an index of the live orders alone: few of all orders are, and a closed one costs it nothing.

    A query uses it if it has the status as a literal: see `is_live`.
    """
    name = f"ix_orders_live_{column}"
    return sa.Index(name, column, sqlite_where=LIVE, postgresql_where=LIVE)


api_keys: Final = sa.Table(
    "api_keys",
    metadata,
    key("key_id"),
    integer("chain_id"),
    text("address"),
    text("nonce"),
    integer("generation"),
    text("status"),
    integer("created_at_ms"),
    integer("revoked_at_ms", nullable=True),
    integer("signed_at_s", nullable=True),
    sa.UniqueConstraint("chain_id", "address", "nonce", "generation"),
)

readonly_keys: Final = sa.Table(
    "readonly_keys",
    metadata,
    key("key_hash"),
    text("address"),
    text("salt"),
    integer("created_at_ms"),
    integer("deleted_at_ms", nullable=True),
    sa.Index(None, "address"),
)

profiles: Final = sa.Table(
    "profiles",
    metadata,
    key("address"),
    text("safe"),
    text("name"),
    sorted_text("name_key", nullable=True),
    text("bio"),
    text("image"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("name_key"),
    sa.Index(None, "safe"),
)

acknowledgements: Final = sa.Table(
    "acknowledgements",
    metadata,
    key("address"),
    key("notification_id"),
    integer("type"),
    integer("at_ms"),
)

acknowledged_times: Final = sa.Table(
    "acknowledged_times",
    metadata,
    key("address"),
    key("type", sa.BigInteger),
    integer("until_ms"),
)

signed_requests: Final = sa.Table(
    "signed_requests",
    metadata,
    key("signature"),
    integer("expires_at_ms"),
    integer("status", nullable=True),
    text("answer", nullable=True),
    text("client", nullable=True),
    text("content_hash", nullable=True),
    sa.Index(None, "expires_at_ms"),
    sa.Index(None, "client", "expires_at_ms"),
)

orders: Final = sa.Table(
    "orders",
    metadata,
    key("order_id"),
    integer("sequence"),
    text("condition_id"),
    text("token_id"),
    flag("is_yes"),
    text("owner"),
    text("maker"),
    text("signer"),
    text("side"),
    text("order_type"),
    integer("price_ticks"),
    integer("ticks_per_one"),
    integer("size_units"),
    integer("matched_units"),
    text("status"),
    text("close_reason", nullable=True),
    integer("placed_at_ms"),
    integer("updated_at_ms"),
    text("salt"),
    text("taker"),
    integer("maker_amount"),
    integer("taker_amount"),
    integer("expiration_s"),
    integer("nonce"),
    integer("fee_rate_bps"),
    integer("signature_type"),
    integer("profile"),
    sa.Column("signature", sa.LargeBinary, nullable=False),
    integer("timestamp_ms", nullable=True),
    text("metadata_word", nullable=True),
    text("builder_code", nullable=True),
    text("attributed_code", nullable=True),
    while_live("condition_id"),
    while_live("signer"),
    sa.Index(
        "ix_orders_attributed",
        "attributed_code",
        sqlite_where=ATTRIBUTED,
        postgresql_where=ATTRIBUTED,
    ),
    sa.Index(
        "ix_orders_closed_unasked",
        "signer",
        "updated_at_ms",
        sqlite_where=CLOSED_UNASKED,
        postgresql_where=CLOSED_UNASKED,
    ),
)

is_live: Final = orders.c.status == sa.literal("LIVE", literal_execute=True)
"""The condition of a live order, in the form that the indexes of live orders have."""

trades: Final = sa.Table(
    "trades",
    metadata,
    key("trade_id"),
    integer("sequence"),
    text("condition_id"),
    text("token_id"),
    flag("is_yes"),
    text("taker_order_id"),
    text("taker"),
    text("taker_owner"),
    text("side"),
    integer("size_units"),
    integer("cost_units"),
    integer("taker_fill_units"),
    integer("bucket_index"),
    text("status"),
    text("tx_hash"),
    integer("matched_at_ms"),
    integer("updated_at_ms"),
    sa.Index(None, "status", "matched_at_ms", "sequence"),
    sa.Index(None, "taker", "matched_at_ms", "sequence"),
    sa.Index(None, "taker_order_id", "trade_id"),
    sa.Index(None, "condition_id", "matched_at_ms", "sequence"),
)

fills: Final = sa.Table(
    "fills",
    metadata,
    key("trade_id"),
    key("fill_index", sa.BigInteger),
    text("maker_order_id"),
    text("maker"),
    text("owner"),
    text("side"),
    text("token_id"),
    flag("is_yes"),
    integer("price_ticks"),
    integer("ticks_per_one"),
    integer("size_units"),
    integer("making_units"),
    integer("taking_units"),
    text("match_type"),
    integer("matched_at_ms"),
    integer("sequence"),
    sa.Index("ix_fills_made", "maker", "matched_at_ms", "sequence", "trade_id"),
    sa.Index(None, "maker_order_id", "matched_at_ms", "sequence"),
)

quotes: Final = sa.Table(
    "quotes",
    metadata,
    key("condition_id"),
    integer("ticks_per_one"),
    integer("best_bid_ticks", nullable=True),
    integer("best_ask_ticks", nullable=True),
    integer("last_price_ticks", nullable=True),
    text("last_side", nullable=True),
    integer("volume_units"),
    integer("updated_at_ms"),
    integer("failed_units"),
)

ANY_MINUTE: Final = sa.text("minute >= 0")
"""PostgreSQL would walk back through the points of all markets for the last one of a market, which has a key."""

quote_points: Final = sa.Table(
    "quote_points",
    metadata,
    key("condition_id"),
    key("minute", sa.BigInteger),
    integer("ticks_per_one"),
    integer("best_bid_ticks", nullable=True),
    integer("best_ask_ticks", nullable=True),
    integer("last_price_ticks", nullable=True),
    integer("volume_units"),
    sa.Index(
        "ix_quote_points_any_minute",
        "minute",
        sqlite_where=ANY_MINUTE,
        postgresql_where=ANY_MINUTE,
    ),
    sqlite_with_rowid=False,
)
"""SQLite stores the points of a market side by side, so that a history finds each with one lookup."""

OF_ANY_MINUTE: Final = quote_points.c.minute >= sa.literal(0, literal_execute=True)
"""The condition of the index of all markets' points, true of each: a query along it names the condition."""

failed_volumes: Final = sa.Table(
    "failed_volumes",
    metadata,
    key("condition_id"),
    key("length_minutes", sa.BigInteger),
    key("first_minute", sa.BigInteger),
    integer("units"),
    sqlite_with_rowid=False,
)

heartbeats: Final = sa.Table(
    "heartbeats",
    metadata,
    key("key_id"),
    text("address"),
    integer("started_at_ms"),
)

projections: Final = sa.Table(
    "projections",
    metadata,
    key("name"),
    integer("sequence"),
)

projection_ends: Final = sa.Table(
    "projection_ends",
    metadata,
    key("name"),
    integer("sequence"),
    text("digest"),
)
"""The last command that a reader has projected, by its digest: the journal has the same, or went on apart."""
