"""Trades with their fills, quotes, and the progress of the projection; written by the engine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.exchange.trade_references import TRADE_IDS_MAX, trade_tokens
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.tables import fills, projections, quotes, trades

TOPIC = "trades"

OLDEST_FIRST: Final = (trades.c.matched_at_ms, trades.c.sequence, trades.c.trade_id)
"""Within a shard this is the order of its journal; each shard has its own sequence."""
NEWEST_FIRST: Final = (trades.c.matched_at_ms.desc(), trades.c.sequence.desc(), trades.c.trade_id)


class TradeRow(NamedTuple):
    """A trade, the progress of its settlement, and the tokens that it moves.

    `cause` is why a failed one cannot settle; only settlement's rows have it (`with_causes`).
    """

    trade: Trade
    sequence: int
    token_id: AssetId
    fill_tokens: tuple[AssetId, ...]
    status: TradeStatus
    tx_hash: str
    updated_at_ms: int
    cause: str = ""


def matched_row(trade: Trade, sequence: int, market: OpenMarket) -> TradeRow:
    """Return a trade as it is at its match."""
    tokens = trade_tokens(market, trade)
    return TradeRow(
        trade=trade,
        sequence=sequence,
        token_id=tokens.taker,
        fill_tokens=tokens.fills,
        status=TradeStatus.MATCHED,
        tx_hash="",
        updated_at_ms=trade.matched_at_ms,
    )


class TradeChange(NamedTuple):
    """The new status of a trade."""

    trade_id: str
    status: TradeStatus
    tx_hash: str
    updated_at_ms: int


class TradeParts(NamedTuple):
    """A trade without the fills that left it, and the new trades of those fills."""

    kept: Trade
    parts: Sequence[Trade]
    status: TradeStatus
    tx_hash: str
    updated_at_ms: int


class Quote(NamedTuple):
    """The best prices of Yes in a market, its last traded price, and its volume.

    `failed_units` is the part of the volume whose settlement has failed for good.
    """

    condition_id: Bytes32
    ticks_per_one: int
    best_bid_ticks: int | None
    best_ask_ticks: int | None
    last_price_ticks: int | None
    last_side: str | None
    volume_units: int
    updated_at_ms: int
    failed_units: int = 0


async def load_sequence(tx: Transaction, name: str) -> int:
    """Return the last projected sequence of a reader of the journal, 0 before the first."""
    sequence = await tx.scalar(sa.select(projections.c.sequence).where(projections.c.name == name))
    return sequence or 0


async def advance_sequence(tx: Transaction, name: str, was: int, now: int) -> bool:
    """Store the projected sequence of a reader, in the transaction of its rows.

    Return False, having changed nothing, if it is not the one that the caller believes: then another
    process has written. A second writer waits here until the first has committed.
    """
    changed = await tx.execute(
        projections.update()
        .where(projections.c.name == name, projections.c.sequence == was)
        .values(sequence=now)
    )
    if not changed and was == 0:
        known = sa.select(projections.c.name).where(projections.c.name == name)
        if await tx.first(known) is None:
            changed = await tx.execute(projections.insert().values(name=name, sequence=now))
    return changed == 1


_CHANGE: Final = (
    trades.update()
    .where(trades.c.trade_id == sa.bindparam("changed_id"))
    .values(
        status=sa.bindparam("new_status"),
        tx_hash=sa.bindparam("hash"),
        updated_at_ms=sa.bindparam("at_ms"),
    )
)


async def record_trades(tx: Transaction, rows: Sequence[TradeRow]) -> None:
    """Store trades with their fills."""
    if rows:
        await tx.insert_rows(trades, [_trade_cells(row) for row in rows])
        await tx.insert_rows(fills, [cells for row in rows for cells in _fill_cells(row)])
        await tx.announce(TOPIC)


async def record_trade_changes(tx: Transaction, changes: Sequence[TradeChange]) -> None:
    """Store the new status of trades."""
    if changes:
        rows = [
            (change.status.value, change.tx_hash, change.updated_at_ms, change.trade_id)
            for change in changes
        ]
        await tx.execute_rows(_CHANGE, rows)
        await tx.announce(TOPIC)


async def record_trade_parts(tx: Transaction, split: TradeParts) -> None:
    """Move fills of a stored trade to new trades, which matched when it did."""
    (whole,) = await load_trades_by_id(tx, [split.kept.trade_id])
    token_by_order = {
        fill.maker_order_id: token
        for fill, token in zip(whole.trade.fills, whole.fill_tokens, strict=True)
    }
    rows = [
        whole._replace(
            trade=part,
            fill_tokens=tuple(token_by_order[fill.maker_order_id] for fill in part.fills),
            status=split.status,
            tx_hash=split.tx_hash,
            updated_at_ms=split.updated_at_ms,
        )
        for part in split.parts
    ]
    left = [fill.maker_order_id for part in split.parts for fill in part.fills]
    is_whole = trades.c.trade_id == split.kept.trade_id
    await tx.execute(
        fills.delete().where(
            fills.c.trade_id == split.kept.trade_id, fills.c.maker_order_id.in_(left)
        )
    )
    await tx.execute(
        trades.update()
        .where(is_whole)
        .values(
            size_units=split.kept.size_units,
            cost_units=split.kept.cost_units,
            taker_fill_units=split.kept.taker_fill_units,
            updated_at_ms=split.updated_at_ms,
        )
    )
    await record_trades(tx, rows)


async def record_quotes(tx: Transaction, changed: Sequence[Quote]) -> None:
    """Store the current quotes of markets."""
    await tx.upsert_rows(quotes, changed)


async def load_quotes(tx: Transaction) -> Mapping[Bytes32, Quote]:
    """Return every market's quote, by its condition."""
    rows = await tx.all(sa.select(quotes))
    return {Bytes32(row.condition_id): Quote(**row._mapping) for row in rows}  # noqa: SLF001 - public API of SQLAlchemy


