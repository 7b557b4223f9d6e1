"""Placeholder routes, such as rewards: clients call them, and they return empty responses.

There are no rewards and no requests for quotes. The answers have the shape that clients read.
"""

from typing import Any, Final

from litestar import delete, get, post

from foretell.domain.errors.http import NotServed
from foretell.edge.codec import AnyRequest, JsonResponse, WireObject, decode, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2
from foretell.trading.handlers.history import ENTRIES_PER_PAGE
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, authenticate
from foretell.trading.wire.pages import END, Page

EMPTY_PAGE: Final = {"limit": ENTRIES_PER_PAGE, "count": 0, "next_cursor": END, "data": []}
EMPTY_CAMEL_PAGE: Final = {
    "data": [],
    "nextCursor": END,
    "limit": ENTRIES_PER_PAGE,
    "count": 0,
    "totalCount": 0,
}
RFQ: Final = "requests for quotes"

_NOTHING: Final = Success(None, "")
_EMPTY: Final = Success(Page[Any], "An empty page.")


class CamelPage(WireObject, frozen=True, kw_only=True):
    """A page of requests or quotes."""

    data: list[Any]
    next_cursor: str
    limit: int
    count: int
    total_count: int


@get(
    ["/rewards/markets/current", "/rewards/markets/multi", "/rewards/markets/{condition_id:str}"],
    opt=describe(_EMPTY, tag=refused.PLACEHOLDERS),
)
async def get_reward_markets() -> JsonResponse:
    """Return no rewarded market."""
    return json_response(EMPTY_PAGE)


@get("/rebates/current", opt=describe(Success(list[str], "Nothing."), tag=refused.PLACEHOLDERS))
async def get_rebates() -> JsonResponse:
    """Return no rebate."""
    return json_response([])


@get(
    ["/rewards/user", "/rewards/user/markets"],
    opt=describe(_EMPTY, tag=refused.PLACEHOLDERS, security=L2),
)
async def get_user_rewards(request: AnyRequest, context: Context) -> JsonResponse:
    """Return no rewards of the caller."""
    await authenticate(request, context)
    return json_response(EMPTY_PAGE)


@get(
    "/rewards/user/total",
    opt=describe(Success(list[str], "Nothing."), tag=refused.PLACEHOLDERS, security=L2),
)
async def get_user_reward_totals(request: AnyRequest, context: Context) -> JsonResponse:
    """Return no total of the caller's rewards."""
    await authenticate(request, context)
    return json_response([])


@get(
    "/rewards/user/percentages",
    opt=describe(Success(dict[str, str], "Nothing."), tag=refused.PLACEHOLDERS, security=L2),
)
async def get_user_reward_percentages(request: AnyRequest, context: Context) -> JsonResponse:
    """Return no share of any reward."""
    await authenticate(request, context)
    return json_response({})


@get("/rfq/config", opt=describe(Success(dict[str, bool], "Off."), tag=refused.PLACEHOLDERS))
async def get_rfq_config() -> JsonResponse:
    """Return that requests for quotes are off."""
    return json_response({"enabled": False})


@get(
    [
        "/rfq/data/requests",
        "/rfq/data/quotes",
        "/rfq/data/requester/quotes",
        "/rfq/data/quoter/quotes",
    ],
    opt=describe(Success(CamelPage, "An empty page."), tag=refused.PLACEHOLDERS, security=L2),
)
async def get_rfq_lists(request: AnyRequest, context: Context) -> JsonResponse:
    """Return no request and no quote."""
    await authenticate(request, context)
    return json_response(EMPTY_CAMEL_PAGE)


@get(
    "/rfq/data/best-quote",
    opt=describe(_NOTHING, tag=refused.PLACEHOLDERS, security=L2, refusals=(NotServed,)),
)
async def get_best_quote(request: AnyRequest, context: Context) -> JsonResponse:
    """Refuse to return a best quote: there are no requests for quotes (L2)."""
    await authenticate(request, context)
    raise NotServed(RFQ)


@post(
    ["/rfq/request", "/rfq/quote", "/rfq/request/accept", "/rfq/quote/approve"],
    status_code=200,
    opt=describe(_NOTHING, tag=refused.PLACEHOLDERS, security=L2, refusals=(NotServed,)),
)
async def refuse_rfq(request: AnyRequest, context: Context) -> JsonResponse:
    """Refuse a request for quotes, a quote, and what follows from them (L2)."""
    await authenticate(request, context)
    raise NotServed(RFQ)


@delete(
    ["/rfq/request", "/rfq/quote"],
    status_code=200,
    opt=describe(_NOTHING, tag=refused.PLACEHOLDERS, security=L2, refusals=(NotServed,)),
)
async def refuse_rfq_cancel(request: AnyRequest, context: Context) -> JsonResponse:
    """Refuse to cancel a request for quotes or a quote: there are none (L2)."""
    await authenticate(request, context)
    raise NotServed(RFQ)


@get("/data/pre-migration-orders", opt=describe(_EMPTY, tag=refused.PLACEHOLDERS, security=L2))
async def get_earlier_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Return no orders of an earlier system."""
    await authenticate(request, context)
    return json_response(EMPTY_PAGE)


@get(
    "/order-scoring",
    opt=describe(Success(dict[str, bool], "Not scoring."), tag=refused.PLACEHOLDERS, security=L2),
)
async def get_order_scoring(request: AnyRequest, context: Context) -> JsonResponse:
    """Return that an order does not score: there are no rewards."""
    await authenticate(request, context)
    return json_response({"scoring": False})


@post(
    "/orders-scoring",
    status_code=200,
    opt=describe(
        Success(dict[str, bool], "Not scoring."),
        tag=refused.PLACEHOLDERS,
        security=L2,
        body=list[str],
    ),
)
async def get_orders_scoring(request: AnyRequest, context: Context) -> JsonResponse:
    """Return that none of the orders scores."""
    _, raw = await authenticate(request, context)
    return json_response(dict.fromkeys(decode(raw, list[str]), False))


ROUTES: Final = (
    get_reward_markets,
    get_rebates,
    get_user_rewards,
    get_user_reward_totals,
    get_user_reward_percentages,
    get_rfq_config,
    get_rfq_lists,
    get_best_quote,
    refuse_rfq,
    refuse_rfq_cancel,
    get_earlier_orders,
    get_order_scoring,
    get_orders_scoring,
)
