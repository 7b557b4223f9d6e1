"""Markets that trade, and the events that group them; a new row opens a market.

Written by creation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.creation.payload import Category, MarketMode, ResolutionType
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.tokens import TokenPair
from foretell.store.creation.games import GameRow, record_game
from foretell.store.creation.ids import next_id
from foretell.store.database import Transaction
from foretell.store.tables import event_tags, events, markets, tags

TOPIC: Final = "markets"

_IDS_LOCK: Final = 0x666F7266


@dataclass(frozen=True, slots=True)
class MarketRow:
    """A market: its question, its tokens, and its rules for orders."""

    condition_id: Bytes32
    question_id: Bytes32
    market_key: str
    slug: str
    question: str
    title: str
    outcome_yes: str
    outcome_no: str
    tokens: TokenPair
    exchange: Address
    oracle: Address
    resolution_type: ResolutionType
    metadata_id: str
    metadata_uri: str
    icon: str
    ticks_per_one: int
    size_units_min: int
    fee_rate_bps: int
    is_neg_risk: bool = False
    neg_risk_market_id: Bytes32 | None = None
    neg_risk_request_id: Bytes32 | None = None
    """The question's id at the resolution adapter of an event."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event with its tags and its markets."""

    request_id: str
    slug: str
    title: str
    creator: Address
    chain_id: int
    market_mode: MarketMode
    main_category_slug: str
    rules: str
    resolution_source: str | None
    image: str
    ends_at_ms: int
    tags: tuple[Category, ...]
    markets: tuple[MarketRow, ...]
    game: GameRow | None = None


async def record_event(tx: Transaction, event: EventRow, now_ms: int) -> int:
    """Open an event's markets and return the event's id; ids continue from the last ones."""
    if tx.dialect == "postgresql":
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(_IDS_LOCK)))
    event_id = await next_id(tx, events.c.event_id)
    await tx.execute(events.insert().values(_event_values(event, event_id, now_ms)))
    await _record_tags(tx, event_id, event.tags, now_ms)
    market_id = await next_id(tx, markets.c.market_id)
    rows = [
        _market_values(market, now_ms)
        | {"market_id": market_id + index, "event_id": event_id, "request_id": event.request_id}
        for index, market in enumerate(event.markets)
    ]
    await tx.execute(markets.insert(), rows)
    if event.game is not None:
        await record_game(tx, event.game, event_id, [row["market_id"] for row in rows], now_ms)
    await tx.announce(TOPIC)
    return event_id


async def load_markets(tx: Transaction) -> list[MarketRow]:
    """Return every market, in the order of opening."""
    rows = await tx.all(sa.select(markets).order_by(markets.c.market_id))
    return [_market(row) for row in rows]


async def load_markets_from(tx: Transaction, market_id: int) -> list[tuple[int, MarketRow]]:
    """Return the market of a number and those that opened after it, with their numbers, in the order of opening."""
    query = sa.select(markets).where(markets.c.market_id >= market_id).order_by(markets.c.market_id)
    return [(row.market_id, _market(row)) for row in await tx.all(query)]


async def load_market(tx: Transaction, condition_id: Bytes32) -> MarketRow | None:
    """Return the market of a condition, if it trades."""
    row = await tx.first(sa.select(markets).where(markets.c.condition_id == condition_id))
    return None if row is None else _market(row)


async def _record_tags(
    tx: Transaction, event_id: int, categories: Sequence[Category], now_ms: int
) -> None:
    """Tag the event; a tag keeps its first label."""
    slugs = [category.slug for category in categories]
    rows = await tx.all(sa.select(tags.c.tag_id, tags.c.slug).where(tags.c.slug.in_(slugs)))
    id_by_slug = {row.slug: row.tag_id for row in rows}
    first_id = await next_id(tx, tags.c.tag_id)
    new: list[dict[str, Any]] = []
    for category in categories:
        if category.slug not in id_by_slug:
            id_by_slug[category.slug] = first_id + len(new)
            new.append(
                {
                    "tag_id": id_by_slug[category.slug],
                    "label": category.label,
                    "slug": category.slug,
                    "created_at_ms": now_ms,
                    "event_count": 0,
                }
            )
    if new:
        await tx.execute(tags.insert(), new)
    links = [{"event_id": event_id, "tag_id": id_by_slug[slug]} for slug in slugs]
    await tx.execute(event_tags.insert(), links)
    is_own = tags.c.tag_id.in_([link["tag_id"] for link in links])
    await tx.execute(tags.update().where(is_own).values(event_count=tags.c.event_count + 1))


def _event_values(event: EventRow, event_id: int, now_ms: int) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "slug": event.slug,
        "title": event.title,
        "creator": event.creator,
        "chain_id": event.chain_id,
        "market_mode": event.market_mode,
        "main_category_slug": event.main_category_slug,
        "rules": event.rules,
        "resolution_source": event.resolution_source,
        "image": event.image,
        "ends_at_ms": event.ends_at_ms,
        "created_at_ms": now_ms,
        "updated_at_ms": now_ms,
    }


def _market_values(market: MarketRow, now_ms: int) -> dict[str, Any]:
    return {
        "condition_id": market.condition_id,
        "question_id": market.question_id,
        "market_key": market.market_key,
        "slug": market.slug,
        "question": market.question,
        "title": market.title,
        "outcome_yes": market.outcome_yes,
        "outcome_no": market.outcome_no,
        "token_yes": str(market.tokens.yes),
        "token_no": str(market.tokens.no),
        "exchange": market.exchange,
        "oracle": market.oracle,
        "resolution_type": market.resolution_type,
        "metadata_id": market.metadata_id,
        "metadata_uri": market.metadata_uri,
        "icon": market.icon,
        "is_neg_risk": market.is_neg_risk,
        "neg_risk_market_id": market.neg_risk_market_id,
        "neg_risk_request_id": market.neg_risk_request_id,
        "ticks_per_one": market.ticks_per_one,
        "size_units_min": market.size_units_min,
        "fee_rate_bps": market.fee_rate_bps,
        "created_at_ms": now_ms,
        "updated_at_ms": now_ms,
    }


def _market(row: sa.Row[Any]) -> MarketRow:
    return MarketRow(
        condition_id=Bytes32(row.condition_id),
        question_id=Bytes32(row.question_id),
        market_key=row.market_key,
        slug=row.slug,
        question=row.question,
        title=row.title,
        outcome_yes=row.outcome_yes,
        outcome_no=row.outcome_no,
        tokens=TokenPair(int(row.token_yes), int(row.token_no)),
        exchange=Address(row.exchange),
        oracle=Address(row.oracle),
        resolution_type=ResolutionType(row.resolution_type),
        metadata_id=row.metadata_id,
        metadata_uri=row.metadata_uri,
        icon=row.icon,
        ticks_per_one=row.ticks_per_one,
        size_units_min=row.size_units_min,
        fee_rate_bps=row.fee_rate_bps,
        is_neg_risk=row.is_neg_risk,
        neg_risk_market_id=_optional_word(row.neg_risk_market_id),
        neg_risk_request_id=_optional_word(row.neg_risk_request_id),
    )


def _optional_word(text: str | None) -> Bytes32 | None:
    return None if text is None else Bytes32(text)
