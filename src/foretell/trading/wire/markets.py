"""Markets as the trading API lists them: with all fields, with the main fields, and compact."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec

from foretell.domain.portfolio.prices import BookTop, listed_price
from foretell.domain.values.amounts import decimal_text, ratio_text, tick_text
from foretell.domain.values.hexadecimal import Bytes32, checksum_address
from foretell.domain.values.instants import iso_time
from foretell.edge.rendering import amount, rounded
from foretell.store.queries.market_listings import Listing
from foretell.store.trading.trades import TradeRow


class TokenRecord(msgspec.Struct, frozen=True):
    """An outcome: its token, its price, and a flag if it won."""

    token_id: str
    outcome: str
    price: Decimal
    winner: bool


class RewardsRecord(msgspec.Struct, frozen=True):
    """The rewards of a market: none are paid here."""

    rates: Sequence[str] | None = None
    min_size: int = 0
    max_spread: int = 0


class EventRecord(msgspec.Struct, frozen=True):
    """The group that a market belongs to."""

    id: str
    slug: str
    title: str
    ticker: str
    description: str


class MarketRecord(msgspec.Struct, frozen=True):
    """A market with all its fields."""

    enable_order_book: bool
    active: bool
    closed: bool
    archived: bool
    accepting_orders: bool
    accepting_order_timestamp: str | None
    minimum_order_size: Decimal
    minimum_tick_size: Decimal
    condition_id: Bytes32
    question_id: Bytes32
    question: str
    description: str
    market_slug: str
    end_date_iso: str | None
    game_start_time: str | None
    seconds_delay: int
    fpmm: str
    maker_base_fee: int
    taker_base_fee: int
    notifications_enabled: bool
    neg_risk: bool
    neg_risk_market_id: str
    neg_risk_request_id: str
    icon: str
    image: str
    rewards: RewardsRecord
    is_50_50_outcome: bool
    tokens: Sequence[TokenRecord]
    tags: Sequence[str] | None
    creator: str
    status: str
    market_id: int
    slug: str
    assets_ids: Sequence[str]
    outcomes: Sequence[str]
    event: EventRecord


class SimplifiedMarketRecord(msgspec.Struct, frozen=True):
    """A market with its main fields."""

    condition_id: Bytes32
    tokens: Sequence[TokenRecord]
    rewards: RewardsRecord
    active: bool
    closed: bool
    archived: bool
    accepting_orders: bool
    status: str
    neg_risk: bool
    market_id: int
    question: str
    slug: str
    assets_ids: Sequence[str]
    outcomes: Sequence[str]
    creator: str


class CompactToken(msgspec.Struct, frozen=True):
    """An outcome's token and name."""

    t: str
    o: str


class CompactMarketRecord(msgspec.Struct, frozen=True):
    """The parameters that a client needs to trade a market, under short names."""

    c: Bytes32
    t: Sequence[CompactToken]
    mts: Decimal
    mos: Decimal
    nr: bool
    mbf: int
    tbf: int
    fd: None
    r: None
    rfqe: bool
    ibce: bool
    oas: int
    gst: None
    ao: bool
    sd: int
    aot: str
    creator: str


class TokenMarketRecord(msgspec.Struct, frozen=True):
    """The market that a token belongs to."""

    condition_id: Bytes32
    primary_token_id: str
    secondary_token_id: str
    creator: str


class TapeMarket(msgspec.Struct, frozen=True):
    """The market and token of a public trade."""

    condition_id: Bytes32
    asset_id: str
    question: str
    icon: str
    slug: str


class TapeUser(msgspec.Struct, frozen=True):
    """The taker of a public trade: its wallet; there are no profiles."""

    address: str
    username: str = ""
    profile_picture: str = ""
    optimized_profile_picture: str = ""
    pseudonym: str = ""


class TapeRecord(msgspec.Struct, frozen=True, tag="trade", tag_field="event_type"):
    """A public trade."""

    market: TapeMarket
    user: TapeUser
    side: str
    size: str
    fee_rate_bps: str
    price: str
    outcome: str
    outcome_index: int
    transaction_hash: str
    timestamp: str


