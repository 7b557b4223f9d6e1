"""The view of an operator: work under way, the indexed chain, resolutions that are due, halted markets."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import (
    blocks,
    events,
    halted_markets,
    markets,
    payouts,
    registration_txs,
    relay_requests,
    relayed_txs,
    requests,
    settlement_txs,
    trades,
)

DUE_MAX: Final = 50
SENDERS_MAX: Final = 20
HALTS_MAX: Final = 50
_TRADES_UNDER_WAY: Final = ("MATCHED", "RETRYING", "MINED")
_RELAYS_ENDED: Final = ("STATE_CONFIRMED", "STATE_FAILED", "STATE_INVALID")
_REQUESTS_ENDED: Final = ("auth_pending", "finalized", "failed")
_SENT: Final = (
    ("settlement", settlement_txs),
    ("relayer", relayed_txs),
    ("creation", registration_txs),
)


class QueuedWork(NamedTuple):
    """Work of one kind in one status: how much, and since when the oldest waits."""

    kind: str
    status: str
    size: int
    oldest_at_ms: int


class IndexedHead(NamedTuple):
    """The newest block that is indexed."""

    block_number: int
    timestamp_s: int


class DueMarket(NamedTuple):
    """A market after its end that nobody has resolved."""

    condition_id: str
    question: str
    event_slug: str
    ends_at_ms: int


class HaltedMarket(NamedTuple):
    """A market that the chain lost by a reorganization, and since when it is halted."""

    condition_id: str
    question: str
    event_slug: str
    since_ms: int


class GasAccount(NamedTuple):
    """An account that a product sends from."""

    product: str
    address: str


async def load_queued_work(tx: Transaction) -> Sequence[QueuedWork]:
    """Return the work that is under way, by kind and status."""
    parts = (
        _grouped("trades", trades, trades.c.status, trades.c.matched_at_ms).where(
            trades.c.status.in_(_TRADES_UNDER_WAY)
        ),
        _grouped(
            "relayed transactions",
            relay_requests,
            relay_requests.c.state,
            relay_requests.c.created_at_ms,
        ).where(relay_requests.c.state.not_in(_RELAYS_ENDED)),
        _grouped("market creations", requests, requests.c.status, requests.c.created_at_ms).where(
            requests.c.status.not_in(_REQUESTS_ENDED)
        ),
    )
    rows = await tx.all(sa.union_all(*parts))
    return [QueuedWork._make(row) for row in rows]


async def load_indexed_head(tx: Transaction) -> IndexedHead | None:
    """Return the newest indexed block, None before the first."""
    row = await tx.first(
        sa.select(blocks.c.block_number, blocks.c.timestamp_s)
        .order_by(blocks.c.block_number.desc())
        .limit(1)
    )
    return None if row is None else IndexedHead._make(row)


async def load_due_markets(tx: Transaction, now_ms: int) -> Sequence[DueMarket]:
    """Return markets after their end without a payout, the one that waits for longest first."""
    rows = await tx.all(
        sa.select(markets.c.condition_id, markets.c.question, events.c.slug, events.c.ends_at_ms)
        .join(events, events.c.event_id == markets.c.event_id)
        .outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id)
        .where(events.c.ends_at_ms < now_ms, payouts.c.condition_id.is_(None))
        .order_by(events.c.ends_at_ms, markets.c.market_id)
        .limit(DUE_MAX)
    )
    return [DueMarket._make(row) for row in rows]


async def load_halted_markets(tx: Transaction) -> Sequence[HaltedMarket]:
    """Return the halted markets, the first halted first."""
    rows = await tx.all(
        sa.select(
            markets.c.condition_id, markets.c.question, events.c.slug, halted_markets.c.since_ms
        )
        .join(markets, markets.c.condition_id == halted_markets.c.condition_id)
        .join(events, events.c.event_id == markets.c.event_id)
        .order_by(halted_markets.c.since_ms, halted_markets.c.condition_id)
        .limit(HALTS_MAX)
    )
    return [HaltedMarket._make(row) for row in rows]


async def load_sending_accounts(tx: Transaction) -> Sequence[GasAccount]:
    """Return the accounts that products have sent from."""
    parts = [
        sa.select(sa.literal(product).label("product"), table.c.sender).distinct()
        for product, table in _SENT
    ]
    rows = await tx.all(sa.union_all(*parts).limit(SENDERS_MAX))
    return [GasAccount._make(row) for row in rows]


def _grouped(
    kind: str, table: sa.Table, status: sa.Column[Any], since: sa.Column[Any]
) -> sa.Select[Any]:
    return (
        sa.select(sa.literal(kind).label("kind"), status, sa.func.count(), sa.func.min(since))
        .select_from(table)
        .group_by(status)
    )
