"""Markets that the chain lost by a reorganization; written by creation, read by the engine and settlement."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.creation.markets import TOPIC
from foretell.store.database import Transaction
from foretell.store.tables import conditions, halted_markets, markets, requests


class ListedMarket(NamedTuple):
    """A market and the request that created it."""

    condition_id: Bytes32
    request_id: str


async def load_unindexed(tx: Transaction, limit: int) -> Sequence[ListedMarket]:
    """Return markets whose condition the index does not have: it is behind, or the chain lost them."""
    rows = await tx.all(
        sa.select(markets.c.condition_id, markets.c.request_id)
        .outerjoin(conditions, conditions.c.condition_id == markets.c.condition_id)
        .where(conditions.c.condition_id.is_(None))
        .order_by(markets.c.market_id.desc())
        .limit(limit)
    )
    return [ListedMarket._make(row) for row in rows]


async def load_halted(tx: Transaction) -> Sequence[ListedMarket]:
    """Return the halted markets, the first halted first."""
    rows = await tx.all(
        sa.select(halted_markets.c.condition_id, halted_markets.c.request_id).order_by(
            halted_markets.c.since_ms, halted_markets.c.condition_id
        )
    )
    return [ListedMarket._make(row) for row in rows]


async def record_halt(tx: Transaction, market: ListedMarket, message: str, now_ms: int) -> None:
    """Halt a market, and say so in the record of its request; that keeps its status and its claims."""
    row = {**market._asdict(), "since_ms": now_ms}
    await tx.execute(halted_markets.insert(), [row])
    await _note(tx, market.request_id, message)
    await tx.announce(TOPIC)


async def record_resumption(tx: Transaction, market: ListedMarket) -> None:
    """End the halt of a market; with the last one of its request the record forgets it."""
    is_it = halted_markets.c.condition_id == market.condition_id
    await tx.execute(halted_markets.delete().where(is_it))
    others = halted_markets.c.request_id == market.request_id
    if await tx.first(sa.select(halted_markets.c.condition_id).where(others).limit(1)) is None:
        await _note(tx, market.request_id, None)
    await tx.announce(TOPIC)


async def _note(tx: Transaction, request_id: str, message: str | None) -> None:
    is_it = requests.c.request_id == request_id
    await tx.execute(requests.update().where(is_it).values(error_message=message))
