"""Creation requests, and the markets they lead to; written by creation."""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import document, flag, integer, key, metadata, text

requests: Final = sa.Table(
    "requests",
    metadata,
    key("request_id"),
    text("creator"),
    integer("chain_id"),
    text("payload_hash"),
    text("nonce"),
    text("source"),
    integer("expires_at_ms"),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    integer("entered_at_ms"),
    text("status"),
    text("error_message", nullable=True),
    sa.Column("payload", sa.LargeBinary, nullable=True),
    text("signature", nullable=True),
    text("images_hash", nullable=True),
    document("images"),
    document("plan", nullable=True),
    document("register_results"),
    document("metadata_updates"),
    document("metadata_plan"),
    document("wait", nullable=True),
    sa.Index(None, "creator", "created_at_ms"),
    sa.Index(None, "status", "source", "expires_at_ms"),
    sa.Index(None, "status", "expires_at_ms"),
)

request_txs: Final = sa.Table(
    "request_txs",
    metadata,
    key("request_id"),
    key("item_id"),
    text("tx_hash"),
    flag("is_verified"),
)

request_images: Final = sa.Table(
    "request_images",
    metadata,
    key("request_id"),
    key("field"),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

claims: Final = sa.Table(
    "claims",
    metadata,
    key("name"),
    text("request_id"),
    integer("claimed_at_ms"),
    sa.Index(None, "request_id"),
)

events: Final = sa.Table(
    "events",
    metadata,
    key("event_id", sa.BigInteger),
    text("slug"),
    text("title"),
    text("creator"),
    integer("chain_id"),
    text("market_mode"),
    text("main_category_slug"),
    text("rules"),
    text("resolution_source", nullable=True),
    text("image"),
    integer("ends_at_ms"),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("slug"),
    sa.Index(None, "created_at_ms", "event_id"),
    sa.Index(None, "updated_at_ms", "event_id"),
    sa.Index(None, "ends_at_ms", "event_id"),
)

tags: Final = sa.Table(
    "tags",
    metadata,
    key("tag_id", sa.BigInteger),
    text("label"),
    text("slug"),
    integer("created_at_ms"),
    integer("event_count"),
    sa.UniqueConstraint("slug"),
    sa.Index(None, "event_count", "tag_id"),
)

event_tags: Final = sa.Table(
    "event_tags",
    metadata,
    key("event_id", sa.BigInteger),
    key("tag_id", sa.BigInteger),
    sa.Index(None, "tag_id"),
)

markets: Final = sa.Table(
    "markets",
    metadata,
    key("market_id", sa.BigInteger),
    integer("event_id"),
    text("condition_id"),
    text("question_id"),
    text("market_key"),
    text("request_id"),
    text("slug"),
    text("question"),
    text("title"),
    text("outcome_yes"),
    text("outcome_no"),
    text("token_yes"),
    text("token_no"),
    text("exchange"),
    text("oracle"),
    text("resolution_type"),
    text("metadata_id"),
    text("metadata_uri"),
    text("icon"),
    flag("is_neg_risk"),
    text("neg_risk_market_id", nullable=True),
    text("neg_risk_request_id", nullable=True),
    integer("ticks_per_one"),
    integer("size_units_min"),
    integer("fee_rate_bps"),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("condition_id"),
    sa.UniqueConstraint("slug"),
    sa.UniqueConstraint("token_yes"),
    sa.UniqueConstraint("token_no"),
    sa.Index(None, "event_id"),
    sa.Index(None, "created_at_ms", "market_id"),
    sa.Index(None, "updated_at_ms", "market_id"),
)

halted_markets: Final = sa.Table(
    "halted_markets", metadata, key("condition_id"), text("request_id"), integer("since_ms")
)
"""Markets that a reorganization of the chain removed."""
