"""Market listings for the trading API: the market, its event, its tags and its payout."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import (
    event_tags,
    events,
    halted_markets,
    markets,
    payouts,
    sports_markets,
    tags,
)


class Listing(NamedTuple):
    """A market with its event."""

    market_id: int
    condition_id: Bytes32
    question_id: Bytes32
    question: str
    slug: str
    icon: str
    outcome_yes: str
    outcome_no: str
    token_yes: AssetId
    token_no: AssetId
    is_neg_risk: bool
    neg_risk_market_id: str | None
    neg_risk_request_id: str | None
    ticks_per_one: int
    size_units_min: int
    fee_rate_bps: int
    created_at_ms: int
    event_id: int
    event_slug: str
    event_title: str
    event_image: str
    rules: str
    creator: Address
    ends_at_ms: int
    tags: tuple[str, ...]
    payout: Payout | None
    is_sports: bool = False
    seconds_delay: int = 0
    """For how long an order that crosses the book is held; the operator's setting, not a column."""
    is_halted: bool = False
    """Whether the chain lost the market by a reorganization, so that no order is accepted."""

    @property
    def is_accepting_orders(self) -> bool:
        """Whether new orders are accepted."""
        return self.payout is None and not self.is_halted

    def outcome(self, *, is_yes: bool) -> str:
        """Return the name of an outcome."""
        return self.outcome_yes if is_yes else self.outcome_no

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.token_yes if is_yes else self.token_no


_COLUMNS: Final = (
    markets.c.market_id,
    markets.c.condition_id,
    markets.c.question_id,
    markets.c.question,
    markets.c.slug,
    markets.c.icon,
    markets.c.outcome_yes,
    markets.c.outcome_no,
    markets.c.token_yes,
    markets.c.token_no,
    markets.c.is_neg_risk,
    markets.c.neg_risk_market_id,
    markets.c.neg_risk_request_id,
    markets.c.ticks_per_one,
    markets.c.size_units_min,
    markets.c.fee_rate_bps,
    markets.c.created_at_ms,
    events.c.event_id,
    events.c.slug.label("event_slug"),
    events.c.title.label("event_title"),
    events.c.image.label("event_image"),
    events.c.rules,
    events.c.creator,
    events.c.ends_at_ms,
    payouts.c.payout_yes,
    payouts.c.payout_no,
    sa.exists().where(sports_markets.c.market_id == markets.c.market_id).label("is_sports"),
    halted_markets.c.condition_id.is_not(None).label("is_halted"),
)


async def load_market_id_at(
    tx: Transaction, offset: int, *, is_unresolved_only: bool = False
) -> int | None:
    """Return the market after this number of older ones, of all or of those without a payout; None beyond the last."""
    market_id: int | None = await tx.scalar(
        _id_at(is_unresolved_only=is_unresolved_only), {"skipped": offset}
    )
    return market_id


async def load_market_listings(
    tx: Transaction, first_id: int, limit: int, *, is_unresolved_only: bool = False
) -> Sequence[Listing]:
    """Return all markets, or those without a payout, from one on, the oldest first."""
    query = _listed_from(is_unresolved_only=is_unresolved_only)
    rows = await tx.all(query, {"first_id": first_id, "listed": limit})
    return await _with_tags(tx, rows)


async def load_market_listings_by_id(
    tx: Transaction, condition_ids: Sequence[str]
) -> Mapping[Bytes32, Listing]:
    """Return the listings of these conditions, by id; those without a market are left out."""
    rows = await tx.all(_query().where(markets.c.condition_id.in_(condition_ids)))
    return {listing.condition_id: listing for listing in await _with_tags(tx, rows)}


@lru_cache(maxsize=2)
def _id_at(*, is_unresolved_only: bool) -> sa.Select[Any]:
    """Return the query for a place in the list, which reads no more of the markets before it than their ids."""
    query = sa.select(markets.c.market_id).order_by(markets.c.market_id)
    if is_unresolved_only:
        query = query.where(~sa.exists().where(payouts.c.condition_id == markets.c.condition_id))
    return query.offset(sa.bindparam("skipped", type_=sa.BigInteger)).limit(1)


@lru_cache(maxsize=2)
def _listed_from(*, is_unresolved_only: bool) -> sa.Select[Any]:
    """Return the query for a part of the list, which is built once: it costs as much as many of its rows."""
    query = _query().where(markets.c.market_id >= sa.bindparam("first_id", type_=sa.BigInteger))
    if is_unresolved_only:
        query = query.where(payouts.c.payout_yes.is_(None))
    return query.order_by(markets.c.market_id).limit(sa.bindparam("listed", type_=sa.BigInteger))


def _query() -> sa.Select[Any]:
    joined = markets.join(events, events.c.event_id == markets.c.event_id).outerjoin(
        payouts, payouts.c.condition_id == markets.c.condition_id
    )
    joined = joined.outerjoin(
        halted_markets, halted_markets.c.condition_id == markets.c.condition_id
    )
    return sa.select(*_COLUMNS).select_from(joined)


async def _with_tags(tx: Transaction, rows: Sequence[sa.Row[Any]]) -> list[Listing]:
    """Return the rows as listings; the tags of all their events take one query."""
    links = await tx.all(
        sa.select(event_tags.c.event_id, tags.c.label)
        .join(tags, tags.c.tag_id == event_tags.c.tag_id)
        .where(event_tags.c.event_id.in_({row.event_id for row in rows}))
        .order_by(tags.c.tag_id)
    )
    labels_by_event: dict[int, list[str]] = {}
    for link in links:
        labels_by_event.setdefault(link.event_id, []).append(link.label)
    return [_listing(row, labels_by_event.get(row.event_id, [])) for row in rows]


def _listing(row: sa.Row[Any], labels: Sequence[str]) -> Listing:
    payout = None if row.payout_yes is None else Payout(row.payout_yes, row.payout_no)
    return Listing(
        market_id=row.market_id,
        condition_id=Bytes32(row.condition_id),
        question_id=Bytes32(row.question_id),
        question=row.question,
        slug=row.slug,
        icon=row.icon,
        outcome_yes=row.outcome_yes,
        outcome_no=row.outcome_no,
        token_yes=AssetId(row.token_yes),
        token_no=AssetId(row.token_no),
        is_neg_risk=row.is_neg_risk,
        neg_risk_market_id=row.neg_risk_market_id,
        neg_risk_request_id=row.neg_risk_request_id,
        ticks_per_one=row.ticks_per_one,
        size_units_min=row.size_units_min,
        fee_rate_bps=row.fee_rate_bps,
        created_at_ms=row.created_at_ms,
        event_id=row.event_id,
        event_slug=row.event_slug,
        event_title=row.event_title,
        event_image=row.event_image,
        rules=row.rules,
        creator=Address(row.creator),
        ends_at_ms=row.ends_at_ms,
        tags=tuple(labels),
        payout=payout,
        is_sports=bool(row.is_sports),
        is_halted=bool(row.is_halted),
    )
