"""Wallets that may have held collateral before the first indexed block.

`asked_wallets` are written by trading, and `wallet_readings` by the indexer.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata

asked_wallets: Final = sa.Table(
    "asked_wallets",
    metadata,
    key("wallet"),
    integer("asked_at_ms"),
    sa.Index(None, "asked_at_ms"),
)

wallet_readings: Final = sa.Table(
    "wallet_readings",
    metadata,
    key("wallet"),
    integer("block_number"),
    sa.Index(None, "block_number"),
)
