"""Several orders or volumes in one request; what is not found has a status of its own."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.errors.order import BatchTooLong, MalformedBatch
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.codec import decode
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.orders import load_orders
from foretell.store.trading.trades import load_trade_ids
from foretell.store.trading.volumes import load_volumes, load_volumes_since
from foretell.trading.context import TradingContext
from foretell.trading.handlers.history import render_order
from foretell.trading.wire.orders import OrderRecord

ORDERS_MAX: Final = 500
VOLUMES_MAX: Final = 100
DAY_MS: Final = 24 * 60 * 60 * 1000
FOUND: Final = 200
MALFORMED: Final = 400
NOT_FOUND: Final = 404

Query = TypeVar("Query")


class OrderQuery(msgspec.Struct, rename="camel"):
    """An order of a bulk request."""

    order_id: str


class OrderResult(msgspec.Struct, frozen=True, rename="camel"):
    """An order, or why there is none."""

    order_id: str
    status: int
    order: OrderRecord | UnsetType = UNSET
    error: str | UnsetType = UNSET


class VolumeQuery(msgspec.Struct, rename="camel"):
    """A market of a bulk request; its tokens may be named too."""

    condition_id: str
    token_ids: list[str] = []


class VolumeResult(msgspec.Struct, frozen=True, rename="camel"):
    """The traded collateral of a market, or why there is none."""

    condition_id: str
    status: int
    volume: str | UnsetType = UNSET
    volume_24h: str | UnsetType = msgspec.field(name="volume24h", default=UNSET)
    error: str | UnsetType = UNSET


def parse_orders(raw: bytes) -> Sequence[OrderQuery]:
    """Return the orders that a body names, or refuse."""
    return _parse(raw, list[OrderQuery], ORDERS_MAX)


def parse_volumes(raw: bytes) -> Sequence[VolumeQuery]:
    """Return the markets that a body names, or refuse."""
    return _parse(raw, list[VolumeQuery], VOLUMES_MAX)


async def find_orders(
    context: TradingContext, address: Address, queries: Sequence[OrderQuery]
) -> list[OrderResult]:
    """Return the orders that an address placed; those of others are not found."""
    ids = [query.order_id.lower() for query in queries]
    await context.shards.wait_for_tables()
    async with context.database.public_reading(ReadKind.OWN) as tx:
        rows = await load_orders(tx, list(dict.fromkeys(ids)))
        own = {name: row for name, row in rows.items() if row.signed.signer == address}
        trade_ids = await load_trade_ids(tx, list(own))
    await context.market_names.load(row.condition_id for row in own.values())
    return [
        OrderResult(query.order_id, FOUND, order=render_order(context, own[name], trade_ids))
        if name in own
        else OrderResult(query.order_id, NOT_FOUND, error="order not found")
        for name, query in zip(ids, queries, strict=True)
    ]


async def find_volumes(
    context: TradingContext, queries: Sequence[VolumeQuery], *, is_day_wanted: bool
) -> list[VolumeResult]:
    """Return what was traded in markets; only those that trade or traded have a volume."""
    ids = list(dict.fromkeys(query.condition_id.lower() for query in queries))
    async with context.database.public_reading() as tx:
        volumes = await load_volumes(tx, ids)
        since_ms = context.now_ms() - DAY_MS
        recent = await load_volumes_since(tx, ids, since_ms) if is_day_wanted else {}
    return [
        _volume(
            context,
            query,
            volumes.get(query.condition_id.lower(), 0),
            recent.get(query.condition_id.lower(), 0) if is_day_wanted else None,
        )
        for query in queries
    ]


def _volume(
    context: TradingContext, query: VolumeQuery, total_units: int, day_units: int | None
) -> VolumeResult:
    market = context.books.market_by_id.get(Bytes32(query.condition_id.lower()))
    if market is None:
        return VolumeResult(query.condition_id, NOT_FOUND, error="market not found")
    if not {market.opened.token_yes, market.opened.token_no}.issuperset(query.token_ids):
        error = "tokenIds must be tokens of the market"
        return VolumeResult(query.condition_id, MALFORMED, error=error)
    day = UNSET if day_units is None else decimal_text(day_units)
    return VolumeResult(query.condition_id, FOUND, decimal_text(total_units), day)


def _parse(raw: bytes, kind: type[list[Query]], most: int) -> list[Query]:
    queries = decode(raw, kind, MalformedBatch)
    if len(queries) > most:
        raise BatchTooLong(most)
    return queries
