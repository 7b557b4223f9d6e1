"""Responses of the discovery API.

A key without a value is left out. Lists inside a market are JSON in a string, as clients expect;
token ids are always strings.
"""

from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from foretell.edge.codec import WireObject


class TagResponse(WireObject, frozen=True, kw_only=True):
    """A tag, which groups events."""

    id: str
    label: str
    slug: str
    force_show: bool = False
    force_hide: bool = False
    is_carousel: bool = False
    published_at: str
    created_at: str
    updated_at: str
    requires_translation: bool = False


class FoundTag(WireObject, frozen=True, kw_only=True, rename=None):
    """A tag in the result of a search."""

    id: str
    label: str
    slug: str
    event_count: int


class VolumesResponse(WireObject, frozen=True, kw_only=True):
    """The collateral traded in the last day, week, month and year."""

    volume24hr: Decimal
    volume1wk: Decimal
    volume1mo: Decimal
    volume1yr: Decimal


class EventTeam(WireObject, frozen=True, kw_only=True):
    """A team of a game, and its side."""

    name: str
    abbreviation: str
    host_status: str
    logo: str | UnsetType = UNSET


class EventMetadata(WireObject, frozen=True, kw_only=True):
    """The details of a game that its creator gave."""

    section: str
    event_variant: str
    sport_slug: str | UnsetType = UNSET
    league_slug: str | UnsetType = UNSET
    league_label: str | UnsetType = UNSET
    source_provider: str | UnsetType = UNSET
    source_event_id: str | UnsetType = UNSET
    source_game_id: str | UnsetType = UNSET
    source_league_id: str | UnsetType = UNSET
    source_match_confidence: float | UnsetType = UNSET
    livestream_url: str | UnsetType = UNSET


class SeriesResponse(WireObject, frozen=True, kw_only=True):
    """A series: the games of a league."""

    id: str
    ticker: str
    slug: str
    title: str
    image: str
    icon: str
    active: bool = True
    closed: bool | UnsetType = UNSET
    archived: bool = False
    new: bool = False
    featured: bool = False
    restricted: bool = False
    volume: Decimal | UnsetType = UNSET
    created_at: str
    updated_at: str
    comment_count: int = 0
    events: "list[Event] | UnsetType" = UNSET


class Sport(WireObject, frozen=True, kw_only=True):
    """A sport; its tags and series are lists of ids, joined by commas."""

    id: int
    sport: str
    image: str
    resolution: str
    ordering: str = "home"
    tags: str
    series: str
    created_at: str


class Team(WireObject, frozen=True, kw_only=True):
    """A team of a league."""

    id: int
    name: str
    league: str
    logo: str
    abbreviation: str
    created_at: str
    updated_at: str


class Event(VolumesResponse, frozen=True, kw_only=True):
    """A group of markets; inside a market, without its markets."""

    id: str
    ticker: str
    slug: str
    title: str
    description: str
    resolution_source: str
    start_date: str
    creation_date: str
    end_date: str
    image: str
    icon: str
    active: bool = True
    closed: bool
    archived: bool = False
    new: bool = False
    featured: bool = False
    restricted: bool = False
    liquidity: Decimal
    volume: Decimal
    open_interest: Decimal
    liquidity_clob: Decimal
    competitive: Decimal
    category: str
    enable_order_book: bool = True
    neg_risk: bool
    neg_risk_market_id: str | UnsetType = msgspec.field(default=UNSET, name="negRiskMarketID")
    enable_neg_risk: bool
    neg_risk_augmented: bool = False
    comment_count: int = 0
    markets: "list[MarketResponse] | UnsetType" = UNSET
    series: list[SeriesResponse] = msgspec.field(default_factory=list)
    series_slug: str | UnsetType = UNSET
    event_date: str | UnsetType = UNSET
    start_time: str | UnsetType = UNSET
    game_id: int | UnsetType = UNSET
    teams: list[EventTeam] | UnsetType = UNSET
    event_metadata: EventMetadata | UnsetType = UNSET
    tags: list[TagResponse] | UnsetType = UNSET
    cyom: bool = False
    closed_time: str | UnsetType = UNSET
    show_all_outcomes: bool = True
    show_market_images: bool = True
    automatically_resolved: bool = False
    automatically_active: bool = True
    created_at: str
    updated_at: str
    published_at: str
    requires_translation: bool = False
    created_by: str
    deploying: bool = False
    pending_deployment: bool = False


class OracleStep(WireObject, frozen=True, kw_only=True):
    """A proposal or a dispute of an answer at the optimistic oracle.

    `price` is the answer as the oracle has it: 10¹⁸ for the first outcome, 0 for the second, half for both.
    """

    status: Literal["proposed", "disputed"]
    time: str
    account: str
    price: str
    transaction_hash: str


