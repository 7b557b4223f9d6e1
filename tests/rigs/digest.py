"""Hashes of a treasury, and of the whole state of an engine as plain values.

Two states with the same picture treat every further command alike. So lists whose order decides
something (queues, the orders of a wallet, the accounts of a wallet) keep it, and what is only looked
up is sorted.
"""

import hashlib
from typing import Any

import msgspec

from foretell.domain.exchange.book import Book
from foretell.domain.exchange.ledger import Ledger, LiveOrder
from foretell.domain.exchange.state import Market, State, UnsettledTrade
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
            (trade_id, _unsettled(state.unsettled_trades[trade_id]))
            for trade_id in sorted(state.unsettled_trades)
        ],
        "expiries": sorted(entry for entry in state._expiries if entry[1] in state.live_orders),
        "observed": (state.observed_block, state.observed_hash),
        "observed_parts": state.observed_parts,
        "canceled_orders": [sorted(state.canceled_orders), sorted(state.canceled_earlier)],
        "maker_nonces": sorted((*key, nonce) for key, nonce in state.maker_nonces.items()),
        "touched": len(state._touched),
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
        "book": _book(market.book),
    }


def _book(book: Book[LiveOrder]) -> dict[str, Any]:
    return {
        "ticks_per_one": book.ticks_per_one,
        "best": (book.best_bid(), book.best_ask()),
        "bids": book.levels(is_bid=True),
        "asks": book.levels(is_bid=False),
        "orders": [_order(order) for order in book.orders()],
    }


def _order(order: LiveOrder) -> list[Any]:
    names = [
        *("order_id", "condition_id", "maker", "signer", "owner", "side", "is_yes", "is_bid"),
        *("price_ticks", "yes_price_ticks", "size_units", "remaining_units", "order_type"),
        *("leaves_at_s", "placed_at_ms", "nonce", "trade_ids"),
    ]
    return [getattr(order, name) for name in names]


def _unsettled(unsettled: UnsettledTrade) -> list[Any]:
    names = ("trade", "order", "has_budget", "status", "tx_hash", "moves", "signer_by_order")
    return [getattr(unsettled, name) for name in names]


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
                [order.order_id for order in account.orders()],
            )
            for wallet, accounts in sorted(ledger.accounts_by_wallet.items())
            for asset, account in accounts.account_by_asset.items()
        ],
        "allowances": sorted((*key, units) for key, units in ledger.allowances()),
        "allowed": [
            (
                wallet,
                sorted(accounts.collateral_allowance_by_exchange.items()),
                sorted(accounts.token_allowance_by_exchange.items()),
            )
            for wallet, accounts in sorted(ledger.accounts_by_wallet.items())
        ],
    }


def treasury_digest(treasury: Treasury) -> str:
    """Return the SHA-256 of a treasury's bytes as 64 hex digits."""
    return hashlib.sha256(encode_treasury(treasury)).hexdigest()
