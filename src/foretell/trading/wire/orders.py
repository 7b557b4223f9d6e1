"""Orders and trades as clients read them, in lists and on streams.

A trade is shown from its taker's side, as clients expect. A reader sees its own API key ids, and
zeros in place of those of others.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.effects import OrderRestored
from foretell.domain.exchange.failed_trades.causes import failure_text
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import OrderStatus, OrderType, Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.amounts import decimal_text, price_text, ratio_text
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address
from foretell.store.trading.orders import OrderRow
from foretell.store.trading.trades import TradeRow

ZERO_UUID: Final = "00000000-0000-0000-0000-000000000000"

OutcomeOf = Callable[[Bytes32, bool], str]
"""Returns the name of an outcome of a condition."""


class OrderView(msgspec.Struct, frozen=True, gc=False):
    """The fields of an order that never change."""

    order_id: Bytes32
    owner: str
    signer: Address
    maker: Address
    condition_id: Bytes32
    token_id: str
    is_yes: bool
    side: Side
    price_ticks: int
    ticks_per_one: int
    size_units: int
    order_type: OrderType
    expiration_s: int
    placed_at_ms: int


class OrderRecord(msgspec.Struct, frozen=True):
    """An order as clients read it."""

    id: Bytes32
    status: str
    owner: str
    maker_address: str
    market: Bytes32
    asset_id: str
    side: str
    original_size: str
    size_matched: str
    price: str
    associate_trades: Sequence[str]
    outcome: str
    created_at: int
    expiration: str
    order_type: str
    close_reason: str | None


class MakerOrderRecord(msgspec.Struct, frozen=True):
    """A resting order's part of a trade as clients read it."""

    order_id: Bytes32
    owner: str
    maker_address: str
    matched_amount: str
    price: str
    fee_rate_bps: str
    asset_id: str
    outcome: str
    outcome_index: int
    side: str
    match_type: str


class TradeRecord(msgspec.Struct, frozen=True):
    """A trade as clients read it."""

    id: str
    taker_order_id: Bytes32
    market: Bytes32
    asset_id: str
    side: str
    size: str
    fee_rate_bps: str
    price: str
    status: str
    match_time: str
    last_update: str
    outcome: str
    bucket_index: int
    owner: str
    maker_address: str
    transaction_hash: str
    maker_orders: Sequence[MakerOrderRecord]
    trader_side: str
    type: str
    err_msg: str | None
    code: str | None
    """What `err_msg` says, for programs."""


def view_of_row(row: OrderRow) -> OrderView:
    """Return the view of an order in the tables."""
    signed = row.signed
    return OrderView(
        order_id=row.order_id,
        owner=row.owner,
        signer=signed.signer,
        maker=signed.maker,
        condition_id=row.condition_id,
        token_id=signed.token_id,
        is_yes=row.is_yes,
        side=signed.side,
        price_ticks=row.price_ticks,
        ticks_per_one=row.ticks_per_one,
        size_units=row.size_units,
        order_type=row.order_type,
        expiration_s=signed.expiration_s,
        placed_at_ms=row.placed_at_ms,
    )


def view_of_command(command: PlaceOrder, size_units: int) -> OrderView:
    """Return the view of an order that was just placed."""
    signed = command.order
    return OrderView(
        order_id=command.order_id,
        owner=command.owner,
        signer=signed.signer,
        maker=signed.maker,
        condition_id=command.condition_id,
        token_id=signed.token_id,
        is_yes=command.is_yes,
        side=signed.side,
        price_ticks=command.terms.price_ticks,
        ticks_per_one=command.terms.ticks_per_one,
        size_units=size_units,
        order_type=command.order_type,
        expiration_s=signed.expiration_s,
        placed_at_ms=command.at_ms,
    )


