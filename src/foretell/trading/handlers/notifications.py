"""Notifications of an account: fills, orders that left the book, resolutions, failed settlements.

They are made from the tables whenever they are read, so each fact is one notification with one id, before and
after a restart. What a reader has acknowledged is left out.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from foretell.domain.exchange.failed_trades.causes import failure_text
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.amounts import ratio_text
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.acknowledgements import (
    Acknowledged,
    AcknowledgedNotification,
    MarketPayout,
    load_acknowledged,
    load_resolutions,
    record_acknowledged,
    record_acknowledged_until,
)
from foretell.store.trading.orders import OrderRow, load_closed_orders, load_orders
from foretell.store.trading.trade_causes import with_causes
from foretell.store.trading.trades import TradeRow
from foretell.store.trading.wallet_trades import (
    TradeFilter,
    load_failed_trades,
    load_wallet_trades,
)
from foretell.trading.context import TradingContext
from foretell.trading.wire.notifications import (
    Fact,
    NotificationPayload,
    NotificationRecord,
    NotificationType,
    a_fact,
    market_payload,
    order_payload,
    short,
)

LISTED_MAX: Final = 100
ACKNOWLEDGED_MAX: Final = 200
"""Single acknowledgements of an address; older ones become a time."""
READ_MAX: Final = LISTED_MAX + ACKNOWLEDGED_MAX
"""Of each type: as many may be acknowledged and newer than one that is not."""
KEPT_MS: Final = 30 * 24 * 60 * 60 * 1000


class _Rows(NamedTuple):
    acknowledged: Acknowledged
    closed: Sequence[tuple[OrderRow, int]]
    trades: Sequence[TradeRow]
    failed: Sequence[TradeRow]
    resolutions: Sequence[MarketPayout]
    order_by_id: Mapping[str, OrderRow]


async def list_notifications(context: TradingContext, address: Address) -> list[NotificationRecord]:
    """Return the notifications that an address has not acknowledged, the newest first."""
    return [fact.record for fact in await _load(context, address)]


async def acknowledge(context: TradingContext, address: Address, ids: Collection[str]) -> list[str]:
    """Acknowledge notifications by their ids, or all that there are; return which were new."""
    listed = await _load(context, address)
    chosen = [fact for fact in listed if not ids or fact.record.id in ids]
    async with context.database.writing() as tx:
        if not ids and len(listed) == LISTED_MAX:
            for kind in {fact.type for fact in listed}:
                await record_acknowledged_until(tx, address, kind, listed[-1].at_ms - 1)
        noted = [AcknowledgedNotification(f.record.id, f.type, f.at_ms) for f in chosen]
        await record_acknowledged(tx, address, noted, ACKNOWLEDGED_MAX)
    return [fact.record.id for fact in chosen]


async def _load(context: TradingContext, address: Address) -> list[Fact]:
    await context.shards.wait_for_tables()
    wallets = context.wallets.of(address)
    since_ms = max(0, context.now_ms() - KEPT_MS)
    rows = await _load_rows(context, address, wallets, since_ms)
    await context.market_names.load(
        [
            *(Bytes32(order.condition_id) for order, _ in rows.closed),
            *(row.trade.condition_id for row in (*rows.trades, *rows.failed)),
            *(Bytes32(each.condition_id) for each in rows.resolutions),
        ]
    )
    facts = [
        fact
        for fact in _facts(context, wallets, rows)
        if fact.record.id not in rows.acknowledged.ids
        and fact.at_ms > rows.acknowledged.until_ms.get(fact.type, 0)
    ]
    facts.sort(key=lambda fact: (-fact.at_ms, fact.record.id))
    return facts[:LISTED_MAX]


async def _load_rows(
    context: TradingContext, address: Address, wallets: Sequence[Address], since_ms: int
) -> _Rows:
    wanted = TradeFilter(after_s=since_ms // 1000)
    async with context.database.public_reading(ReadKind.OWN) as tx:
        acknowledged = await load_acknowledged(tx, address)
        closed = await load_closed_orders(tx, address, since_ms, READ_MAX)
        trades = await load_wallet_trades(tx, wallets, wanted, 0, READ_MAX)
        failed = await load_failed_trades(tx, wallets, since_ms, READ_MAX)
        failed = await with_causes(tx, failed)
        resolutions = await load_resolutions(tx, wallets, since_ms // 1000, READ_MAX)
        ids = {each for row in (*trades, *failed) for each in _own_orders(row, wallets)}
        orders = await load_orders(tx, sorted(ids))
    return _Rows(acknowledged, closed, trades, failed, resolutions, orders)


def _own_orders(row: TradeRow, wallets: Collection[Address]) -> Iterator[str]:
    """Yield the orders of wallets in a trade."""
    if row.trade.taker in wallets:
        yield row.trade.taker_order_id
    yield from (fill.maker_order_id for fill in row.trade.fills if fill.maker in wallets)


def _facts(context: TradingContext, wallets: Collection[Address], rows: _Rows) -> Iterator[Fact]:
    for order, at_ms in rows.closed:
        payload = _of_order(context, order, order.matched_units)
        name = short(order.order_id)
        yield a_fact(NotificationType.ORDER_CANCELED, name, at_ms, order.owner, payload)
    yield from _takes(context, wallets, rows)
    for row in rows.trades:
        yield from _makes(context, wallets, rows, row)
    for row in rows.failed:
        yield from _failures(context, wallets, rows, row)
    for resolution in rows.resolutions:
        yield _resolution(context, resolution)


def _takes(context: TradingContext, wallets: Collection[Address], rows: _Rows) -> Iterator[Fact]:
    """Yield fills of taker orders; the parts of a trade that was split are one."""
    parts: dict[tuple[str, int], list[TradeRow]] = {}
    for row in rows.trades:
        if row.trade.taker in wallets:
            key = (row.trade.taker_order_id, row.trade.bucket_index)
            parts.setdefault(key, []).append(row)
    for (order_id, bucket), group in parts.items():
        first = min(group, key=lambda row: row.trade.trade_id).trade
        size_units = sum(row.trade.size_units for row in group)
        cost_units = sum(row.trade.cost_units for row in group)
        payload = msgspec.structs.replace(
            _of_order(context, rows.order_by_id[order_id], size_units),
            price=ratio_text(cost_units, size_units),
            trade_id=first.trade_id,
            transaction_hash=group[0].tx_hash if len(group) == 1 else "",
        )
        name = f"{short(order_id)}-{bucket}"
        at_ms = first.matched_at_ms
        yield a_fact(NotificationType.ORDER_FILLED, name, at_ms, first.taker_owner, payload)


def _makes(
    context: TradingContext, wallets: Collection[Address], rows: _Rows, row: TradeRow
) -> Iterator[Fact]:
    """Yield fills of resting orders."""
    for fill in row.trade.fills:
        if fill.maker in wallets:
            order = rows.order_by_id[fill.maker_order_id]
            payload = msgspec.structs.replace(
                _of_order(context, order, fill.size_units),
                trade_id=row.trade.trade_id,
                transaction_hash=row.tx_hash,
            )
            name = f"{short(fill.maker_order_id)}-{short(row.trade.taker_order_id)}"
            at_ms = row.trade.matched_at_ms
            yield a_fact(NotificationType.ORDER_FILLED, name, at_ms, fill.owner, payload)


def _failures(
    context: TradingContext, wallets: Collection[Address], rows: _Rows, row: TradeRow
) -> Iterator[Fact]:
    """Yield the failure of a trade, once for each order of the account."""
    assert row.status is TradeStatus.FAILED
    trade, failure = row.trade, failure_text(row.cause)
    size_by_order = {fill.maker_order_id: fill.size_units for fill in trade.fills}
    size_by_order[trade.taker_order_id] = trade.size_units
    for order_id in _own_orders(row, wallets):
        order = rows.order_by_id[order_id]
        payload = msgspec.structs.replace(
            _of_order(context, order, size_by_order[Bytes32(order_id)]),
            trade_id=trade.trade_id,
            transaction_hash=row.tx_hash,
            err_msg=failure.message,
            code=failure.code,
        )
        name = f"{short(order_id)}-{trade.trade_id}"
        yield a_fact(NotificationType.FILL_FAILED, name, row.updated_at_ms, order.owner, payload)


def _resolution(context: TradingContext, resolution: MarketPayout) -> Fact:
    """Return the resolution of a market that the account holds or held tokens of."""
    condition_id = Bytes32(resolution.condition_id)
    listing = context.market_names.find(condition_id)
    payload = market_payload(listing, condition_id)
    yes, no = resolution.payout_yes, resolution.payout_no
    if listing is not None and yes != no:
        payload = msgspec.structs.replace(
            payload,
            asset_id=listing.token(is_yes=yes > no),
            outcome=listing.outcome(is_yes=yes > no),
            outcome_index=0 if yes > no else 1,
        )
    payload = msgspec.structs.replace(payload, transaction_hash=resolution.tx_hash)
    at_ms = resolution.timestamp_s * 1000
    return a_fact(NotificationType.MARKET_RESOLVED, short(condition_id), at_ms, "", payload)


def _of_order(context: TradingContext, order: OrderRow, units: int) -> NotificationPayload:
    condition_id = Bytes32(order.condition_id)
    market = market_payload(context.market_names.find(condition_id), condition_id)
    outcome = context.market_names.outcome(condition_id, order.is_yes)
    return order_payload(market, order, outcome, units)