async def load_trades_by_id(tx: Transaction, trade_ids: Sequence[str]) -> Sequence[TradeRow]:
    """Return these trades; unknown ids are left out."""
    rows = await load_rows(tx, trades, (trades.c.trade_id,), [(each,) for each in trade_ids])
    return await with_fills(tx, rows)


async def load_market_trades(
    tx: Transaction, condition_id: Bytes32, limit: int
) -> Sequence[TradeRow]:
    """Return the last trades of a market, the newest first."""
    query = sa.select(trades).where(trades.c.condition_id == condition_id)
    newest = query.order_by(*NEWEST_FIRST).limit(limit)
    return await with_fills(tx, await tx.all(newest))


def _newest_ids(source: str, name: str, join: str) -> str:
    """Return the query for the newest trades of each of the orders of a parameter, in one text, the newest first.

    An order was the taker of trades of one time only; as a maker it has one fill at a time. So each index has them in
    their order, and is read from its end until there are enough.
    """
    columns, most = "matched_at_ms, sequence, trade_id", TRADE_IDS_MAX
    made = f"""
        SELECT {columns} FROM fills WHERE maker_order_id = {name}
        ORDER BY matched_at_ms DESC, sequence DESC LIMIT {most}
    """  # noqa: S608 - names are the store's own
    taken = f"""
        SELECT {columns} FROM trades WHERE taker_order_id = {name}
        ORDER BY trade_id DESC LIMIT {most}
    """  # noqa: S608 - names are the store's own
    either = f"SELECT * FROM ({made}) AS made UNION ALL SELECT * FROM ({taken}) AS taken"  # noqa: S608 - names are the store's own
    order = "matched_at_ms DESC, sequence DESC, trade_id DESC"
    newest = f"SELECT trade_id FROM ({either}) AS parts ORDER BY {order} LIMIT {most}"  # noqa: S608 - names are the store's own
    joined = f"SELECT {join}(trade_id, ',') FROM ({newest}) AS newest"  # noqa: S608 - names are the store's own
    return f"SELECT {name} AS order_id, ({joined}) AS trade_ids FROM {source}"  # noqa: S608 - names are the store's own