def tape_record(row: TradeRow, listing: Listing) -> TapeRecord:
    """Return a trade of a market as a public trade."""
    trade = row.trade
    return TapeRecord(
        market=TapeMarket(
            condition_id=listing.condition_id,
            asset_id=row.token_id,
            question=listing.question,
            icon=listing.icon,
            slug=listing.slug,
        ),
        user=TapeUser(checksum_address(trade.taker)),
        side=trade.side.name,
        size=decimal_text(trade.size_units),
        fee_rate_bps=str(listing.fee_rate_bps),
        price=ratio_text(trade.cost_units, trade.size_units),
        outcome=listing.outcome(is_yes=trade.is_yes),
        outcome_index=0 if trade.is_yes else 1,
        transaction_hash=row.tx_hash,
        timestamp=str(trade.matched_at_ms // 1000),
    )


def market_record(listing: Listing, top: BookTop | None) -> MarketRecord:
    """Return a market with all its fields; `top` has the best prices in its book."""
    is_closed = listing.payout is not None
    opened_at = iso_time(listing.created_at_ms)
    return MarketRecord(
        enable_order_book=True,
        active=True,
        closed=is_closed,
        archived=False,
        accepting_orders=listing.is_accepting_orders,
        accepting_order_timestamp=opened_at,
        minimum_order_size=amount(listing.size_units_min),
        minimum_tick_size=Decimal(tick_text(listing.ticks_per_one)),
        condition_id=listing.condition_id,
        question_id=listing.question_id,
        question=listing.question,
        description=listing.rules,
        market_slug=listing.slug,
        end_date_iso=iso_time(listing.ends_at_ms),
        game_start_time=None,
        seconds_delay=listing.seconds_delay,
        fpmm="",
        maker_base_fee=listing.fee_rate_bps,
        taker_base_fee=listing.fee_rate_bps,
        notifications_enabled=False,
        neg_risk=listing.is_neg_risk,
        neg_risk_market_id=listing.neg_risk_market_id or "",
        neg_risk_request_id=listing.neg_risk_request_id or "",
        icon=listing.icon,
        image=listing.event_image,
        rewards=RewardsRecord(),
        is_50_50_outcome=listing.payout is not None and listing.payout.yes == listing.payout.no,
        tokens=_tokens(listing, top),
        tags=listing.tags,
        creator=listing.creator,
        status=_status(listing),
        market_id=listing.market_id,
        slug=listing.slug,
        assets_ids=(listing.token_yes, listing.token_no),
        outcomes=(listing.outcome_yes, listing.outcome_no),
        event=EventRecord(
            id=str(listing.event_id),
            slug=listing.event_slug,
            title=listing.event_title,
            ticker=listing.event_slug,
            description=listing.rules,
        ),
    )


def simplified_record(listing: Listing, top: BookTop | None) -> SimplifiedMarketRecord:
    """Return a market with its main fields."""
    is_closed = listing.payout is not None
    return SimplifiedMarketRecord(
        condition_id=listing.condition_id,
        tokens=_tokens(listing, top),
        rewards=RewardsRecord(),
        active=True,
        closed=is_closed,
        archived=False,
        accepting_orders=listing.is_accepting_orders,
        status=_status(listing),
        neg_risk=listing.is_neg_risk,
        market_id=listing.market_id,
        question=listing.question,
        slug=listing.slug,
        assets_ids=(listing.token_yes, listing.token_no),
        outcomes=(listing.outcome_yes, listing.outcome_no),
        creator=listing.creator,
    )


def compact_record(listing: Listing) -> CompactMarketRecord:
    """Return the parameters that a client needs to trade the market."""
    return CompactMarketRecord(
        c=listing.condition_id,
        t=(
            CompactToken(listing.token_yes, listing.outcome_yes),
            CompactToken(listing.token_no, listing.outcome_no),
        ),
        mts=Decimal(tick_text(listing.ticks_per_one)),
        mos=amount(listing.size_units_min),
        nr=listing.is_neg_risk,
        mbf=listing.fee_rate_bps,
        tbf=listing.fee_rate_bps,
        fd=None,
        r=None,
        rfqe=False,
        ibce=False,
        oas=0,
        gst=None,
        ao=listing.is_accepting_orders,
        sd=0,
        aot=iso_time(listing.created_at_ms),
        creator=listing.creator,
    )


def token_market_record(listing: Listing) -> TokenMarketRecord:
    """Return the market of a token."""
    return TokenMarketRecord(
        condition_id=listing.condition_id,
        primary_token_id=listing.token_yes,
        secondary_token_id=listing.token_no,
        creator=listing.creator,
    )


def _status(listing: Listing) -> str:
    return "active" if listing.payout is None else "resolved"


def _tokens(listing: Listing, top: BookTop | None) -> list[TokenRecord]:
    payout = listing.payout
    return [
        TokenRecord(
            token_id=listing.token(is_yes=is_yes),
            outcome=listing.outcome(is_yes=is_yes),
            price=rounded(listed_price(top, payout, is_yes=is_yes)),
            winner=payout is not None
            and (payout.yes > payout.no if is_yes else payout.no > payout.yes),
        )
        for is_yes in (True, False)
    ]
