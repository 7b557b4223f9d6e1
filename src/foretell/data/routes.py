"""The data API: what wallets have and did, what markets hold, who leads. All of it is read only.

Nobody needs to say who they are, and whatever headers come along are not looked at. Every answer is
one reading transaction on the tables; the engine is never asked.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from litestar import Litestar, Response, get
from litestar.di import NamedDependency

from foretell.data import activity, leaderboards, metrics, portfolio, referrals, responses
from foretell.data.context import DataContext
from foretell.data.refusals import data_body
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response
from foretell.edge.openapi import (
    answering,
    booleans,
    choices,
    integers,
    lists,
    numbers,
    taking,
    texts,
)
from foretell.edge.query import ID_MAX, Query

TITLE: Final = "Foretell data API (pre-release)"
ABOUT: Final = (
    "Pre-release: routes, filters and fields may still change. Read only; no authentication and no"
    " limits by default. Amounts are JSON numbers of whole tokens or whole collateral, token ids"
    " are decimal strings."
)

Answer = Response[bytes]
Services = NamedDependency[DataContext]
UseCase = Callable[[DataContext, Query], Awaitable[Any]]

USER: Final = texts("user", "address of the wallet", required=True)
ANY_USER: Final = texts("user", "address of a wallet")
MARKET: Final = lists("market", "condition ids, at most 500")
MARKETS: Final = lists("market", "condition ids, at most 500", required=True)
EVENT: Final = lists("eventId", "event ids, in place of market")
PART_OF_TITLE: Final = texts("title", "part of the market's title, at most 100 characters")
SORT_DIRECTION: Final = choices("sortDirection", "", portfolio.DIRECTIONS, "DESC")
SIDE: Final = choices("side", "trades of this side alone", activity.SIDES)
START: Final = integers("start", None, 0, ID_MAX, "first second that counts")
END: Final = integers("end", None, 0, ID_MAX, "last second that counts")
CATEGORY: Final = choices("category", "", leaderboards.CATEGORIES, "OVERALL")
PERIOD: Final = choices("timePeriod", "", leaderboards.PERIODS, "DAY")
ADDRESS: Final = texts("address", "who received the fees", required=True)


async def _answer(use_case: UseCase, request: AnyRequest, context: Services) -> Answer:
    return json_response(await use_case(context, Query.of(request)))


@get("/", responses=answering(dict[str, str], "It is there."))
async def get_root() -> Answer:
    """Say that the API is there."""
    return json_response({"data": "OK"})


@get(
    "/positions",
    responses=answering(list[responses.PositionResponse], "A page of open positions."),
    operation_class=taking(
        USER,
        MARKET,
        EVENT,
        numbers("sizeThreshold", "least size", 1),
        booleans("redeemable", "only those of resolved markets", default=False),
        booleans("mergeable", "only those whose opposite is held too", default=False),
        integers("limit", 100, 0, portfolio.POSITIONS_PER_PAGE_MAX),
        integers("offset", 0, 0, portfolio.POSITIONS_OFFSET_MAX),
        choices("sortBy", "", portfolio.POSITION_ORDERS, "TOKENS"),
        SORT_DIRECTION,
        PART_OF_TITLE,
    ),
)
async def get_positions(request: AnyRequest, context: Services) -> Answer:
    """Return what a wallet holds."""
    return await _answer(portfolio.list_positions, request, context)


@get(
    "/closed-positions",
    responses=answering(list[responses.PositionResponse], "A page of closed positions."),
    operation_class=taking(
        USER,
        MARKET,
        EVENT,
        PART_OF_TITLE,
        integers("limit", 10, 0, portfolio.CLOSED_PER_PAGE_MAX),
        integers("offset", 0, 0, portfolio.CLOSED_OFFSET_MAX),
        choices("sortBy", "", portfolio.CLOSED_ORDERS, "REALIZEDPNL"),
        SORT_DIRECTION,
    ),
)
async def get_closed_positions(request: AnyRequest, context: Services) -> Answer:
    """Return what a wallet held and holds no more."""
    return await _answer(portfolio.list_closed_positions, request, context)


@get(
    "/value",
    responses=answering(list[responses.Value], "The worth of all open positions: one entry."),
    operation_class=taking(USER, MARKET),
)
async def get_value(request: AnyRequest, context: Services) -> Answer:
    """Return what a wallet's open positions are worth."""
    return await _answer(portfolio.list_values, request, context)


@get(
    "/traded",
    responses=answering(responses.Traded, "The number of markets traded in."),
    operation_class=taking(USER),
)
async def get_traded(request: AnyRequest, context: Services) -> Answer:
    """Return in how many markets a wallet traded."""
    return await _answer(portfolio.count_traded, request, context)


@get(
    "/volume",
    responses=answering(responses.Volume, "The collateral traded, as maker and as taker."),
    operation_class=taking(USER),
)
async def get_volume(request: AnyRequest, context: Services) -> Answer:
    """Return how much a wallet traded."""
    return await _answer(portfolio.sum_volume, request, context)


@get(
    "/holders",
    responses=answering(list[responses.TokenHolders], "An entry for each outcome token."),
    operation_class=taking(
        MARKETS,
        integers("limit", 100, 0, metrics.HOLDERS_PER_TOKEN_MAX, "holders of each token"),
        numbers("minBalance", "least balance", 1),
    ),
)
async def get_holders(request: AnyRequest, context: Services) -> Answer:
    """Return who holds the outcome tokens of markets."""
    return await _answer(metrics.list_holders, request, context)


