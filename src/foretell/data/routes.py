"""Routes of the data API: portfolios, activity, metrics of markets and leaderboards; read only.

There is no authentication; no header is read but If-None-Match. An answer is one reading transaction on the tables;
the engine is never asked.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from litestar import Litestar, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from foretell.data import (
    activity,
    builder_volumes,
    exports,
    leaderboards,
    ledger,
    metrics,
    owed_tokens,
    portfolio,
    referrals,
    responses,
    solvency,
)
from foretell.data.context import DataContext
from foretell.data.parameters import MARKET, USER
from foretell.data.refusals import DOCUMENTED, data_body
from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    NothingIndexed,
    RpcRefused,
)
from foretell.domain.errors.http import MissingParameter, NotServed, UnknownRecord
from foretell.edge.application import build_application
from foretell.edge.codec import (
    NOT_STORED,
    AnyRequest,
    JsonResponse,
    encode_json,
    json_response,
)
from foretell.edge.documents.description import Success, describe, tagged
from foretell.edge.documents.openapi import Api
from foretell.edge.query import Query
from foretell.edge.read_answers import encoded_json, read_json

TITLE: Final = "Foretell data API (pre-release)"
ABOUT: Final = (
    "Pre-release: routes, filters and fields may still change. Read only; no authentication and no"
    " limits by default. Amounts are JSON numbers of whole tokens or whole collateral, token ids"
    " are decimal strings."
)

Context = NamedDependency[DataContext]
UseCase = Callable[[DataContext, Query], Awaitable[Any]]


async def _answer(use_case: UseCase, request: AnyRequest, context: DataContext) -> JsonResponse:
    return read_json(request, await use_case(context, Query.of(request)))


async def _recent_answer(
    use_case: UseCase, request: AnyRequest, context: DataContext
) -> JsonResponse:
    """Return an answer over all wallets, which is kept for a moment."""

    async def compute() -> bytes:
        return encode_json(await use_case(context, Query.of(request)))

    key = f"{use_case.__name__}?{request.scope['query_string'].decode('latin-1')}"
    content, left_s = await context.recent.get(key, compute)
    return encoded_json(request, content, kept_s=left_s)


@get("/", opt=describe(Success(dict[str, str], "It is there."), tag="Status"))
async def get_root() -> JsonResponse:
    """Answer when the API is reachable."""
    return json_response({"data": "OK"})


@get(
    "/positions",
    opt=describe(
        tagged(list[responses.PositionResponse], "A page of open positions."),
        *portfolio.POSITION_PARAMETERS,
        tag="Portfolio",
    ),
)
async def get_positions(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a wallet's open positions."""
    return await _answer(portfolio.list_positions, request, context)


@get(
    "/positions/{token:str}/ledger",
    opt=describe(
        tagged(responses.LedgerResponse, "A page of the changes of a position."),
        *ledger.PARAMETERS,
        ledger.TOKEN,
        tag="Portfolio",
    ),
)
async def get_ledger(request: AnyRequest, context: Context, token: FromPath[str]) -> JsonResponse:
    """Return every change of a wallet's position in a token, with its causes."""
    return read_json(request, await ledger.show_ledger(context, Query.of(request), token))


@get(
    "/owed",
    opt=describe(
        tagged(responses.OwedPage, "Tokens that exchanges keep for the wallet."),
        *owed_tokens.PARAMETERS,
        refusals=(ChainUnavailable, ChainInconsistent, RpcRefused),
        tag="Portfolio",
    ),
)
async def get_owed(request: AnyRequest, context: Context) -> JsonResponse:
    """Return tokens that a wallet refused when a match delivered them, and can claim."""
    return await _answer(owed_tokens.list_owed, request, context)