class MarketResponse(VolumesResponse, frozen=True, kw_only=True):
    """One tradable condition; inside an event, without its event."""

    id: str
    question: str
    condition_id: str
    slug: str
    resolution_source: str
    end_date: str
    start_date: str
    category: str
    image: str
    icon: str
    description: str
    outcomes: str
    outcome_prices: str
    volume: str
    liquidity: str
    volume_num: Decimal
    liquidity_num: Decimal
    volume_clob: Decimal
    liquidity_clob: Decimal
    volume24hr_clob: Decimal
    volume1wk_clob: Decimal
    volume1mo_clob: Decimal
    volume1yr_clob: Decimal
    active: bool = True
    closed: bool
    archived: bool = False
    new: bool = False
    featured: bool = False
    restricted: bool = False
    market_maker_address: str = ""
    created_at: str
    updated_at: str
    closed_time: str | UnsetType = UNSET
    question_id: str = msgspec.field(name="questionID")
    enable_order_book: bool = True
    order_price_min_tick_size: Decimal
    order_min_size: Decimal
    uma_resolution_status: str
    uma_resolution_statuses: str
    resolution_steps: list[OracleStep] | UnsetType = UNSET
    end_date_iso: str
    start_date_iso: str
    has_reviewed_dates: bool = True
    seconds_delay: int = 0
    clob_token_ids: str
    maker_base_fee: int
    taker_base_fee: int
    accepting_orders: bool
    accepting_orders_timestamp: str
    notifications_enabled: bool = False
    events: list[Event] | UnsetType = UNSET
    tags: list[TagResponse] | UnsetType = UNSET
    creator: str
    ready: bool = True
    funded: bool = True
    cyom: bool = False
    competitive: Decimal
    rewards_min_size: int = 0
    rewards_max_spread: int = 0
    spread: Decimal | UnsetType = UNSET
    best_bid: Decimal | UnsetType = UNSET
    best_ask: Decimal | UnsetType = UNSET
    last_trade_price: Decimal | UnsetType = UNSET
    one_hour_price_change: Decimal | UnsetType = UNSET
    one_day_price_change: Decimal | UnsetType = UNSET
    one_week_price_change: Decimal | UnsetType = UNSET
    one_month_price_change: Decimal | UnsetType = UNSET
    neg_risk: bool
    neg_risk_other: bool = False
    neg_risk_market_id: str | UnsetType = msgspec.field(default=UNSET, name="negRiskMarketID")
    neg_risk_request_id: str | UnsetType = msgspec.field(default=UNSET, name="negRiskRequestID")
    group_item_title: str
    group_item_threshold: str | UnsetType = UNSET
    sports_market_type: str | UnsetType = UNSET
    line: Decimal | UnsetType = UNSET
    game_id: str | UnsetType = UNSET
    game_start_time: str | UnsetType = UNSET
    clear_book_on_start: bool = False
    manual_activation: bool = False
    automatically_active: bool = True
    custom_liveness: int = 0
    submitted_by: str = msgspec.field(name="submitted_by")
    resolved_by: str
    rfq_enabled: bool = False
    fees_enabled: bool
    holding_rewards_enabled: bool = False
    approved: bool = True
    pager_duty_notification_enabled: bool = False
    clob_rewards: list[Any] = msgspec.field(default_factory=list)


class EventKeyset(WireObject, frozen=True, kw_only=True, rename=None):
    """A page of events, and the cursor of the next page."""

    events: list[Event]
    next_cursor: str | UnsetType = UNSET


class MarketKeyset(WireObject, frozen=True, kw_only=True, rename=None):
    """A page of markets, and the cursor of the next page."""

    markets: list[MarketResponse]
    next_cursor: str | UnsetType = UNSET


class Pagination(WireObject, frozen=True, kw_only=True):
    """The length of a list, and a flag for more rows after a page."""

    has_more: bool
    total_results: int


class EventPage(WireObject, frozen=True, kw_only=True):
    """A page of events with its pagination."""

    data: list[Event]
    pagination: Pagination


class PublicProfileResponse(WireObject, frozen=True, kw_only=True):
    """What an address says of itself; its wallet is its Safe."""

    name: str
    pseudonym: str
    bio: str
    profile_image: str
    proxy_wallet: str
    base_address: str
    display_username_public: bool
    updated_at: str


class SearchResult(WireObject, frozen=True, kw_only=True):
    """The result of a search."""

    events: list[Event]
    tags: list[FoundTag]
    profiles: list[PublicProfileResponse] | UnsetType = UNSET
    pagination: Pagination


class Description(WireObject, frozen=True, kw_only=True):
    """The rules of a market."""

    description: str


class Count(WireObject, frozen=True, kw_only=True):
    """The number of comments."""

    count: int


class MarketTypes(WireObject, frozen=True, kw_only=True):
    """The kinds of sports markets."""

    market_types: list[str]
