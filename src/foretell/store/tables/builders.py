"""Builders: their keys and the rates of their fees; who referred a wallet, and the rates of referrers' shares.

`builder_keys` and `referred_wallets` are written by trading, and the rates by the operator's commands.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata, text

builder_keys: Final = sa.Table(
    "builder_keys",
    metadata,
    key("key_id"),
    text("address"),
    text("salt"),
    integer("created_at_ms"),
    integer("deleted_at_ms", nullable=True),
    sa.Index(None, "address"),
)

builder_rates: Final = sa.Table(
    "builder_rates",
    metadata,
    key("builder_code"),
    key("from_ms", sa.BigInteger),
    integer("taker_share_bps"),
    integer("maker_flat_bps"),
)

referred_wallets: Final = sa.Table(
    "referred_wallets",
    metadata,
    key("wallet"),
    text("referrer"),
    integer("from_s"),
    sa.Index(None, "referrer"),
)

referral_rates: Final = sa.Table(
    "referral_rates",
    metadata,
    key("from_ms", sa.BigInteger),
    integer("share_bps"),
)
