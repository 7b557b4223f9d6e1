"""What the data API answers with, field by field.

Amounts are decimals of whole tokens or whole collateral, which leave as JSON numbers; what must stay
exact beyond any number, token ids above all, is a string.
"""

from decimal import Decimal

import msgspec


class Record(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An answer's object: snake case here, camel case on the wire."""


class PositionResponse(Record, frozen=True, kw_only=True):
    """What a wallet holds of a token, what it cost, and what it is worth now."""

    proxy_wallet: str
    asset: str
    condition_id: str
    size: Decimal
    avg_price: Decimal
    initial_value: Decimal
    current_value: Decimal
    cash_pnl: Decimal
    percent_pnl: Decimal
    total_bought: Decimal
    total_bought_usdc: Decimal
    realized_pnl: Decimal
    percent_realized_pnl: Decimal
    cur_price: Decimal
    redeemable: bool
    mergeable: bool
    title: str
    slug: str
    icon: str
    event_slug: str
    event_id: str
    outcome: str
    outcome_index: int
    opposite_outcome: str
    opposite_asset: str
    end_date: str
    negative_risk: bool
    timestamp: int


class Value(Record, frozen=True, kw_only=True):
    """What a wallet's open positions are worth together."""

    user: str
    value: Decimal


class Traded(Record, frozen=True, kw_only=True):
    """In how many markets a wallet has traded."""

    user: str
    traded: int


class Volume(Record, frozen=True, kw_only=True):
    """How much a wallet has traded."""

    user: str
    volume: str


class Profile(Record, frozen=True, kw_only=True):
    """How a wallet wants to be shown; nobody has written a profile yet where all is empty."""

    name: str = ""
    pseudonym: str = ""
    bio: str = ""
    profile_image: str = ""
    profile_image_optimized: str | None = None


class TradeResponse(Profile, frozen=True, kw_only=True):
    """One side of a match that the chain settled."""

    proxy_wallet: str
    side: str
    asset: str
    condition_id: str
    size: Decimal
    price: Decimal
    usdc_size: Decimal
    timestamp: int
    transaction_hash: str
    title: str
    slug: str
    icon: str
    event_slug: str
    outcome: str
    outcome_index: int


class ActivityResponse(Profile, frozen=True, kw_only=True):
    """Something that a wallet did on the chain; only a trade has a token, a side and a price."""

    proxy_wallet: str
    timestamp: int
    condition_id: str
    type: str
    size: Decimal
    usdc_size: Decimal
    transaction_hash: str
    price: Decimal | None
    asset: str | None
    side: str | None
    outcome_index: int | None
    title: str
    slug: str
    icon: str
    event_slug: str
    outcome: str


class HolderResponse(Profile, frozen=True, kw_only=True):
    """A wallet that holds a token."""

    proxy_wallet: str
    asset: str
    amount: Decimal
    outcome_index: int
    display_username_public: bool = False


class TokenHolders(Record, frozen=True, kw_only=True):
    """Who holds a token, the largest first."""

    token: str
    holders: list[HolderResponse]


class MarketValue(Record, frozen=True, kw_only=True):
    """An amount of collateral that belongs to a market."""

    market: str
    value: Decimal


class LiveVolume(Record, frozen=True, kw_only=True):
    """What was traded in some markets, in each and together."""

    total: Decimal
    markets: list[MarketValue]


class FeeAggregate(Record, frozen=True, kw_only=True):
    """Fees that a receiver got through an exchange."""

    exchange: str
    receiver: str
    token_id: str
    total_amount: str
    updated_at: int
    total_volume: str


class TraderRow(Record, frozen=True, kw_only=True):
    """A wallet's place on the leaderboard."""

    rank: str
    proxy_wallet: str
    user_name: str | None
    vol: Decimal
    pnl: Decimal
    profile_image: str | None
    x_username: str | None
    verified_badge: bool | None


class WinRow(Record, frozen=True, kw_only=True):
    """A position that was closed with a gain."""

    win_rank: str
    proxy_wallet: str
    user_name: str | None
    event_title: str | None
    slug: str | None
    icon: str | None
    event_slug: str | None
    initial_value: Decimal
    final_value: Decimal
    pnl: Decimal
    profile_image: str | None


class BuilderRow(Record, frozen=True, kw_only=True):
    """What an application brought; none is counted yet."""

    rank: str
    builder: str
    volume: Decimal
    active_users: int
    verified: bool
    builder_logo: str