_NEWEST_IDS: Final = {
    "sqlite": sa.text(_newest_ids("json_each(:ids) AS wanted", "wanted.value", "group_concat")),
    "postgresql": sa.text(
        _newest_ids("unnest(:ids) AS wanted(order_id)", "wanted.order_id", "string_agg")
    ).bindparams(sa.bindparam("ids", type_=postgresql.ARRAY(sa.Text))),
}


async def load_trade_ids(tx: Transaction, order_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the newest trades of orders, as taker or maker, by order id, the oldest first.

    The trades of an order are one value of its row: rows of their own cost several times the processor time.
    """
    ids = list(dict.fromkeys(order_ids))
    wanted = msgspec.json.encode(ids).decode() if tx.dialect == "sqlite" else ids
    rows = await tx.all(_NEWEST_IDS[tx.dialect], {"ids": wanted}) if ids else []
    return {row.order_id: row.trade_ids.split(",")[::-1] for row in rows if row.trade_ids}


async def with_fills(tx: Transaction, rows: Sequence[sa.Row[Any]]) -> Sequence[TradeRow]:
    """Return the trades of rows of their table."""
    parts = await load_rows(tx, fills, (fills.c.trade_id,), [(row.trade_id,) for row in rows])
    fills_by_trade: dict[str, list[sa.Row[Any]]] = {}
    for part in sorted(parts, key=lambda part: part.fill_index):
        fills_by_trade.setdefault(part.trade_id, []).append(part)
    return [_trade_row(row, fills_by_trade[row.trade_id]) for row in rows]


def _trade_cells(row: TradeRow) -> tuple[Any, ...]:
    """Return the values of the columns in the table's order."""
    trade = row.trade
    return (
        trade.trade_id,
        row.sequence,
        trade.condition_id,
        row.token_id,
        trade.is_yes,
        trade.taker_order_id,
        trade.taker,
        trade.taker_owner,
        trade.side.name,
        trade.size_units,
        trade.cost_units,
        trade.taker_fill_units,
        trade.bucket_index,
        row.status.value,
        row.tx_hash,
        trade.matched_at_ms,
        row.updated_at_ms,
    )


def _fill_cells(row: TradeRow) -> Iterator[tuple[Any, ...]]:
    """Yield, for each fill, the values of the columns in the table's order."""
    for index, (fill, token) in enumerate(zip(row.trade.fills, row.fill_tokens, strict=True)):
        yield (
            row.trade.trade_id,
            index,
            fill.maker_order_id,
            fill.maker,
            fill.owner,
            fill.side.name,
            token,
            fill.is_yes,
            fill.price_ticks,
            row.trade.ticks_per_one,
            fill.size_units,
            fill.making_units,
            fill.taking_units,
            fill.match_type.value,
            row.trade.matched_at_ms,
            row.sequence,
        )


def _trade_row(row: sa.Row[Any], parts: Sequence[sa.Row[Any]]) -> TradeRow:
    trade = Trade(
        trade_id=row.trade_id,
        condition_id=Bytes32(row.condition_id),
        taker_order_id=Bytes32(row.taker_order_id),
        taker=Address(row.taker),
        taker_owner=row.taker_owner,
        side=Side[row.side],
        is_yes=row.is_yes,
        size_units=row.size_units,
        cost_units=row.cost_units,
        taker_fill_units=row.taker_fill_units,
        matched_at_ms=row.matched_at_ms,
        fills=tuple(_fill(part) for part in parts),
        ticks_per_one=parts[0].ticks_per_one,
        bucket_index=row.bucket_index,
    )
    return TradeRow(
        trade=trade,
        sequence=row.sequence,
        token_id=AssetId(row.token_id),
        fill_tokens=tuple(AssetId(part.token_id) for part in parts),
        status=TradeStatus(row.status),
        tx_hash=row.tx_hash,
        updated_at_ms=row.updated_at_ms,
    )


def _fill(part: sa.Row[Any]) -> Fill:
    return Fill(
        maker_order_id=Bytes32(part.maker_order_id),
        maker=Address(part.maker),
        owner=part.owner,
        side=Side[part.side],
        is_yes=part.is_yes,
        price_ticks=part.price_ticks,
        size_units=part.size_units,
        making_units=part.making_units,
        taking_units=part.taking_units,
        match_type=MatchType(part.match_type),
    )
