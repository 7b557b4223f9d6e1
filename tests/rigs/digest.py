"""Hashes of a treasury, and of the whole state of an engine as plain values.

Two states with the same picture treat every further command alike. So lists whose order decides
something (queues, the orders of a wallet, the accounts of a wallet) keep it, and what is only looked
up is sorted.
"""

import hashlib
from typing import Any

import msgspec

from foretell.domain.exchange.book import Book, LiveOrder
from foretell.domain.exchange.ledger import Ledger
from foretell.domain.exchange.state import Market, State
from foretell.domain.treasury.snapshot import encode_treasury
from foretell.domain.treasury.treasury import Treasury
from foretell.domain.values.hexadecimal import keccak256


def digest(state: State) -> str:
    """Return a hash that two states share exactly when they are the same."""
    return keccak256(msgspec.msgpack.encode(picture(state))).hex()


def picture(state: State) -> dict[str, Any]:
    """Return everything that a later command may depend on."""
    return {
        "markets": [_market(market) for market in state.market_by_id.values()],
        "live": sorted(state.live_orders),
        "latest_ms": state.latest_ms,
        "placements": list(state.placement_by_order.values()),
        "unsettled": [
            (trade_id, state.unsettled_trades[trade_id])
            for trade_id in sorted(state.unsettled_trades)
        ],
        "expiries": sorted(entry for entry in state._expiries if entry[1] in state.live_orders),
        "observed": (state.observed_block, state.observed_hash),
        "observed_parts": state.observed_parts,
        "canceled_orders": sorted(state.canceled_orders),
        "maker_nonces": sorted((*key, nonce) for key, nonce in state.maker_nonces.items()),
        "touched": list(state._touched),
        "allocations": state.allocations,
        "ledger": _ledger(state.ledger),
    }


def _market(market: Market) -> dict[str, Any]:
    return {
        "opened": market.opened,
        "rules": market.rules,
        "is_open": market.is_open,
        "last": (market.last_price_ticks, market.last_side, market.changed_at_ms),
        "spent": sorted(market.forgotten_order_ids),
        "touched": list(market.touched),
        "book": _book(market.book),
    }


def _book(book: Book) -> dict[str, Any]:
    return {
        "ticks_per_one": book.ticks_per_one,
        "best": (book.best_bid(), book.best_ask()),
        "bids": book.levels(is_bid=True),
        "asks": book.levels(is_bid=False),
        "orders": [_order(order) for order in book.orders()],
    }


def _order(order: LiveOrder) -> list[Any]:
    links = {"next", "previous"}
    return [getattr(order, name) for name in LiveOrder.__struct_fields__ if name not in links]


def _ledger(ledger: Ledger) -> dict[str, Any]:
    return {
        "accounts": [
            (
                wallet,
                asset,
                account.confirmed_units,
                account.credit_units,
                account.debit_units,
                account.reserved_units,
                list(account.orders),
            )
            for wallet in sorted(ledger._accounts_by_wallet)
            for asset, account in ledger._accounts_by_wallet[wallet].items()
        ],
        "allowances": sorted((*key, units) for key, units in ledger._allowances.items()),
    }


def treasury_digest(treasury: Treasury) -> str:
    """Return the SHA-256 of a treasury's bytes as 64 hex digits."""
    return hashlib.sha256(encode_treasury(treasury)).hexdigest()
