"""Every table, once.

Each module holds the tables that one product writes; everyone may read. Amounts are integers in
base units, times integers whose name says the unit. Token ids are decimal strings, addresses and
hashes lower-case hex, so that a row reads like the wire.
"""

from foretell.store.tables.columns import metadata
from foretell.store.tables.creation import (
    claims,
    event_tags,
    events,
    markets,
    request_images,
    request_txs,
    requests,
    tags,
)
from foretell.store.tables.indexing import (
    activities,
    allowance_changes,
    allowances,
    balance_changes,
    balances,
    blocks,
    conditions,
    exchange_fills,
    locked_collateral,
    locked_collateral_changes,
    payouts,
    position_changes,
    positions,
)
from foretell.store.tables.sending import (
    registration_tx_attempts,
    registration_txs,
    relay_requests,
    relayed_tx_attempts,
    relayed_txs,
    settled_trades,
    settlement_tx_attempts,
    settlement_txs,
)
from foretell.store.tables.trading import (
    api_keys,
    fills,
    heartbeats,
    orders,
    projections,
    quote_points,
    quotes,
    trades,
)

__all__ = [
    "activities",
    "allowance_changes",
    "allowances",
    "api_keys",
    "balance_changes",
    "balances",
    "blocks",
    "claims",
    "conditions",
    "event_tags",
    "events",
    "exchange_fills",
    "fills",
    "heartbeats",
    "locked_collateral",
    "locked_collateral_changes",
    "markets",
    "metadata",
    "orders",
    "payouts",
    "position_changes",
    "positions",
    "projections",
    "quote_points",
    "quotes",
    "registration_tx_attempts",
    "registration_txs",
    "relay_requests",
    "relayed_tx_attempts",
    "relayed_txs",
    "request_images",
    "request_txs",
    "requests",
    "settled_trades",
    "settlement_tx_attempts",
    "settlement_txs",
    "tags",
    "trades",
]
