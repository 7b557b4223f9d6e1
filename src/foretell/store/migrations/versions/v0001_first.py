"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "activities",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=True),
        sa.Column("side", sa.Text(), nullable=True),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("cost_units", sa.BigInteger(), nullable=False),
        sa.Column("is_taker", sa.Boolean(), nullable=False),
        sa.Column("timestamp_s", sa.BigInteger(), nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", "log_index", "part", name=op.f("pk_activities")),
    )
    with op.batch_alter_table("activities", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_activities_condition_id_timestamp_s"),
            ["condition_id", "timestamp_s"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_activities_timestamp_s"), ["timestamp_s"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_activities_wallet_timestamp_s"), ["wallet", "timestamp_s"], unique=False
        )

    op.create_table(
        "allowance_changes",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("spender", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("is_collateral", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint(
            "wallet", "spender", "is_collateral", "block_number", name=op.f("pk_allowance_changes")
        ),
    )
    with op.batch_alter_table("allowance_changes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_allowance_changes_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "allowances",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("spender", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("is_collateral", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", "spender", "is_collateral", name=op.f("pk_allowances")),
    )
    with op.batch_alter_table("allowances", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_allowances_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "answers",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("adapter", sa.Text(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("timestamp_s", sa.BigInteger(), nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", "log_index", "part", name=op.f("pk_answers")),
    )
    with op.batch_alter_table("answers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_answers_question_id"), ["question_id"], unique=False)

    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint(
            "chain_id",
            "address",
            "nonce",
            "generation",
            name=op.f("uq_api_keys_chain_id_address_nonce_generation"),
        ),
    )
    op.create_table(
        "balance_changes",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("asset", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("wallet", "asset", "block_number", name=op.f("pk_balance_changes")),
    )
    with op.batch_alter_table("balance_changes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_balance_changes_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "balances",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("asset", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", "asset", name=op.f("pk_balances")),
    )
    with op.batch_alter_table("balances", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_balances_asset"), ["asset"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_balances_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "blocks",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("block_hash", sa.Text(), nullable=False),
        sa.Column("parent_hash", sa.Text(), nullable=False),
        sa.Column("timestamp_s", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", name=op.f("pk_blocks")),
    )
    op.create_table(
        "canceled_orders",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("exchange", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "block_number", "log_index", "part", name=op.f("pk_canceled_orders")
        ),
    )
    op.create_table(
        "claims",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("claimed_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_claims")),
    )
    with op.batch_alter_table("claims", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_claims_request_id"), ["request_id"], unique=False)

    op.create_table(
        "conditions",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("oracle", sa.Text(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("token_yes", sa.Text(), nullable=False),
        sa.Column("token_no", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", "log_index", "part", name=op.f("pk_conditions")),
        sa.UniqueConstraint("condition_id", name=op.f("uq_conditions_condition_id")),
        sa.UniqueConstraint("token_no", name=op.f("uq_conditions_token_no")),
        sa.UniqueConstraint("token_yes", name=op.f("uq_conditions_token_yes")),
    )
    op.create_table(
        "event_tags",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tag_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("event_id", "tag_id", name=op.f("pk_event_tags")),
    )
    with op.batch_alter_table("event_tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_event_tags_tag_id"), ["tag_id"], unique=False)

    op.create_table(
        "events",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("creator", sa.Text(), nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("market_mode", sa.Text(), nullable=False),
        sa.Column("main_category_slug", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("resolution_source", sa.Text(), nullable=True),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_events")),
        sa.UniqueConstraint("slug", name=op.f("uq_events_slug")),
    )
    op.create_table(
        "exchange_fills",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("counterparty", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("cost_units", sa.BigInteger(), nullable=False),
        sa.Column("fee_units", sa.BigInteger(), nullable=False),
        sa.Column("is_taker", sa.Boolean(), nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "block_number", "log_index", "part", name=op.f("pk_exchange_fills")
        ),
    )
    with op.batch_alter_table("exchange_fills", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_exchange_fills_order_id"), ["order_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_exchange_fills_token_id_block_number"),
            ["token_id", "block_number"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_exchange_fills_tx_hash"), ["tx_hash"], unique=False)

    op.create_table(
        "fills",
        sa.Column("trade_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("fill_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("maker_order_id", sa.Text(), nullable=False),
        sa.Column("maker", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("is_yes", sa.Boolean(), nullable=False),
        sa.Column("price_ticks", sa.BigInteger(), nullable=False),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("making_units", sa.BigInteger(), nullable=False),
        sa.Column("taking_units", sa.BigInteger(), nullable=False),
        sa.Column("match_type", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("trade_id", "fill_index", name=op.f("pk_fills")),
    )
    with op.batch_alter_table("fills", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_fills_maker"), ["maker"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_fills_maker_order_id"), ["maker_order_id"], unique=False
        )

    op.create_table(
        "heartbeats",
        sa.Column("key_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "locked_collateral",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", name=op.f("pk_locked_collateral")),
    )
    with op.batch_alter_table("locked_collateral", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_locked_collateral_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "locked_collateral_changes",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint(
            "condition_id", "block_number", name=op.f("pk_locked_collateral_changes")
        ),
    )
    with op.batch_alter_table("locked_collateral_changes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_locked_collateral_changes_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "markets",
        sa.Column("market_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("market_key", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("outcome_yes", sa.Text(), nullable=False),
        sa.Column("outcome_no", sa.Text(), nullable=False),
        sa.Column("token_yes", sa.Text(), nullable=False),
        sa.Column("token_no", sa.Text(), nullable=False),
        sa.Column("exchange", sa.Text(), nullable=False),
        sa.Column("oracle", sa.Text(), nullable=False),
        sa.Column("resolution_type", sa.Text(), nullable=False),
        sa.Column("metadata_id", sa.Text(), nullable=False),
        sa.Column("metadata_uri", sa.Text(), nullable=False),
        sa.Column("icon", sa.Text(), nullable=False),
        sa.Column("is_neg_risk", sa.Boolean(), nullable=False),
        sa.Column("neg_risk_market_id", sa.Text(), nullable=True),
        sa.Column("neg_risk_request_id", sa.Text(), nullable=True),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        sa.Column("size_units_min", sa.BigInteger(), nullable=False),
        sa.Column("fee_rate_bps", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("market_id", name=op.f("pk_markets")),
        sa.UniqueConstraint("condition_id", name=op.f("uq_markets_condition_id")),
        sa.UniqueConstraint("slug", name=op.f("uq_markets_slug")),
        sa.UniqueConstraint("token_no", name=op.f("uq_markets_token_no")),
        sa.UniqueConstraint("token_yes", name=op.f("uq_markets_token_yes")),
    )
    with op.batch_alter_table("markets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_markets_event_id"), ["event_id"], unique=False)

    op.create_table(
        "orders",
        sa.Column("order_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("is_yes", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("maker", sa.Text(), nullable=False),
        sa.Column("signer", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("order_type", sa.Text(), nullable=False),
        sa.Column("price_ticks", sa.BigInteger(), nullable=False),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("matched_units", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("close_reason", sa.Text(), nullable=True),
        sa.Column("placed_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("taker", sa.Text(), nullable=False),
        sa.Column("maker_amount", sa.BigInteger(), nullable=False),
        sa.Column("taker_amount", sa.BigInteger(), nullable=False),
        sa.Column("expiration_s", sa.BigInteger(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.Column("fee_rate_bps", sa.BigInteger(), nullable=False),
        sa.Column("signature_type", sa.BigInteger(), nullable=False),
        sa.Column("profile", sa.BigInteger(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("order_id", name=op.f("pk_orders")),
    )
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_orders_condition_id_status"), ["condition_id", "status"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_orders_maker_sequence"), ["maker", "sequence"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_orders_signer_status"), ["signer", "status"], unique=False
        )

    op.create_table(
        "payouts",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("payout_yes", sa.BigInteger(), nullable=False),
        sa.Column("payout_no", sa.BigInteger(), nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.Column("timestamp_s", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", "log_index", "part", name=op.f("pk_payouts")),
        sa.UniqueConstraint("condition_id", name=op.f("uq_payouts_condition_id")),
    )
    op.create_table(
        "position_changes",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("token_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("cost_units", sa.BigInteger(), nullable=False),
        sa.Column("bought_units", sa.BigInteger(), nullable=False),
        sa.Column("spent_units", sa.BigInteger(), nullable=False),
        sa.Column("realized_units", sa.BigInteger(), nullable=False),
        sa.Column("changed_at_s", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint(
            "wallet", "token_id", "block_number", name=op.f("pk_position_changes")
        ),
    )
    with op.batch_alter_table("position_changes", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_position_changes_block_number"), ["block_number"], unique=False
        )

    op.create_table(
        "positions",
        sa.Column("wallet", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("token_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("cost_units", sa.BigInteger(), nullable=False),
        sa.Column("bought_units", sa.BigInteger(), nullable=False),
        sa.Column("spent_units", sa.BigInteger(), nullable=False),
        sa.Column("realized_units", sa.BigInteger(), nullable=False),
        sa.Column("changed_at_s", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("wallet", "token_id", name=op.f("pk_positions")),
    )
    with op.batch_alter_table("positions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_positions_block_number"), ["block_number"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_positions_condition_id"), ["condition_id"], unique=False
        )

    op.create_table(
        "projections",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_projections")),
    )
    op.create_table(
        "quote_points",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        sa.Column("best_bid_ticks", sa.BigInteger(), nullable=True),
        sa.Column("best_ask_ticks", sa.BigInteger(), nullable=True),
        sa.Column("last_price_ticks", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("condition_id", "minute", name=op.f("pk_quote_points")),
    )
    op.create_table(
        "quotes",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("ticks_per_one", sa.BigInteger(), nullable=False),
        sa.Column("best_bid_ticks", sa.BigInteger(), nullable=True),
        sa.Column("best_ask_ticks", sa.BigInteger(), nullable=True),
        sa.Column("last_price_ticks", sa.BigInteger(), nullable=True),
        sa.Column("last_side", sa.Text(), nullable=True),
        sa.Column("volume_units", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", name=op.f("pk_quotes")),
    )
    op.create_table(
        "raised_nonces",
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("exchange", sa.Text(), nullable=False),
        sa.Column("maker", sa.Text(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("block_number", "log_index", "part", name=op.f("pk_raised_nonces")),
    )
    op.create_table(
        "refused_orders",
        sa.Column("trade_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("order_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("part", sa.BigInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("is_blamed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("trade_id", "order_id", name=op.f("pk_refused_orders")),
    )
    op.create_table(
        "registration_tx_attempts",
        sa.Column("tx_hash", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("max_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("priority_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_hash", name=op.f("pk_registration_tx_attempts")),
    )
    with op.batch_alter_table("registration_tx_attempts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_registration_tx_attempts_tx_id"), ["tx_id"], unique=False
        )

    op.create_table(
        "registration_txs",
        sa.Column("tx_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("account_nonce", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("calldata", sa.Text(), nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("mined_hash", sa.Text(), nullable=True),
        sa.Column("block_number", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_id", name=op.f("pk_registration_txs")),
        sa.UniqueConstraint(
            "sender", "account_nonce", name=op.f("uq_registration_txs_sender_account_nonce")
        ),
    )
    with op.batch_alter_table("registration_txs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_registration_txs_status"), ["status"], unique=False)

    op.create_table(
        "relay_requests",
        sa.Column("transaction_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("submitter", sa.Text(), nullable=False),
        sa.Column("wallet", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("calldata", sa.Text(), nullable=False),
        sa.Column("operation", sa.BigInteger(), nullable=False),
        sa.Column("safe_nonce", sa.BigInteger(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.Column("metadata_label", sa.Text(), nullable=True),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("transaction_id", name=op.f("pk_relay_requests")),
        sa.UniqueConstraint("claim", name=op.f("uq_relay_requests_claim")),
    )
    with op.batch_alter_table("relay_requests", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_relay_requests_owner_created_at_ms"),
            ["owner", "created_at_ms"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_relay_requests_state"), ["state"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_relay_requests_submitter_created_at_ms"),
            ["submitter", "created_at_ms"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_relay_requests_wallet_digest"), ["wallet", "digest"], unique=False
        )

    op.create_table(
        "relayed_tx_attempts",
        sa.Column("tx_hash", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("max_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("priority_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_hash", name=op.f("pk_relayed_tx_attempts")),
    )
    with op.batch_alter_table("relayed_tx_attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_relayed_tx_attempts_tx_id"), ["tx_id"], unique=False)

    op.create_table(
        "relayed_txs",
        sa.Column("tx_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("account_nonce", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("calldata", sa.Text(), nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("mined_hash", sa.Text(), nullable=True),
        sa.Column("block_number", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_id", name=op.f("pk_relayed_txs")),
        sa.UniqueConstraint(
            "sender", "account_nonce", name=op.f("uq_relayed_txs_sender_account_nonce")
        ),
    )
    with op.batch_alter_table("relayed_txs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_relayed_txs_status"), ["status"], unique=False)

    op.create_table(
        "request_images",
        sa.Column("request_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("field", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", "field", name=op.f("pk_request_images")),
    )
    op.create_table(
        "request_txs",
        sa.Column("request_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.Column("is_verified", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", "item_id", name=op.f("pk_request_txs")),
    )
    op.create_table(
        "requests",
        sa.Column("request_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("creator", sa.Text(), nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("payload_hash", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("entered_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("images", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("register_results", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("metadata_updates", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("metadata_plan", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_requests")),
    )
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_requests_creator_created_at_ms"),
            ["creator", "created_at_ms"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_requests_status"), ["status"], unique=False)

    op.create_table(
        "settled_trades",
        sa.Column("trade_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("retry_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("is_given_up", sa.Boolean(), nullable=False),
        sa.Column("refusals", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trade_id", name=op.f("pk_settled_trades")),
    )
    with op.batch_alter_table("settled_trades", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_settled_trades_tx_id"), ["tx_id"], unique=False)

    op.create_table(
        "settlement_tx_attempts",
        sa.Column("tx_hash", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("max_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("priority_fee_wei", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_hash", name=op.f("pk_settlement_tx_attempts")),
    )
    with op.batch_alter_table("settlement_tx_attempts", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_settlement_tx_attempts_tx_id"), ["tx_id"], unique=False
        )

    op.create_table(
        "settlement_txs",
        sa.Column("tx_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("account_nonce", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("calldata", sa.Text(), nullable=False),
        sa.Column("gas", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("mined_hash", sa.Text(), nullable=True),
        sa.Column("block_number", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tx_id", name=op.f("pk_settlement_txs")),
        sa.UniqueConstraint(
            "sender", "account_nonce", name=op.f("uq_settlement_txs_sender_account_nonce")
        ),
    )
    with op.batch_alter_table("settlement_txs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_settlement_txs_status"), ["status"], unique=False)

    op.create_table(
        "tags",
        sa.Column("tag_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tag_id", name=op.f("pk_tags")),
        sa.UniqueConstraint("slug", name=op.f("uq_tags_slug")),
    )
    op.create_table(
        "trades",
        sa.Column("trade_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("is_yes", sa.Boolean(), nullable=False),
        sa.Column("taker_order_id", sa.Text(), nullable=False),
        sa.Column("taker", sa.Text(), nullable=False),
        sa.Column("taker_owner", sa.Text(), nullable=False),
        sa.Column("side", sa.Text(), nullable=False),
        sa.Column("size_units", sa.BigInteger(), nullable=False),
        sa.Column("cost_units", sa.BigInteger(), nullable=False),
        sa.Column("taker_fill_units", sa.BigInteger(), nullable=False),
        sa.Column("bucket_index", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tx_hash", sa.Text(), nullable=False),
        sa.Column("matched_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("trade_id", name=op.f("pk_trades")),
    )
    with op.batch_alter_table("trades", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_trades_condition_id_matched_at_ms_sequence"),
            ["condition_id", "matched_at_ms", "sequence"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_trades_status_matched_at_ms_sequence"),
            ["status", "matched_at_ms", "sequence"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_trades_taker_matched_at_ms_sequence"),
            ["taker", "matched_at_ms", "sequence"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_trades_taker_order_id"),
            ["taker_order_id"],
            unique=False,
        )
