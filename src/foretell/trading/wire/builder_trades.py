"""Trades of a builder's orders as clients read them."""

from collections.abc import Callable, Sequence

import msgspec

from foretell.domain.exchange.failed_trades.causes import failure_text
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.portfolio.builder_fees import (
    NO_FEE,
    BuilderFee,
    BuilderRates,
    base_fee_units,
    maker_fee,
    rates_at,
    taker_fee,
)
from foretell.domain.values.amounts import decimal_text, price_text, ratio_text
from foretell.domain.values.hexadecimal import Bytes32, checksum_address
from foretell.domain.values.instants import iso_time
from foretell.store.trading.builder_trades import TAKER_PART, BuilderTrade
from foretell.trading.wire.orders import ZERO_UUID

OutcomeOf = Callable[[Bytes32, bool], str]


class BuilderTradeRecord(msgspec.Struct, frozen=True, rename="camel"):
    """An order of a builder in a trade. The API key that placed it is not shown."""

    id: str
    trade_type: str
    taker_order_hash: Bytes32
    builder: Bytes32
    market: Bytes32
    asset_id: str
    side: str
    size: str
    size_usdc: str
    price: str
    status: str
    outcome: str
    outcome_index: int
    owner: str
    maker: str
    transaction_hash: str
    match_time: str
    bucket_index: int
    fee: str
    fee_usdc: str
    builder_fee: str
    builder_code: Bytes32
    err_msg: str | None = msgspec.field(name="err_msg")
    code: str | None
    created_at: str
    updated_at: str


def builder_trade_record(
    found: BuilderTrade,
    code: Bytes32,
    outcome_of: OutcomeOf,
    fee_rate_bps: int,
    rates: Sequence[BuilderRates],
) -> BuilderTradeRecord:
    """Return a part of a trade as clients read it."""
    row, order = found.row, found.order
    trade = row.trade
    is_taker = found.part == TAKER_PART
    fill = None if is_taker else trade.fills[found.part]
    collateral_units = trade.cost_units if fill is None else _collateral_units(fill)
    fee = _fee(found, fee_rate_bps, rates_at(rates, trade.matched_at_ms))
    failure = failure_text(row.cause) if row.status is TradeStatus.FAILED else None
    return BuilderTradeRecord(
        id=trade.trade_id,
        trade_type="TAKER" if is_taker else "MAKER",
        taker_order_hash=trade.taker_order_id,
        builder=code,
        market=trade.condition_id,
        asset_id=order.signed.token_id,
        side=order.signed.side.name,
        size=decimal_text(trade.size_units if fill is None else fill.size_units),
        size_usdc=decimal_text(collateral_units),
        price=_price(trade, fill),
        status=row.status.value,
        outcome=outcome_of(trade.condition_id, order.is_yes),
        outcome_index=0 if order.is_yes else 1,
        owner=ZERO_UUID,
        maker=checksum_address(order.signed.maker),
        transaction_hash=row.tx_hash,
        match_time=str(trade.matched_at_ms // 1000),
        bucket_index=trade.bucket_index,
        fee=decimal_text(fee.fee_units),
        fee_usdc=decimal_text(fee.fee_units),
        builder_fee=decimal_text(fee.builder_units),
        builder_code=code,
        err_msg=None if failure is None else failure.message,
        code=None if failure is None else failure.code,
        created_at=iso_time(trade.matched_at_ms),
        updated_at=iso_time(row.updated_at_ms),
    )


def _price(trade: Trade, fill: Fill | None) -> str:
    if fill is None:
        return ratio_text(trade.cost_units, trade.size_units)
    return price_text(fill.price_ticks, trade.ticks_per_one)


def _collateral_units(fill: Fill) -> int:
    return fill.making_units if fill.side is Side.BUY else fill.taking_units


def _fee(found: BuilderTrade, rate_bps: int, rates: BuilderRates) -> BuilderFee:
    """Return the accounted fee: a taker's is the sum over its fills; a failed trade has none."""
    trade = found.row.trade
    if found.row.status is TradeStatus.FAILED:
        return NO_FEE
    if found.part != TAKER_PART:
        return maker_fee(_collateral_units(trade.fills[found.part]), rates.maker_flat_bps)
    base_units = sum(
        base_fee_units(fill.size_units, fill.price_ticks, trade.ticks_per_one, rate_bps)
        for fill in trade.fills
    )
    return taker_fee(base_units, rates.taker_share_bps)
