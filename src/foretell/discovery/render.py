"""Rendering of rows as responses, with every derived field of events, markets and tags."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from msgspec import UNSET, UnsetType

from foretell.discovery import responses
from foretell.discovery.filters import RESOLVED
from foretell.discovery.render_sports import game_fields, sports_fields
from foretell.domain.creation.payload import MarketMode
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import (
    ONE_HALF,
    BookTop,
    competitiveness,
    last_price,
    listed_price,
    spread,
)
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.domain.values.instants import iso_time
from foretell.edge.rendering import amount, blob_url, decimal_string, rounded, rounded_ratio
from foretell.store.index.oracle_answers import Answer
from foretell.store.queries.catalog import CatalogEvent, CatalogMarket, VolumeSums
from foretell.store.queries.tags import CatalogTag

DATE_CHARS: Final = 10
MARKETS_KEPT_MAX: Final = 4_096
"""Parts of markets that are kept as they were rendered: a part is a function of its columns alone."""
CHANGES: Final = (
    "one_hour_price_change",
    "one_day_price_change",
    "one_week_price_change",
    "one_month_price_change",
)


def render_tag(tag: CatalogTag) -> responses.TagResponse:
    """Return the answer for a tag."""
    created = iso_time(tag.created_at_ms)
    return responses.TagResponse(
        id=str(tag.tag_id),
        label=tag.label,
        slug=tag.slug,
        published_at=created,
        created_at=created,
        updated_at=created,
    )


def render_event(
    event: CatalogEvent,
    blob_base_url: str,
    tags: Sequence[CatalogTag] | None = None,
    markets: Sequence[CatalogMarket] | None = None,
) -> responses.Event:
    """Return the answer for an event, with its markets if they are given."""
    created, image = iso_time(event.created_at_ms), blob_url(blob_base_url, event.image)
    liquidity = amount(event.liquidity_units)
    return responses.Event(
        id=str(event.event_id),
        ticker=event.slug,
        slug=event.slug,
        title=event.title,
        description=event.rules,
        resolution_source=event.resolution_source or "",
        start_date=created,
        creation_date=created,
        end_date=iso_time(event.ends_at_ms),
        image=image,
        icon=image,
        closed=event.closed_at_s is not None,
        liquidity=liquidity,
        liquidity_clob=liquidity,
        volume=amount(event.volumes.total_units),
        open_interest=amount(event.locked_units),
        competitive=_competitive(event.evenness),
        category=event.main_category_slug,
        neg_risk=event.is_neg_risk,
        neg_risk_market_id=event.neg_risk_market_id or UNSET,
        enable_neg_risk=event.is_neg_risk,
        markets=UNSET if markets is None else _markets(markets, event, blob_base_url),
        tags=UNSET if tags is None else [render_tag(tag) for tag in tags],
        closed_time=_closing_time(event.closed_at_s),
        created_at=created,
        updated_at=iso_time(event.updated_at_ms),
        published_at=created,
        created_by=checksum_address(Address(event.creator)),
        **_recent(event.volumes),
        **game_fields(event.game, blob_base_url),
    )


def render_market(
    market: CatalogMarket,
    event: CatalogEvent,
    blob_base_url: str,
    tags: Sequence[CatalogTag] | None = None,
    *,
    has_event: bool = False,
) -> responses.MarketResponse:
    """Return the answer for a market, with its event on request."""
    icon, creator = blob_url(blob_base_url, market.icon), checksum_address(Address(event.creator))
    is_grouped = event.market_mode != MarketMode.BINARY
    return responses.MarketResponse(
        id=str(market.market_id),
        question=market.question,
        condition_id=market.condition_id,
        question_id=market.question_id,
        slug=market.slug,
        description=event.rules,
        resolution_source=event.resolution_source or "",
        category=event.main_category_slug,
        image=icon,
        icon=icon,
        outcomes=_json_text((market.outcome_yes, market.outcome_no)),
        clob_token_ids=f'["{market.token_yes}", "{market.token_no}"]',
        order_price_min_tick_size=rounded_ratio(1, _top(market).ticks_per_one),
        order_min_size=amount(market.size_units_min),
        maker_base_fee=market.fee_rate_bps,
        taker_base_fee=market.fee_rate_bps,
        fees_enabled=market.fee_rate_bps > 0,
        neg_risk=market.is_neg_risk,
        neg_risk_market_id=market.neg_risk_market_id or UNSET,
        neg_risk_request_id=market.neg_risk_request_id or UNSET,
        creator=creator,
        submitted_by=creator,
        resolved_by=checksum_address(Address(market.oracle)),
        events=[render_event(event, blob_base_url)] if has_event else UNSET,
        tags=UNSET if tags is None else [render_tag(tag) for tag in tags],
        **_times(market, event.ends_at_ms),
        **_state(market),
        **_amounts(market),
        **_recent(market.volumes),
        **_prices(_top(market), market.payout, market.past_prices),
        **{"group_item_title": market.title if is_grouped else ""}
        | sports_fields(market, event.game),
    )


def _markets(
    markets: Sequence[CatalogMarket], event: CatalogEvent, blob_base_url: str
) -> list[responses.MarketResponse]:
    return [render_market(market, event, blob_base_url) for market in markets]


def _times(market: CatalogMarket, ends_at_ms: int) -> dict[str, Any]:
    created, ends = iso_time(market.created_at_ms), iso_time(ends_at_ms)
    return {
        "start_date": created,
        "start_date_iso": created[:DATE_CHARS],
        "end_date": ends,
        "end_date_iso": ends[:DATE_CHARS],
        "created_at": created,
        "updated_at": iso_time(market.updated_at_ms),
        "accepting_orders_timestamp": created,
        "closed_time": _closing_time(market.closed_at_s),
    }


def _state(market: CatalogMarket) -> dict[str, Any]:
    is_closed = market.payout is not None
    statuses = [*market.answer_steps, RESOLVED] if is_closed else market.answer_steps
    return {
        "closed": is_closed,
        "accepting_orders": market.is_accepting_orders,
        "seconds_delay": market.seconds_delay,
        "uma_resolution_status": statuses[-1] if statuses else "",
        "uma_resolution_statuses": _json_text(tuple(statuses)),
        "resolution_steps": [_step(answer) for answer in market.answers] or UNSET,
    }


def _step(answer: Answer) -> responses.OracleStep:
    return responses.OracleStep(
        status=answer.step.value,
        time=iso_time(answer.timestamp_s * 1000),
        account=checksum_address(answer.account),
        price=answer.price,
        transaction_hash=answer.tx_hash,
    )


def _amounts(market: CatalogMarket) -> dict[str, Any]:
    volumes = market.volumes
    volume, liquidity = amount(volumes.total_units), amount(market.liquidity_units)
    return {
        "volume": decimal_string(volume),
        "volume_num": volume,
        "volume_clob": volume,
        "liquidity": decimal_string(liquidity),
        "liquidity_num": liquidity,
        "liquidity_clob": liquidity,
        "volume24hr_clob": amount(volumes.day_units),
        "volume1wk_clob": amount(volumes.week_units),
        "volume1mo_clob": amount(volumes.month_units),
        "volume1yr_clob": amount(volumes.year_units),
    }


def _recent(volumes: VolumeSums) -> dict[str, Any]:
    return {
        "volume24hr": amount(volumes.day_units),
        "volume1wk": amount(volumes.week_units),
        "volume1mo": amount(volumes.month_units),
        "volume1yr": amount(volumes.year_units),
    }


@lru_cache(maxsize=MARKETS_KEPT_MAX)
def _prices(
    top: BookTop, payout: Payout | None, past_prices: tuple[float | None, ...]
) -> Mapping[str, Any]:
    """Return the listed price, the top of the book, and the changes of the price; equal ones are kept."""
    price = listed_price(top, payout, is_yes=True)
    bid, ask = top.best_bid_ticks, top.best_ask_ticks
    changes = zip(CHANGES, past_prices, strict=True)
    return {
        "outcome_prices": _json_text((_price_text(price), _price_text(1 - price))),
        "competitive": rounded(competitiveness(price)),
        "best_bid": _present(None if bid is None else Fraction(bid, top.ticks_per_one)),
        "best_ask": _present(None if ask is None else Fraction(ask, top.ticks_per_one)),
        "spread": _present(spread(top)),
        "last_trade_price": _present(last_price(top)),
    } | {name: _present(None if past is None else price - Fraction(past)) for name, past in changes}


def _top(market: CatalogMarket) -> BookTop:
    """Return the top of the book, or only its current tick before the first quote."""
    return BookTop(market.ticks_per_one) if market.top is None else market.top


def _closing_time(closed_at_s: int | None) -> str | UnsetType:
    return UNSET if closed_at_s is None else iso_time(closed_at_s * 1000)


def _present(value: Fraction | None) -> Decimal | UnsetType:
    return UNSET if value is None else rounded(value)


def _price_text(price: Fraction) -> str:
    return decimal_string(rounded(price))


@lru_cache(maxsize=MARKETS_KEPT_MAX)
def _competitive(evenness: float) -> Decimal:
    return rounded(competitiveness(ONE_HALF + Fraction(evenness)))


@lru_cache(maxsize=MARKETS_KEPT_MAX)
def _json_text(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)