def view_of_restored(order: OrderRestored) -> OrderView:
    """Return the view of an order that rested before this process began."""
    return OrderView(
        order_id=order.order_id,
        owner=order.owner,
        signer=order.signer,
        maker=order.maker,
        condition_id=order.condition_id,
        token_id=order.token_id,
        is_yes=order.is_yes,
        side=order.side,
        price_ticks=order.price_ticks,
        ticks_per_one=order.ticks_per_one,
        size_units=order.size_units,
        order_type=order.order_type,
        expiration_s=order.expiration_s,
        placed_at_ms=order.placed_at_ms,
    )


def order_record(
    view: OrderView,
    status: OrderStatus,
    matched_units: int,
    trade_ids: Sequence[str],
    outcome: str,
    close_reason: str | None = None,
) -> OrderRecord:
    """Return an order as its owner reads it."""
    return OrderRecord(
        id=view.order_id,
        status=status.value,
        owner=view.owner,
        maker_address=checksum_address(view.maker),
        market=view.condition_id,
        asset_id=view.token_id,
        side=view.side.name,
        original_size=decimal_text(view.size_units),
        size_matched=decimal_text(matched_units),
        price=price_text(view.price_ticks, view.ticks_per_one),
        associate_trades=trade_ids,
        outcome=outcome,
        created_at=view.placed_at_ms // 1000,
        expiration=str(view.expiration_s),
        order_type=view.order_type.value,
        close_reason=close_reason,
    )


def trade_record(
    row: TradeRow, wallets: Collection[Address], outcome_of: OutcomeOf, fee_rate_bps: int
) -> TradeRecord:
    """Return a trade as the owner of these wallets reads it."""
    trade = row.trade
    is_taker = trade.taker in wallets
    failure = failure_text(row.cause) if row.status is TradeStatus.FAILED else None
    return TradeRecord(
        id=trade.trade_id,
        taker_order_id=trade.taker_order_id,
        market=trade.condition_id,
        asset_id=row.token_id,
        side=trade.side.name,
        size=decimal_text(trade.size_units),
        fee_rate_bps=str(fee_rate_bps),
        price=ratio_text(trade.cost_units, trade.size_units),
        status=row.status.value,
        match_time=str(trade.matched_at_ms // 1000),
        last_update=str(row.updated_at_ms // 1000),
        outcome=outcome_of(trade.condition_id, trade.is_yes),
        bucket_index=trade.bucket_index,
        owner=trade.taker_owner if is_taker else _own_key(trade, wallets),
        maker_address=checksum_address(trade.taker),
        transaction_hash=row.tx_hash,
        maker_orders=[
            _maker_order(row, fill, token_id, wallets, outcome_of, fee_rate_bps)
            for fill, token_id in zip(trade.fills, row.fill_tokens, strict=True)
        ],
        trader_side="TAKER" if is_taker else "MAKER",
        type="TRADE",
        err_msg=None if failure is None else failure.message,
        code=None if failure is None else failure.code,
    )


def _own_key(trade: Trade, wallets: Collection[Address]) -> str:
    """Return the key that placed the first of the reader's orders in the trade."""
    return next((fill.owner for fill in trade.fills if fill.maker in wallets), ZERO_UUID)


def _maker_order(
    row: TradeRow,
    fill: Fill,
    token_id: str,
    wallets: Collection[Address],
    outcome_of: OutcomeOf,
    fee_rate_bps: int,
) -> MakerOrderRecord:
    return MakerOrderRecord(
        order_id=fill.maker_order_id,
        owner=fill.owner if fill.maker in wallets else ZERO_UUID,
        maker_address=checksum_address(fill.maker),
        matched_amount=decimal_text(fill.size_units),
        price=price_text(fill.price_ticks, row.trade.ticks_per_one),
        fee_rate_bps=str(fee_rate_bps),
        asset_id=token_id,
        outcome=outcome_of(row.trade.condition_id, fill.is_yes),
        outcome_index=0 if fill.is_yes else 1,
        side=fill.side.name,
        match_type=fill.match_type.value,
    )