@get(
    "/closed-positions",
    opt=describe(
        tagged(list[responses.PositionResponse], "A page of closed positions."),
        *portfolio.CLOSED_PARAMETERS,
        tag="Portfolio",
    ),
)
async def get_closed_positions(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a wallet's closed positions."""
    return await _answer(portfolio.list_closed_positions, request, context)


@get(
    "/value",
    opt=describe(
        tagged(list[responses.Value], "The worth of all open positions: one entry."),
        USER,
        MARKET,
        tag="Portfolio",
    ),
)
async def get_value(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the value of a wallet's open positions."""
    return await _answer(portfolio.list_values, request, context)


@get(
    "/traded",
    opt=describe(
        tagged(responses.Traded, "The number of markets traded in."), USER, tag="Portfolio"
    ),
)
async def get_traded(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the number of markets in which a wallet traded."""
    return await _answer(portfolio.count_traded, request, context)


@get(
    "/volume",
    opt=describe(
        tagged(responses.Volume, "The collateral traded, as maker and as taker."),
        USER,
        tag="Portfolio",
    ),
)
async def get_volume(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the collateral that a wallet traded."""
    return await _answer(portfolio.sum_volume, request, context)


@get(
    "/holders",
    opt=describe(
        tagged(list[responses.TokenHolders], "An entry for each outcome token."),
        *metrics.HOLDERS_PARAMETERS,
        tag="Markets",
    ),
)
async def get_holders(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the holders of the outcome tokens of markets."""
    return await _answer(metrics.list_holders, request, context)


@get(
    "/oi",
    opt=describe(
        tagged(list[responses.MarketValue], "Collateral locked behind each condition."),
        *metrics.OPEN_INTEREST_PARAMETERS,
        tag="Markets",
    ),
)
async def get_open_interest(request: AnyRequest, context: Context) -> JsonResponse:
    """Return open interests: of some markets, or the largest 500."""
    return await _answer(metrics.list_open_interests, request, context)


@get(
    "/solvency",
    opt=describe(
        tagged(responses.SolvencyResponse, "What contracts hold, and what is claimed."),
        *solvency.PARAMETERS,
        refusals=(NothingIndexed, ChainUnavailable, ChainInconsistent, RpcRefused),
        tag="Markets",
    ),
)
async def get_solvency(request: AnyRequest, context: Context) -> JsonResponse:
    """Compare the collateral on the chain with the claims on it, in total and by condition."""
    return await _answer(solvency.report_solvency, request, context)


@get(
    "/live-volume",
    opt=describe(
        tagged(list[responses.LiveVolume], "Volume of each market and of all: one entry."),
        *metrics.LIVE_VOLUME_PARAMETERS,
        refusals=(MissingParameter,),
        tag="Markets",
    ),
)
async def get_live_volume(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the volume of markets since they opened."""
    return await _answer(metrics.list_live_volumes, request, context)


@get(
    "/trades",
    opt=describe(
        tagged(list[responses.TradeResponse], "A page of trades, the newest first."),
        *activity.TRADE_PARAMETERS,
        refusals=(MissingParameter,),
        tag="Activity",
    ),
)
async def get_trades(request: AnyRequest, context: Context) -> JsonResponse:
    """Return trades that the chain settled."""
    return await _answer(activity.list_trades, request, context)


@get(
    "/activity",
    opt=describe(
        tagged(list[responses.ActivityResponse], "A page of what the wallet did."),
        *activity.ACTIVITY_PARAMETERS,
        tag="Activity",
    ),
)
async def get_activity(request: AnyRequest, context: Context) -> JsonResponse:
    """Return trades, splits, merges, redemptions and conversions of a wallet."""
    return await _answer(activity.list_activities, request, context)


@get(
    "/export/{file:str}",
    opt=describe(
        Success(bytes, "Rows in the order of their cursors.", "*/*"),
        *exports.PARAMETERS,
        exports.FILE,
        refusals=(UnknownRecord, NotServed),
        tag="Activity",
    ),
)
async def export_rows(request: AnyRequest, context: Context, file: FromPath[str]) -> Stream:
    """Return a wallet's trades, positions or ledger as CSV, as lines of JSON or as Parquet."""
    found = await exports.begin_export(context, Query.of(request), file)
    return Stream(found.parts, media_type=found.media_type, headers=NOT_STORED)


@get(
    ["/referrers", "/affiliates"],
    opt=describe(
        tagged(list[responses.FeeAggregate], "An entry for each exchange, the latest first."),
        *referrals.PARAMETERS,
        tag="Referrals",
    ),
)
async def get_fee_shares(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the fees that an address shares, and what the wallets that it referred have traded."""
    return await _answer(referrals.list_fee_shares, request, context)


@get(
    "/v1/leaderboard",
    opt=describe(
        tagged(list[responses.TraderRow], "A page of the leaderboard."),
        *leaderboards.TRADERS_PARAMETERS,
        tag="Leaderboards",
    ),
)
async def get_leaderboard(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the wallets with the largest gain or volume."""
    return await _recent_answer(leaderboards.list_traders, request, context)


@get(
    ["/v1/leaderboard/biggest-wins", "/v1/biggest-winners"],
    opt=describe(
        tagged(list[responses.WinRow], "A page of the largest wins."),
        *leaderboards.WINS_PARAMETERS,
        tag="Leaderboards",
    ),
)
async def get_biggest_wins(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the positions that were closed with the largest gains."""
    return await _recent_answer(leaderboards.list_wins, request, context)


@get(
    "/v1/builders/leaderboard",
    opt=describe(
        Success(list[responses.BuilderRow], "An empty list."),
        *leaderboards.BUILDERS_PARAMETERS,
        tag="Builders",
    ),
)
async def get_builders(request: AnyRequest) -> JsonResponse:
    """Return an empty list, always: `/builders/leaderboard` ranks builders."""
    return json_response(leaderboards.list_builders(Query.of(request)))


@get(
    "/v1/builders/volume",
    opt=describe(
        Success(list[responses.BuilderRow], "An empty list."),
        *leaderboards.BUILDER_VOLUMES_PARAMETERS,
        tag="Builders",
    ),
)
async def get_builder_volumes(request: AnyRequest) -> JsonResponse:
    """Return an empty list, always: `/builders/volume` has what they traded."""
    return json_response(leaderboards.list_builder_volumes(Query.of(request)))


@get(
    "/builders/leaderboard",
    opt=describe(
        tagged(list[responses.BuilderRow], "A page of the leaderboard."),
        *builder_volumes.LEADERBOARD_PARAMETERS,
        tag="Builders",
    ),
)
async def get_builder_ranking(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the builders whose orders traded the most."""
    return await _recent_answer(builder_volumes.rank_builders, request, context)


@get(
    "/builders/volume",
    opt=describe(
        tagged(list[responses.BuilderDayRow], "A page of days, the newest first."),
        *builder_volumes.VOLUME_PARAMETERS,
        tag="Builders",
    ),
)
async def get_builder_days(request: AnyRequest, context: Context) -> JsonResponse:
    """Return what the orders of builders traded on each day."""
    return await _recent_answer(builder_volumes.list_builder_days, request, context)


ROUTES: Final = (
    get_root,
    get_positions,
    get_ledger,
    get_owed,
    get_closed_positions,
    get_value,
    get_traded,
    get_volume,
    get_holders,
    get_open_interest,
    get_live_volume,
    get_solvency,
    get_trades,
    get_activity,
    export_rows,
    get_fee_shares,
    get_leaderboard,
    get_biggest_wins,
    get_builders,
    get_builder_volumes,
    get_builder_ranking,
    get_builder_days,
)


def build_app(context: DataContext, npm_folder: Path | None = None) -> Litestar:
    """Return the application of the data API, its paths starting at /."""
    return build_application(
        api=Api("data", TITLE, ABOUT, DOCUMENTED),
        routes=ROUTES,
        context=context,
        body_of=data_body,
        npm_folder=npm_folder,
    )
