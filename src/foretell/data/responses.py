"""Responses of the data API.

Amounts are decimals of whole tokens or whole collateral, sent as JSON numbers. Values that a JSON
number cannot hold exactly, such as token ids, are strings.
"""

from decimal import Decimal

from foretell.edge.codec import WireObject


class PositionResponse(WireObject, frozen=True, kw_only=True):
    """A wallet's position in a token, with its cost and its value now."""

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


class OwedToken(WireObject, frozen=True, kw_only=True):
    """Tokens that an exchange keeps for a wallet that refused them."""

    proxy_wallet: str
    exchange: str
    asset: str
    condition_id: str
    size: Decimal
    title: str
    slug: str
    event_slug: str
    outcome: str
    outcome_index: int
    negative_risk: bool


class OwedPage(WireObject, frozen=True, kw_only=True):
    """Some of the tokens that are kept for a wallet; `next` is empty on the last page."""

    owed: list[OwedToken]
    next: str


class LedgerFigures(WireObject, frozen=True, kw_only=True):
    """The figures of a position at a time, or what a block added to them."""

    size: Decimal
    initial_value: Decimal
    total_bought: Decimal
    total_bought_usdc: Decimal
    realized_pnl: Decimal


class LedgerAct(WireObject, frozen=True, kw_only=True):
    """An activity of the wallet in the block of an entry; only a trade has a side."""

    type: str
    side: str | None
    size: Decimal
    usdc_size: Decimal
    transaction_hash: str


class LedgerEntry(LedgerFigures, frozen=True, kw_only=True):
    """What one block added to each figure, and why. Without an activity it is a transfer."""

    block: int
    timestamp: int
    activities: list[LedgerAct]


class LedgerResponse(WireObject, frozen=True, kw_only=True):
    """A page of the changes of a position."""

    proxy_wallet: str
    asset: str
    condition_id: str
    before: LedgerFigures
    entries: list[LedgerEntry]
    now: LedgerFigures
    next: str


class Value(WireObject, frozen=True, kw_only=True):
    """The value of all open positions of a wallet."""

    user: str
    value: Decimal


class Traded(WireObject, frozen=True, kw_only=True):
    """The number of markets in which a wallet has traded."""

    user: str
    traded: int


class Volume(WireObject, frozen=True, kw_only=True):
    """The collateral that a wallet has traded."""

    user: str
    volume: str


class Profile(WireObject, frozen=True, kw_only=True):
    """The public profile of a wallet; all fields are empty without one."""

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
    """An activity of a wallet on the chain; only a trade has a token, a side and a price."""

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


class TokenHolders(WireObject, frozen=True, kw_only=True):
    """The holders of a token, the largest first."""

    token: str
    holders: list[HolderResponse]


class MarketValue(WireObject, frozen=True, kw_only=True):
    """An amount of collateral that belongs to a market."""

    market: str
    value: Decimal


class LiveVolume(WireObject, frozen=True, kw_only=True):
    """The volume of some markets, of each and in total."""

    total: Decimal
    markets: list[MarketValue]


class FeeAggregate(WireObject, frozen=True, kw_only=True):
    """Fees that a receiver earned on an exchange."""

    exchange: str
    receiver: str
    token_id: str
    total_amount: str
    updated_at: int
    total_volume: str


class TraderRow(WireObject, frozen=True, kw_only=True):
    """A wallet's place on the leaderboard."""

    rank: str
    proxy_wallet: str
    user_name: str | None
    vol: Decimal
    pnl: Decimal
    profile_image: str | None
    x_username: str | None
    verified_badge: bool | None


class WinRow(WireObject, frozen=True, kw_only=True):
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


class BuilderRow(WireObject, frozen=True, kw_only=True):
    """The volume of a builder, by its code; nobody verifies builders here."""

    rank: str
    builder: str
    volume: Decimal
    active_users: int
    verified: bool
    builder_logo: str


class BuilderDayRow(BuilderRow, frozen=True, kw_only=True):
    """The volume of a builder on the day that begins at `dt`."""

    dt: str


class PoolSolvency(WireObject, frozen=True, kw_only=True):
    """A contract's collateral, and what is claimed of it."""

    name: str
    held: Decimal
    owed: Decimal
    deficit: Decimal


class NamedDeficit(WireObject, frozen=True, kw_only=True):
    """A pool, or a condition by its id, that owes more than it has."""

    name: str
    amount: Decimal


class TotalSolvency(WireObject, frozen=True, kw_only=True):
    """The solvency of all conditions at a block; it is computed now and then."""

    block: int
    block_hash: str
    timestamp: int
    is_solvent: bool
    held: Decimal
    owed: Decimal
    deficit: Decimal
    conditions: int
    short_conditions: int
    pools: list[PoolSolvency]
    deficits: list[NamedDeficit]


class ConditionSolvency(WireObject, frozen=True, kw_only=True):
    """The collateral that is locked for a condition, and what its tokens can claim."""

    condition_id: str
    negative_risk: bool
    is_resolved: bool
    held: Decimal
    owed: Decimal
    deficit: Decimal


class SolvencyPage(WireObject, frozen=True, kw_only=True):
    """Some conditions at a block, by their ids; `next` is empty on the last page."""

    block: int
    block_hash: str
    conditions: list[ConditionSolvency]
    next: str


class SolvencyResponse(WireObject, frozen=True, kw_only=True):
    """The solvency of all conditions, and a page of them."""

    total: TotalSolvency
    page: SolvencyPage
