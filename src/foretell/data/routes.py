"""Routes of the data API: portfolios, activity, metrics of markets and leaderboards; read only.

There is no authentication and no header is read. An answer is one reading transaction on the tables;
the engine is never asked.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from litestar import Litestar, Response, get
from litestar.di import NamedDependency

from foretell.data import activity, leaderboards, metrics, portfolio, referrals, responses
from foretell.data.context import DataContext
from foretell.data.parameters import MARKET, USER
from foretell.data.refusals import data_body
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response
from foretell.edge.openapi import json_responses, operation_with
from foretell.edge.query import Query

TITLE: Final = "Foretell data API (pre-release)"
ABOUT: Final = (
    "Pre-release: routes, filters and fields may still change. Read only; no authentication and no"
    " limits by default. Amounts are JSON numbers of whole tokens or whole collateral, token ids"
    " are decimal strings."
)

Answer = Response[bytes]
Context = NamedDependency[DataContext]
UseCase = Callable[[DataContext, Query], Awaitable[Any]]


async def _answer(use_case: UseCase, request: AnyRequest, context: DataContext) -> Answer:
    return json_response(await use_case(context, Query.of(request)))


@get("/", responses=json_responses(dict[str, str], "It is there."))
async def get_root() -> Answer:
    """Answer when the API is reachable."""
    return json_response({"data": "OK"})


@get(
    "/positions",
    responses=json_responses(list[responses.PositionResponse], "A page of open positions."),
    operation_class=operation_with(*portfolio.POSITION_PARAMETERS),
)
async def get_positions(request: AnyRequest, context: Context) -> Answer:
    """Return a wallet's open positions."""
    return await _answer(portfolio.list_positions, request, context)


@get(
    "/closed-positions",
    responses=json_responses(list[responses.PositionResponse], "A page of closed positions."),
    operation_class=operation_with(*portfolio.CLOSED_PARAMETERS),
)
async def get_closed_positions(request: AnyRequest, context: Context) -> Answer:
    """Return a wallet's closed positions."""
    return await _answer(portfolio.list_closed_positions, request, context)


@get(
    "/value",
    responses=json_responses(list[responses.Value], "The worth of all open positions: one entry."),
    operation_class=operation_with(USER, MARKET),
)
async def get_value(request: AnyRequest, context: Context) -> Answer:
    """Return the value of a wallet's open positions."""
    return await _answer(portfolio.list_values, request, context)


@get(
    "/traded",
    responses=json_responses(responses.Traded, "The number of markets traded in."),
    operation_class=operation_with(USER),
)
async def get_traded(request: AnyRequest, context: Context) -> Answer:
    """Return the number of markets in which a wallet traded."""
    return await _answer(portfolio.count_traded, request, context)


@get(
    "/volume",
    responses=json_responses(responses.Volume, "The collateral traded, as maker and as taker."),
    operation_class=operation_with(USER),
)
async def get_volume(request: AnyRequest, context: Context) -> Answer:
    """Return the collateral that a wallet traded."""
    return await _answer(portfolio.sum_volume, request, context)


@get(
    "/holders",
    responses=json_responses(list[responses.TokenHolders], "An entry for each outcome token."),
    operation_class=operation_with(*metrics.HOLDERS_PARAMETERS),
)
async def get_holders(request: AnyRequest, context: Context) -> Answer:
    """Return the holders of the outcome tokens of markets."""
    return await _answer(metrics.list_holders, request, context)


@get(
    "/oi",
    responses=json_responses(
        list[responses.MarketValue], "Collateral locked behind each condition."
    ),
    operation_class=operation_with(*metrics.OPEN_INTEREST_PARAMETERS),
)
async def get_open_interest(request: AnyRequest, context: Context) -> Answer:
    """Return open interests: of some markets, or the largest 500."""
    return await _answer(metrics.list_open_interests, request, context)


@get(
    "/live-volume",
    responses=json_responses(
        list[responses.LiveVolume], "Volume of each market and of all: one entry."
    ),
    operation_class=operation_with(*metrics.LIVE_VOLUME_PARAMETERS),
)
async def get_live_volume(request: AnyRequest, context: Context) -> Answer:
    """Return the volume of markets since they opened."""
    return await _answer(metrics.list_live_volumes, request, context)


@get(
    "/trades",
    responses=json_responses(list[responses.TradeResponse], "A page of trades, the newest first."),
    operation_class=operation_with(*activity.TRADE_PARAMETERS),
)
async def get_trades(request: AnyRequest, context: Context) -> Answer:
    """Return trades that the chain settled."""
    return await _answer(activity.list_trades, request, context)


@get(
    "/activity",
    responses=json_responses(list[responses.ActivityResponse], "A page of what the wallet did."),
    operation_class=operation_with(*activity.ACTIVITY_PARAMETERS),
)
async def get_activity(request: AnyRequest, context: Context) -> Answer:
    """Return trades, splits, merges and redemptions of a wallet."""
    return await _answer(activity.list_activities, request, context)


@get(
    ["/referrers", "/affiliates"],
    responses=json_responses(list[responses.FeeAggregate], "Shared fees: none are."),
    operation_class=operation_with(*referrals.PARAMETERS),
)
async def get_fee_shares(request: AnyRequest) -> Answer:
    """Return fees that were shared with referrers or affiliates."""
    return json_response(referrals.list_fee_shares(Query.of(request)))


@get(
    "/v1/leaderboard",
    responses=json_responses(list[responses.TraderRow], "A page of the leaderboard."),
    operation_class=operation_with(*leaderboards.TRADERS_PARAMETERS),
)
async def get_leaderboard(request: AnyRequest, context: Context) -> Answer:
    """Return the wallets with the largest gain or volume."""
    return await _answer(leaderboards.list_traders, request, context)


@get(
    ["/v1/leaderboard/biggest-wins", "/v1/biggest-winners"],
    responses=json_responses(list[responses.WinRow], "A page of the largest wins."),
    operation_class=operation_with(*leaderboards.WINS_PARAMETERS),
)
async def get_biggest_wins(request: AnyRequest, context: Context) -> Answer:
    """Return the positions that were closed with the largest gains."""
    return await _answer(leaderboards.list_wins, request, context)


@get(
    "/v1/builders/leaderboard",
    responses=json_responses(list[responses.BuilderRow], "An empty list."),
    operation_class=operation_with(*leaderboards.BUILDERS_PARAMETERS),
)
async def get_builders(request: AnyRequest) -> Answer:
    """Return the leaderboard of builders: a placeholder, always empty."""
    return json_response(leaderboards.list_builders(Query.of(request)))


@get(
    "/v1/builders/volume",
    responses=json_responses(list[responses.BuilderRow], "An empty list."),
    operation_class=operation_with(*leaderboards.BUILDER_VOLUMES_PARAMETERS),
)
async def get_builder_volumes(request: AnyRequest) -> Answer:
    """Return the volumes of builders: a placeholder, always empty."""
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
    """Return the application of the data API, its paths starting at /."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=ROUTES,
        context=context,
        body_of=data_body,
    )