@get(
    "/oi",
    responses=answering(list[responses.MarketValue], "Collateral locked behind each condition."),
    operation_class=taking(MARKET),
)
async def get_open_interest(request: AnyRequest, context: Services) -> Answer:
    """Return open interests: of some markets, or the largest 500."""
    return await _answer(metrics.list_open_interests, request, context)


@get(
    "/live-volume",
    responses=answering(list[responses.LiveVolume], "Volume of each market and of all: one entry."),
    operation_class=taking(MARKET, integers("id", None, 1, ID_MAX, "event id, in place of market")),
)
async def get_live_volume(request: AnyRequest, context: Services) -> Answer:
    """Return what was ever traded in markets."""
    return await _answer(metrics.list_live_volumes, request, context)


@get(
    "/trades",
    responses=answering(list[responses.TradeResponse], "A page of trades, the newest first."),
    operation_class=taking(
        integers("limit", 100, 0, activity.TRADES_PER_PAGE_MAX),
        integers("offset", 0, 0, activity.OFFSET_MAX),
        booleans("takerOnly", "one row for each match, the taker's", default=True),
        choices("filterType", "what filterAmount counts", activity.AMOUNT_KINDS),
        numbers("filterAmount", "least amount, with filterType"),
        MARKET,
        EVENT,
        ANY_USER,
        SIDE,
        START,
        END,
    ),
)
async def get_trades(request: AnyRequest, context: Services) -> Answer:
    """Return trades that the chain settled."""
    return await _answer(activity.list_trades, request, context)


@get(
    "/activity",
    responses=answering(list[responses.ActivityResponse], "A page of what the wallet did."),
    operation_class=taking(
        USER,
        integers("limit", 100, 0, activity.ACTIVITIES_PER_PAGE_MAX),
        integers("offset", 0, 0, activity.OFFSET_MAX),
        MARKET,
        EVENT,
        lists("type", f"some of {', '.join(activity.SERVED_TYPES + activity.OTHER_TYPES)}"),
        START,
        END,
        choices("sortBy", "", activity.ACTIVITY_ORDERS, "TIMESTAMP"),
        SORT_DIRECTION,
        SIDE,
    ),
)
async def get_activity(request: AnyRequest, context: Services) -> Answer:
    """Return trades, splits, merges and redemptions of a wallet."""
    return await _answer(activity.list_activities, request, context)


@get(
    ["/referrers", "/affiliates"],
    responses=answering(list[responses.FeeAggregate], "Shared fees: none are."),
    operation_class=taking(
        ADDRESS,
        texts("exchange", "address of the exchange"),
        texts("tokenId", "token id"),
        integers("limit", 100, 0, referrals.ROWS_PER_PAGE_MAX),
        integers("offset", 0, 0, referrals.OFFSET_MAX),
    ),
)
async def get_fee_shares(request: AnyRequest) -> Answer:
    """Return fees that were shared with referrers or affiliates."""
    return json_response(referrals.list_fee_shares(Query.of(request)))


@get(
    "/v1/leaderboard",
    responses=answering(list[responses.TraderRow], "A page of the leaderboard."),
    operation_class=taking(
        CATEGORY,
        PERIOD,
        choices("orderBy", "", leaderboards.ORDERS, "PNL"),
        integers("limit", 25, 1, leaderboards.ROWS_PER_PAGE_MAX),
        integers("offset", 0, 0, leaderboards.OFFSET_MAX),
        ANY_USER,
        texts("userName", "name of a wallet's owner"),
    ),
)
async def get_leaderboard(request: AnyRequest, context: Services) -> Answer:
    """Return who gained or traded most."""
    return await _answer(leaderboards.list_traders, request, context)


@get(
    ["/v1/leaderboard/biggest-wins", "/v1/biggest-winners"],
    responses=answering(list[responses.WinRow], "A page of the largest wins."),
    operation_class=taking(
        CATEGORY,
        PERIOD,
        integers("limit", 20, 1, leaderboards.ROWS_PER_PAGE_MAX),
        integers("offset", 0, 0, leaderboards.OFFSET_MAX),
    ),
)
async def get_biggest_wins(request: AnyRequest, context: Services) -> Answer:
    """Return the positions that were closed with the largest gains."""
    return await _answer(leaderboards.list_wins, request, context)


@get(
    "/v1/builders/leaderboard",
    responses=answering(list[responses.BuilderRow], "An empty list."),
    operation_class=taking(
        PERIOD,
        integers("limit", 25, 0, leaderboards.ROWS_PER_PAGE_MAX),
        integers("offset", 0, 0, leaderboards.OFFSET_MAX),
    ),
)
async def get_builders(request: AnyRequest) -> Answer:
    """Return the leaderboard of builders: a placeholder, always empty."""
    return json_response(leaderboards.list_builders(Query.of(request)))


@get(
    "/v1/builders/volume",
    responses=answering(list[responses.BuilderRow], "An empty list."),
    operation_class=taking(PERIOD),
)
async def get_builder_volumes(request: AnyRequest) -> Answer:
    """Return what builders brought: a placeholder, always empty."""
    return json_response(leaderboards.list_builder_volumes(Query.of(request)))


ROUTES: Final = (
    get_root,
    get_positions,
    get_closed_positions,
    get_value,
    get_traded,
    get_volume,
    get_holders,
    get_open_interest,
    get_live_volume,
    get_trades,
    get_activity,
    get_fee_shares,
    get_leaderboard,
    get_biggest_wins,
    get_builders,
    get_builder_volumes,
)


def build_app(context: DataContext) -> Litestar:
    """Return the API as an application of its own, its paths starting at /."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=ROUTES,
        context=context,
        body_of=data_body,
    )
