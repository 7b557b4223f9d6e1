"""Transactions sent to the chain, and what they are sent for.

`settled_trades`, `refused_orders`, `barred_wallets` and `wallet_gas` are written by settlement, `relay_requests` and
`relay_hours` by the relayer. Each product that sends has its own pair of transaction tables: `settlement_`, `relayed_` (the relayer) and
`registration_` (creation).
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import flag, integer, key, metadata, text


def sent_txs(product: str) -> sa.Table:
    """Return the table of one product's transactions; an account nonce is used once."""
    return sa.Table(
        f"{product}_txs",
        metadata,
        key("tx_id"),
        text("sender"),
        integer("account_nonce"),
        text("target"),
        text("calldata"),
        integer("gas"),
        text("status"),
        text("failure", nullable=True),
        text("mined_hash", nullable=True),
        integer("block_number", nullable=True),
        integer("created_at_ms"),
        integer("updated_at_ms"),
        sa.UniqueConstraint("sender", "account_nonce"),
        sa.Index(None, "status"),
    )


def tx_attempts(product: str) -> sa.Table:
    """Return the table of every signed attempt: any of them may be the one that is mined."""
    return sa.Table(
        f"{product}_tx_attempts",
        metadata,
        key("tx_hash"),
        text("tx_id"),
        text("raw"),
        integer("max_fee_wei"),
        integer("priority_fee_wei"),
        integer("created_at_ms"),
        sa.Index(None, "tx_id"),
    )


settlement_txs: Final = sent_txs("settlement")
settlement_tx_attempts: Final = tx_attempts("settlement")
relayed_txs: Final = sent_txs("relayed")
relayed_tx_attempts: Final = tx_attempts("relayed")
registration_txs: Final = sent_txs("registration")
registration_tx_attempts: Final = tx_attempts("registration")

settled_trades: Final = sa.Table(
    "settled_trades",
    metadata,
    key("trade_id"),
    text("tx_id", nullable=True),
    integer("attempts"),
    integer("retry_at_ms"),
    text("failure", nullable=True),
    flag("is_given_up"),
    integer("refusals"),
    sa.Index(None, "tx_id"),
)

refused_orders: Final = sa.Table(
    "refused_orders",
    metadata,
    key("trade_id"),
    key("order_id"),
    integer("part"),
    text("cause"),
    flag("is_blamed"),
    sa.Index(None, "order_id"),
)
"""Orders that keep a trade from settling; those of one part, from 1, leave it together."""

barred_wallets: Final = sa.Table(
    "barred_wallets",
    metadata,
    key("wallet"),
    flag("is_barred"),
    text("cause"),
    integer("offences"),
    integer("barred_at_ms"),
    integer("probe_at_ms", nullable=True),
    integer("probes"),
    text("probe_tx_id", nullable=True),
)
"""Wallets that are or were barred from matching; the engine reads it."""

wallet_gas: Final = sa.Table(
    "wallet_gas", metadata, key("wallet"), key("day", sa.BigInteger), integer("gas")
)
"""What failed settlements of a wallet cost on a day of UTC."""

COUNTED: Final = sa.text("state <> 'STATE_INVALID'")
"""Requests that count toward the budgets: all but those that were refused before they were sent."""

relay_requests: Final = sa.Table(
    "relay_requests",
    metadata,
    key("transaction_id"),
    text("kind"),
    text("owner"),
    text("submitter"),
    text("wallet"),
    text("target"),
    text("calldata"),
    integer("operation"),
    integer("safe_nonce", nullable=True),
    text("signature"),
    text("digest"),
    integer("gas"),
    text("metadata_label", nullable=True),
    text("claim", nullable=True),
    text("state"),
    text("failure", nullable=True),
    integer("created_at_ms"),
    integer("updated_at_ms"),
    sa.UniqueConstraint("claim"),
    sa.Index(None, "state", "updated_at_ms"),
    sa.Index(None, "wallet", "digest"),
    sa.Index(None, "owner", "created_at_ms"),
    sa.Index(None, "submitter", "created_at_ms"),
    sa.Index(
        "ix_relay_requests_counted",
        "owner",
        "created_at_ms",
        "gas",
        "state",
        sqlite_where=COUNTED,
        postgresql_where=COUNTED,
    ),
)
"""A claim is unique among open requests: a wallet's nonce."""

relay_hours: Final = sa.Table(
    "relay_hours",
    metadata,
    key("account"),
    key("hour", sa.BigInteger),
    integer("relays"),
    integer("gas"),
)
"""What an account submitted for other owners in an hour, counted from 1970; the zero address has all submissions."""
